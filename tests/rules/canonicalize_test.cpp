// Canonical forms, before and after.
#include "tests/rules/text.h"

#include "tests/support/catch.h"

using namespace bitale;

namespace {

const Expr x = input(float32, Dims{5}, "x"), y = input(float32, Dims{5}, "y");
const Expr n = input(int32, Dims{5}, "n"), b = input(boolean, Dims{5}, "b"), m = matrix("m");

}  // namespace

TEST_CASE("neutral operands go") {
    CHECK(canonical(x * 1) == "x");
    CHECK(canonical(1 * x) == "x");
    CHECK(canonical(x / 1) == "x");
    CHECK(canonical(x - 0) == "x");
    CHECK(canonical(x + 0) == "x");
    CHECK(canonical(n + 0) == "n");
    CHECK(canonical(pow(x, 1)) == "x");
    CHECK(canonical(x + zeros_like(x)) == "x");
    CHECK(canonical(ones_like(x) * x) == "x");
}

TEST_CASE("a zero only wins where there is no NaN") {
    CHECK(canonical(n * 0) == "expand(0)");
    CHECK(canonical(x * 0) == "mul(x, 0)");
    CHECK(canonical(n - n) == "expand(0)");
    CHECK(canonical(x - x) == "sub(x, x)");
}

TEST_CASE("signs meet") {
    CHECK(canonical(-(-x)) == "x");
    CHECK(canonical(x + (-y)) == "sub(x, y)");
    CHECK(canonical(-x + y) == "sub(y, x)");
    CHECK(canonical(x - (-y)) == "add(x, y)");
    CHECK(canonical((-x) * (-y)) == "mul(y, x)");
    CHECK(canonical(-(x * 3)) == "mul(x, -3)");
    CHECK(canonical(x * -1) == "neg(x)");
    CHECK(canonical((-x) / y) == "neg(div(x, y))");
    CHECK(canonical(abs(-x)) == "abs(x)");
}

TEST_CASE("constants meet") {
    CHECK(canonical((n + 2) + 3) == "add(n, 5)");
    CHECK(canonical((x * 2) * 4) == "mul(x, 8)");
    CHECK(canonical((x + 2) + 3) == "add(add(x, 2), 3)");
    CHECK(canonical((x / 4) / 2) == "mul(x, 0.125)");
    CHECK(canonical(x / 128) == "mul(x, 0.0078125)");
    CHECK(canonical(x / 3) == "div(x, 3)");
    CHECK(canonical(x * x) == "sqr(x)");
    CHECK(canonical(pow(x, 2)) == "sqr(x)");
    CHECK(canonical(1 / x) == "reciprocal(x)");
    CHECK(canonical(y * (1 / x)) == "div(y, x)");
    // One reciprocal of a count serves all elements; that of another number might be infinite.
    CHECK(canonical(x * (1 / cast(sum(n), float32))) == "mul(x, reciprocal(cast(sum(n))))");
    CHECK(canonical(x * (1 / sum(y))) == "div(x, sum(y))");
}

TEST_CASE("choices that are made already") {
    CHECK(canonical(where(constant(Array(true)), x, y)) == "x");
    CHECK(canonical(where(b, x, x)) == "x");
    CHECK(canonical(where(logical_not(b), x, y)) == "where(b, y, x)");
    CHECK(canonical(logical_not(logical_not(b))) == "b");
    CHECK(canonical(relu(relu(x))) == "relu(x)");
    CHECK(canonical(floor(n)) == "n");
}

TEST_CASE("lengths that only a call can compare stay compared") {
    const Expr one = vector("one"), other = vector("other");
    CHECK(canonical(-one + other) == "expand(sub(other, one))");
    CHECK(canonical(where(vector("c", boolean), one, one)) == "expand(one)");
}

TEST_CASE("one cast in a row where the first loses nothing") {
    const Expr u = vector("u", uint8);
    CHECK(canonical(cast(x, float32)) == "x");
    CHECK(canonical(cast(cast(u, int32), float32)) == "cast(u)");
    CHECK(canonical(cast(cast(u, float32), uint8)) == "u");
    CHECK(canonical(cast(cast(x, float64), float32)) == "x");
    CHECK(canonical(cast(cast(x, int32), float32)) == "cast(cast(x))");
    CHECK(canonical(cast(cast(n, int16), int8)) == "cast(n)");
    // 200 saturates to 127 as a float and wraps to -56 as an integer.
    CHECK(canonical(cast(cast(u, float32), int8)) == "cast(cast(u))");
}

TEST_CASE("views of a kind are one") {
    CHECK(canonical(transpose(transpose(m))) == "m");
    CHECK(canonical(flip(flip(x, 0), 0)) == "x");
    CHECK(canonical(reshape(reshape(m, {-1}), {2, -1})) == "reshape(m)");
    CHECK(canonical(flatten(m, 2)) == "m");
    CHECK(canonical(x[Slice{}]) == "x");
    const Expr t = input(float32, Dims{20}, "t");
    CHECK(canonical(t[Slice{2, 18, 2}][Slice{1, 5}]) == "slice(t)");
    CHECK(canonical(transpose(zeros_like(m))) == "expand(0)");
}

TEST_CASE("scalars enter maps as they are, repetition comes last") {
    const Expr s = scalar("s");
    CHECK(canonical(x * s) == "mul(x, s)");
    CHECK(canonical(exp(broadcast_to(s, {x.length(0)}))) == "expand(exp(s))");
    CHECK(canonical(x + broadcast_to(s, {x.length(0)})) == "add(x, s)");
    CHECK(canonical(broadcast_to(reshape(s, {1, 1}), {2, 3})) == "expand(s)");
    // A call has to find that the slice has a row before it is repeated.
    CHECK(canonical(broadcast_to(broadcast_to(m[Slice{0, 1}], {1, 20}), {4, 20})) ==
          "expand(expand(slice(m)))");
    CHECK(canonical(exp(expand_dims(x, 0) + expand_dims(x, 0) * 0)).find("expand") == std::string::npos);
}

TEST_CASE("reductions") {
    const Expr t = input(float32, Dims{2, 1, 3}, "t");
    CHECK(canonical(sum(sum(m, {1}), {0})) == "sum(m)");
    // Small integers are added as they are, and scaled once; a sum of none is 0, whatever the scale.
    const Expr bytes = matrix("bytes", uint8), scale = scalar("scale");
    CHECK(canonical(sum(cast(bytes, float32) * scale, {1})) ==
          "mul(sum(cast(bytes)), where(gt(length(), 0), scale, 0))");
    CHECK(canonical(sum(cast(matrix("n", int32), float32) * scale)) == "sum(mul(cast(n), scale))");
    CHECK(canonical(sum(m * scale)) == "sum(mul(m, scale))");
    const Expr gray = input(uint8, Dims{5, 1, 4}, "gray");
    CHECK(canonical(sum(cast(gray, float32) * scale)).rfind("mul(sum(", 0) == 0);
    CHECK(canonical(sum((cast(bytes, float32) - 3) * scale, {0})) ==
          "cast(mul(sub(sum(cast(bytes)), mul(cast(length()), 3)), "
          "where(gt(length(), 0), cast(scale), 0)))");
    CHECK(canonical(max(max(m, {0}), {0})) == "max(m)");
    CHECK(canonical(sum(t, {1})) == "reshape(t)");
    CHECK(canonical(max(t, {0, 1})) == "max(reshape(t))");
}

TEST_CASE("small integers are added as they are and scaled once") {
    const Expr p = input(uint8, Dims{4, 6}, "p"), b8 = cast(p, float32), b16 = input(int16, Dims{4, 6}, "w");
    CHECK(canonical(sum(b8 / 255)) == "cast(div(sum(cast(p)), 255))");
    CHECK(canonical(sum(b8 / 256)) == "cast(mul(sum(cast(p)), 0.00390625))");
    CHECK(canonical(sum(-b8, {1})) == "neg(sum(cast(p)))");
    CHECK(canonical(sum(b8 - 128)) == "cast(sub(sum(cast(p)), 3072))");
    CHECK(canonical(sum(1 - b8, {0})) == "sub(4, sum(cast(p)))");
    CHECK(canonical(sum((b8 - 128) / 255, {1})) == "div(sub(sum(cast(p)), 768), 255)");
    // In float64, so that it rounds once; of few terms in float32, unless that would round what is shifted.
    CHECK(canonical(sum(b8 / 255 - 0.5)) == "cast(sub(div(sum(cast(p)), 255), 12))");
    CHECK(canonical(sum(cast(input(uint8, Dims{70000}, "x"), float32) - 128)) ==
          "cast(sub(sum(cast(x)), 8960000))");
    CHECK(canonical(sum(b8 / 255 - 0.5, {1})) == "sum(sub(div(cast(p), 255), 0.5))");
    CHECK(canonical(sum(cast(b16, float64) * 3 + 0.5)) == "add(mul(sum(cast(w)), 3), 12)");
    CHECK(canonical(sum(cast(matrix("u", uint8), float32) + 2)) ==
          "cast(add(sum(cast(u)), mul(cast(length()), 2)))");
    // By way of other integers, and moved in between.
    CHECK(canonical(sum(cast(cast(p, int32) - 128, float32))) == "cast(sub(sum(cast(p)), 3072))");
    CHECK(canonical(sum(cast(cast(p, int16) - 128, float32))) == "cast(sub(sum(cast(p)), 3072))");
    CHECK(canonical(sum(cast(p, int32) - 128)) == "sub(sum(cast(p)), 3072)");
    CHECK(canonical(sum(reshape(transpose(b8 / 255), {3, 8}), {1})) ==
          "cast(div(sum(cast(reshape(permute(p)))), 255))");
    CHECK(canonical(sum((b8 / 255)[Slice{1, 3}] - 1)) == "cast(sub(div(sum(cast(slice(p))), 255), 12))");
    // Also where something else reads the terms.
    const Expr scaled = b8 / 255;
    CHECK(text_of(rewrite({sum(scaled).node(), exp(scaled).node()}, canonicalize_rules())[0]) ==
          "cast(div(sum(cast(p)), 255))");
}

TEST_CASE("other sums keep their terms") {
    const Expr small = input(uint8, Dims{4, 10}, "small"), large = input(int64, Dims{4, 10}, "large");
    // Parts of a concatenation stay of one dtype.
    CHECK(canonical(sum(concatenate({cast(small, int64), large}, 1), 1)) ==
          "sum(concat(cast(small), large))");
    const Expr p = input(uint8, Dims{4, 6}, "p"), bytes = cast(p, float32), row = vector("row");
    // No number, or none in float32.
    CHECK(canonical(sum(bytes * INFINITY)) == "sum(mul(cast(p), inf))");
    CHECK(canonical(sum(bytes - NAN)) == "sum(sub(cast(p), nan))");
    CHECK(canonical(sum(bytes / 0)) == "sum(div(cast(p), 0))");
    CHECK(canonical(sum(bytes * 3e38)).rfind("sum(mul(cast(p), 3", 0) == 0);
    CHECK(canonical(sum(bytes * 1e-44)).rfind("sum(mul(cast(p), ", 0) == 0);
    // 255 + 1 is 0 in uint8, and 200 * 200 beyond int16.
    CHECK(canonical(sum(p + 1)) == "sum(add(p, 1))");
    CHECK(canonical(sum(cast(p + 1, float32))) == "sum(cast(add(p, 1)))");
    CHECK(canonical(sum(cast(cast(p, int16) * 200, float32))) == "sum(cast(mul(cast(p), 200)))");
    // float32 does not have every such integer.
    CHECK(canonical(sum(cast(cast(p, int32) + (1 << 24), float32))) == "sum(cast(add(cast(p), 16777216)))");
    CHECK(canonical(sum(bytes + scalar("s"))) == "sum(add(cast(p), s))");
    CHECK(canonical(sum(bytes / scalar("s"))) == "sum(div(cast(p), s))");
    CHECK(canonical(sum(pad(bytes / 255, {{1, 1}, {0, 0}}))) == "sum(pad(div(cast(p), 255)))");
    CHECK(canonical(sum(input(float32, Dims{5}, "x") / 255)) == "sum(div(x, 255))");
}

TEST_CASE("sums of products of matrices merge where they stay such products") {
    const auto sums = [](const Expr& x) {
        const std::string text = canonical(x);
        return text.rfind("sum(sum(", 0) == 0 ? 2 : text.rfind("sum(", 0) == 0 ? 1 : 0;
    };
    for (const bool known : {true, false}) {
        const Expr a = known ? input(float32, Dims{5, 70, 80}, "a") : tensor3("a"),
                   b = known ? input(float32, Dims{5, 80, 90}, "b") : tensor3("b");
        const Expr product = matmul(a, b), outer = expand_dims(a, 3) - expand_dims(b, 1);
        // Over the batch it is one product over more terms; a sum over rows or columns loads all for each
        // term.
        CHECK(sums(sum(product, {0})) == 1);
        CHECK(sums(sum(product, {1})) == 2);
        CHECK(sums(sum(product, {2})) == 2);
        CHECK(sums(sum(product)) == 2);
        // Whatever is summed of what two factors share.
        CHECK(sums(sum(sum(abs(outer), {2}), {1})) == 2);
        // What is read once has no product to lose.
        CHECK(sums(sum(sum(abs(a), {2}), {1})) == 1);
        CHECK(sums(sum(sum(a * a, {0}), {0})) == 1);
    }
}

TEST_CASE("small constants are computed, large ones stay numbers to repeat") {
    CHECK(canonical(constant(Array(2.0F)) * 3 + x) == "add(6, x)");
    CHECK(canonical(constant(Array(std::vector<float>(1000, 7.0F)))) == "expand(7)");
    CHECK(canonical(sum(constant(Array(std::vector<int>{1, 2, 3})))) == "6");
    const Expr third = constant(Array(1.0F)) / 3;
    const NodePtr folded = rewrite({third.node()}, canonicalize_rules())[0];
    CHECK(constant_value(folded).dtype() == float32);
    CHECK(constant_value(folded).item<float>() == 1.0F / 3.0F);
}

TEST_CASE("concatenations in concatenations are one") {
    const Expr p = matrix("p"), q = matrix("q");
    CHECK(canonical(concatenate({concatenate({x, y}), x})) == "concat(x, y, x)");
    CHECK(canonical(concatenate({y, concatenate({x, y}), concatenate({concatenate({x, x}), y})})) ==
          "concat(y, x, y, x, x, y)");
    CHECK(canonical(concatenate({concatenate({m, p}, 0), q}, 1)) == "concat(concat(m, p), q)");
    // What something else reads is there anyway.
    const Expr both = concatenate({x, y});
    CHECK(text_of(rewrite({concatenate({both, x}).node(), exp(both).node()}, canonicalize_rules())[0]) ==
          "concat(concat(x, y), x)");
    // The other reader goes: then the inner one is looked at again.
    CHECK(canonical(concatenate({both, x}) + zeros_like(both[0])) == "concat(x, y, x)");
}

TEST_CASE("gradients of neighbouring slices are one concatenation") {
    const Expr wide = input(float32, {-1, 6}, "wide");
    const auto part = [&](int from, int to) { return wide[{colon, Slice{from, to}}]; };
    const auto gradient = [&](const Expr& cost) { return canonical(grad(sum(cost), wide)); };
    const auto count = [](const std::string& text, const std::string& word) {
        std::size_t found = 0;
        for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
        return found;
    };
    // All of it: no place among zeros is left.
    for (const std::string& all :
         {gradient(concatenate({exp(part(0, 2)) * exp(part(2, 4)), exp(part(4, 6))}, 1)),
          gradient(exp(part(4, 6)) * exp(part(0, 2)) * exp(part(2, 4)))}) {
        INFO(all);
        CHECK(count(all, "place_slice") == 0);
        CHECK(count(all, "concat") >= 1);
    }
    // A part of it: one place.
    const std::string some = gradient(exp(part(1, 3)) * exp(part(3, 5)));
    INFO(some);
    CHECK(count(some, "place_slice") == 1);
    // What overlaps, or has something in between, is added up as it was.
    CHECK(count(gradient(exp(part(1, 3)) * exp(part(2, 4))), "concat") == 0);
    CHECK(count(gradient(exp(part(0, 2)) * exp(part(4, 6))), "concat") == 0);
}

TEST_CASE("the first elements in order need the first places alone") {
    const Expr rows = input(float32, {3, 100}, "rows"), unknown = matrix("unknown");
    const auto first = [](const Expr& y, int from, int to) { return canonical(y[{colon, Slice{from, to}}]); };
    CHECK(first(argsort(rows), 0, 7) == "argsort(rows)");
    CHECK(first(sort(rows), 0, 7) == "take_along(rows, argsort(rows))");
    CHECK(first(sort(rows), 2, 7) == "take_along(rows, slice(argsort(rows)))");
    CHECK(first(argsort(unknown), 0, 7) == "argsort(unknown)");
    for (const Expr& y : {sort(rows)[{colon, Slice{0, 7}}], sort(rows)[{colon, 3}]})
        CHECK(canonical(grad(sum(y), rows)).find("argsort") != std::string::npos);
    CHECK(first(argsort(rows), 0, 60) == "slice(argsort(rows))");
    CHECK(canonical(argsort(argsort(rows))) == "argsort(cast(argsort(rows)))");
    CHECK(canonical(argsort(argsort(unknown))) == "argsort(argsort(unknown))");
}
