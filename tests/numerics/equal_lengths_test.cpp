// Functions whose unknown lengths are equal at every valid call: results beside the oracle, and the error of
// a call that breaks an equality, which comes before anything is written.
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

FunctionOptions here(const Updates& updates = {}) {
    FunctionOptions o;
    o.updates = updates;
    o.device = tested_device();
    return o;
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
               ContainsSubstring("equal_lengths_test.cpp") && ContainsSubstring("here 5 and 4"));
    CHECK_THAT(error_of([&] {
                   call({2, 4}, {5, 2}, {3});
               }),
               ContainsSubstring("dot sums over") && ContainsSubstring("here 4 and 5"));
    CHECK_THAT(error_of([&] { call({2, 4}, {4, 2}, {2}); }), ContainsSubstring("equal_lengths_test.cpp"));
    CHECK(difference(count.get_value(), before) == "");
    call({2, 4}, {4, 2}, {3});
    const Array after = count.get_value();
    CHECK(difference(after, before) != "");
    // Behind a call that fits, as before it.
    CHECK_THAT(error_of([&] { call({2, 4}, {5, 2}, {3}); }), ContainsSubstring("here 4 and 5"));
    CHECK_THAT(error_of([&] { call({2, 5}, {5, 2}, {3}); }), ContainsSubstring("here 5 and 4"));
    CHECK(difference(count.get_value(), after) == "");
}

TEST_CASE("lengths that no call can satisfy are reported by each call") {
    const Expr x = vector("x");
    Function f = function({x}, {x + ones({3}), x + ones({4})}, here());
    for (const std::int64_t n : {3, 4, 5})
        CHECK_THAT(error_of([&] { f.call(std::vector<Array>{ones({n})}); }),
                   ContainsSubstring("must be equal"));
}
