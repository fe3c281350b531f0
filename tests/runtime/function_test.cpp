// function(): every mistake a user can make has one clear message with the lines involved; calls, defaults,
// loops.
#include "bitale/function.h"

#include <fmt/format.h>

#include <thread>

#include "bitale/ops.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// "function_test.cpp:12", for the line of an expression: pass __LINE__.
std::string function_test_line(unsigned line) { return fmt::format("function_test.cpp:{}", line); }

std::vector<double> values(const Array& a) { return a.to_vector<double>(); }

// Runs f on every device that computes.
template <class F>
void on_each_device(F&& f) {
    for (const char* device : {"cpu", "reference", "reference=wide"}) {
        INFO("device " << device);
        f(std::string(device));
    }
}

template <class F>
void on_each_device_with_loops(F&& f) {
    on_each_device(f);
    if (emulator_left_out()) return;
    INFO("device emulator");
    f(std::string("emulator"));
}

}  // namespace

TEST_CASE("inputs must be there, once, and be variables", "[core][runtime][function]") {
    Expr x = bitale::vector("x");
    const std::string line_x = function_test_line(__LINE__ - 1);
    Expr y = bitale::vector("y");
    Shared w = shared(Array(std::vector<float>{1, 2}), "w");
    const std::string line_w = function_test_line(__LINE__ - 1);

    std::string message = message_of<GraphError>([&] { function({y}, x + y); });
    REQUIRE_THAT(message,
                 ContainsSubstring("needs \"x\"") && ContainsSubstring(line_x) && ContainsSubstring("add"));
    message = message_of<GraphError>([&] { function({x, y}, x * 2); });
    REQUIRE_THAT(message, ContainsSubstring("\"y\"") && ContainsSubstring("is not used"));
    message = message_of<GraphError>([&] { function({x, y, x}, x + y); });
    REQUIRE_THAT(message,
                 ContainsSubstring("inputs 0 and 2 are the same variable") && ContainsSubstring(line_x));
    message = message_of<GraphError>([&] { function({x + y}, x + y); });
    REQUIRE_THAT(message, ContainsSubstring("input 0") && ContainsSubstring("only variables"));
    message = message_of<GraphError>([&] { function({Expr(w)}, x); });
    REQUIRE_THAT(message, ContainsSubstring("shared variable \"w\"") && ContainsSubstring(line_w));
    REQUIRE_THROWS_AS(function({x}, Expr()), GraphError);
    REQUIRE_THROWS_AS(function({Expr()}, x), GraphError);
    REQUIRE_THAT(message_of<GraphError>([&] { Function().call({}); }), ContainsSubstring("empty Function"));
}

TEST_CASE("what becomes of an unused input is the user's choice", "[core][runtime][function]") {
    Expr x = bitale::vector("x"), y = bitale::vector("y");
    std::string warned;
    const ScopedLog log([&](const std::string& line) { warned += line; });
    FunctionOptions options;
    options.on_unused_input = OnUnused::warn;
    Function f = function({x, y}, x * 2, options);
    REQUIRE_THAT(warned, ContainsSubstring("\"y\""));
    REQUIRE(values(f(std::vector<float>{1, 2}, std::vector<float>{5})) == std::vector<double>{2, 4});
    warned.clear();
    options.on_unused_input = OnUnused::ignore;
    function({x, y}, x * 2, options);
    REQUIRE(warned.empty());
}

TEST_CASE("an input that matters for its length alone is used", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Expr x = matrix("x");
        Function f = function({x}, x.length(0) + x.length(1) * 10, {.device = device});
        REQUIRE(f(Array(float32, {3, 4})) == 43.0);
        REQUIRE_THAT(message_of<GraphError>([&] { function({}, x.length(0), {.device = device}); }),
                     ContainsSubstring("length"));
    });
}

TEST_CASE("updates that do not fit their variable", "[core][runtime][function]") {
    Shared w = shared(Array(std::vector<float>{1, 2, 3}), "w");
    const std::string line_w = function_test_line(__LINE__ - 1);
    Expr x = bitale::vector("x"), n = lscalar("n");
    const auto attempt = [&](const Expr& value, const Array& unchanged) {
        std::string message;
        try {
            function({x, n}, {}, {.updates = {{w, value}}, .on_unused_input = OnUnused::ignore});
        } catch (const Error& e) {
            message = e.what();
        }
        REQUIRE(same(w.get_value(), unchanged));
        REQUIRE_THAT(message, ContainsSubstring(line_w) && ContainsSubstring("function_test.cpp:"));
        return message;
    };
    const Array before = w.get_value();
    REQUIRE_THAT(attempt(cast(w, float64), before),
                 ContainsSubstring("dtypes differ; write cast(w, float32)"));
    REQUIRE_THAT(attempt(cast(w, int32), before), ContainsSubstring("int32"));
    REQUIRE_THAT(attempt(sum(Expr(w)), before), ContainsSubstring("ranks differ"));
    REQUIRE_THAT(attempt(Expr(Array(std::vector<float>{1, 2})), before), ContainsSubstring("shapes differ"));

    const std::string message = message_of<GraphError>([&] {
        function({}, {}, {.updates = {{w, w * 2}, {w, w * 3}}});
    });
    const std::string line = function_test_line(__LINE__ - 2);
    REQUIRE_THAT(message,
                 ContainsSubstring("two updates") && ContainsSubstring(line_w) && ContainsSubstring(line));
    REQUIRE_THROWS_AS(function({}, {}, {.updates = {{Shared(), w * 2}}}), GraphError);
}

TEST_CASE("givens that do not fit their variable", "[core][runtime][function]") {
    Expr x = matrix("x");
    const std::string line_x = function_test_line(__LINE__ - 1);
    Shared bytes = shared(Array(uint8, {6, 4}), "bytes");
    Expr y = x * 2;
    const std::string dtype = message_of<TypeError>([&] { function({}, y, {.givens = {{x, bytes}}}); });
    REQUIRE_THAT(dtype, ContainsSubstring(line_x) && ContainsSubstring(function_test_line(__LINE__ - 1)) &&
                            ContainsSubstring("uint8") && ContainsSubstring("; write cast(bytes, float32)"));
    const std::string rank = message_of<ShapeError>([&] {
        function({}, y, {.givens = {{x, cast(flatten(bytes), float32)}}});
    });
    REQUIRE_THAT(
        rank, ContainsSubstring(line_x) &&
                  ContainsSubstring("ranks differ; give a matrix, not a vector, as expand_dims(..., 0) is"));
    const std::string row = message_of<ShapeError>([&] {
        Expr v = bitale::vector("v");
        function({x}, v * 2, {.givens = {{v, x}}});
    });
    REQUIRE_THAT(row,
                 ContainsSubstring("ranks differ; give a vector, not a matrix, as a row of it is, x[0]"));
    Expr z = input(float32, {2, 3}, "z");
    const std::string shape = message_of<ShapeError>([&] {
        function({}, z * 2, {.givens = {{z, cast(bytes, float32)}}});
    });
    REQUIRE_THAT(shape, ContainsSubstring("shapes differ; give an expression of the shape [2, 3]"));
    const std::string twice = message_of<GraphError>([&] {
        function({}, y, {.givens = {{x, cast(bytes, float32)}, {x, cast(bytes, float32)}}});
    });
    REQUIRE_THAT(twice, ContainsSubstring("given twice") && ContainsSubstring(line_x));
    const std::string both = message_of<GraphError>([&] {
        function({x}, y, {.givens = {{x, cast(bytes, float32)}}});
    });
    REQUIRE_THAT(both, ContainsSubstring("replaced in givens"));
}

TEST_CASE("givens replace variables, shared variables and expressions", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Expr x = bitale::vector("x"), i = lscalar("i");
        Shared w = shared(Array(std::vector<float>{1, 2, 3, 4, 5, 6}), "w"),
               v = shared(Array(std::vector<float>{10, 20, 30, 40, 50, 60}), "v");
        Function batches = function({i}, sum(x) + i,
                                    {.givens = {{x, Expr(w)[range(i * 2, (i + 1) * 2)]}}, .device = device});
        REQUIRE(batches(0) == 3.0);
        REQUIRE(batches(2) == 13.0);
        Function other = function({}, sum(w * w), {.givens = {{w, v * 2}}, .device = device});
        REQUIRE(other() == 4.0 * 9100);
        Expr square = x * x;
        Function inner = function({x}, square + x, {.givens = {{square, x * 10}}, .device = device});
        REQUIRE(values(inner(std::vector<float>{1, 2})) == std::vector<double>{11, 22});
        Expr y = iscalar("y");
        REQUIRE(double(function({}, y + 1, {.givens = {{y, 3}}, .device = device})()) == 4.0);
    });
}

TEST_CASE("a call checks dtypes, ranks and lengths before anything is written", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Expr x = matrix("x");
        const std::string line_x = function_test_line(__LINE__ - 1);
        Expr z = input(float32, {-1, 3}, "z");
        Shared w = shared(Array(std::vector<float>{1, 2, 3}), "w");
        Function f = function({x, z}, sum(dot(x, w)) + sum(z),
                              {.updates = {{w, w + sum(x)}}, .name = "f", .device = device});
        const Array good(float32, {2, 3}), before = w.get_value();
        const auto fails = [&](const Array& a, const Array& b) {
            std::string message;
            try {
                f(a, b);
            } catch (const Error& e) {
                message = e.what();
            }
            REQUIRE(same(w.get_value(), before));
            return message;
        };
        REQUIRE_THAT(fails(good.as(float64), good),
                     ContainsSubstring(line_x) && ContainsSubstring("\"x\"") && ContainsSubstring("\"f\"") &&
                         ContainsSubstring("float64 [2, 3]") && ContainsSubstring(".as(float32)"));
        REQUIRE_THAT(fails(Array(float32, {3}), good),
                     ContainsSubstring(line_x) && ContainsSubstring("ranks differ"));
        REQUIRE_THAT(fails(good, Array(float32, {2, 4})),
                     ContainsSubstring("\"z\"") && ContainsSubstring("axis 1 must have length 3"));
        REQUIRE_THAT(fails(Array(float32, {2, 4}), good),
                     ContainsSubstring("dot of \"x\"") &&
                         ContainsSubstring("axis 1 of \"x\" has length 4 and axis 0 of \"w\" has length 3"));
        REQUIRE_THAT(message_of<GraphError>([&] { f(good); }),
                     ContainsSubstring("function_test.cpp:") && ContainsSubstring("\"z\" at ") &&
                         ContainsSubstring("takes 2 arguments, the call has 1"));
        REQUIRE_THAT(message_of<GraphError>([&] { f(good, good, good); }),
                     ContainsSubstring("function_test.cpp:") &&
                         ContainsSubstring("takes 2 arguments, the call has 3"));
        REQUIRE_THAT(message_of<GraphError>([&] { f.loop(0, 3); }),
                     ContainsSubstring("function_test.cpp:") && ContainsSubstring("integer scalar"));
        f(good, good);
    });
}

TEST_CASE("numbers convert to an input's dtype when they fit", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Expr a = scalar("a", float32), b = scalar("b", uint8), c = lscalar("c");
        Function f =
            function({a, b, c}, cast(a, float64) + cast(b, float64) + cast(c, float64), {.device = device});
        REQUIRE(f(1, 2, 3) == 6.0);
        REQUIRE(f(0.5, 2.0, true) == 3.5);
        REQUIRE(f(1, std::uint64_t{255}, 3) == 259.0);
        REQUIRE_THAT(message_of<TypeError>([&] { f(1, 256, 3); }),
                     ContainsSubstring("256 does not fit uint8"));
        REQUIRE_THAT(message_of<TypeError>([&] { f(1, -1, 3); }), ContainsSubstring("-1 does not fit uint8"));
        REQUIRE_THAT(message_of<TypeError>([&] { f(1, 2, 0.5); }),
                     ContainsSubstring("0.5 does not fit int64"));
        REQUIRE_THAT(message_of<TypeError>([&] { f(1e300, 2, 3); }),
                     ContainsSubstring("does not fit float32"));
        REQUIRE_THAT(message_of<TypeError>([&] { f(1, 2, std::uint64_t{1} << 63); }),
                     ContainsSubstring("does not fit int64"));
        // The largest integer is the same float.
        REQUIRE_THAT(message_of<TypeError>([&] { f(1, 2, 9223372036854775808.0); }),
                     ContainsSubstring("does not fit int64"));
        REQUIRE_THAT(message_of<TypeError>([&] { f(INT64_MAX, 2, 3); }),
                     ContainsSubstring("does not fit float32"));
        REQUIRE_THROWS_AS(f(1, 2, std::vector<std::int64_t>{3}), ShapeError);
    });
}

TEST_CASE("defaults stand in for arguments left out", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Expr x = scalar("x"), rate = scalar("rate"), k = lscalar("k");
        Function f = function({x, {rate, 0.5}, {k, 2}}, x * rate + k, {.device = device});
        REQUIRE(f(4) == 4.0);
        REQUIRE(f(4, 2) == 10.0);
        REQUIRE(f(4, 2, 0) == 8.0);
        REQUIRE_THAT(message_of<GraphError>([&] { f(); }),
                     ContainsSubstring("\"x\"") && ContainsSubstring("no default"));
        REQUIRE_THROWS_AS(function({{x, Array(std::vector<float>{1})}}, x, {.device = device}), ShapeError);
        Expr v = bitale::vector("v");
        REQUIRE_THROWS_AS(function({{v, Array(std::vector<double>{1})}}, v, {.device = device}), TypeError);
    });
}

TEST_CASE("all outputs and updates read the old values", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Shared a = shared(Array(std::vector<float>{1, 2}), "a"),
               b = shared(Array(std::vector<float>{10, 20}), "b");
        Function swap = function({}, {a + 0, b + 0}, {.updates = {{a, b}, {b, a}}, .device = device});
        const Results r = swap();
        REQUIRE(values(r[0]) == std::vector<double>{1, 2});
        REQUIRE(values(a.get_value()) == std::vector<double>{10, 20});
        REQUIRE(values(b.get_value()) == std::vector<double>{1, 2});
        Function both =
            function({}, sum(Expr(a)), {.updates = {{a, a + 1}, {b, b + sum(Expr(a))}}, .device = device});
        REQUIRE(both() == 30.0);
        REQUIRE(values(a.get_value()) == std::vector<double>{11, 21});
        REQUIRE(values(b.get_value()) == std::vector<double>{31, 32});
    });
}

TEST_CASE("values a user holds do not change under him", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        const Array start(std::vector<float>{1, 2});
        Shared a = shared(start, "a");
        Function step = function({}, Expr(a), {.updates = {{a, a * 2}}, .device = device});
        const Array first = step(), held = a.get_value(), second = step();
        REQUIRE(values(start) == std::vector<double>{1, 2});
        REQUIRE(values(first) == std::vector<double>{1, 2});
        REQUIRE(values(held) == std::vector<double>{2, 4});
        REQUIRE(values(second) == std::vector<double>{2, 4});
        REQUIRE(values(a.get_value()) == std::vector<double>{4, 8});
    });
}

TEST_CASE("a row or label out of range fails the call and writes nothing", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Shared data = shared(Array(std::vector<float>{1, 2, 3, 4, 5, 6}, {6}), "data"),
               total = shared(Array(0.0f), "total");
        Expr i = lscalar("i");
        Expr batch = Expr(data)[range(i * 2, i * 2 + 2)];
        const std::string line = function_test_line(__LINE__ - 1);
        Function f = function({i}, sum(batch), {.updates = {{total, total + sum(batch)}}, .device = device});
        REQUIRE(f(2) == 11.0);
        for (const int bad : {3, -1, 1000000}) {
            const std::string message = message_of<IndexError>([&] { f(bad); });
            REQUIRE_THAT(message, ContainsSubstring(line) && ContainsSubstring("out of range"));
            REQUIRE(total.get_value() == 11.0);
        }
        Expr labels = bitale::vector("labels", uint8), scores = matrix("scores");
        Expr loss = mean(softmax_crossentropy(scores, labels));
        const std::string loss_line = function_test_line(__LINE__ - 1);
        Function g = function({scores, labels}, loss, {.updates = {{total, total + loss}}, .device = device});
        const std::string message = message_of<IndexError>([&] {
            g(Array(float32, {3, 10}), std::vector<std::uint8_t>{1, 10, 2});
        });
        REQUIRE_THAT(message,
                     ContainsSubstring(loss_line) && ContainsSubstring("10") && ContainsSubstring("label"));
        REQUIRE(total.get_value() == 11.0);
    });
}

TEST_CASE("an update of another length is found at the call", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Shared w = shared(Array(std::vector<float>{1, 2, 3}), "w");
        const std::string line_w = function_test_line(__LINE__ - 1);
        Expr x = bitale::vector("x");
        Function f = function({x}, {}, {.updates = {{w, x * 2}}, .device = device});
        const std::string line = function_test_line(__LINE__ - 1);
        REQUIRE_THAT(message_of<ShapeError>([&] {
                         f(std::vector<float>{1, 2});
                     }),
                     ContainsSubstring(line) && ContainsSubstring("\"w\"") &&
                         ContainsSubstring("has length 2, and the variable has 3"));
        REQUIRE(values(w.get_value()) == std::vector<double>{1, 2, 3});
        f(std::vector<float>{4, 5, 6});
        REQUIRE(values(w.get_value()) == std::vector<double>{8, 10, 12});
    });
}

TEST_CASE("loop gives what the calls give, one after another", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Shared data = shared(Array(std::vector<float>{1, 2, 3, 4, 5, 6, 7}), "data"),
               total = shared(Array(0.0f), "total");
        Expr i = lscalar("i"), scale = scalar("scale");
        Expr part = Expr(data)[Slice{i * 2, (i + 1) * 2}];  // the last one is shorter
        Function f = function({i, {scale, 1}}, {sum(part) * scale, total + 0},
                              {.updates = {{total, total + sum(part)}}, .device = device});
        const Results r = f.loop(0, 4);
        REQUIRE(values(r[0]) == std::vector<double>{3, 7, 11, 7});
        REQUIRE(values(r[1]) == std::vector<double>{0, 3, 10, 21});
        REQUIRE(total.get_value() == 28.0);
        REQUIRE(f.steps_done() == 4);
        const std::vector<std::int64_t> order{2, 0};
        REQUIRE(values(f.loop(order)[0]) == std::vector<double>{11, 3});
        const Results none = f.loop(3, 3);
        REQUIRE(none[0].shape() == Dims{0});
        // Of no step, the shapes are those of the graph.
        const Expr n = lscalar("n");
        Function three =
            function({n}, {Expr(data)[Slice{0, 3}] * cast(n, float32), zeros({2, 1})}, {.device = device});
        REQUIRE(three.loop(0, 0)[0].shape() == Dims{0, 3});
        REQUIRE(three.loop(0, 0)[1].shape() == Dims{0, 2, 1});
        REQUIRE(total.get_value() == 42.0);
    });
}

TEST_CASE("a failing step of a loop is named; the state is that of the last good one",
          "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Shared data = shared(Array(std::vector<float>{1, 2, 3, 4}), "data"),
               total = shared(Array(0.0f), "total");
        Expr i = lscalar("i");
        Expr row = Expr(data)[i];
        Function f = function({i}, row, {.updates = {{total, total + row}}, .device = device});
        const std::vector<std::int64_t> indices{3, 1, 9, 0};
        REQUIRE_THAT(message_of<IndexError>([&] { f.loop(indices); }),
                     ContainsSubstring("step 2") && ContainsSubstring("is 9"));
        REQUIRE(total.get_value() == 6.0);
        REQUIRE(f.steps_done() == 2);
        Expr j = lscalar("j");
        Function shapes = function({j}, Expr(data)[Slice{0, j}], {.device = device});
        REQUIRE_THROWS_AS(shapes.loop(1, 3), ShapeError);
    });
}

TEST_CASE("loop needs one integer scalar", "[core][runtime][function]") {
    Expr x = scalar("x"), i = lscalar("i"), j = lscalar("j");
    REQUIRE_THAT(message_of<GraphError>([&] { function({x}, x * 2).loop(0, 2); }),
                 ContainsSubstring("integer scalar"));
    REQUIRE_THAT(message_of<GraphError>([&] {
                     function({i, j}, i + j).loop(0, 2);
                 }),
                 ContainsSubstring("\"j\""));
    REQUIRE_THAT(message_of<GraphError>([&] { function({}, Expr(1.0f)).loop(0, 2); }),
                 ContainsSubstring("no inputs"));
    Expr small = scalar("small", uint8);
    REQUIRE_THAT(message_of<TypeError>([&] { function({small}, small + 1).loop(255, 257); }),
                 ContainsSubstring("step 1"));
}

TEST_CASE("a loop stops when asked to", "[core][runtime][function]") {
    on_each_device([](const std::string& device) {
        Shared count = shared(Array(std::int64_t{0}), "count");
        Expr i = lscalar("i");
        Function f = function({i}, i * 2, {.updates = {{count, count + 1}}, .device = device});
        std::thread other([&] {
            while (f.steps_done() < 3) std::this_thread::yield();
            f.request_stop();
        });
        const Array results = f.loop(0, 50000000 / (device == "cpu" ? 1 : 10000));
        other.join();
        REQUIRE(results.size() == f.steps_done());
        REQUIRE(count.get_value() == double(f.steps_done()));
        if (device == "cpu") REQUIRE(f.steps_done() < 50000000);
    });
}

TEST_CASE("a request to stop counts until a loop has ended by it", "[core][runtime][function]") {
    on_each_device_with_loops([](const std::string& device) {
        Shared count = shared(Array(std::int64_t{0}), "count");
        Expr i = lscalar("i");
        Function f = function({i}, i * 2, {.updates = {{count, count + 1}}, .device = device});
        f.request_stop();
        const Array none = f.loop(0, 5);
        CHECK(none.shape() == Dims{0});
        CHECK(f.steps_done() == 0);
        CHECK(count.get_value() == 0.0);
        CHECK(Array(f.loop(3, 5)).shape() == Dims{2});
        CHECK(count.get_value() == 2.0);
        const std::vector<std::int64_t> order{7, 1};
        f.request_stop();
        CHECK(Array(f.loop(order)).shape() == Dims{0});
        CHECK(values(f.loop(order)[0]) == std::vector<double>{14, 2});
    });
}

TEST_CASE("a stop token belongs to its owner and is watched by all loops", "[core][runtime][function]") {
    on_each_device_with_loops([](const std::string& device) {
        Expr i = lscalar("i"), j = lscalar("j");
        Function f = function({i}, i * 2, {.device = device}), g = function({j}, j + 1, {.device = device});
        const StopToken token;
        const StopToken& same = token;
        CHECK(Array(f.loop(0, 3, token)).shape() == Dims{3});
        token.request();
        CHECK(same.requested());
        for (int round = 0; round < 2; ++round) {
            CHECK(Array(f.loop(0, 3, token)).shape() == Dims{0});
            CHECK(Array(g.loop(std::vector<std::int64_t>{4, 5}, token)).shape() == Dims{0});
        }
        CHECK(Array(g.loop(0, 3)).shape() == Dims{3});  // watches no token
        // What ended by the token has not used up a request to the function.
        f.request_stop();
        CHECK(Array(f.loop(0, 3, token)).shape() == Dims{0});
        token.reset();
        CHECK(Array(f.loop(0, 3, token)).shape() == Dims{0});
        CHECK(Array(f.loop(0, 3, token)).shape() == Dims{3});
    });
}

TEST_CASE("a stop token that was moved from is the same token", "[core][runtime][function]") {
    StopToken token;
    const StopToken moved = std::move(token);
    token.request();  // NOLINT
    CHECK(moved.requested());
    StopToken assigned;
    assigned = std::move(token);
    token.reset();
    CHECK_FALSE(assigned.requested());
}

TEST_CASE("a loop over a range needs no list of it", "[core][runtime][function]") {
    on_each_device_with_loops([](const std::string& device) {
        Shared last = shared(Array(std::int64_t{0}), "last");
        Expr i = lscalar("i");
        Function f = function({i}, {}, {.updates = {{last, i}}, .device = device});
        const std::int64_t first = std::int64_t{1} << 40;
        std::thread other([&] {
            while (f.steps_done() < 3) std::this_thread::yield();
            f.request_stop();
        });
        // A list would take 2^63 bytes on a device whose steps are found one after another.
        f.loop(first, first + (device == "emulator" ? 1000 : std::int64_t{1} << 60));
        other.join();
        CHECK(f.steps_done() >= 3);
        CHECK(last.get_value() == static_cast<double>(first + f.steps_done() - 1));
        CHECK(f.loop(5, 2).size() == 0);
        REQUIRE_THAT(message_of<GraphError>([&] { f.loop(INT64_MIN, INT64_MAX); }),
                     ContainsSubstring("more steps than an int64 counts"));
    });
}

TEST_CASE("the device null returns zeros and changes nothing", "[core][runtime][function]") {
    Shared w = shared(Array(std::vector<float>{1, 2}), "w");
    Expr x = matrix("x");
    Function f = function({x}, {dot(x, w), sum(x)}, {.updates = {{w, w * 2}}, .device = "null"});
    const Results r = f(Array(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}));
    REQUIRE(values(r[0]) == std::vector<double>{0, 0, 0});
    REQUIRE(r[1] == 0.0);
    REQUIRE(values(w.get_value()) == std::vector<double>{1, 2});
    REQUIRE(f.compiler_runs() == 0);
}

TEST_CASE("unknown devices are named with the known ones", "[core][runtime][function]") {
    Expr x = scalar("x");
    REQUIRE_THAT(message_of<DeviceError>([&] { function({x}, x, {.device = "tpu"}); }),
                 ContainsSubstring("\"tpu\"") && ContainsSubstring("cpu, reference, reference=wide, null"));
    REQUIRE_THAT(message_of<DeviceError>([&] { function({x}, x, {.device = "cuda"}); }),
                 ContainsSubstring("not available"));
}

TEST_CASE("eval compiles and calls in one", "[core][runtime][function]") {
    Expr x = bitale::vector("x");
    REQUIRE(values(eval(x * 3, {{x, Array(std::vector<float>{1, 2})}})) == std::vector<double>{3, 6});
    REQUIRE(eval(Expr(2) + 3) == 5.0);
    REQUIRE_THAT(message_of<GraphError>([&] { eval(x * 3); }), ContainsSubstring("\"x\""));
}

TEST_CASE("report, kernels, profile and sizes", "[core][runtime][function]") {
    Expr x = matrix("x");
    Shared w = shared(Array(float32, {4, 5}), "w");
    Function f = function({x}, sum(exp(dot(x, w))), {.name = "measured", .profile = true});
    f(Array(float32, {3, 4}));
    f(Array(float32, {3, 4}));
    const std::string report = f.report(Detail::complete);
    REQUIRE_THAT(report, ContainsSubstring("measured") && ContainsSubstring("function_test.cpp:") &&
                             ContainsSubstring("Materialised buffers"));
    REQUIRE(f.name() == "measured");
    REQUIRE(!f.kernels().empty());
    REQUIRE(f.profile().rows.size() >= f.kernels().size());
    for (const Profile::Row& row : f.profile().rows) REQUIRE(row.calls <= 2);
    REQUIRE(f.peak_bytes() >= w.get_value().bytes());
    REQUIRE(f.compile_seconds() > 0);
    REQUIRE_THAT(debugprint(f), ContainsSubstring("exp"));
}

TEST_CASE("BITALE_DUMP leaves graphs, program, sources and report", "[core][runtime][function]") {
    const TemporaryFolder folder;
    Options o = options();
    o.dump = folder / "dump";
    const ScopedOptions scoped(o);
    Expr x = bitale::vector("x");
    function({x}, exp(x) * 2, {.name = "net/step"});
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(o.dump)) {
        ++found;
        REQUIRE_THAT(entry.path().filename().string(), ContainsSubstring("net_step"));
        for (const char* name : {"graph_before.txt", "graph_before.dot", "graph_after.txt", "program.json",
                                 "kernels/prelude.h", "report.txt", "report_full.txt"})
            REQUIRE(!text_of_file(entry.path() / name).empty());
    }
    REQUIRE(found == 1);
}

TEST_CASE("after a call that memory does not suffice for, the next call is right", "[core][runtime]") {
    const Expr x = vector("x");
    // Every column's sum comes before the first quotient: the square is stored.
    const Expr square = exp(expand_dims(x, 1) * expand_dims(x, 0));
    Function f = function({x}, {sum(square / sum(square, {0}), {1})}, {.device = "cpu"});
    const auto ones = [](std::int64_t n) {
        return Array(std::vector<float>(static_cast<std::size_t>(n), 1));
    };
    for (const std::int64_t n : {1500, 100, 1500}) {
        for (const double y : Array(f(ones(n))).to_vector<double>()) REQUIRE(y == Approx(1));
        // 160 GB.
        CHECK_THAT(message_of<OutOfMemory>([&] { f(ones(200000)); }), ContainsSubstring("no memory"));
        for (const double y : Array(f(ones(n))).to_vector<double>()) REQUIRE(y == Approx(1));
    }
}
