// Functions whose unknown lengths are equal at every valid call: results beside the oracle, and the error of
// a call that breaks an equality, which comes before anything is written.
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Every axis of every argument shorter and longer: each call is refused by the same words, or none is.
void check_wrong_lengths(const std::vector<Input>& inputs, const std::vector<Expr>& outputs,
                         const std::vector<Dims>& shapes, const Updates& updates = {}) {
    FunctionOptions oracle;
    oracle.updates = updates;
    oracle.device = "reference";
    Function expected = function(inputs, outputs, oracle), f = function(inputs, outputs, here(updates));
    for (std::size_t i = 0; i < shapes.size(); ++i)
        for (std::size_t axis = 0; axis < shapes[i].size(); ++axis)
            for (const std::int64_t by : {-1, 1, 3, 0}) {
                std::vector<Dims> wrong = shapes;
                wrong[i][axis] += by;
                std::vector<Array> arguments;
                for (const Dims& shape : wrong) arguments.push_back(ones(shape));
                INFO("input " << i << ", axis " << axis << ", by " << by);
                CHECK(error_of([&] { f.call(arguments); }) == error_of([&] { expected.call(arguments); }));
            }
}

}  // namespace

TEST_CASE("products and attention of unknown lengths") {
    const Expr q = matrix("q"), k = matrix("k"), v = matrix("v"), m = vector("m");
    const Expr scores = sum(expand_dims(q, 1) * expand_dims(k, 0), {2});
    const Expr mixed = dot(softmax(scores + m), v);
    std::vector<Expr> all{scores, mixed, dot(k, transpose(q)), concatenate({q, k}, 0),
                          scores + dot(q, transpose(k))};
    const std::vector<Expr> gradients = grad(sum(sqr(mixed)), {q, k, v, m});
    all.insert(all.end(), gradients.begin(), gradients.end());
    Function f = function({q, k, v, m}, all, here());
    Function expected = function({q, k, v, m}, all, {.device = "reference"});
    Random random(3);
    for (const auto& [rows, columns, width, out] : std::vector<std::array<std::int64_t, 4>>{
             {5, 7, 3, 2}, {33, 40, 16, 17}, {1, 1, 1, 1}, {0, 3, 2, 4}, {70, 3, 65, 1}}) {
        INFO(rows << " x " << columns << " over " << width << " to " << out);
        const std::vector<Array> arguments{random_array(float32, {rows, width}, random, -1, 1),
                                           random_array(float32, {columns, width}, random, -1, 1),
                                           random_array(float32, {columns, out}, random, -1, 1),
                                           random_array(float32, {columns}, random, -1, 1)};
        const Results got = f.call(arguments), wanted = expected.call(arguments);
        for (std::size_t i = 0; i < got.size(); ++i) {
            INFO("result " << i);
            CHECK(difference(got[i], wanted[i], {.of_largest = 1e-4}) == "");
        }
    }
}

TEST_CASE("a length that must equal another one, or a number, is checked at each call") {
    const Expr x = matrix("x"), y = matrix("y"), z = vector("z");
    Shared w = shared(ones({4, 3}), "w"), count = shared(ones({3}), "count");
    Function f = function({x, y, z}, {dot(x, w), dot(x, y)}, here({{count, count + z}}));
    const Array before = count.get_value();
    const auto call = [&](Dims a, Dims b, Dims c) { f.call(std::vector<Array>{ones(a), ones(b), ones(c)}); };
    CHECK_THAT(error_of([&] {
                   call({2, 5}, {5, 2}, {3});
               }),
               ContainsSubstring("equal_lengths_test.cpp") &&
                   ContainsSubstring("has length 5 and axis 0 of \"w\" has length 4"));
    CHECK_THAT(error_of([&] {
                   call({2, 4}, {5, 2}, {3});
               }),
               ContainsSubstring("axis 1 of \"x\" has length 4 and axis 0 of \"y\" has length 5"));
    CHECK_THAT(error_of([&] { call({2, 4}, {4, 2}, {2}); }), ContainsSubstring("equal_lengths_test.cpp"));
    CHECK(difference(count.get_value(), before) == "");
    call({2, 4}, {4, 2}, {3});
    const Array after = count.get_value();
    CHECK(difference(after, before) != "");
    // Behind a call that fits, as before it.
    CHECK_THAT(error_of([&] {
                   call({2, 4}, {5, 2}, {3});
               }),
               ContainsSubstring("\"x\" has length 4 and axis 0 of \"y\" has length 5"));
    CHECK_THAT(error_of([&] {
                   call({2, 5}, {5, 2}, {3});
               }),
               ContainsSubstring("\"x\" has length 5 and axis 0 of \"w\" has length 4"));
    CHECK(difference(count.get_value(), after) == "");
}

TEST_CASE("lengths that no call can satisfy are reported by each call") {
    const Expr x = vector("x");
    Function f = function({x}, {x + ones({3}), x + ones({4})}, here());
    for (const std::int64_t n : {3, 4, 5})
        CHECK_THAT(error_of([&] { f.call(std::vector<Array>{ones({n})}); }),
                   ContainsSubstring("must be equal"));
}

TEST_CASE("calls of wrong lengths are refused as the oracle refuses them") {
    const Expr a = matrix("a"), b = matrix("b"), d = vector("d"), e = vector("e"), x = input(float32, 4, "x"),
               w = input(float32, Dims{-1, -1, 3, 3}, "w");
    check_wrong_lengths({a, b, d}, {dot(a, b) + d}, {{7, 5}, {5, 9}, {9}});
    check_wrong_lengths({a, b}, {dot(a, b) + dot(b, a)}, {{6, 6}, {6, 6}});
    check_wrong_lengths({a, b, d}, {concatenate({a, b, reshape(d, {1, d.length(0)})}, 0) * d},
                        {{4, 6}, {3, 6}, {6}});
    check_wrong_lengths({d, e}, {d[Slice{1, std::nullopt}] + e, d[Slice{2, 5}]}, {{9}, {8}});
    check_wrong_lengths({d, a}, {reshape(d, {a.length(0), a.length(1)}) + a, exp(d)}, {{12}, {3, 4}});
    check_wrong_lengths({x, w, d}, {conv2d(x, w, {.groups = 2}) + reshape(d, {1, 6, 1, 1})},
                        {{2, 4, 6, 7}, {6, 2, 3, 3}, {6}});
    check_wrong_lengths({a, b, d}, {where(a > 0, b, d)}, {{3, 4}, {3, 4}, {4}});
    check_wrong_lengths({d}, {d + ones({3}), d[Slice{0, 2}] * ones({2})}, {{3}});
    const Shared s = shared(ones({4, 3}), "s"), c = shared(ones({3}), "c");
    check_wrong_lengths({a, d}, {dot(a, s)}, {{2, 4}, {3}}, {{c, c + d}});
    check_wrong_lengths({a, d}, {sum(a)}, {{4, 3}, {3}}, {{s, s * 0.5 + a}, {c, d}});
}
