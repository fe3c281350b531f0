// Elements at positions of their own rows, against loops: axes, dtypes, repeated positions, gradients.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Positions {
    Dims x, at;
    std::size_t axis;
};

// f(result, element) for each position, in row-major order.
template <class F>
void for_each(const Positions& p, const std::vector<std::int64_t>& positions, F&& f) {
    Dims at(p.at.size(), 0);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        std::int64_t from = 0;
        for (std::size_t d = 0; d < at.size(); ++d)
            from = from * p.x[d] + (d == p.axis ? positions[i] : at[d]);
        f(i, static_cast<std::size_t>(from));
        for (std::size_t d = at.size(); d-- > 0 && ++at[d] == p.at[d];) at[d] = 0;
    }
}

}  // namespace

TEST_CASE("elements at positions along every axis, and their gradients") {
    Random random(61);
    for (const Positions& p : {Positions{{7, 20}, {7, 33}, 1}, Positions{{9, 5}, {3, 5}, 0},
                               Positions{{40}, {3}, 0}, Positions{{4, 6, 5}, {4, 11, 5}, 1},
                               Positions{{3, 1}, {3, 2}, 1}, Positions{{2, 3, 8}, {2, 3, 0}, 2}})
        for (const DType dtype : {int32, uint8, int64})
            for (const bool known : {true, false}) {
                const Expr x = known ? input(float32, p.x, "x") : input(float32, Dims(p.x.size(), -1), "x"),
                           at = input(dtype, Dims(p.at.size(), -1), "at"),
                           weights = input(float32, Dims(p.at.size(), -1), "weights"),
                           y = take_along_axis(x, at, static_cast<int>(p.axis));
                const Array values = random_array(float32, p.x, random),
                            factors = random_array(float32, p.at, random);
                std::vector<std::int64_t> positions;
                for (std::int64_t i = 0; i < count_of(p.at); ++i)
                    positions.push_back(random.between(0, p.x[p.axis] - 1));
                const Results got = function({x, at, weights}, {y, grad(sum(y * weights), x)}, here())(
                    values, Array(positions, p.at).as(dtype), factors);
                std::vector<float> expected(positions.size());
                std::vector<double> gradient(static_cast<std::size_t>(count_of(p.x)));
                for_each(p, positions, [&](std::size_t to, std::size_t from) {
                    expected[to] = values.to_vector<float>()[from];
                    gradient[from] += factors.to_vector<float>()[to];
                });
                CHECK(difference(got[0], Array(expected, p.at)) == "");
                CHECK(difference(got[1], Array(gradient, p.x).as(float32), {.of_largest = 1e-6}) == "");
            }
}

TEST_CASE("elements of every dtype, in the order of another array") {
    Random random(62);
    for (const DType dtype : all_dtypes) {
        const Expr x = input(dtype, {-1, 30}, "x"), keys = matrix("keys");
        const Expr sorted = take_along_axis(x, argsort(keys, 1), 1),
                   best = take_along_axis(x, argmax(keys, 1, {.keepdims = true}), -1);
        const std::vector<Array> arguments{random_array(dtype, {8, 30}, random),
                                           random_array(float32, {8, 30}, random)};
        const Results got = function({x, keys}, {sorted, best}, here()).call(arguments),
                      expected = function({x, keys}, {sorted, best}, {.device = "reference"}).call(arguments);
        INFO(name_of(dtype));
        for (const std::size_t i : {0, 1}) CHECK(difference(got[i], expected[i]) == "");
    }
}

TEST_CASE("positions that there are not") {
    using Catch::Matchers::Contains;
    const Expr x = matrix("x"), at = imatrix("at");
    CHECK_THROWS_AS(take_along_axis(x, ivector("v")), ShapeError);
    CHECK_THROWS_AS(take_along_axis(x, x), TypeError);
    CHECK_THROWS_AS(take_along_axis(x, at, 2), IndexError);
    CHECK_THROWS_AS(take_along_axis(input(float32, {3, 4}, "x"), input(int32, {2, 4}, "at")), ShapeError);
    Function f = function({x, at}, take_along_axis(x, at, 1), FunctionOptions{});
    CHECK_THROWS_WITH(f(zeros({2, 4}), Array{{0, 3}, {1, 4}}),
                      Contains("a position of take_along_axis") && Contains("0 to 3: 4"));
    CHECK_THROWS_AS(f(zeros({2, 4}), Array{{0, -1}, {1, 1}}), IndexError);
    CHECK_THROWS_WITH(f(zeros({2, 4}), Array{{0}, {1}, {2}}), Contains("but are 2 and 3"));
    Function gradient = function({x, at}, grad(sum(take_along_axis(x, at, 1)), x), FunctionOptions{});
    CHECK_THROWS_WITH(gradient(zeros({2, 4}), Array{{0, 3}, {1, 4}}),
                      Contains("a position of take_along_axis"));
    CHECK_THROWS_AS(f(zeros({2, 0}), Array{{0}, {0}}), Error);
    // Along another axis the element and the array are those of the user.
    Function columns = function({x, at}, take_along_axis(x, at, 0), FunctionOptions{});
    CHECK_THROWS_WITH(columns(zeros({2, 3}), Array{{0, 0, 0}, {7, 0, 0}}),
                      Contains("in \"x\" (float32 [x.0, x.1])") && Contains("7 at element 3"));
}
