// Gradients of products along axes: each element has the product of the others, from a prefix and what is
// behind.
#include <string>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// With so many zeros in each row, spread over it.
Array with_zeros(DType dtype, const Dims& shape, std::int64_t zeros, Random& random) {
    std::vector<double> values(static_cast<std::size_t>(count_of(shape)));
    for (double& v : values) v = random.real(0.8, 1.25) * (random.chance(3) ? -1 : 1);
    const auto row = static_cast<std::size_t>(shape.back());
    for (std::size_t first = 0; first < values.size(); first += std::max<std::size_t>(row, 1))
        for (std::int64_t z = 0; z < zeros && row > 0; ++z)
            values[first + static_cast<std::size_t>(random.between(0, shape.back() - 1))] = 0;
    return Array(std::span<const double>(values), shape).as(dtype);
}

}  // namespace

TEST_CASE("gradients of products, with zeros or without") {
    Random random(1);
    for (const DType dtype : {float32, float64})
        for (const Dims& shape : {Dims{1, 1}, Dims{3, 2}, Dims{8, 16}, Dims{13, 33}, Dims{1, 500},
                                  Dims{21, 0}, Dims{0, 7}, Dims{40, 64}}) {
            const Expr known = input(dtype, shape, "known"), x = input(dtype, {-1, -1}, "x");
            OnTwoDevices both(
                {known, x},
                {{"known", grad(sum(tanh(prod(known, {1}))), known), {.absolute = 2e-5, .relative = 1e-2}},
                 {"unknown", grad(sum(prod(x, {1})), x), {.absolute = 2e-5, .relative = 1e-2}}});
            for (const std::int64_t zeros : {0, 1, 2}) {
                INFO(name_of(dtype) << " " << shape[0] << " x " << shape[1] << ", zeros: " << zeros);
                CHECK(both({with_zeros(dtype, shape, zeros, random),
                            with_zeros(dtype, shape, zeros, random)}) == "");
            }
        }
}

TEST_CASE("gradients of products over any axes, and gradients of these") {
    Random random(2);
    const Expr x = input(float32, {5, 6, 7}, "x");
    const Tolerance near{.absolute = 1e-5, .relative = 1e-4};
    std::vector<Case> cases;
    for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1}, {0, 1, 2}})
        cases.push_back({std::to_string(cases.size()), grad(sum(sqr(prod(x, axes))), x), near});
    const Expr first = grad(sum(prod(x, {2})), x);
    cases.push_back({"second", grad(sum(sqr(first)), x), {.absolute = 1e-4, .relative = 1e-3}});
    OnTwoDevices both({x}, cases);
    for (const std::int64_t zeros : {0, 1, 2}) {
        INFO("zeros: " << zeros);
        CHECK(both({with_zeros(float32, {5, 6, 7}, zeros, random)}) == "");
    }
}

TEST_CASE("long products are right row by row") {
    Random random(3);
    const Expr x = input(float32, {-1, 3000}, "x");
    const Array values = with_zeros(float32, {19, 3000}, 1, random);
    const auto gradient = [&](const char* device) -> Array {
        Function f = function({x}, grad(sum(prod(x * 1.0001, {1})), x), {.device = device});
        return f(values)[0];
    };
    CHECK(difference(gradient(tested_device()), gradient("reference"), {.of_largest = 1e-3}) == "");
}
