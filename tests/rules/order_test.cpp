// Transposes come last: what reads them is computed in the order of memory.
#include "tests/rules/text.h"

#include "tests/support/catch.h"

using namespace bitale;

namespace {

// Axes that are long enough are not joined.
const Expr array = input(float32, Dims{3, 4, 80}, "a"), turned_array = transpose(array, {2, 0, 1}),
           beside = input(float32, Dims{3, 4, 80}, "b"), other = input(float32, Dims{80, 3, 4}, "other"),
           numbers = input(float32, Dims{80}, "v");

}  // namespace

TEST_CASE("maps, scans and views are computed before a transpose") {
    CHECK(optimized(tanh(turned_array)) == "permute(tanh(a))");
    CHECK(optimized(turned_array * 3 - transpose(beside, {2, 0, 1})) == "permute(sub(mul(a, 3), b))");
    CHECK(optimized(cumsum(turned_array, 1)) == "permute(cumsum(a))");
    CHECK(optimized(flip(turned_array, 0)) == "permute(flip(a))");
    CHECK(optimized(turned_array[Slice{1, 4}] * 2) == "permute(mul(slice(a), 2))");
    CHECK(optimized(roll(turned_array, 1, 2)) == "permute(concat(slice(a), slice(a)))");
    // What is repeated along other axes is turned before it is.
    CHECK(optimized(turned_array + reshape(numbers, {80, 1, 1})) == "permute(add(a, expand(reshape(v))))");
}

TEST_CASE("a reduction of a transpose is one of what is transposed") {
    CHECK(optimized(max(turned_array, {0, 1, 2})) == "max(a)");
    CHECK(optimized(max(turned_array, {1, 2})) == "max(a)");
    CHECK(optimized(sum(turned_array, {0})) == "sum(a)");
    CHECK(optimized(sum(turned_array, {1})) == "permute(sum(a))");
    CHECK(optimized(argmax(turned_array, {0})) == "argmax(a)");
    CHECK(optimized(argmax(turned_array)) == "argmax(permute(a))");  // positions are those of turned_array
    CHECK(optimized(turned_array - mean(turned_array, {1}, {.keepdims = true})) ==
          "permute(sub(a, expand(reshape(div(sum(a), 3)))))");
}

TEST_CASE("operands in several orders stay where they are") {
    CHECK(optimized(turned_array + other) == "add(permute(a), other)");
    CHECK(optimized(turned_array + transpose(input(float32, Dims{4, 3, 80}, "z"), {2, 1, 0})) ==
          "add(permute(a), permute(z))");
}
