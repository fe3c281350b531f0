// Roots of what is never below 0: norms and deviations by hand have a gradient of 0 where they are 0.
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"

using namespace bitale;
using namespace bitale::test;

namespace {

using RootOf = std::function<Expr(const Expr&)>;

Expr column_of(const Expr& x, int k) { return x[{colon, k}]; }
Expr without_mean(const Expr& x) { return x - mean(x, {1}, {.keepdims = true}); }

// Of rows of three.
const std::vector<std::pair<const char*, RootOf>> roots_by_hand = {
    {"norm", [](const Expr& x) { return sqrt(sum(sqr(x), {1})); }},
    {"products", [](const Expr& x) { return sqrt(sum(x * x, {1})); }},
    {"columns",
     [](const Expr& x) {
         const Expr a = column_of(x, 0), b = column_of(x, 1), c = column_of(x, 2);
         return sqrt(a * a + b * b + c * c);
     }},
    {"one column",
     [](const Expr& x) {
         return sqrt(sum(sqr(x[{colon, Slice{0, 1}}]), {1}));
     }},
    {"power", [](const Expr& x) { return pow(sum(x * x, {1}), 0.5); }},
    {"norm of 3", [](const Expr& x) { return pow(sum(pow(abs(x), 3), {1}), 1.0 / 3); }},
    {"deviation", [](const Expr& x) { return sqrt(sum(sqr(without_mean(x)), {1}) / 3); }},
    {"deviation by length",
     [](const Expr& x) { return sqrt(sum(sqr(without_mean(x)), {1}) / cast(x.length(1), x.dtype())); }},
    {"deviation by power", [](const Expr& x) { return pow(mean(sqr(without_mean(x)), {1}), 0.5); }},
    {"clipped variance",
     [](const Expr& x) { return sqrt(maximum(mean(x * x, {1}) - sqr(mean(x, {1})), 0)); }},
    {"three times", [](const Expr& x) { return sqrt(mean(x * x, {1}) * 3); }},
    {"relu", [](const Expr& x) { return sqrt(sum(relu(x), {1})); }},
    {"root of a root", [](const Expr& x) { return sqrt(sqrt(sum(sqr(x), {1}))); }},
    {"masked", [](const Expr& x) { return sqrt(sum(where(x > 0, sqr(x), 0), {1})); }},
};

}  // namespace

TEST_CASE("roots of what is never below 0 have a gradient of 0 where they are 0") {
    for (const DType dtype : {float32, float64})
        for (const std::int64_t columns : {std::int64_t{3}, std::int64_t{-1}}) {
            const Expr x = input(dtype, {-1, columns}, "x");
            std::vector<Expr> outputs;
            for (const auto& [name, f] : roots_by_hand) {
                const Expr y = f(x), g = grad(sum(y), x);
                outputs.insert(outputs.end(), {y, g, grad(sum(sqr(g)), x)});
            }
            const Array at = Array(std::vector<double>{0, 0, 0, 1, 2, 4, 0, 0, 0}, {3, 3}).as(dtype);
            const Results r = function({x}, outputs, {.device = "cpu"})(at);
            std::size_t next = 0;
            for (const auto& [name, f] : roots_by_hand) {
                INFO(name << ", " << name_of(dtype) << (columns < 0 ? ", length unknown" : ""));
                const Array y = r[next++], g = r[next++], twice = r[next++];
                CHECK(y.at(0) == 0);
                CHECK(y.at(1) > 0);
                for (std::int64_t k = 0; k < 9; ++k) {
                    INFO("element " << k);
                    CHECK(std::isfinite(g.at(k)));
                    CHECK(std::isfinite(twice.at(k)));
                    if (k < 3 || k >= 6) CHECK(g.at(k) == 0);
                }
            }
        }
}

TEST_CASE("roots that are never 0, or may be of less than 0, are as they were") {
    const Expr x = vector("x", float64);
    const auto gradient = [&](const Expr& y) {
        const Array g = function({x}, grad(sum(y), x), {.device = "cpu"})(Array(std::vector<double>{0}));
        return g.at(0);
    };
    CHECK(std::isinf(gradient(sqrt(x))));
    CHECK(std::isinf(gradient(pow(x, 0.5))));
    CHECK(gradient(sqrt(sqr(x) + 4)) == 0);
    CHECK(gradient(sqrt(x + 4)) == 0.25);
}
