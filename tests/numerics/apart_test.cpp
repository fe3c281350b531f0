// Reductions of operands whose neighbours along the lanes lie apart in memory: every other column, transposed
// matrices, columns of points, and what is the same for a whole row. The same bits on each device, for
// lengths known and unknown, whether or not another output wants a transposed copy.
#include <cstddef>
#include <string>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Apart {
    Expr x, y, s;
    std::vector<Input> inputs() const { return {x, y, s}; }
};

Apart apart_inputs(std::int64_t rows, std::int64_t columns) {
    return {input(float32, Dims{rows, columns}, "x"), input(float32, Dims{rows, columns}, "y"),
            input(float32, Dims{rows, 1}, "s")};
}

std::vector<Expr> reductions_apart(const Apart& a) {
    std::vector<Expr> all;
    for (const int step : {2, 3, 5, 7}) {
        const Index every{colon, Slice{{}, {}, step}};
        const Expr u = a.x[every], v = a.y[every];
        all.insert(all.end(), {sum(exp(u), 1), sum(exp(u) * v, 1), max(exp(u) + v, {1}), sum(u * v, 1)});
    }
    const Expr backwards = flip(a.x, 1), turned = transpose(a.x), other = transpose(a.y);
    const Expr mean_of_row = mean(a.y, {1}, {.keepdims = true});
    all.insert(all.end(),
               {sum(exp(backwards) * a.y, 1), sum(exp(turned) + other, 1), sum(exp(turned) * other, 1),
                sum(exp(turned) * exp(expand_dims(a.s[{colon, 0}], 0)), 1), prod(1 + exp(turned) / 64, {0}),
                sum(a.x * (a.y + a.s), 1), sum(exp(a.x) * (a.y + a.s), 1), sum(a.x * (a.y - mean_of_row), 1),
                mean(exp(-sqr(a.x - mean_of_row)), {0})});
    return all;
}

// Pairs of points [n, 3], or of [3, n] turned.
std::vector<Expr> forces(const Expr& p) {
    const auto along = [&](int k) {
        const Expr c = p[{colon, k}];
        return expand_dims(c, 1) - expand_dims(c, 0);
    };
    const Expr cx = along(0), cy = along(1), cz = along(2), d2 = sqr(cx) + sqr(cy) + sqr(cz) + 0.01F,
               w = exp(-d2), far = max(abs(expand_dims(p, 1) - expand_dims(p, 0)), {2});
    return {sum(w * cx, 1), sum(w * cy, 1),           sum(w * cz, 1),
            sum(w, 0),      sum(exp(-far) * cy, {1}), grad(sum(far), p)};
}

void check_everywhere(const std::vector<Input>& inputs, const std::vector<Expr>& all,
                      const std::vector<Array>& arguments, std::size_t alone_too = std::string::npos) {
    const Results got = function(inputs, all, {.device = here().device, .on_unused_input = OnUnused::ignore})
                            .call(arguments),
                  emulated =
                      function(inputs, all, {.device = "emulator", .on_unused_input = OnUnused::ignore})
                          .call(arguments),
                  expected =
                      function(inputs, all, {.device = "reference", .on_unused_input = OnUnused::ignore})
                          .call(arguments);
    for (std::size_t k = 0; k < all.size(); ++k) {
        INFO("number " << k);
        CHECK(difference(got[k], emulated[k], {}).empty());
        CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}).empty());
        if (k != alone_too) continue;
        const Results alone =
            function(inputs, {all[k]}, {.device = here().device, .on_unused_input = OnUnused::ignore})
                .call(arguments);
        CHECK(difference(got[k], alone[0], {}).empty());
    }
}

}  // namespace

TEST_CASE("reductions in lanes whose operands lie apart") {
    Random random(31);
    for (const Dims& shape : std::vector<Dims>{{1, 40}, {5, 1}, {7, 33}, {40, 130}, {129, 300}}) {
        const std::vector<Array> arguments{random_array(float32, shape, random),
                                           random_array(float32, shape, random),
                                           random_array(float32, {shape[0], 1}, random)};
        for (const bool known : {true, false}) {
            INFO(text_of(shape) << (known ? ", known" : ", unknown"));
            const Apart a = known ? apart_inputs(shape[0], shape[1]) : apart_inputs(-1, -1);
            check_everywhere(a.inputs(), reductions_apart(a), arguments);
        }
    }
}

TEST_CASE("sums over columns of points, beside a gradient that wants them transposed") {
    constexpr std::size_t of_far = 4;
    Random random(32);
    for (const std::int64_t n : {9, 65, 200}) {
        const Array points = random_array(float32, {n, 3}, random),
                    turned = random_array(float32, {16, n}, random);
        INFO(n << " points");
        const Expr p = input(float32, Dims{n, 3}, "p"), q = input(float32, Dims{16, n}, "q");
        check_everywhere({p}, forces(p), {points}, of_far);
        check_everywhere({q}, forces(transpose(q)), {turned}, of_far);
    }
}
