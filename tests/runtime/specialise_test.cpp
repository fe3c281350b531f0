// Functions of unknown trailing lengths are compiled for those of their calls.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cuda/emulator/memory.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"
#include "tests/support/threads.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::string specialise_test_line(unsigned line) { return "specialise_test.cpp:" + std::to_string(line); }

// A small network: a convolution, pooling and a layer for images of 9 x 8.
struct SmallConvNetwork {
    Random random{7};
    Shared filters = shared(random_array(float32, {4, 1, 3, 2}, random, -1, 1), "filters"),
           layer = shared(random_array(float32, {4 * 3 * 3, 5}, random, -1, 1), "layer");
    Expr scores(const Expr& x) const { return dot(flatten(max_pool(relu(conv2d(x, filters)), 2), 2), layer); }
};

// How many functions and versions were compiled while it lives.
class CompilesCounted {
  public:
    int operator()() const { return count_; }

  private:
    static Options verbose() {
        Options o = options();
        o.debug = 1;
        return o;
    }
    std::atomic<int> count_{0};
    const ScopedOptions options_{verbose()};
    const ScopedLog log_{[this](const std::string& line) {
        if (line.find("kernels and library calls") != std::string::npos) ++count_;
    }};
};

std::size_t count_of_lines(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++count;
    return count;
}

}  // namespace

TEST_CASE("the first call compiles for its trailing lengths, and other batches find that",
          "[core][runtime][specialise]") {
    const SmallConvNetwork net;
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const Expr x = tensor4("x"), declared = input(float32, {-1, 1, 9, 8}, "x");
        const CompilesCounted compiled;
        Function f = function({x}, {net.scores(x), mean(x)}, {.name = "net", .device = device});
        CHECK(compiled() == 0);
        CHECK(f.compiler_runs() == 0);
        Function known = function({declared}, {net.scores(declared), mean(declared)}, {.device = device});
        const int before = compiled();
        Random random(3);
        for (const std::int64_t n : {3, 0, 8, 5, 2}) {
            const Array images = random_array(float32, {n, 1, 9, 8}, random, -1, 1);
            const Results got = f(images), expected = known(images);
            for (std::size_t k = 0; k < 2; ++k) CHECK(same(got[k], expected[k]));
        }
        CHECK(compiled() == before + 1);
        CHECK(f.peak_bytes() == known.peak_bytes());
        CHECK_THAT(f.report(), ContainsSubstring("specialised for x = [n, 1, 9, 8]\n"));
        CHECK(f.report().find("Other versions") == std::string::npos);
        REQUIRE(f.kernels().size() == known.kernels().size());
        for (std::size_t k = 0; k < f.kernels().size(); ++k)
            CHECK(f.kernels()[k].name == known.kernels()[k].name);
        CHECK(f.compile_seconds() > 0);
    }
}

TEST_CASE("an evaluation has a version for single rows, a training has none", "[core][runtime][specialise]") {
    const SmallConvNetwork net;
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const Expr x = tensor4("x"), y = matrix("y"), single = input(float32, {1, 1, 9, 8}, "x"),
                   one = input(float32, {1, 6}, "y");
        const auto both = [&](const Expr& images, const Expr& other) {
            return function({images, other}, {net.scores(images), mean(other, 0)}, {.device = device});
        };
        Function f = both(x, y), of_single = both(single, one);
        Random random(4);
        const auto called = [&](Function& g, std::int64_t n, std::int64_t m) {
            return g(random_array(float32, {n, 1, 9, 8}, random, -1, 1),
                     random_array(float32, {m, 6}, random, -1, 1));
        };
        const CompilesCounted compiled;
        (void)called(f, 4, 4);
        CHECK_THAT(f.report(), ContainsSubstring("specialised for x = [n, 1, 9, 8], y = ["));
        (void)called(f, 1, 1);
        CHECK_THAT(f.report(), ContainsSubstring("specialised for x = [1, 1, 9, 8], y = [1, 6]"));
        const int before = compiled();
        for (const std::int64_t n : {1, 5, 1}) (void)called(f, n, n);
        CHECK(compiled() == before);
        const Array image = random_array(float32, {1, 1, 9, 8}, random, -1, 1),
                    row = random_array(float32, {1, 6}, random, -1, 1);
        const Results got = f(image, row), expected = of_single(image, row);
        for (std::size_t k = 0; k < 2; ++k) CHECK(same(got[k], expected[k]));

        const Shared w = shared(ones({6, 2}), "w");
        const Expr v = matrix("v"), z = matrix("z");
        Function step = function({v, z}, {}, {.updates = {{w, w + mean(dot(v, z))}}, .device = device});
        const auto matrices = [&](std::int64_t n) {
            step(random_array(float32, {n, 3}, random), random_array(float32, {3, 4}, random));
        };
        matrices(4);
        const int steps = compiled();
        matrices(1);
        CHECK(compiled() == steps);
    }
}

TEST_CASE("what knows its trailing lengths, or does not ask for them, is compiled by function()",
          "[core][runtime][specialise]") {
    const Shared w = shared(ones({6, 2}), "w");
    const Expr x = matrix("x"), v = bitale::vector("v"), k = input(float32, {-1, 3, 2}, "k"), y = matrix("y");
    CHECK(!function({x}, dot(x, w), {.device = "null"}).kernels().empty());
    CHECK(!function({v}, exp(v), {.device = "null"}).kernels().empty());
    CHECK(!function({k}, exp(k), {.device = "null"}).kernels().empty());
    CHECK(
        !function({x, v}, exp(v), {.device = "null", .on_unused_input = OnUnused::ignore}).kernels().empty());
    CHECK(!function({v, x}, exp(v) + cast(x.length(0), float32), {.device = "null"}).kernels().empty());
    // An update knows the shape of its variable.
    CHECK(!function({x, y}, dot(x, w), {.updates = {{w, w + y}}, .device = "null"}).kernels().empty());
    CHECK(function({x, y}, dot(x, y), {.device = "null"}).state().specialised != nullptr);
    CHECK(!function({x}, exp(x), {.device = "null", .specialise = false}).kernels().empty());
    Options o = options();
    o.specialise = false;
    const ScopedOptions scope(o);
    CHECK(!function({x}, exp(x), {.device = "null"}).kernels().empty());
    CHECK(function({x}, exp(x), {.device = "null", .specialise = true}).state().specialised != nullptr);
    const Function reference = function({x}, exp(x), {.device = "reference", .specialise = true});
    CHECK(reference.state().specialised == nullptr);
    CHECK(reference.report({{x, {1, 2}}}) == reference.report());
    CHECK(reference.kernels({}).empty());
}

TEST_CASE("before the first call it is told which lengths are missing, and example shapes tell them",
          "[core][runtime][specialise]") {
    const TemporaryFolder folder;
    Options o = options();
    o.dump = folder / "dump";
    const ScopedOptions scope(o);
    const Expr x = tensor4("x"), w = matrix("w");
    const std::string line_x = specialise_test_line(__LINE__ - 1);
    const Array by_default = ones({4, 3});
    Function f = function({x, Input(w, by_default)}, {exp(x), sum(w, {1})}, {.name = "f", .device = "cpu"});
    const std::string line_f = specialise_test_line(__LINE__ - 1);
    const std::string missing = "not known yet: \"x\" (float32 [x.0, x.1, x.2, x.3]) at ";
    for (const std::string& text : {f.report(), debugprint(f), error_of([&] { (void)f.kernels(); })}) {
        CHECK_THAT(text, ContainsSubstring(missing) &&
                             ContainsSubstring(line_x + ", axes 1, 2, 3; \"w\" (") &&
                             ContainsSubstring(line_x + ", axis 1"));
    }
    CHECK_THAT(f.report(), ContainsSubstring("Function f at ") && ContainsSubstring(".specialise = false"));
    CHECK_THAT(debugprint(f), ContainsSubstring("exp"));
    CHECK_THROWS_AS(f.kernels(), GraphError);
    CHECK(f.profile().rows.empty());
    CHECK(f.peak_bytes() == 0);
    // Folders are numbered through the process.
    const auto dumped = [&](const std::string& name, const char* file) {
        for (const auto& entry : std::filesystem::directory_iterator(folder / "dump"))
            if (entry.path().filename().string().substr(4) == name && exists(entry.path() / file))
                return true;
        return false;
    };
    CHECK((dumped("f", "graph_before.txt") && dumped("f", "report.txt") && !dumped("f", "program.json")));

    const ExampleShapes shapes{{x, {128, 2, 5, 4}}};
    const std::string report = f.report({{x, {128, 2, 5, 4}}});
    CHECK_THAT(report, ContainsSubstring("specialised for x = [n, 2, 5, 4], w = [m, 3]\n"));
    CHECK(f.report({{x, {-1, 2, 5, 4}}, {w, {9, 3}}}) == report);
    CHECK(f.report() == report);
    CHECK(f.kernels(shapes).size() == f.kernels().size());
    CHECK(!f.kernels().empty());
    CHECK_THAT(debugprint(f, shapes), ContainsSubstring("float32 [x.0, 2, 5, 4]"));
    CHECK((dumped("f_2x5x4x3", "program.json") && dumped("f_2x5x4x3", "report.txt")));
    // The call finds the version that was compiled for them.
    const CompilesCounted compiled;
    CHECK(Array(f(ones({2, 2, 5, 4}))[1]).to_vector<int>() == std::vector<int>{3, 3, 3, 3});
    CHECK(compiled() == 0);
    // A list of kernels stays as it is.
    const std::vector<Kernel>& first = f.kernels();
    const std::string name = first.at(0).name;
    f(ones({2, 3, 5, 4}));
    CHECK(compiled() == 1);
    CHECK(&f.kernels() != &first);
    CHECK(&f.kernels() == &f.kernels());
    CHECK(first.at(0).name == name);
    CHECK_THAT(f.report(),
               ContainsSubstring("specialised for x = [n, 3, 5, 4]") &&
                   ContainsSubstring("Other versions that are kept:\n  x = [n, 2, 5, 4], w = [m, 3]\n"));

    const auto refused = [&](const ExampleShapes& wrong) { return error_of([&] { (void)f.report(wrong); }); };
    const Function uncalled = function({x}, exp(x), {.name = "uncalled", .device = "null"});
    const std::string line_uncalled = specialise_test_line(__LINE__ - 1);
    CHECK_THAT(error_of([&] { (void)uncalled.report(ExampleShapes{}); }),
               ContainsSubstring(line_uncalled) && ContainsSubstring("an example shape of \"x\" (") &&
                   ContainsSubstring("is missing"));
    // Lengths that no example tells are those of the last call.
    CHECK_THAT(f.report(ExampleShapes{}), ContainsSubstring("specialised for x = [n, 3, 5, 4], w = [m, 3]"));
    CHECK_THAT(f.report({{w, {5, 3}}}), ContainsSubstring("specialised for x = [n, 3, 5, 4], w = [m, 3]"));
    CHECK_THAT(refused({{bitale::vector("v"), {3}}}),
               ContainsSubstring("\"v\" (float32 [v.0])") && ContainsSubstring("none of its inputs"));
    CHECK_THAT(refused({{x, {2, 5, 4}}}), ContainsSubstring("cannot have the shape [2, 5, 4]"));
    CHECK_THAT(refused({{x, {1, 2, -1, 4}}}), ContainsSubstring("cannot have the shape [1, 2, -1, 4]"));
    CHECK_THAT(refused({{Expr(), {1}}}), ContainsSubstring("an empty expression"));
    // Nor of a function that has no versions.
    const Expr c = input(float32, {-1, 4}, "c"), d = bitale::vector("d");
    const Function one = function({c, d}, sum(c) + sum(d * mean(c, {1})), {.name = "one", .device = "cpu"});
    const auto of_one = [&](const ExampleShapes& wrong) {
        CHECK_THAT(error_of([&] { (void)one.kernels(wrong); }), ContainsSubstring("[2"));
        return error_of([&] { (void)one.report(wrong); });
    };
    CHECK(one.report({{c, {2, 4}}, {d, {2}}}) == one.report());
    CHECK(one.report({{c, {-1, 4}}}) == one.report());
    CHECK_THAT(of_one({{c, {2, 4, 3}}}), ContainsSubstring("cannot have the shape [2, 4, 3]"));
    CHECK_THAT(of_one({{c, {2, 5}}}), ContainsSubstring("cannot have the shape [2, 5]"));
    CHECK_THROWS_AS(one.report({{c, {2, 4}}, {d, {3}}}), ShapeError);
    CHECK_THROWS_AS(one.kernels({{x, {1, 1, 1, 1}}}), GraphError);
    const Expr a = matrix("a"), b = matrix("b");
    const Function sum_of_two = function({a, b}, a + b, {.device = "null"});
    CHECK_THROWS_AS(sum_of_two.report({{a, {2, 3}}, {b, {2, 4}}}), ShapeError);
    // Nor need lengths be told that equal others.
    CHECK(sum_of_two.report({{a, {2, 3}}}) == sum_of_two.report({{b, {2, 3}}}));
    const Function with_default = function({a, Input(b, ones({7, 4}))}, {sum(a), sum(b)}, {.device = "cpu"});
    CHECK(with_default.memory_plan({{a, {3, 2}}}).peak_bytes > 0);
    const Function added = function({a, b}, a + b, {.device = "cpu"});
    CHECK(added.memory_plan({{a, {2, 3}}}).peak_bytes ==
          added.memory_plan({{a, {2, 3}}, {b, {2, 3}}}).peak_bytes);
    CHECK_THROWS_AS(sum_of_two.report({{a, {1, 3}}, {b, {2, 3}}}), ShapeError);
}

TEST_CASE("sixteen versions are kept, the least recently used goes, with one warning",
          "[core][runtime][specialise]") {
    const Expr x = matrix("x");
    Function f = function({x}, {exp(x)}, {.name = "changing", .device = "null"});
    const std::string line = specialise_test_line(__LINE__ - 1);
    std::string warned;
    const ScopedLog log([&](const std::string& text) { warned += text; });
    const auto call = [&](std::int64_t columns) { f(Array(float32, {2, columns})); };
    const auto has = [&](std::int64_t columns) {
        return f.report(Detail::complete).find(fmt::format("x = [n, {}]\n", columns)) != std::string::npos;
    };
    for (std::int64_t n = 1; n <= 16; ++n) call(n);
    CHECK(warned.empty());
    CHECK(count_of_lines(f.report(Detail::complete), "x = [n, ") == 16);
    call(1);
    call(3);
    call(17);
    CHECK(count_of_lines(f.report(Detail::complete), "x = [n, ") == 16);
    CHECK((has(1) && !has(2) && has(3) && has(17)));
    CHECK_THAT(warned, ContainsSubstring(line) && ContainsSubstring("\"changing\"") &&
                           ContainsSubstring("the last one x = [n, 17]") &&
                           ContainsSubstring(".specialise = false"));
    warned.clear();
    for (std::int64_t n = 18; n < 40; ++n) call(n);
    CHECK(warned.empty());
    CHECK((has(39) && has(24) && !has(23)));
}

TEST_CASE("calls with wrong arguments say the same whatever was compiled before",
          "[core][runtime][specialise]") {
    const Expr x = matrix("x"), v = bitale::vector("v"), z = matrix("z");
    const Shared w = shared(ones({5}), "w");
    const auto made = [&](bool specialise, const std::string& device) {
        return function(
            {x, v, z}, {x + v, sum(z, {0})},
            {.updates = {{w, w + sum(z, {1})}}, .name = "f", .device = device, .specialise = specialise});
    };
    const Array good_x = ones({2, 3}), good_v = ones({3}), good_z = ones({5, 4});
    const std::vector<std::vector<Array>> wrong = {
        {good_x, ones({4}), good_z},
        {ones({2, 1}), good_v, good_z},  // what is unknown does not broadcast
        {good_x, good_v, ones({6, 4})},
        {good_x, good_v, ones({5})},
        {good_x.as(float64), good_v, good_z},
        {good_x, good_v},
    };
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        Function general = made(false, device), f = made(true, device);
        REQUIRE(f.state().specialised != nullptr);
        for (int round = 0; round < 2; ++round) {
            for (const std::vector<Array>& arguments : wrong) {
                const std::string expected = error_of([&] { general.call(arguments); });
                CHECK(expected != "");
                CHECK(error_of([&] { f.call(arguments); }) == expected);
            }
            const Array before = w.get_value();
            const Results got = f(good_x, good_v, good_z);
            CHECK(got[0].at(5) == 2);
            CHECK(w.get_value().at(4) == before.at(4) + 4);
        }
        // One column: a vector of seven would broadcast, had it been declared so.
        CHECK(Array(f(ones({2, 1}), ones({1}), good_z)[0]).shape() == Dims{2, 1});
        const std::vector<Array> seven{ones({2, 1}), ones({7}), good_z};
        CHECK(error_of([&] { f.call(seven); }) == error_of([&] { general.call(seven); }));
        CHECK_THROWS_AS(f.call(seven), ShapeError);
    }
}

TEST_CASE("a first call that fails leaves function and variables as before", "[core][runtime][specialise]") {
    const Expr x = tensor3("x"), labels = ivector("labels");
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const Shared total = shared(Array(0.0F), "total");
        const Expr loss = mean(softmax_crossentropy(flatten(x, 2) * 3, labels));
        Function f = function({x, labels}, loss, {.updates = {{total, total + loss}}, .device = device});
        const Array scores = zeros({3, 11, 3});
        const Array good = Array(std::vector<std::int32_t>{1, 32, 2}),
                    bad = Array(std::vector<std::int32_t>{1, 33, 2});
        CHECK_THROWS_AS(f(scores, bad), IndexError);
        CHECK(total.get_value().at(0) == 0);
        CHECK(double(f(scores, good)) == Approx(std::log(33.0)));
        CHECK(total.get_value().at(0) == Approx(std::log(33.0)));
        if (device != "cpu") continue;
        const TemporaryFolder folder;
        write_file(folder / "cc", "#!/bin/sh\necho out of luck; exit 1\n");
        std::filesystem::permissions(folder / "cc", std::filesystem::perms::owner_all);
        Function g = function({x, labels}, loss + 41, {.updates = {{total, total + loss}}, .device = device});
        const Array before = total.get_value();
        {
            Options o = options();
            o.cache_directory = folder / "cache";
            const ScopedOptions scope(o);
            const ScopedVariable variable("BITALE_CXX", folder / "cc");
            CHECK_THROWS_AS(g(zeros({3, 7, 5}), good), CompileError);
        }
        CHECK(same(total.get_value(), before));
        CHECK(double(g(zeros({3, 7, 5}), good)) == Approx(std::log(35.0) + 41));
    }
}

TEST_CASE("loops, profiles, defaults, givens and random numbers work in a version",
          "[core][runtime][specialise]") {
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const Expr i = lscalar("i"), x = matrix("x"), y = matrix("y");
        Random random(4);
        const Array rows = random_array(float32, {6, 35}, random);
        const auto made = [&](bool specialise) {
            RandomStream stream(5);
            const Shared sum_so_far = shared(Array(0.0F), "sum");
            const Expr kept = dropout(y, 0.5, stream);
            return function({i, Input(x, rows)}, {sum(kept, {1}) * cast(i, float32), Expr(sum_so_far)},
                            {.updates = {{sum_so_far, sum_so_far + sum(kept)}},
                             .givens = {{y, tanh(x) * 2}},
                             .device = device,
                             .profile = true,
                             .specialise = specialise});
        };
        Function f = made(true), general = made(false);
        REQUIRE(f.state().specialised != nullptr);
        const Results got = f.loop(1, 5), expected = general.loop(1, 5);
        CHECK(f.steps_done() == 4);
        for (std::size_t k = 0; k < 2; ++k)
            CHECK(difference(got[k], expected[k], {.relative = 1e-5, .of_largest = 1e-6}) == "");
        const Results one = f(std::int64_t{2}), same_one = general(std::int64_t{2});
        CHECK(difference(one[0], same_one[0], {.relative = 1e-5, .of_largest = 1e-6}) == "");
        f(std::int64_t{2}, random_array(float32, {6, 36}, random));
        REQUIRE(!f.profile().rows.empty());
        std::int64_t most = 0;
        for (const Profile::Row& row : f.profile().rows) most = std::max(most, row.calls);
        CHECK(most >= 4);
        f.request_stop();
        f.loop(0, 3);
        CHECK(f.steps_done() == 0);
        StopToken stop;
        stop.request();
        f.loop(0, 3, stop);
        CHECK(f.steps_done() == 0);
    }
}

TEST_CASE("threads that make the first call at once compile each version once",
          "[core][runtime][specialise]") {
    const SmallConvNetwork net;
    const Expr x = tensor4("x");
    Function f = function({x}, {net.scores(x) * 3}, {.device = "cpu"}),
             general = function({x}, {net.scores(x) * 3}, {.device = "cpu", .specialise = false});
    Random random(6);
    // Of 9 x 8, and of 8 x 9 that is pooled to as many.
    std::vector<Array> images;
    std::vector<Array> expected;
    for (const Dims& shape : {Dims{5, 1, 9, 8}, Dims{4, 1, 9, 8}, Dims{3, 1, 8, 8}}) {
        images.push_back(random_array(float32, shape, random, -1, 1));
        expected.push_back(general.call({&images.back(), 1})[0]);
    }
    const CompilesCounted compiled;
    std::atomic<int> wrong{0}, waiting{0};
    Threads threads;
    for (std::size_t t = 0; t < 6; ++t)
        threads.add([&, t] {
            ++waiting;
            while (waiting < 6) std::this_thread::yield();
            for (std::size_t k = 0; k < 30; ++k) {
                const std::size_t which = (t + k) % images.size();
                try {
                    const Array got = f.call({&images[which], 1})[0];
                    wrong += difference(got, expected[which], {.relative = 1e-5, .of_largest = 1e-5}).empty()
                                 ? 0
                                 : 1;
                    if (k % 10 == 0)
                        wrong += f.report().empty() || f.kernels().empty() || f.peak_bytes() <= 0 ? 1 : 0;
                } catch (const Error&) {
                    ++wrong;
                }
            }
        });
    threads.join();
    CHECK(wrong == 0);
    CHECK(compiled() == 2);
}

TEST_CASE("versions go while other threads call them", "[core][runtime][specialise]") {
    const Expr x = matrix("x");
    const ScopedLog quiet([](const std::string&) {});
    Function f = function({x}, {Expr(2) * x}, {.device = "null"});
    std::atomic<int> wrong{0};
    Threads threads;
    for (std::int64_t t = 0; t < 4; ++t)
        threads.add([&, t] {
            for (std::int64_t k = 0; k < 60; ++k) {
                const std::int64_t columns = 1 + (t * 5 + k) % 24;
                wrong += Array(f(Array(float32, {3, columns}))[0]).shape() == Dims{3, columns} ? 0 : 1;
            }
        });
    threads.join();
    CHECK(wrong == 0);
    CHECK(count_of_lines(f.report(Detail::complete), "x = [n, ") == 16);
}

TEST_CASE("a child calls the versions of its parent, and compiles others", "[runtime][specialise]") {
    if (children_left_out()) return;
    const Expr x = matrix("x");
    Function f = function({x}, sum(x * 2, {1}), {.device = "cpu"});
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> calls{0};
    Threads others(&stop);
    for (int t = 0; t < 2; ++t)
        others.add([&, t] {
            for (std::int64_t k = 0; !stop; ++k, ++calls) f(ones({2, 3 + (k + t) % 3}));
        });
    while (calls < 10) std::this_thread::yield();
    for (int k = 0; k < 5; ++k)
        CHECK(in_a_child([&] {
                  if (Array(f(ones({4, 3}))[0]).at(3) != 6) return 1;
                  return Array(f(ones({4, 50 + k}))[0]).at(3) == 2.0 * (50 + k) ? 7 : 2;
              }) == 7);
}

TEST_CASE("versions for other lengths make room where memory does not suffice",
          "[core][runtime][specialise]") {
    if (emulator_skipped()) return;
    const Expr x = matrix("x");
    Function f = function({x}, sum(softmax(dot(x, transpose(x))) * 3), {.device = "emulator"});
    // Products of 1000 x 1000 floats: there is room for one of them.
    CHECK(double(f(zeros({1000, 8}))) == Approx(3000));
    cuda::set_emulated_memory(f.peak_bytes() * 3 / 2);
    for (const std::int64_t columns : {9, 8, 9}) CHECK(double(f(zeros({1000, columns}))) == Approx(3000));
    CHECK(f.report().find("Other versions") == std::string::npos);
    CHECK_THROWS_AS(f(zeros({3000, 8})), OutOfMemory);
    CHECK(double(f(zeros({10, 8}))) == Approx(30));
    cuda::set_emulated_memory(0);
}
