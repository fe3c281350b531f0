// The gradient of where(c, f(z), k) never reads f outside c.
#include <cmath>
#include <functional>
#include <random>

#include "graph/walk/traverse.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"

using namespace bitale;
using namespace bitale::test;

namespace {

using Map = std::function<Expr(const Expr&)>;

const double nan = NAN;

// Each is infinite, NaN, or has an infinite or NaN derivative somewhere among `poison`.
const std::vector<std::pair<const char*, Map>> maps = {
    {"log", [](const Expr& x) { return log(x); }},
    {"sqrt", [](const Expr& x) { return sqrt(x); }},
    {"reciprocal", [](const Expr& x) { return 1 / x; }},
    {"pow", [](const Expr& x) { return pow(x, 0.5); }},
    {"exp", [](const Expr& x) { return exp(x * x); }},
    {"acos", [](const Expr& x) { return acos(x / 8); }},
    {"log1p", [](const Expr& x) { return log1p(x); }},
    {"quotient", [](const Expr& x) { return x / (x - 1); }},
    {"tan", [](const Expr& x) { return tan(sqr(x)); }},
    {"self", [](const Expr& x) { return x * log(x); }},
    {"clip", [](const Expr& x) { return clip(x, 0.1, 1e9); }},
    {"relu", [](const Expr& x) { return relu(x) + 0.25; }},
    {"shift", [](const Expr& x) { return 0.5 - x * -2; }},
    {"maximum", [](const Expr& x) { return maximum(sqrt(x), x * 0.125); }},
    {"turned", [](const Expr& x) { return transpose(sqrt(transpose(x))); }},
    {"flat",
     [](const Expr& x) {
         return reshape(log(flatten(x)) + 3, {2, 3});
     }},
    {"padded",
     [](const Expr& x) {
         return pad(log(x), {{0, 0}, {0, 1}}, 1)[{Slice{}, Slice{0, 3}}];
     }},
    {"half", [](const Expr& x) { return cast(sqrt(cast(x, float32)), float64); }},
};

const std::vector<double> poison = {0, -1, infinity, -infinity, nan, 1, 1e200, -1e200};

// The gradient of sum(where(c, f(z), k) * g) with respect to z.
Array gradient_of(const Map& f, const Array& z, const Array& c, bool otherwise) {
    const Expr x = input(float64, Dims{2, 3}, "z"), condition = input(boolean, Dims{2, 3}, "c");
    const Expr taken = f(x), weights = constant(Array(std::vector<double>{1, -2, 3, 0.5, 7, -1}, {2, 3}));
    const Expr chosen = otherwise ? where(condition, 3, taken) : where(condition, taken, 3);
    return evaluated(grad(sum(chosen * weights), x), {x, condition}, {z, c});
}

}  // namespace

TEST_CASE("derivatives below a selection count only where it takes them") {
    std::mt19937 random(7);
    const auto draw = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    for (int i = 0; i < 400; ++i) {
        std::string name;
        std::vector<Map> chain;
        for (std::size_t depth = 0; depth <= draw(3); ++depth) {
            const auto& [text, map] = maps[draw(maps.size())];
            name = name + text + " of ";
            chain.insert(chain.begin(), map);
        }
        const Map f = [&](Expr x) {
            for (const Map& map : chain) x = map(x);
            return x;
        };
        const bool otherwise = draw(2) == 0;
        Array c(boolean, {2, 3}), good(float64, {2, 3}), bad(float64, {2, 3});
        for (std::int64_t k = 0; k < 6; ++k) {
            const bool taken = draw(2) == 0;
            static_cast<bool*>(c.mutable_data())[k] = taken != otherwise;
            const double usual = 1.25 + 0.25 * static_cast<double>(draw(9));
            static_cast<double*>(good.mutable_data())[k] = usual;
            static_cast<double*>(bad.mutable_data())[k] = taken ? usual : poison[draw(poison.size())];
        }
        // What is not taken may be anything: it changes nothing.
        const Array expected = gradient_of(f, good, c, otherwise), got = gradient_of(f, bad, c, otherwise);
        INFO(name << "z, case " << i << ": z = " << bad.text() << ", c = " << c.text());
        for (std::int64_t k = 0; k < 6; ++k) {
            const bool taken = static_cast<const bool*>(c.data())[k] != otherwise;
            INFO("element " << k);
            if (taken)
                CHECK((got.at(k) == expected.at(k) || (std::isnan(got.at(k)) && std::isnan(expected.at(k)))));
            else
                CHECK(got.at(k) == 0);
        }
    }
}

TEST_CASE("selections that people write have finite gradients") {
    const Expr z = vector("z", float64);
    const Array at(std::vector<double>{-1, 0, 4}, {3});
    const auto gradient = [&](const Expr& y) {
        return evaluated(grad(sum(y), z), {z}, {at}).to_vector<double>();
    };
    using Numbers = std::vector<double>;
    CHECK(gradient(where(z > 0, log(z), 0)) == Numbers{0, 0, 0.25});
    CHECK(gradient(where(z > 0, sqrt(z), 0)) == Numbers{0, 0, 0.25});
    CHECK(gradient(where(z > 1.5, log(z - 1), 0)) == Numbers{0, 0, 1 / 3.0});
    CHECK(gradient(where(z <= 0, 0, 1 / z)) == Numbers{0, 0, -0.0625});
    CHECK(gradient(sqrt(relu(z - 1)))[2] == Approx(0.5 / std::sqrt(3.0)).epsilon(1e-15));
    CHECK(gradient(relu(where(z > 0, sqrt(z), -1))) == Numbers{0, 0, 0.25});
    CHECK(gradient(clip(sqrt(z), 1, 9))[2] == 0.25);
    CHECK(gradient(maximum(log(z), 1))[1] == 0);
    CHECK(gradient(minimum(-1, 1 / z)) == Numbers{0, 0, 0});
    // The largest alone is differentiated.
    const std::vector<double> top = gradient(max(where(z > -1, sqrt(z), 0)));
    CHECK(top == Numbers{0, 0, 0.25});
    // Two ways to the same value, both masked.
    CHECK(gradient(where(z > 0, log(z), 0) + where(z > 1, sqrt(z), 0)) == Numbers{0, 0, 0.5});
    const Expr root = sqrt(z);
    CHECK(gradient(where(z > 0, root, 0) + where(z > 1, root * root, 0)) == Numbers{0, 0, 1.25});
    // A side for each of the two: together everywhere.
    CHECK(gradient(where(z > 0, sqr(z), -z)) == Numbers{-1, -1, 8});
    // Looked up, once and twice.
    const Expr order = constant(Array{2, 0, 1}), twice = constant(Array{2, 2, 1});
    CHECK(gradient(where(gather(z, order) > 0, gather(log(z), order), 0)) == Numbers{0, 0, 0.25});
    CHECK(gradient(where(gather(z, twice) > 0, gather(log(z), twice), 0)) == Numbers{0, 0, 0.5});
    // A row that is not taken at all, behind a value that is repeated.
    const Expr rows = expand_dims(sqrt(z), 1), none = zeros_like(rows);
    CHECK(gradient(where(expand_dims(z, 1) > 0, rows, none)) == Numbers{0, 0, 0.25});
}

TEST_CASE("what a selection leaves out has no gradient beside values whose lengths have other names") {
    const Expr z = GENERATE(vector("z", float64), input(float64, Dims{3}, "z")),
               w = GENERATE(vector("w", float64), input(float64, Dims{3}, "w"), scalar("w", float64));
    const Array at(std::vector<double>{-1, 0, 4}, {3});
    const Array other = w.rank() == 0 ? Array(2.0) : Array(std::vector<double>{2, 2, 2}, {3});
    const Expr logarithm = where(z > 0, log(z), 0);
    for (const Expr& y : {w * logarithm, w + 2 * logarithm, logarithm * w, 2 * logarithm - w,
                          where(z > 0, log(z) * w, 0), maximum(w, 1) * logarithm}) {
        const Expr gradient = grad(sum(y), z);
        CHECK(evaluated(gradient, {z, w}, {at, other}).to_vector<double>() == std::vector<double>{0, 0, 0.5});
    }
}

TEST_CASE("second derivatives do not vanish with the first") {
    // The cost is least at 0, where the sum of each row's cotangents is 0 without being masked.
    const Expr p = vector("p", float64), c = input(boolean, Dims{3, 4}, "c");
    const Expr rows = broadcast_to(expand_dims(exp(p), 1), {3, 4});
    const Expr cost = sum(where(c, sqr(rows - 1), 0));
    const Expr first = grad(cost, p), second = grad(sum(first), p), third = grad(sum(second), p);
    Array taken(boolean, {3, 4});
    for (const std::int64_t i : {0, 1, 2, 3, 5, 7}) static_cast<bool*>(taken.mutable_data())[i] = true;
    const Array zeros(std::vector<double>{0, 0, 0}, {3});
    const auto at_zero = [&](const Expr& y) {
        return evaluated(y, {p, c}, {zeros, taken}).to_vector<double>();
    };
    using Numbers = std::vector<double>;
    CHECK(at_zero(first) == Numbers{0, 0, 0});
    CHECK(at_zero(second) == Numbers{8, 4, 0});
    CHECK(at_zero(third) == Numbers{24, 12, 0});
    // Rows of which nothing is taken may be anything, in second derivatives as well.
    const Expr root = broadcast_to(expand_dims(sqrt(p), 1), {3, 4});
    const Expr masked = grad(sum(where(c, root, 0)), p), twice = grad(sum(masked), p);
    const Array ones(std::vector<double>{1, 4, 0}, {3});
    CHECK(evaluated(masked, {p, c}, {ones, taken}).to_vector<double>() == Numbers{2, 0.5, 0});
    CHECK(evaluated(twice, {p, c}, {ones, taken}).to_vector<double>() == Numbers{-1, -0.0625, 0});
}

TEST_CASE("a scalar that is used under a selection collects what the selection takes") {
    const Expr s = scalar("s", float64), z = vector("z", float64);
    const Array at(std::vector<double>{-1, 0, 4}, {3});
    const auto gradient = [&](const Expr& y, double value) {
        return evaluated(grad(sum(y), s), {s, z}, {Array(value), at}).item<double>();
    };
    CHECK(gradient(where(z > 0, s * log(z), 0), 2) == std::log(4.0));
    CHECK(gradient(where(z > 0, z / s, 0), 2) == -1);
    CHECK(gradient(where(z > 5, sqrt(s) + z, 0), 0) == 0);
}

TEST_CASE("a selection is made once, after the last map") {
    const Expr z = vector("z"), g = grad(sum(where(z > 0, log(z) * 3, 0)), z);
    int selections = 0;
    for (const NodePtr& node : topological({g.node()})) selections += node->op->name == "where";
    CHECK(selections == 1);
    CHECK(g.node()->op->name == "where");
}

TEST_CASE("a long chain of selections is differentiated in linear time") {
    const Expr x = vector("x", float64);
    Expr y = x;
    for (int i = 0; i < 5'000; ++i) y = relu(y * 0.999);
    const Array at(std::vector<double>{-1, 1}, {2});
    const std::vector<double> g = evaluated(grad(sum(y), x), {x}, {at}).to_vector<double>();
    CHECK(g[0] == 0);
    CHECK(g[1] == Approx(std::pow(0.999, 5'000)));
}

TEST_CASE("what is stored as a half has a gradient through selections") {
    for (const DType half_type : {float16, bfloat16}) {
        const Expr stored = input(half_type, Dims{4}, "stored"), x = cast(stored, float32);
        const Expr cost = sum(where(gt(x, 0), log(x), 0));
        const Expr g = grad(cost, stored);
        CHECK(g.dtype() == half_type);
        const Array at = Array(std::vector<float>{-1, 0, 0.5, 2}).as(half_type);
        const Array got = evaluated(g, {stored}, {at});
        for (std::int64_t i = 0; i < 4; ++i)
            CHECK(got.at(i) == std::vector<double>{0, 0, 2, 0.5}[static_cast<std::size_t>(i)]);
    }
}
