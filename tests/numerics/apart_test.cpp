// Reductions of operands whose neighbours along the lanes lie apart in memory: every other column, transposed
// matrices, columns of points, and what is the same for a whole row. The same bits on each device, for
// lengths known and unknown, whether or not another output wants a transposed copy.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

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

TEST_CASE("functions of columns that a list gives") {
    Random random(33);
    for (const auto& [shape, length] : std::vector<std::pair<Dims, std::int64_t>>{
             {{3, 40}, 1}, {{5, 7}, 9}, {{6, 33}, 255}, {{4, 300}, 256}, {{3, 64}, 257}, {{9, 50}, 700}}) {
        std::vector<std::int64_t> first, second;
        for (std::int64_t i = 0; i < length; ++i) {
            first.push_back(random.between(0, shape[1] - 1));
            second.push_back(random.between(0, length - 1));
        }
        const std::vector<Array> arguments{random_array(float32, shape, random),
                                           random_array(int8, shape, random),
                                           Array(std::span<const std::int64_t>(first), {length}),
                                           Array(std::span<const std::int64_t>(second), {length}).as(int32)};
        for (const bool known : {true, false}) {
            INFO(text_of(shape) << " at " << length << (known ? ", known" : ", unknown"));
            const Dims dims = known ? shape : Dims{-1, -1}, count{known ? length : -1};
            const Expr x = input(float32, dims, "x"), bytes = input(int8, dims, "bytes"),
                       list = input(int64, count, "list"), other = input(int32, count, "other");
            const Expr u = x[{colon, list}], v = x[{colon, list[other]}], b = bytes[{colon, list}];
            check_everywhere({x, bytes, list, other},
                             {exp(u), tanh(u) * 2 + u, exp(u) - sin(v), exp(cast(b, float32) / 100) + v,
                              sum(exp(u), {1}), sum(exp(u) * v, {0}), max(exp(u) + b, {1}),
                              exp(x)[{colon, list}], exp(u) * list, log(1 + sqr(cast(v, float64)))},
                             arguments);
        }
    }
}

TEST_CASE("rows of twelve that one task computes and reduces are read apart in its scratch") {
    PackedCases cases(tested_device());
    Random random(8);
    for (const Dims& shape : {Dims{3, 12}, Dims{40, 12}, Dims{200, 6}, Dims{65, 11}}) {
        const Expr x = input(float32, shape, "x"), y = matrix("y");
        const Array values = random_array(float32, shape, random);
        cases.add(text_of(shape) + ", known", {x}, {values}, logsumexp(softmax(x) + x, {1}));
        cases.add(text_of(shape) + ", unknown", {y}, {values}, logsumexp(softmax(y) + y, {1}));
    }
    cases.run();
}

TEST_CASE("products with filters that are cut out of an array of all layers, whose taps lie last") {
    constexpr double sums_that_cancel = 1e-4;
    PackedCases cases(tested_device(), sums_that_cancel);
    Random random(31);
    for (const std::int64_t columns : {1, 5, 16, 33})
        for (const bool known : {true, false}) {
            const std::int64_t rows = 70, inner = 9, taps = 2;
            const Expr c = input(float32, {known ? rows : -1, inner * taps}, "c"),
                       all = input(float32, {3, columns, inner, taps}, "all");
            const std::vector<Array> values = {
                random_array(float32, {rows, inner * taps}, random, -1, 1),
                random_array(float32, {3, columns, inner, taps}, random, -1, 1)};
            const std::vector<Expr> in{c, all};
            const std::string what =
                std::to_string(columns) + (known ? " columns, known rows" : " columns, any rows");
            for (const std::int64_t layer : {0, 2}) {
                const Expr by_taps = reshape(transpose(all[layer], {2, 1, 0}), {inner * taps, columns}),
                           by_filters = reshape(transpose(all[layer], {1, 2, 0}), {inner * taps, columns}),
                           every = all[{layer, colon, colon, 0}];
                const Expr y = tanh(dot(c, by_taps)), z = dot(c, by_filters);
                cases.add(what, in, values, y * sigmoid(z));
                cases.add(what + ", gradient", in, values, grad(sum(y * sqr(z)), all));
                cases.add(what + ", one tap", in, values, dot(c[{colon, Slice{0, inner}}], transpose(every)));
            }
        }
    cases.run();
}

TEST_CASE("a factor that lies apart along every axis is stored once, in order, for its product") {
    const Expr c = input(float32, {512, 64}, "c"), all = input(float32, {6, 32, 32, 2}, "all");
    const Expr factor = reshape(transpose(all[5], {2, 1, 0}), {64, 32});
    const Function f = function({c, all}, dot(c, factor), {.device = "cpu"});
    const char* const stored = "not contiguous along any axis, and read whole for each row of a product";
    CHECK(f.report(Detail::complete).find(stored) != std::string::npos);
    // Along its first axis this view lies in order: a copy for lanes, or a library, reads it so.
    const Expr turned = transpose(reshape(all[5], {32, 64}));
    const Function g = function({c, all}, dot(c, turned), {.device = "cpu"});
    CHECK(g.report(Detail::complete).find(stored) == std::string::npos);
}
