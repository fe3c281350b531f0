// What would otherwise go wrong without a word: streams that stand still, minibatches behind the end, givens
// of nothing, empty handles.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "bitale/function.h"
#include "bitale/ops.h"
#include "graph/base/log.h"
#include "graph/ir/shared.h"
#include "runtime/state.h"
#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr const char* three_devices[] = {"cpu", "emulator", "reference"};

}  // namespace

TEST_CASE("a device's name that is misspelt is guessed", "[core][runtime]") {
    const Expr x = bitale::vector("x");
    const auto refusal = [&](const char* name) {
        return error_of([&] { function({x}, x + 1, {.device = name}); });
    };
    CHECK_THAT(refusal("gpu"), ContainsSubstring("no device \"gpu\"; did you mean \"cuda\"?"));
    CHECK_THAT(refusal("CPU"), ContainsSubstring("did you mean \"cpu\"? The devices are "));
    CHECK_THAT(refusal("refrence"), ContainsSubstring("did you mean \"reference\"?"));
    CHECK_THAT(refusal("CPU0"), ContainsSubstring("The devices are cpu"));
}

TEST_CASE("an argument that does not fit its input is named with the declaration and a cure",
          "[core][runtime]") {
    const Expr x = matrix("x"), image = input(float32, {-1, 3, 4}, "image"), v = bitale::vector("v"),
               wide = input(float32, {-1, 784}, "wide");
    const std::string line = "traps_test.cpp:" + std::to_string(__LINE__ - 2) + ": ";
    const auto says = [&](const Expr& variable, const Array& value, const std::string& words) {
        Function f = function({variable}, sum(variable), {.name = "f", .device = "reference"});
        CHECK_THAT(message_of<ShapeError>([&] { f(value); }), ContainsSubstring(words));
    };
    says(x, 2.5F,
         line +
             "argument 0 of function \"f\" is float32 [], but input \"x\" is declared here as float32 [x.0, "
             "x.1]: "
             "the ranks differ; pass a matrix, not a number");
    says(v, 2.5F, "pass a vector, not a number: Array{...}");
    says(x, numbered(3), "pass a matrix, not a vector; one row is value.reshaped({1, 3})");
    says(wide, numbered(3), "pass a matrix, not a vector");
    says(image, Array(float32, {3, 4}),
         "pass an array with 3 axes, not a matrix; one row is value.reshaped({1, 3, 4})");
    says(v, Array(float32, {3, 4}), "pass a vector, not a matrix");
    says(scalar("s"), numbered(3), "; pass one number");
}

TEST_CASE("arguments that are exchanged are told so only where the other way round they fit",
          "[core][runtime]") {
    const Expr x = matrix("x"), y = ivector("y"), v = bitale::vector("v"), w = matrix("w");
    const Array matrix34(float32, {3, 4}), labels = Array{1, 2, 3};
    const auto said = [](Function f, const std::vector<Array>& arguments) {
        return error_of([&] { f.call(arguments); });
    };
    const auto f = [](const std::vector<Input>& inputs, const Expr& result) {
        return function(inputs, result, {.device = "reference"});
    };
    const auto hint = [](int i, int j) {
        return ContainsSubstring("; arguments " + std::to_string(i) + " and " + std::to_string(j) +
                                 " seem to be exchanged");
    };
    const Expr total = sum(x) + sum(cast(y, float32));
    CHECK_THAT(said(f({x, y}, total), {labels, matrix34}), hint(0, 1) && !ContainsSubstring(".as("));
    CHECK_THAT(said(f({x, v}, sum(x) + sum(v)), {numbered(2), matrix34}), hint(0, 1));
    CHECK_THAT(said(f({v, y, x}, total + sum(v)), {numbered(2), matrix34, labels}), hint(1, 2));
    const Expr a = input(float32, {-1, 4}, "a"), b = input(float32, {4, -1}, "b");
    CHECK_THAT(said(f({a, b}, sum(dot(a, b))), {Array(float32, {4, 3}), Array(float32, {3, 4})}), hint(0, 1));
    // A matrix twice, and one that the product refuses either way: no hint.
    CHECK_THAT(said(f({x, y}, total), {matrix34, matrix34}),
               ContainsSubstring("argument 1 of ") && !ContainsSubstring("exchanged"));
    CHECK_THAT(said(f({v, w}, sum(dot(v, w))), {Array(float32, {3, 4}), numbered(4)}),
               ContainsSubstring("the ranks differ") && !ContainsSubstring("exchanged"));
    CHECK_THAT(said(f({v, w}, sum(dot(v, w))), {Array(float32, {3, 4}), numbered(3)}), hint(0, 1));
}

TEST_CASE("an Array that nothing was assigned to is named by errors of a call", "[core][runtime]") {
    const Expr x = matrix("x"), u = bitale::vector("u"), v = bitale::vector("v"), s = scalar("s");
    Function add = function({u, v}, u + v, {.name = "add", .device = "reference"});
    Function sums = function({x, s}, sum(x) * s, {.device = "reference"});
    const std::string how =
        " is an empty Array, as Array() and a vector without elements make it; give it its "
        "value first";
    CHECK_THAT(message_of<ShapeError>([&] { add(numbered(3), Array()); }),
               ContainsSubstring("the lengths must be equal") &&
                   Catch::Matchers::EndsWith("; argument 1 (\"v\")" + how));
    CHECK_THAT(message_of<ShapeError>([&] { add(std::vector<float>{}, numbered(3)); }),
               Catch::Matchers::EndsWith("; argument 0 (\"u\")" + how));
    CHECK_THAT(message_of<ShapeError>([&] { sums(Array(), 1.F); }),
               ContainsSubstring("the ranks differ; argument 0 (\"x\")" + how));
    CHECK_THAT(
        message_of<ShapeError>([&] {
            sums(Array(float32, {2, 2}), Array());
        }),
        !ContainsSubstring("pass one number") && Catch::Matchers::EndsWith("; argument 1 (\"s\")" + how));
    CHECK_THAT(message_of<TypeError>([&] { add(std::vector<double>{}, numbered(3)); }),
               ContainsSubstring("convert it with .as(float32)") && Catch::Matchers::EndsWith(how));
    // Empty arguments that fit, and errors that are of others.
    CHECK(Array(add(Array(), Array())).size() == 0);
    CHECK_THAT(message_of<ShapeError>([&] { add(numbered(3), numbered(2)); }),
               !ContainsSubstring("empty Array"));
    Array a = numbered(3);
    const Array taken = std::move(a);
    CHECK_THAT(message_of<GraphError>([&] { add(std::move(a), taken); }),
               ContainsSubstring("traps_test.cpp:") &&
                   ContainsSubstring("argument 0 of function \"add\": an Array that was moved from is used"));
    const Shared w = shared(numbered(3), "w");
    CHECK_THAT(
        message_of<ShapeError>([&] { w.set_value(Array()); }),
        Catch::Matchers::EndsWith("that of the value [0]; the value is an empty Array, as Array() makes it"));
}

TEST_CASE("lengths that differ at a call are named with their axes", "[core][runtime]") {
    const Expr x = matrix("x"), w = matrix("w"), images = tensor4("images"), b = bitale::vector("b"),
               y = ivector("y");
    const Shared filters = shared(Array(float32, {8, 3, 3, 3}), "filters"),
                 bias = shared(Array(float32, {8}), "bias");
    const auto says = [](const std::vector<Input>& inputs, const Expr& result,
                         const std::vector<Array>& arguments, const std::string& words) {
        Function f = function(inputs, result, {.device = "reference"});
        CHECK_THAT(message_of<ShapeError>([&] { f.call(arguments); }),
                   ContainsSubstring("traps_test.cpp:") && ContainsSubstring(words));
    };
    const auto zeros = [](Dims shape) { return Array(float32, std::move(shape)); };
    says({x, w}, dot(x, w), {zeros({5, 9}), zeros({8, 3})},
         "it sums over an axis of both, but axis 1 of \"x\" has length 9 and axis 0 of \"w\" has length 8; "
         "transpose");
    says({images, w}, dot(images, w), {zeros({2, 1, 4, 5}), zeros({20, 3})},
         "but axis 3 of \"images\" has length 5 and axis 0 of \"w\" has length 20; write dot(flatten(x, 2), "
         "w)");
    says({x, w}, x + w, {zeros({5, 9}), zeros({5, 8})},
         ": the lengths must be equal, but axis 1 of \"x\" has length 9 and axis 1 of \"w\" has length 8; "
         "only an "
         "axis that is declared with length 1 is broadcast");
    says({images, b}, images + b, {zeros({2, 8, 5, 5}), zeros({8})},
         "axis 3 of \"images\" has length 5 and axis 0 of \"b\" has length 8; if b has a number for each "
         "channel, "
         "write channel(b)");
    says({images}, conv2d(images, filters) + bias, {zeros({2, 3, 9, 9})},
         "axis 3 of the first operand has length 7 and axis 0 of \"bias\" has length 8; for a number for "
         "each channel "
         "write channel(bias)");
    says({images}, conv2d(images, filters), {zeros({2, 4, 9, 9})},
         "axis 1 of \"images\" has length 4 and axis 1 of \"filters\" has length 3");
    says({x, w}, concatenate({x, w}), {zeros({5, 9}), zeros({5, 8})},
         "all other axes must have equal lengths, but axis 1 of \"x\" has length 9 and axis 1 of \"w\" has "
         "length 8");
    says({x, y}, softmax_crossentropy(x, y), {zeros({5, 9}), Array{1, 2, 3, 4}},
         "each row has one label, but the number of rows is 5 and the number of labels is 4");
    says({x, w}, softmax_crossentropy(x, w), {zeros({5, 9}), zeros({5, 8})},
         "axis 1 of \"x\" has length 9 and axis 1 of \"w\" has length 8");
    says({b}, reshape(b, {2, 3}), {zeros({5})}, "it has 5 elements, and the new shape has 6");
    says({x}, reshape(x, {x.length(0), -1, 2}), {zeros({5, 9})},
         "to [5, -1, 2]: it has 45 elements, and no length in place of the -1 makes as many: the largest "
         "that "
         "fits makes 40");
}

TEST_CASE("an update of another dtype is a TypeError with the cast to write", "[core][runtime]") {
    const Shared n = shared(std::int64_t{3}, "n"), rate = shared(0.5F, "rate");
    const Expr d = scalar("d", float64);
    const auto says = [&](const std::vector<Input>& inputs, const Update& update, const std::string& words) {
        CHECK_THAT(message_of<TypeError>(
                       [&] { function(inputs, {}, {.updates = {update}, .device = "reference"}); }),
                   ContainsSubstring("traps_test.cpp:") && ContainsSubstring("shared variable \"") &&
                       ContainsSubstring(words));
    };
    says({}, {n, n + 0.5},
         "the dtypes differ; write cast(n + 0.5, int64), which drops fractions, or make it a variable of "
         "floats: "
         "shared(value.as(float32))");
    says({}, {n, (n + 1) / 2}, "write cast((n + 1) / 2, int64)");
    says({}, {n, exp(n)}, "write cast(..., int64), which drops fractions");
    says({}, {n, 0.5}, "is 0.5, which int64 cannot hold; make it a variable of floats");
    says({d}, {rate, rate * d}, "write cast(rate * d, float32)");
    function({}, {}, {.updates = {{n, 2.0}}, .device = "reference"});
}

TEST_CASE("results are taken apart by number", "[core][runtime]") {
    const Expr x = bitale::vector("x");
    for (const char* device : three_devices) {
        INFO(device);
        Function f = function({x}, {sum(x), x * 2}, {.device = device});
        auto [total, twice] = f(Array{1.F, 2.F}).unpack<2>();
        CHECK(double(total) == 3);
        CHECK(same(twice, Array{2.F, 4.F}));
        CHECK_THROWS_AS(f(Array{1.F, 2.F}).unpack<3>(), IndexError);
        CHECK_THAT(error_of([&] { f(Array{1.F}).unpack<1>(); }),
                   ContainsSubstring("unpack<1>()") && ContainsSubstring("the function has 2"));
    }
}

TEST_CASE("a random stream moves on with each call, with or without its updates", "[core][runtime]") {
    for (const char* device : three_devices) {
        INFO(device);
        const auto draws = [&](bool pass, bool hold) {
            RandomStream random(7);
            const Expr noise = random.uniform({4}), mask = dropout(ones({4}), 0.5, random);
            FunctionOptions options{.device = device, .hold_streams = hold};
            if (pass) options.updates = random.updates();
            Function f = function({}, {noise, mask}, options);
            std::vector<std::vector<float>> calls;
            for (int call = 0; call < 3; ++call) calls.push_back(f()[0].to_vector<float>());
            CHECK(random.counter().get_value().item<std::uint64_t>() == (hold && !pass ? 0u : 3u));
            return calls;
        };
        const auto alone = draws(false, false);
        CHECK(alone[0] != alone[1]);
        CHECK(alone[1] != alone[2]);
        CHECK(draws(true, false) == alone);  // once a call, not twice
        CHECK(draws(true, true) == alone);
        const auto held = draws(false, true);
        CHECK(held[0] == alone[0]);
        CHECK(held[0] == held[1]);
        CHECK(held[1] == held[2]);
    }
}

TEST_CASE("a loop draws what its calls would", "[core][runtime]") {
    const auto make = [](RandomStream& random) {
        const Expr i = lscalar("i");
        return function({i}, sum(random.normal({8})) + cast(i, float32), {.device = "cpu"});
    };
    RandomStream one(3), other(3);
    Function called = make(one), looped = make(other);
    const Array all = looped.loop(0, 5)[0];
    for (std::int64_t i = 0; i < 5; ++i) CHECK(called(i)[0].item<float>() == all.at<float>(i));
    // A draw whose counter is given by the user leaves the stream alone.
    RandomStream given(3);
    const Expr counter = scalar("counter", uint64);
    Function at = function({counter}, sum(given.normal({8})),
                           {.givens = {{Expr(given.counter()), counter}}, .device = "cpu"});
    CHECK(at(std::uint64_t{2})[0].item<float>() + 2 == all.at<float>(2));
    CHECK(given.counter().get_value().item<std::uint64_t>() == 0);
}

TEST_CASE("a slice that begins behind the last row is an error of the step", "[core][runtime]") {
    const Shared data = shared(numbered(10), "data");
    const Expr i = lscalar("i");
    for (const char* device : three_devices) {
        INFO(device);
        Function f = function({i}, sum(data[Slice{i * 4, (i + 1) * 4}]), {.device = device});
        CHECK(f.loop(0, 3)[0].to_vector<int>() == std::vector<int>{6, 22, 17});  // the last one is short
        CHECK_THAT(message_of<IndexError>([&] { f(3); }),
                   ContainsSubstring("traps_test.cpp:") && ContainsSubstring("\"data\"") &&
                       ContainsSubstring("starts at index 12, but the axis has length 10: one minibatch"));
        CHECK_THAT(message_of<IndexError>([&] { f.loop(0, 5); }), ContainsSubstring("in step 3 of the loop"));
        CHECK(f(1)[0].item<int>() == 22);
    }
    // What is written as an empty slice stays one; so do slices without a stop, and literals.
    const Expr n = lscalar("n");
    Function some = function({n}, sum(data[Slice{n, n}]) + sum(data[Slice{n}]), {.device = "cpu"});
    CHECK(some(10)[0].item<int>() == 0);
    CHECK(some(8)[0].item<int>() == 17);
    CHECK(function({}, data[Slice{20, 30}], {.device = "cpu"})()[0].size() == 0);
    Function clipped = function({n}, data[Slice{minimum(n, 10), minimum(n + 4, 10)}], {.device = "cpu"});
    CHECK(clipped(20)[0].size() == 0);
    CHECK(clipped(8)[0].size() == 2);
    // A step of such a slice, another axis, and a gradient alone.
    Function rest = function({n}, data[Slice{n, n + 4, 2}], {.device = "cpu"});
    CHECK(rest(8)[0].to_vector<int>() == std::vector<int>{8});
    CHECK_THROWS_AS(rest(10), IndexError);
    const Expr wide = reshape(data, {2, 5});
    Function columns = function({n}, wide[{colon, Slice{n, n + 2}}], {.device = "cpu"});
    CHECK(columns(4)[0].shape() == Dims{2, 1});
    CHECK_THROWS_AS(columns(5), IndexError);
    const Shared w = shared(Array(1.0f), "w");
    Function train = function(
        {i}, {}, {.updates = sgd(sum(data[Slice{i * 4, (i + 1) * 4}] * w), {w}, 0.1), .device = "cpu"});
    train(1);
    const Array before = w.get_value();
    CHECK_THROWS_AS(train(3), IndexError);
    CHECK(same(w.get_value(), before));
    // Nothing at all is no mistake at its beginning.
    const Expr x = vector("x");
    Function none = function({x, n}, sum(x[Slice{n, n + 4}]), {.device = "cpu"});
    CHECK(none(Array(float32, {0}), 0)[0].item<int>() == 0);
    CHECK_THROWS_AS(none(Array(float32, {0}), 1), IndexError);
}

TEST_CASE("rows beyond the data are named, with the number of rows and a cure", "[core][runtime]") {
    const Shared data = shared(numbered(10), "data");
    const Expr i = lscalar("i");
    for (const char* device : three_devices) {
        INFO(device);
        Function batch = function({i}, sum(data[range(i * 4, i * 4 + 4)]), {.device = device}),
                 one = function({i}, Expr(data)[i], {.device = device});
        CHECK(batch(1)[0].item<int>() == 22);
        CHECK_THAT(message_of<IndexError>([&] { batch(2); }),
                   ContainsSubstring("rows 8 to 11 of \"data\" (") &&
                       ContainsSubstring("are out of range: it has 10 rows; minibatches count from 0, and "
                                         "for a shorter last one use "
                                         "Slice, which clips"));
        CHECK_THAT(message_of<IndexError>([&] { one(-1); }),
                   ContainsSubstring("row -1 of \"data\" (") &&
                       ContainsSubstring("is out of range: it has 10 rows, and a computed index does not "
                                         "count from the end"));
        CHECK_THAT(message_of<IndexError>([&] { batch(std::numeric_limits<std::int64_t>::max() / 4); }),
                   ContainsSubstring("are out of range"));
        CHECK(one(9)[0].item<int>() == 9);
    }
}

TEST_CASE("rows beyond data of a length that a call brings are named with that length", "[core][runtime]") {
    const Expr x = vector("x"), i = lscalar("i"), rows = ivector("rows");
    for (const char* device : three_devices) {
        INFO(device);
        Function one = function({x, i}, x[i], {.device = device}),
                 some = function({x, rows}, gather(x, rows), {.device = device});
        for (const int n : {3, 11}) {
            CHECK_THAT(message_of<IndexError>([&] { one(numbered(n), n); }),
                       ContainsSubstring("row " + std::to_string(n) + " of \"x\"") &&
                           ContainsSubstring("it has " + std::to_string(n) + " rows"));
            CHECK_THAT(
                message_of<IndexError>([&] {
                    some(numbered(n), Array({0, -1}));
                }),
                ContainsSubstring("out of range, 0 to " + std::to_string(n - 1) + ": -1 at element 1"));
        }
        CHECK(one(numbered(3), 2)[0].item<int>() == 2);
    }
}

TEST_CASE("a gradient by itself checks the places that it goes to", "[core][runtime]") {
    const Shared table = shared(zeros({10, 3}), "table"), large = shared(zeros({5000, 3}), "large");
    const Expr g = matrix("g"), ids = ivector("ids"), i = lscalar("i"), x = matrix("x");
    for (const char* device : three_devices) {
        INFO(device);
        for (const Shared& t : {table, large}) {
            const int rows = static_cast<int>(t.get_value().shape()[0]);
            Function some = function({g, ids}, grad(sum(gather(t, ids) * g), t), {.device = device});
            CHECK(some(zeros({2, 3}), Array({0, rows - 1}))[0].shape() == Dims{rows, 3});
            CHECK_THAT(message_of<IndexError>([&] {
                           some(zeros({3, 3}), Array({0, rows, -1}));
                       }),
                       ContainsSubstring("in \"ids\" is out of range, 0 to " + std::to_string(rows - 1) +
                                         ": " + std::to_string(rows) + " at element 1"));
        }
        Function rows = function({g, i}, grad(sum(table[range(i, i + 5)] * g), table), {.device = device}),
                 fixed = function({x}, grad(sum(sqr(x[7]) + x[7]) + 0 * sum(x), x), {.device = device}),
                 linear = function({x}, grad(sum(x[7]), x), {.device = device});
        CHECK(rows(zeros({5, 3}), 5)[0].shape() == Dims{10, 3});
        CHECK_THAT(message_of<IndexError>([&] {
                       rows(zeros({5, 3}), 7);
                   }),
                   ContainsSubstring("rows 7 to 11 of gradient of slice (float32 [10, 3])"));
        CHECK_THROWS_AS(rows(zeros({5, 3}), -1), IndexError);
        CHECK(linear(zeros({8, 3}))[0].to_vector<float>()[23] == 1);
        CHECK_THROWS_AS(linear(zeros({7, 3})), IndexError);
        CHECK_THROWS_AS(fixed(zeros({7, 3})), IndexError);
        const Expr first = lscalar("first"), end = lscalar("end");
        Function part = function({x, first, end}, grad(sum(x[Slice{first, end}]), x), {.device = device});
        CHECK(part(zeros({10, 3}), 3, 12)[0].to_vector<float>()[9] == 1);
        CHECK_THROWS_AS(part(zeros({10, 3}), 10, 12), IndexError);
    }
}

TEST_CASE("an element that is not there is an IndexError, whenever that is known", "[core][runtime]") {
    const Expr x = vector("x"), k = lscalar("k");
    Function fixed = function({x}, x[5], {.device = "cpu"}), last = function({x}, x[-5], {.device = "cpu"}),
             given = function({x, k}, x[k], {.device = "cpu"});
    CHECK(fixed(numbered(6))[0].item<int>() == 5);
    CHECK_THAT(message_of<IndexError>([&] { fixed(numbered(3)); }),
               ContainsSubstring("index 5 is out of range for axis 0 of \"x\" (float32 [3])"));
    CHECK(last(numbered(6))[0].item<int>() == 1);
    CHECK_THROWS_AS(last(numbered(3)), IndexError);
    CHECK_THROWS_AS(given(numbered(3), 5), IndexError);
}

TEST_CASE("a given for a variable that does not occur", "[core][runtime]") {
    const Expr x = vector("x"), y = vector("y");
    const Shared w = shared(numbered(3), "w"), unused = shared(numbered(3), "unused");
    const auto make = [&](const Givens& givens, OnUnused what) {
        return function({x}, x * w, {.givens = givens, .device = "cpu", .on_unused_input = what});
    };
    CHECK_THAT(
        message_of<GraphError>([&] {
            make({{y, x * 2}}, OnUnused::raise);
        }),
        ContainsSubstring("\"y\"") && ContainsSubstring("occurs in no output or update; remove the given"));
    CHECK_THROWS_AS(make({{Expr(unused), x}}, OnUnused::raise), GraphError);
    std::string warned;
    {
        const ScopedLog log([&](const std::string& line) { warned += line; });
        make({{y, x * 2}}, OnUnused::warn);
    }
    CHECK_THAT(warned, ContainsSubstring("occurs in no output"));
    CHECK(make({{y, x * 2}}, OnUnused::ignore)(numbered(3))[0].size() == 3);
    CHECK(make({{Expr(w), x}}, OnUnused::raise)(numbered(3))[0].to_vector<int>() ==
          std::vector<int>{0, 1, 4});
}

TEST_CASE("empty handles and missing outputs are errors", "[core][runtime]") {
    const Shared never;
    CHECK_THROWS_AS(Expr(never), GraphError);
    CHECK_THROWS_AS(never[0], GraphError);
    CHECK_THROWS_AS(never + 1, GraphError);
    CHECK_THROWS_AS(never.get_value(), GraphError);
    CHECK_THROWS_AS(never.name(), GraphError);
    CHECK_THROWS_AS(function({}, {}, {.updates = {{never, Expr(1)}}}), GraphError);
    CHECK_THROWS_AS(function({}, Expr(), {}), GraphError);
    const Expr x = vector("x");
    CHECK_THROWS_AS(function({x}, x, {.givens = {{never, x}}}), GraphError);
    CHECK_THROWS_AS(grad(sum(x), {Expr()}), GraphError);
    const Shared count = shared(Array(1), "count");
    Function f = function({}, {}, {.updates = {{count, count + 1}}, .device = "cpu"}),
             g = function({x}, x, {.device = "cpu"});
    CHECK_THAT(message_of<IndexError>([&] { (void)g(numbered(2))[1]; }),
               ContainsSubstring("output 1 of a function with 1 output is used; outputs count from 0, and "
                                 "Array(f(x))[1] is a row of the first"));
    CHECK_THAT(message_of<IndexError>([&] { (void)static_cast<double>(f()); }),
               ContainsSubstring("function without outputs"));
    CHECK_THROWS_AS(static_cast<Array>(f()), Error);
    CHECK_THROWS_AS(Function()(1), GraphError);
}

TEST_CASE("handles that were moved from are empty, and say so", "[core][runtime]") {
    // NOLINTBEGIN(bugprone-use-after-move)
    Shared w = shared(numbered(3), "w");
    const Shared w2 = std::move(w);
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { w.get_value(); }, [&] { w.set_value(numbered(3)); }, [&] { (void)w.name(); },
             [&] { (void)w.dtype(); }, [&] { (void)w.shape(); }, [&] { (void)w[0]; }, [&] { (void)(w + 1); }})
        CHECK_THROWS_WITH(use(),
                          Catch::Matchers::StartsWith("traps_test.cpp:") && ContainsSubstring("moved from"));
    CHECK(w2.get_value().size() == 3);
    w = w2;
    CHECK(w.name() == "w");

    Expr x = vector("x");
    const Expr x2 = std::move(x);
    CHECK(x.is_null());
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { (void)x.dtype(); }, [&] { (void)x.rank(); }, [&] { (void)x[0]; },
             [&] { (void)x.length(0); }, [&] { (void)x.shape_text(); }, [&] { (void)x.named("y"); },
             [&] { (void)sum(x); }})
        CHECK_THROWS_WITH(use(), Catch::Matchers::StartsWith("traps_test.cpp:"));
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { (void)x.dtype(); }, [&] { (void)x.rank(); }, [&] { (void)x[0]; }, [&] { (void)(x + 1); },
             [&] { (void)exp(x); }, [&] { (void)x.length(0); }, [&] { (void)x.shape_text(); },
             [&] { (void)x.where(); }, [&] { (void)x.named("y"); }, [&] { (void)sum(x); },
             [&] { (void)same(x, x2); }, [&] { (void)debugprint(x); }, [&] { function({x}, x2); }})
        CHECK_THROWS_AS(use(), GraphError);

    Function f = function({x2}, x2 + Expr(w2), {.device = "cpu"});
    Function g = std::move(f);
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { f(numbered(3)); }, [&] { f.loop(0, 3); }, [&] { f.request_stop(); },
             [&] { (void)f.steps_done(); }, [&] { (void)f.name(); }, [&] { (void)f.report(); },
             [&] { (void)f.kernels(); }, [&] { (void)f.profile(); }, [&] { (void)f.peak_bytes(); },
             [&] { (void)f.compile_seconds(); }, [&] { (void)f.compiler_runs(); },
             [&] { (void)debugprint(f); }})
        CHECK_THROWS_WITH(use(), ContainsSubstring("moved from"));
    Results r = g(numbered(3));
    const Results r2 = std::move(r);
    CHECK(r.size() == 0);
    CHECK_THROWS_WITH(r[0], ContainsSubstring("moved from"));
    CHECK_THROWS_AS(static_cast<double>(r), IndexError);
    CHECK(r2[0].to_vector<int>() == std::vector<int>{0, 2, 4});

    Array a = numbered(3);
    const Array b = std::move(a);
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { g(a); },
             [&] {
                 g.call({&a, 1});
             },
             [&] { shared(a); }, [&] { (void)Expr(a); }, [&] { (void)(x2 + a); }, [&] { constant(a); },
             [&] {
                 Shared v = w2;
                 v.set_value(a);
             }})
        CHECK_THROWS_WITH(use(), ContainsSubstring("moved from"));
    CHECK(w2.get_value().to_vector<int>() == std::vector<int>{0, 1, 2});
    // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("lists, plans and checkpoints that were moved from are errors, until they get new values",
          "[core][runtime]") {
    // NOLINTBEGIN(bugprone-use-after-move)
    const TemporaryFolder folder;
    const Shared w = shared(numbered(3), "w");
    const Expr loss = sum(sqr(Expr(w)));
    const std::string path = folder / "best.safetensors";
    Checkpoint state{w};
    save_checkpoint(path, state);
    const std::string good = text_of_file(path);
    const Checkpoint state2 = std::move(state);
    Updates updates = sgd(loss, {w}, 0.1);
    const Updates updates2 = std::move(updates);
    Grads grads = gradients(loss, {w});
    const Grads grads2 = std::move(grads);
    GradSum total(grads2);
    const GradSum total2 = std::move(total);
    RandomStream stream(7);
    const RandomStream stream2 = std::move(stream);
    Parameters parameters;
    const Parameters parameters2 = std::move(parameters);
    Shared none;
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { save_checkpoint(path, state); }, [&] { load_checkpoint(path, state); },
             [&] { (void)state.entries(); },
             [&] {
                 Checkpoint{w, updates};
             },
             [&] { function({}, {}, {.updates = updates}); }, [&] { sgd(grads, 0.1); },
             [&] { GradSum{grads}; }, [&] { clip_by_value(grads, 1); }, [&] { global_norm(grads); },
             [&] { scale(grads, 2); }, [&] { grads.map([](const Shared&, const Expr& g) { return g; }); },
             [&] { total.add(); }, [&] { total.mean(); }, [&] { total.clear(); }, [&] { Checkpoint{stream}; },
             [&] {
                 Checkpoint{{"drop", stream}};
             },
             [&] { Checkpoint{parameters}; }, [&] { parameters.add("w", numbered(1)); },
             [&] { sgd(loss, {none}, 0.1); }})
        CHECK_THROWS_WITH(use(),
                          Catch::Matchers::StartsWith("traps_test.cpp:") && ContainsSubstring("moved from"));
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { (void)grads.size(); }, [&] { (void)grads[0]; }, [&] { (void)grads[w]; },
             [&] { grads + grads2; }, [&] { grads2 + grads; }, [&] { updates + updates2; },
             [&] { updates2 + updates; }})
        CHECK_THROWS_WITH(use(), ContainsSubstring("moved from"));
    CHECK(text_of_file(path) == good);
    CHECK_THROWS_WITH(grads2.map(nullptr), Catch::Matchers::StartsWith("traps_test.cpp:"));

    Function f = function({}, loss, {.updates = updates2, .device = "cpu"});
    MemoryPlan plan = f.memory_plan();
    const MemoryPlan plan2 = std::move(plan);
    for (const std::function<void()>& use :
         std::vector<std::function<void()>>{[&] { (void)plan.to_string(); }, [&] { (void)plan.json(); },
                                            [&] { (void)plan.svg(); }, [&] { std::ostringstream() << plan; }})
        CHECK_THROWS_WITH(use(), ContainsSubstring("moved from"));
    CHECK_THAT(plan2.to_string(), ContainsSubstring("at most"));

    // New values, in one way or another.
    state = state2;
    load_checkpoint(path, state);
    updates.push_back(updates2[0]);
    f = function({}, {}, {.updates = updates, .device = "cpu"});
    f();
    CHECK(w.get_value().to_vector<float>()[2] == 2 - 0.1F * 4);
    grads = grads2;
    CHECK(sgd(grads, 0.1).size() == 1);
    CHECK(Checkpoint{w, Updates()}.entries().size() == 1);
    // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("a program lists each variable that it writes once", "[core][runtime]") {
    const Shared a = shared(numbered(4), "a"), b = shared(numbered(4), "b");
    Function f = function({}, {}, {.updates = {{a, b * 2}, {b, a + 1}}, .device = "cpu"});
    const std::vector<int>& updated = f.state().program->updated;
    REQUIRE(updated.size() == 2);
    CHECK(updated[0] != updated[1]);
    const std::uint64_t before = a.state()->version;
    f();
    CHECK(a.state()->version == before + 1);
}

TEST_CASE("signed and unsigned numbers are compared exactly on every device", "[core][runtime]") {
    constexpr auto top = std::numeric_limits<std::int64_t>::max();
    const Expr u = vector("u", uint64), i = lvector("i");
    const Array us = std::vector<std::uint64_t>{~std::uint64_t{0}, 1, 0, static_cast<std::uint64_t>(top), 5},
                is = std::vector<std::int64_t>{1, -1, 0, top, 6};
    for (const char* device : three_devices) {
        INFO(device);
        Function f = function({u, i}, {u > i, eq(u, i), i < u, u <= i}, {.device = device});
        const Results r = f(us, is);
        CHECK(r[0].to_vector<int>() == std::vector<int>{1, 1, 0, 0, 0});
        CHECK(r[1].to_vector<int>() == std::vector<int>{0, 0, 1, 1, 0});
        CHECK(r[2].to_vector<int>() == std::vector<int>{1, 1, 0, 0, 0});
        CHECK(r[3].to_vector<int>() == std::vector<int>{0, 0, 1, 1, 1});
    }
}
