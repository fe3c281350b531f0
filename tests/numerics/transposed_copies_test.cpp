// Operands whose neighbours lie apart are copied, transposed, for vector lanes: the same values, and on every
// device the same bits, also where the operand is updated in the same step.
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

bool copies_something(const Function& f) {
    return f.report(Detail::complete).find("a transposed copy, for vector lanes") != std::string::npos;
}

}  // namespace

TEST_CASE("distances of points of few coordinates, also to themselves") {
    Random random(17);
    for (const std::int64_t d : {3, 5, 8, 15, 17})
        for (const std::int64_t n : {1, 40, 131}) {
            const std::int64_t m = 1100;
            const Array a = random_array(float32, {n, d}, random), b = random_array(float32, {m, d}, random);
            const Expr x = input(float32, {-1, d}, "x");
            const Shared y = shared(b, "y");
            const auto apart = [](const Expr& p, const Expr& q) {
                return expand_dims(p, 1) - expand_dims(q, 0);
            };
            const std::vector<Expr> all{sum(sqr(apart(x, y)), 2), max(abs(apart(x, y)), {2}),
                                        argmin(sum(sqr(apart(y, x)), 2), {1}), sum(sqr(apart(x, x)), 2),
                                        grad(sum(sqrt(sum(sqr(apart(x, y)), 2) + 1)), x)};
            Function f = function({x}, all);
            const Results got = f(a), same = function({x}, all, {.device = "emulator"})(a),
                          expected = function({x}, all, {.device = "reference"})(a);
            INFO(n << " points of " << d);
            if (n > 100 && d >= 5 && d < 16) CHECK(copies_something(f));
            for (std::size_t k = 0; k < all.size(); ++k) {
                INFO("number " << k);
                if (k != 2) CHECK(difference(got[k], expected[k], {.of_largest = 2e-6}).empty());
                CHECK(difference(got[k], same[k], {}).empty());
            }
        }
}

TEST_CASE("points that move by the forces between all of them") {
    Random random(5);
    const Array places = random_array(float32, {1030, 3}, random),
                speeds = random_array(float32, {1030, 3}, random);
    std::vector<Array> moved;
    for (const std::string device : {"cpu", "emulator", "reference"}) {
        const Shared p = shared(places, "p"), v = shared(speeds, "v");
        const Expr r = expand_dims(p, 0) - expand_dims(p, 1), d2 = sum(sqr(r), 2) + 0.5F,
                   force = sum(r / expand_dims(d2 * sqrt(d2), 2), 1), next = v + 0.01F * force;
        Function f =
            function({}, sum(sqr(next)), {.updates = {{p, p + 0.01F * next}, {v, next}}, .device = device});
        for (int k = 0; k < 3; ++k) f();
        moved.push_back(p.get_value());
        if (device == "cpu") CHECK(copies_something(f));
    }
    CHECK(difference(moved[0], moved[1], {}).empty());
    CHECK(difference(moved[0], moved[2], {.of_largest = 1e-5}).empty());
}

TEST_CASE("sums of many rolled arrays") {
    Random random(9);
    const int down[] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, right[] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    for (const std::int64_t n : {5, 100, 128, 200, 256, 700}) {
        const std::int64_t rows = 24;
        const Array a = random_array(float64, {9, rows, n}, random);
        const Shared x = shared(a.as(float32), "x");
        const auto rolled = [&](const Expr& t, std::int64_t by, int axis) -> Expr {
            if (by == 0) return t;
            const std::int64_t length = axis == 0 ? rows : n, cut = by > 0 ? length - by : -by;
            if (axis == 0) return concatenate({t[Slice{cut}], t[Slice{0, cut}]});
            return concatenate({t[{colon, Slice{cut}}], t[{colon, Slice{0, cut}}]}, 1);
        };
        Expr all;
        for (int i = 0; i < 9; ++i) {
            const Expr one = rolled(rolled(Expr(x)[i], right[i], 1), down[i], 0);
            all = i == 0 ? one : all + one;
        }
        std::vector<double> expected;
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < n; ++c) {
                double sum = 0;
                for (int i = 0; i < 9; ++i)
                    sum += a.at((i * rows + (r - down[i] + rows) % rows) * n + (c - right[i] + n) % n);
                expected.push_back(sum);
            }
        INFO(n << " columns");
        CHECK(difference(eval(all), Array(expected, {rows, n}).as(float32), {.of_largest = 1e-6}).empty());
    }
}
