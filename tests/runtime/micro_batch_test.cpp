// Functions whose batch is computed part by part give what they give for the batch at once.
#include <fmt/format.h>

#include <string>
#include <thread>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr std::int64_t image_count = 37;
const std::vector<std::int64_t> parts{1, 36, 1000};

// A network with dropout whose images are bytes, or come as an argument; all in one dtype.
struct NetworkWithDropout {
    explicit NetworkWithDropout(DType real) : dtype(real) {}
    DType dtype;
    Random random{7};
    Array values = random_array(uint8, {image_count, 2, 9, 8}, random, 0, 255),
          classes = random_array(int32, {image_count}, random, 0, 4);
    Shared filters = shared(random_array(dtype, {4, 2, 3, 2}, random, -1, 1), "filters"),
           bias = shared(random_array(dtype, {4}, random, -1, 1), "bias"),
           layer = shared(random_array(dtype, {4 * 3 * 3, 5}, random, -1, 1), "layer");
    RandomStream stream{3};
    Expr x = input(dtype, {-1, 2, 9, 8}, "x"), y = ivector("y");
    Expr hidden = relu(max_pool(conv2d(x / 255, filters), 2) + reshape(bias, {1, 4, 1, 1}));
    Expr scores = dot(dropout(flatten(hidden, 2), 0.5, stream), layer);
    Expr loss = mean(categorical_crossentropy(softmax(scores), y)) + 0.01 * sum(sqr(layer));
    Expr wrong = mean(cast(neq(argmax(scores, {1}), cast(y, int64)), dtype));
    std::vector<Shared> parameters() const { return {filters, bias, layer}; }
    std::vector<Expr> outputs() const {
        return {loss,
                wrong,
                scores,
                max(scores),
                min(scores, {0}),
                transpose(scores, {1, 0}),
                argmax(scores, {1}),
                sum(cast(y, int64)),
                cast(x, uint8)[Slice{}]};
    }
    Updates updates() const { return sgd(loss, parameters(), 0.1); }
};

// Results, then new values of the parameters, after three steps.
std::vector<Array> after_steps(const NetworkWithDropout& net, FunctionOptions o, bool as_givens) {
    std::vector<Array> before, all;
    for (const Shared& p : net.parameters()) before.push_back(p.get_value());
    o.updates = net.updates();
    o.name = "net";
    std::vector<Input> inputs{net.x, net.y};
    if (as_givens) {
        inputs.clear();
        const Shared images = shared(net.values, "images"), labels = shared(net.classes, "labels");
        o.givens = {{net.x, cast(images, net.dtype)}, {net.y, labels}};
    }
    Function f = function(inputs, net.outputs(), o);
    for (int step = 0; step < 3; ++step) {
        const Results r = as_givens ? f() : f(net.values.as(net.dtype), net.classes);
        for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
    }
    for (const Shared& p : net.parameters()) all.push_back(p.get_value());
    for (std::size_t k = 0; k < before.size(); ++k) {
        Shared p = net.parameters()[k];
        p.set_value(before[k]);
    }
    return all;
}

}  // namespace

TEST_CASE("a training step in parts is the step of the whole batch", "[core][runtime][micro_batch]") {
    for (const DType dtype : {float64, float32}) {
        const double tolerance = dtype == float64 ? 1e-12 : 1e-5;
        // The random stream goes on from run to run: each run has a network of its own.
        const std::vector<Array> expected =
            after_steps(NetworkWithDropout(dtype), {.device = "reference"}, false);
        for (const std::string& device : cpu_and_emulator())
            for (const std::int64_t rows :
                 device == "cpu" && dtype == float64 ? parts : std::vector<std::int64_t>{16})
                for (const bool as_givens : {false, true}) {
                    INFO(device << ", " << name_of(dtype) << ", parts of " << rows
                                << (as_givens ? ", givens" : ""));
                    const std::vector<Array> got = after_steps(
                        NetworkWithDropout(dtype), {.device = device, .micro_batch = rows}, as_givens);
                    CHECK(differences(got, expected, tolerance) == "");
                }
    }
}

TEST_CASE("lengths of a variable that a given replaces are those of what replaces it",
          "[core][runtime][micro_batch]") {
    Random random(9);
    const Shared images = shared(random_array(uint8, {23, 2, 5, 4}, random, 0, 255), "images");
    const Expr x = tensor4("x");
    const Expr y = (x - mean(x)) / 128;
    const std::vector<Expr> outputs{mean(sqr(y)), flatten(y, 2), sum(y, {0, 2})};
    const auto run = [&](const std::string& device, std::int64_t rows) {
        return function({}, outputs,
                        {.givens = {{x, cast(images, float32)}}, .device = device, .micro_batch = rows})();
    };
    const Results expected = run("reference", 0);
    for (const std::string& device : cpu_and_emulator()) {
        const Results got = run(device, 6);
        for (std::size_t k = 0; k < outputs.size(); ++k)
            CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}) == "");
    }
}

TEST_CASE("what replaces a variable may have lengths that only a call tells",
          "[core][runtime][micro_batch]") {
    Random random(10);
    const Expr x = tensor4("x"), raw = input(uint8, {-1, -1, -1, -1}, "raw"), m = matrix("m"),
               q = matrix("q"), r = matrix("r");
    const Array images = random_array(uint8, {7, 2, 3, 4}, random, 0, 255),
                left = random_array(float32, {7, 3}, random), right = random_array(float32, {7, 2}, random);
    for (const std::string& device : cpu_and_emulator())
        for (const bool specialise : {true, false}) {
            INFO(device << (specialise ? "" : ", for all lengths"));
            std::vector<Array> expected;
            for (const std::int64_t rows : {0, 3}) {
                const auto with = [&](const Given& given) {
                    FunctionOptions o{.givens = {given}, .device = device, .micro_batch = rows};
                    o.specialise = specialise;
                    return o;
                };
                Function f = function({raw}, sum(sqr(x), {1, 2, 3}), with({x, cast(raw, float32) / 255}));
                Function g = function({q, r}, sum(sqr(m), {1}), with({m, concatenate({q, r}, 1)}));
                const std::vector<Array> got{f(images)[0], g(left, right)[0]};
                if (rows == 0) expected = got;
                for (std::size_t k = 0; k < 2; ++k)
                    CHECK(difference(got[k], expected[k], {.of_largest = 1e-6}) == "");
            }
        }
}

TEST_CASE("statistics of the batch make further passes over it", "[core][runtime][micro_batch]") {
    const Expr x = input(float64, {-1, 6}, "x");
    const Expr centred = x - mean(x, {0}, {.keepdims = true});
    const Expr scaled = centred / sqrt(mean(sqr(centred), {0}, {.keepdims = true}) + 1e-3);
    const std::vector<Expr> outputs{scaled,
                                    sum(scaled * x, {0}),
                                    dot(transpose(scaled, {1, 0}), scaled),
                                    prod(x, {0}),
                                    max(scaled, {0}),
                                    any(gt(scaled, 2.5), {0}),
                                    all(gt(x, -2.9), {0}),
                                    argmax(scaled, {0}),
                                    argmin(x, {0}),
                                    argmax(floor(x)),
                                    argmin(floor(x), {0})};
    Random random(5);
    Function reference = function({x}, outputs, {.device = "reference"});
    for (const std::string& device : cpu_and_emulator()) {
        Function f = function({x}, outputs, {.device = device, .micro_batch = 10});
        CHECK_THAT(f.report(Detail::complete), ContainsSubstring("in 3 passes over them"));
        for (const std::int64_t rows : {1, 9, 10, 11, 40}) {
            INFO(device << ", " << rows << " rows");
            const Array a = random_array(float64, {rows, 6}, random);
            const Results got = f(a), expected = reference(a);
            for (std::size_t k = 0; k < outputs.size(); ++k)
                CHECK(difference(got[k], expected[k], {.relative = 1e-11, .of_largest = 1e-12}) == "");
        }
    }
}

TEST_CASE("sums of small integers in floating point are those of the whole batch, to the bit",
          "[core][runtime][micro_batch]") {
    Random random(11);
    // Sums beyond 2^24, which float32 rounds.
    const Shared bytes = shared(random_array(uint8, {41, 3, 30, 30}, random, 0, 255), "bytes"),
                 words = shared(random_array(int16, {41, 2000}, random, 0, 32767), "words");
    const Array digits = random_array(uint8, {41, 3, 60, 60}, random, 0, 15);
    const PackedShared packed = shared(digits, {.storage = uint4, .scale = 17, .name = "packed"});
    for (const DType dtype : {float32, float64}) {
        const Expr x = tensor4("x", dtype), s = tensor4("s", dtype), w = matrix("w", dtype),
                   p = tensor4("p", float32);
        const std::vector<Expr> outputs{mean(x),
                                        mean(x, {0, 2, 3}),
                                        sum(transpose(x, {3, 2, 1, 0})),
                                        x - mean(x),
                                        sum(x / 255),
                                        mean(s),
                                        (s - mean(s)) / 2,
                                        sum(reshape(x, {-1, 27, 100}), {0, 1}),
                                        sum(w * 0.1, {0}),
                                        mean(cast(gt(w, 77), dtype)),
                                        mean(p),
                                        sum(x * s, {1, 2, 3}) + sum(w, {1}) + cast(sum(p, {1, 2, 3}), dtype)};
        for (const std::string& device : cpu_and_emulator()) {
            const auto run = [&](std::int64_t rows) {
                return function({}, outputs,
                                {.givens = {{x, cast(bytes, dtype)},
                                            {s, cast(bytes, dtype) / 255},
                                            {w, cast(words, dtype)},
                                            {p, packed[Slice{0, 41}]}},
                                 .device = device,
                                 .micro_batch = rows})();
            };
            const Results whole = run(0);
            for (const std::int64_t rows : {7, 40}) {
                const Results got = run(rows);
                for (std::size_t k = 0; k < outputs.size(); ++k) {
                    INFO(device << ", " << name_of(dtype) << ", parts of " << rows << ": result " << k);
                    CHECK(same(got[k], whole[k]));
                }
            }
        }
    }
}

TEST_CASE("variables of another length than the batch may be replaced", "[core][runtime][micro_batch]") {
    Random random(12);
    const Shared left = shared(random_array(float32, {5, 3}, random), "left"),
                 right = shared(random_array(float32, {7, 3}, random), "right");
    const Expr x = matrix("x"), y = matrix("y");
    const std::vector<Expr> outputs{mean(x), dot(y, transpose(x - mean(x), {1, 0})), sum(y) * mean(x, {1})};
    for (const std::string& device : cpu_and_emulator()) {
        const auto run = [&](std::int64_t rows) {
            return function({}, outputs,
                            {.givens = {{x, left}, {y, right}}, .device = device, .micro_batch = rows})();
        };
        const Results whole = run(0), got = run(2);
        for (std::size_t k = 0; k < outputs.size(); ++k)
            CHECK(difference(got[k], whole[k], {.of_largest = 1e-6}) == "");
    }
}

TEST_CASE("no rows, and integers to the last bit", "[core][runtime][micro_batch]") {
    const Expr x = input(int32, {-1, 3}, "x");
    const std::vector<Expr> outputs{x * 2, sum(x), sum(cast(x, int64), {0}), prod(cast(x, uint8), {0})};
    Random random(6);
    for (const std::string& device : cpu_and_emulator()) {
        Function whole = function({x}, outputs, {.device = device}),
                 f = function({x}, outputs, {.device = device, .micro_batch = 4});
        for (const std::int64_t rows : {0, 1, 4, 19}) {
            INFO(device << ", " << rows << " rows");
            const Array a = random_array(int32, {rows, 3}, random, -2e9, 2e9);
            const Results got = f(a), expected = whole(a);
            for (std::size_t k = 0; k < outputs.size(); ++k) CHECK(same(got[k], expected[k]));
        }
    }
}

TEST_CASE("maxima and minima of every dtype begin below and above all of its numbers",
          "[core][runtime][micro_batch]") {
    const Expr x = input(float64, {-1, 2}, "x");
    std::vector<Expr> outputs;
    for (const DType dtype : {boolean, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16,
                              bfloat16, float32, float64}) {
        const Expr of_dtype = dtype == boolean ? neq(x, 0) : cast(x, dtype);
        for (const Expr& value : {max(of_dtype), min(of_dtype), max(of_dtype, {0}), min(of_dtype, {0})})
            outputs.push_back(value);
    }
    for (const std::string& device : cpu_and_emulator()) {
        Function whole = function({x}, outputs, {.device = device}),
                 f = function({x}, outputs, {.device = device, .micro_batch = 3});
        for (const double number : {0, 1, 99}) {
            const Array a = full_of({7, 2}, number, float64);
            const Results got = f(a), expected = whole(a);
            for (std::size_t k = 0; k < outputs.size(); ++k) {
                INFO(device << ", " << number << ", result " << k);
                CHECK(same(got[k], expected[k]));
            }
        }
    }
}

TEST_CASE("NaN and infinities pass through totals", "[core][runtime][micro_batch]") {
    const Expr x = input(float32, {-1}, "x");
    Function f = function({x}, {max(x), min(x), sum(x), argmax(x), argmin(x)}, {.micro_batch = 2});
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    const Results quiet = f(std::vector<float>{1, nan, 3, 4, 5});
    for (std::size_t k = 0; k < 3; ++k) CHECK(std::isnan(quiet[k].at(0)));
    CHECK(quiet[3].at(0) == 1);
    CHECK(quiet[4].at(0) == 1);
    const Results late = f(std::vector<float>{-inf, 2, 2, nan, nan, -inf});
    CHECK(late[3].at(0) == 3);
    const Results equal = f(std::vector<float>{-inf, 2, 2, inf, inf, -inf, inf});
    CHECK(equal[3].at(0) == 3);
    CHECK(equal[4].at(0) == 0);
    const Results low = f(std::vector<float>{-inf, -inf, -inf});
    CHECK(low[0].at(0) == -inf);
    CHECK(low[2].at(0) == -inf);
    CHECK(low[3].at(0) == 0);
    CHECK(f(std::vector<float>{inf, inf, inf})[4].at(0) == 0);
}

TEST_CASE("what fails in a part changes nothing, and says where", "[core][runtime][micro_batch]") {
    const NetworkWithDropout net(float32);
    for (const std::string& device : cpu_and_emulator()) {
        Function f = function({net.x, net.y}, net.outputs(),
                              {.updates = net.updates(), .device = device, .micro_batch = 10});
        Array labels(int32, {image_count});
        static_cast<std::int32_t*>(labels.mutable_data())[25] = 7;
        const Array images = net.values.as(float32), before = net.layer.get_value();
        const std::string message = error_of([&] { f(images, labels); });
        CHECK_THAT(message, ContainsSubstring("7") && ContainsSubstring("in rows 20 to 30 of the batch"));
        CHECK(same(net.layer.get_value(), before));
        CHECK_THAT(error_of([&] { f(images, labels.rows(0, 9)); }),
                   ContainsSubstring("micro_batch_test.cpp"));
        CHECK(same(net.layer.get_value(), before));
        CHECK(error_of([&] { f(images, net.classes); }) == "");
        CHECK_FALSE(same(net.layer.get_value(), before));
    }
}

TEST_CASE("a loop takes whole steps in parts", "[core][runtime][micro_batch]") {
    Random random(8);
    const Shared data = shared(random_array(int8, {60, 4}, random, -9, 9), "data"),
                 w = shared(zeros({4}, float64), "w");
    const Expr i = lscalar("i"), x = input(float64, {-1, 4}, "x");
    const Expr error = dot(x, w) - 1, cost = mean(sqr(error));
    const auto run = [&](std::int64_t rows, const char* device) {
        Shared target = w;
        target.set_value(zeros({4}, float64));
        Function f = function({i}, {cost, error},
                              {.updates = sgd(cost, {w}, 0.001),
                               .givens = {{x, cast(data[range(i * 20, (i + 1) * 20)], float64)}},
                               .device = device,
                               .micro_batch = rows});
        const Results r = f.loop(0, 3);
        CHECK(f.loop(0, 0)[1].shape() == Dims{0, 20});
        return std::vector<Array>{r[0], r[1], w.get_value()};
    };
    const std::vector<Array> expected = run(0, "reference");
    for (const std::string& device : cpu_and_emulator())
        CHECK(differences(run(7, device.c_str()), expected, 1e-13) == "");
}

TEST_CASE("calls from several threads take turns at the totals", "[core][runtime][micro_batch]") {
    const Expr x = tensor3("x");
    Function f = function({x}, {sum(x), max(x)}, {.micro_batch = 3});
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int k = 0; k < 20; ++k) {
                const Results r = f(full_of({10, 2 + t, 3}, t + 1));
                wrong[static_cast<std::size_t>(t)] +=
                    r[0].at(0) != 10.0 * (2 + t) * 3 * (t + 1) || r[1].at(0) != t + 1;
            }
        });
    for (std::thread& t : threads) t.join();
    CHECK(wrong == std::vector<int>{0, 0, 0, 0});
}

TEST_CASE("intermediate values take the memory of a part", "[core][runtime][micro_batch]") {
    const Expr x = matrix("x");
    const Shared w = shared(full_of({30, 500}, 0.01), "w"), v = shared(full_of({500, 30}, 0.01), "v");
    const Expr y = mean(sqr(dot(tanh(dot(x, w)), v)));
    Function whole = function({x}, y), parts_of_100 = function({x}, y, {.micro_batch = 100});
    const Array a = full_of({5000, 30}, 0.5);
    CHECK(parts_of_100(a)[0].at(0) == Approx(whole(a)[0].at(0)).epsilon(1e-5));
    CHECK(parts_of_100.peak_bytes() * 4 < whole.peak_bytes());
}

TEST_CASE("what needs all rows at once is refused with its line", "[core][runtime][micro_batch]") {
    const Expr x = input(float32, {-1, 3}, "x"), h = input(float16, {-1}, "h");
    const Shared rows = shared(zeros({5, 3}), "rows");
    const auto refused = [&](const Expr& y, FunctionOptions o = {}, const Expr& of = {}) {
        o.micro_batch = 2;
        return error_of([&] { function({of.is_null() ? x : of}, y, o); });
    };
    const auto here = [](unsigned line) {
        return ContainsSubstring("micro_batch_test.cpp:" + std::to_string(line));
    };
    CHECK_THAT(refused(sort(x, 0)), here(__LINE__) && ContainsSubstring("all rows of the batch at once"));
    CHECK_THAT(refused(argmax(transpose(x, {1, 0}))), here(__LINE__) && ContainsSubstring("micro-batches"));
    CHECK_THAT(refused(cumsum(x, 0)), here(__LINE__));
    CHECK_THAT(refused(dot(x, transpose(x, {1, 0}))), here(__LINE__));
    CHECK_THAT(refused(x + x[Slice{.step = -1}]), here(__LINE__) && ContainsSubstring("other rows of"));
    CHECK_THAT(refused(x + sum(x[Slice{.step = -1}], {0})), here(__LINE__));
    CHECK_THAT(refused(sum(h), {}, h), here(__LINE__) && ContainsSubstring("half type"));
    // A variable has so many rows as it has, all of which an update takes at once.
    CHECK_THAT(refused(sum(x), {.updates = {{rows, x}}}),
               ContainsSubstring("new value of \"rows\"") && ContainsSubstring("set_value()"));
    CHECK_THAT(refused(Expr(shared(Array(1.0f), "one")) * 2, {.on_unused_input = OnUnused::ignore}),
               ContainsSubstring("no output or update"));
    CHECK_THAT(error_of([&] { function({x}, x, {.micro_batch = -1}); }),
               ContainsSubstring("micro_batch is -1"));
}

TEST_CASE("a call that does not fit its limit at once is computed in parts that do",
          "[core][runtime][micro_batch]") {
    const Expr x = matrix("x");
    const Shared w = shared(full_of({30, 500}, 0.01), "w"), v = shared(full_of({500, 30}, 0.01), "v");
    const Expr y = mean(sqr(dot(tanh(dot(x, w)), v)));
    const Updates updates = adam(y, {w, v}, 0.0);
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const std::int64_t many = device == "cpu" ? 4000 : 400;
        const Array a = full_of({many, 30}, 0.5), few = full_of({10, 30}, 0.5);
        Function whole = function({x}, {y, dot(x, w)}, {.updates = updates, .device = device});
        const Results expected = whole(a);
        const std::int64_t peak = whole.memory_plan().peak_bytes;
        std::int64_t before = peak + 1;
        for (const int share : {2, 3}) {
            const std::int64_t limit = whole.memory_plan({{x, {10, 30}}}).peak_bytes + a.bytes() +
                                       2 * many * 500 * 4 + (peak / share) / 2;
            Function f = function({x}, {y, dot(x, w)},
                                  {.updates = updates, .device = device, .memory_limit = ByteCount{limit}});
            f(few);
            const Results got = f(a);
            CHECK(got[0].at(0) == Approx(expected[0].at(0)).epsilon(1e-5));
            CHECK(difference(got[1], expected[1], {.of_largest = 1e-5}) == "");
            f(few);
            CHECK(limit < before);
            before = limit;
        }
        Function tiny = function({x}, y, {.device = device, .memory_limit = 1_KiB});
        CHECK_THAT(error_of([&] { tiny(a); }), ContainsSubstring("memory_limit"));
        Function sorted = function({x}, sort(x, 0), {.device = device, .memory_limit = 1_KiB});
        CHECK_THAT(error_of([&] { sorted(a); }), ContainsSubstring("memory_limit") &&
                                                     ContainsSubstring("cannot be computed in parts") &&
                                                     ContainsSubstring("all rows of the batch at once"));
    }
}

TEST_CASE("a limit that parts of known lengths do not keep is refused before a call",
          "[core][runtime][micro_batch]") {
    const Expr x = input(float32, {1000, 32}, "x");
    const Shared w = shared(full_of({32, 256}, 0.1), "w");
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const auto make = [&](ByteCount limit) {
            return function({x}, {mean(tanh(dot(x, w)))},
                            {.device = device, .micro_batch = 100, .memory_limit = limit});
        };
        const std::int64_t peak = make({}).memory_plan().peak_bytes;
        CHECK_THAT(error_of([&] { make({peak - 1}); }),
                   ContainsSubstring("memory_limit") && ContainsSubstring("micro_batch_test.cpp"));
        CHECK(error_of([&] { make({peak})(zeros({1000, 32})); }) == "");
    }
}

TEST_CASE("parts take arguments whose lengths follow from others", "[core][runtime][micro_batch]") {
    const Expr x = matrix("x"), g = matrix("g");
    const Expr y = sum(x[{Slice{}, Slice{{}, {}, 2}}] * g);
    for (const bool specialise : {false, true}) {
        Function f = function({x, g}, y, {.specialise = specialise, .micro_batch = 2});
        CHECK(f(ones({5, 6}), ones({5, 3}))[0].item<double>() == 15);
        CHECK_THROWS_AS(f(ones({5, 6}), ones({5, 4})), ShapeError);
        CHECK(f(ones({3, 7}), ones({3, 4}))[0].item<double>() == 12);
    }
}
