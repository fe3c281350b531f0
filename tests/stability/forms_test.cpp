// The forms in which people write softmax, sigmoid, logarithms of sums and crossentropies, at their extremes:
// on the tested device against loops in long double, with lengths that are known, unknown and partly known.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;

namespace {

using Wide = long double;
using Rows = std::vector<std::vector<double>>;
using Form = std::function<Expr(const Expr& x)>;
using Truth = std::function<std::vector<Wide>(const std::vector<double>& row)>;

const double infinity = INFINITY;

Wide log_total(const std::vector<double>& row) {
    const double top = *std::max_element(row.begin(), row.end());
    if (std::isinf(top)) return top;
    Wide sum = 0;
    for (const double x : row) sum += std::exp(static_cast<Wide>(x) - top);
    return top + std::log(sum);
}
std::vector<Wide> log_shares(const std::vector<double>& row) {
    std::vector<Wide> r;
    for (const double x : row) r.push_back(x - log_total(row));
    return r;
}
std::vector<Wide> shares(const std::vector<double>& row) {
    std::vector<Wide> r;
    for (const double x : row) r.push_back(std::exp(x - log_total(row)));
    return r;
}
Wide log_rest(Wide x) { return x > -1 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x)); }
Truth each(Wide (*f)(Wide)) {
    return [f](const std::vector<double>& row) {
        std::vector<Wide> r;
        for (const double x : row) r.push_back(f(x));
        return r;
    };
}

// Rows of three; the last ones have infinities.
const Rows usual_rows = {{0, 0, 0},          {1000, 1000, 1000}, {-1000, -1000, -1000}, {1000, 0, -1000},
                         {-1000, 1000, 999}, {89, 200, -300},    {1e-9, -1e-9, 0.5},    {-0.0, 3, -2},
                         {-20, -30, 17},     {3e4, -3e4, 1}};
const Rows with_infinities = {{-infinity, 0, 1}, {-infinity, -1000, -infinity}};

Array array_of(const Rows& rows, DType dtype) {
    std::vector<double> flat;
    for (const std::vector<double>& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    return Array(flat, {static_cast<std::int64_t>(rows.size()), 3}).as(dtype);
}

const Form own_shift = [](const Expr& x) { return x - max(x, {1}, {.keepdims = true}); };
Expr total_of(const Expr& x) { return sum(exp(x), {1}, {.keepdims = true}); }

struct Named {
    const char* name;
    Form form;
    Truth truth;
    bool takes_infinities = true;
};

std::vector<Named> forms() {
    return {
        {"softmax", [](const Expr& x) { return exp(x) / total_of(x); }, shares},
        {"softmax by a reciprocal", [](const Expr& x) { return exp(x) * (1 / total_of(x)); }, shares},
        {"softmax, shifted", [](const Expr& x) { return exp(own_shift(x)) / total_of(own_shift(x)); },
         shares},
        {"softmax, expand_dims", [](const Expr& x) { return exp(x) / expand_dims(sum(exp(x), {1}), 1); },
         shares},
        {"log of it", [](const Expr& x) { return log(exp(x) / total_of(x)); }, log_shares},
        {"log softmax", [](const Expr& x) { return x - log(total_of(x)); }, log_shares},
        {"log softmax of logsumexp", [](const Expr& x) { return x - logsumexp(x, {1}, {.keepdims = true}); },
         log_shares},
        {"logsumexp", [](const Expr& x) { return log(sum(exp(x), {1})); },
         [](const std::vector<double>& row) { return std::vector<Wide>{log_total(row)}; }},
        {"logsumexp, shifted along another axis",
         [](const Expr& x) {
             const Expr m = max(x, {0}, {.keepdims = true});
             return log(sum(exp(where(isinf(m), x, x - m) + where(isinf(m), 0, m)), {1}));
         },
         [](const std::vector<double>& row) { return std::vector<Wide>{log_total(row)}; }},
        {"log mean exp", [](const Expr& x) { return log(mean(exp(x), {1})); },
         [](const std::vector<double>& row) {
             return std::vector<Wide>{log_total(row) - std::log(static_cast<Wide>(3))};
         }},
        {"log of two", [](const Expr& x) { return log(exp(x) + exp(-x)); },
         each([](Wide x) { return std::abs(x) + std::log1p(std::exp(-2 * std::abs(x))); })},
        {"log of three", [](const Expr& x) { return log(1 + exp(x) + exp(2 * x)); }, each([](Wide x) {
             const Wide top = std::max<Wide>({0, x, 2 * x});
             return top + std::log(std::exp(-top) + std::exp(x - top) + std::exp(2 * x - top));
         }),
         false},
        {"sigmoid", [](const Expr& x) { return exp(x) / (1 + exp(x)); },
         each([](Wide x) { return 1 / (1 + std::exp(-x)); })},
        {"sigmoid of minus", [](const Expr& x) { return exp(-x) / (exp(-x) + 1); },
         each([](Wide x) { return 1 / (1 + std::exp(x)); })},
        {"share of two", [](const Expr& x) { return exp(x) / (exp(x) + exp(2 * x)); },
         each([](Wide x) { return 1 / (1 + std::exp(x)); }), false},
        {"share of three", [](const Expr& x) { return exp(x) / (exp(x) + exp(-x) + 2); },
         each([](Wide x) { return 1 / (1 + std::exp(-2 * x) + 2 * std::exp(-x)); }), false},
        {"softplus", [](const Expr& x) { return log(exp(x) + 1); },
         each([](Wide x) { return std::max<Wide>(x, 0) + std::log1p(std::exp(-std::abs(x))); })},
        {"tanh", [](const Expr& x) { return (exp(x) - exp(-x)) / (exp(x) + exp(-x)); },
         each([](Wide x) { return std::tanh(x); })},
        {"tanh of twice", [](const Expr& x) { return (exp(2 * x) - 1) / (exp(2 * x) + 1); },
         each([](Wide x) { return std::tanh(x); })},
        {"log1mexp", [](const Expr& x) { return log(1 - exp(-abs(x))); },
         each([](Wide x) { return log_rest(-std::abs(x)); })},
        {"log of expm1", [](const Expr& x) { return log(exp(abs(x)) - 1); },
         each([](Wide x) { return std::abs(x) + log_rest(-std::abs(x)); })},
        {"log of a product", [](const Expr& x) { return log(prod(exp(x), {1})); },
         [](const std::vector<double>& row) {
             Wide sum = 0;
             for (const double x : row) sum += x;
             return std::vector<Wide>{sum};
         }},
        {"crossentropy of a softmax by hand",
         [](const Expr& x) {
             return categorical_crossentropy(exp(x) / total_of(x), cast(sum(zeros_like(x), {1}), int32) + 1);
         },
         [](const std::vector<double>& row) { return std::vector<Wide>{-log_shares(row)[1]}; }},
        {"crossentropy of turned rows",
         [](const Expr& x) {
             return categorical_crossentropy(flip(softmax(x), 1), cast(sum(zeros_like(x), {1}), int32));
         },
         [](const std::vector<double>& row) { return std::vector<Wide>{-log_shares(row)[2]}; }, false},
        {"crossentropy of two averaged",
         [](const Expr& x) {
             const Expr p = (softmax(x) + softmax(-x)) / 2;
             return categorical_crossentropy(p, cast(sum(zeros_like(x), {1}), int32));
         },
         [](const std::vector<double>& row) {
             std::vector<double> turned;
             for (const double x : row) turned.push_back(-x);
             const Wide a = log_shares(row)[0], b = log_shares(turned)[0], top = std::max(a, b);
             return std::vector<Wide>{
                 -(top + std::log(std::exp(a - top) + std::exp(b - top)) - std::log(static_cast<Wide>(2)))};
         },
         false},
        {"one-hot crossentropy",
         [](const Expr& x) {
             const Expr hot = one_hot(cast(sum(zeros_like(x), {1}), int32) + 2, 3, x.dtype());
             return -sum(hot * log(softmax(x)), {1});
         },
         [](const std::vector<double>& row) { return std::vector<Wide>{-log_shares(row)[2]}; }},
    };
}

bool close(Wide got, Wide expected, DType dtype, Wide size) {
    if (std::isnan(expected) || std::isinf(expected))
        return got == expected || (std::isnan(got) && std::isnan(expected));
    const Wide digits = dtype == float64 ? 1e-13L : 3e-6L, least = dtype == float64 ? 1e-300L : 1e-37L;
    // A difference of large numbers keeps the digits of these.
    return std::abs(got - expected) <=
           digits * std::abs(expected) + (dtype == float64 ? 1e-15L : 1.2e-7L) * size + least;
}

void check(DType dtype, const Expr& x, bool infinities) {
    const Rows rows = infinities ? with_infinities : usual_rows;
    const Array at = array_of(rows, dtype);
    std::vector<Named> all = forms();
    if (infinities) std::erase_if(all, [](const Named& f) { return !f.takes_infinities; });
    std::vector<Expr> outputs;
    for (const Named& named : all) {
        const Expr y = named.form(x);
        outputs.push_back(y);
        if (!infinities) outputs.push_back(grad(sum(y), x));
    }
    Function f = function({x}, outputs, {.name = "forms", .device = test::tested_device()});
    const Results got = f(at);
    std::size_t next = 0;
    for (const Named& named : all) {
        const Array& values = got[next++];
        const std::int64_t width = values.size() / static_cast<std::int64_t>(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            std::vector<double> row;
            Wide size = 1;
            for (int k = 0; k < 3; ++k) {
                row.push_back(at.at(static_cast<std::int64_t>(i) * 3 + k));
                if (!std::isinf(row.back())) size = std::max<Wide>(size, std::abs(row.back()));
            }
            const std::vector<Wide> expected = named.truth(row);
            REQUIRE(width == static_cast<std::int64_t>(expected.size()));
            const bool is_share =
                expected.size() == 3 &&
                std::all_of(expected.begin(), expected.end(), [](Wide e) { return std::abs(e) <= 1; });
            for (std::int64_t k = 0; k < width; ++k) {
                const double value = values.at(static_cast<std::int64_t>(i) * width + k);
                const Wide truth = expected[static_cast<std::size_t>(k)];
                INFO(named.name << ", row " << i << " {" << row[0] << ", " << row[1] << ", " << row[2]
                                << "}, element " << k << ": " << value << ", not "
                                << static_cast<double>(truth));
                // exp(x - y) of float32 exponents keeps what a difference of these keeps.
                CHECK(close(value, truth, dtype, is_share ? size * std::abs(truth) * 4 : size));
            }
        }
        if (infinities) continue;
        const Array& gradient = got[next++];
        for (std::int64_t i = 0; i < gradient.size(); ++i) {
            const bool is_pole = std::string(named.name).find("1m") != std::string::npos ||
                                 std::string(named.name).find("expm1") != std::string::npos;
            INFO("gradient of " << named.name << ", row " << i / 3);
            if (!is_pole || at.at(i) != 0) CHECK(std::isfinite(gradient.at(i)));
        }
    }
}

}  // namespace

TEST_CASE("forms that people write are right at their extremes") {
    const DType dtype = GENERATE(float32, float64);
    const Rows rows = usual_rows;
    const auto n = static_cast<std::int64_t>(rows.size());
    SECTION("lengths known") { check(dtype, input(dtype, Dims{n, 3}, "x"), false); }
    SECTION("lengths unknown") { check(dtype, input(dtype, 2, "x"), false); }
    SECTION("rows unknown") { check(dtype, input(dtype, {-1, 3}, "x"), false); }
    SECTION("columns unknown") { check(dtype, input(dtype, {n, -1}, "x"), false); }
}

TEST_CASE("forms that people write take infinities where these mean something") {
    const DType dtype = GENERATE(float32, float64);
    SECTION("lengths known") { check(dtype, input(dtype, Dims{2, 3}, "x"), true); }
    SECTION("lengths unknown") { check(dtype, input(dtype, 2, "x"), true); }
}

TEST_CASE("logarithms of sums over nothing, and over no rows") {
    const Expr x = matrix("x"), y = vector("y");
    Function f = function({x, y},
                          {log(sum(exp(x), {1})), exp(x) / total_of(x), logsumexp(x, {0}), logsumexp(x),
                           x - log(total_of(x)), logsumexp(y), log(sum(exp(y)))},
                          {.device = test::tested_device()});
    Results r = f(Array(float32, {2, 0}), Array(float32, {0}));
    CHECK(r[0].to_vector<float>() == std::vector<float>(2, -INFINITY));
    CHECK(r[1].shape() == Dims{2, 0});
    CHECK(r[2].shape() == Dims{0});
    CHECK(r[3].item<float>() == -INFINITY);
    CHECK(r[4].shape() == Dims{2, 0});
    CHECK(r[5].item<float>() == -INFINITY);
    CHECK(r[6].item<float>() == -INFINITY);
    r = f(Array(float32, {0, 3}), Array(std::vector<float>{1000, -INFINITY}, {2}));
    CHECK(r[0].shape() == Dims{0});
    CHECK(r[1].shape() == Dims{0, 3});
    CHECK(r[2].to_vector<float>() == std::vector<float>(3, -INFINITY));
    CHECK(r[5].item<float>() == 1000);
}
