// Pooling where channels lie side by side: the best element and its position in vector registers, with NaN,
// infinities and ties, against the oracle.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>

#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Few different values, so that windows have ties; all kinds of numbers and what is none.
Array awkward(const Dims& shape, std::uint32_t seed, bool with_nan) {
    constexpr float inf = std::numeric_limits<float>::infinity(),
                    nan = std::numeric_limits<float>::quiet_NaN();
    constexpr std::array<float, 12> values{-inf, -2, -0.0F, 0, 0.5F, 0.5F, 3, inf, -inf, -inf, nan, -7};
    Array x(float32, shape);
    auto* to = static_cast<float*>(x.mutable_data());
    for (std::int64_t k = 0; k < x.size(); ++k) {
        seed = seed * 1664525U + 1013904223U;
        const float value = values[(seed >> 16) % values.size()];
        to[k] = !with_nan && value != value ? 1 : value;
    }
    return x;
}

}  // namespace

TEST_CASE("windows over channels that lie side by side") {
    PackedCases cases(tested_device());
    Random random(11);
    struct Geometry {
        Size2 window, stride, pad;
    };
    const Geometry geometries[] = {{{2, 2}, {2, 2}, {0, 0}},
                                   {{3, 3}, {2, 2}, {0, 0}},
                                   {{1, 2}, {1, 1}, {0, 0}},
                                   {{4, 4}, {4, 4}, {0, 0}},
                                   {{3, 2}, {2, 3}, {1, 1}}};
    for (const std::int64_t channels : {1, 3, 4, 5, 10, 16, 17, 40})
        for (const Geometry& g : geometries) {
            const Dims shape{2, 9, 8, channels};
            const std::string name = fmt::format("{} channels, windows of {} x {} every {} x {}", channels,
                                                 g.window.h, g.window.w, g.stride.h, g.stride.w);
            const auto results = [](std::int64_t extent, std::int64_t window, std::int64_t stride,
                                    std::int64_t pad) { return (extent + 2 * pad - window) / stride + 1; };
            const Dims small{2, channels, results(9, g.window.h, g.stride.h, g.pad.h),
                             results(8, g.window.w, g.stride.w, g.pad.w)};
            const Expr weights = constant(random_array(float32, small, random, -1, 1));
            for (const bool with_nan : {false, true}) {
                const Expr x = input(float32, shape, "x");
                const Expr y =
                    max_pool(transpose(x, {0, 3, 1, 2}), g.window, {.stride = g.stride, .pad = g.pad});
                const Array values =
                    awkward(shape, static_cast<std::uint32_t>(channels) * 7 + with_nan, with_nan);
                cases.add(name, {x}, {values}, y);
                cases.add(name + ", gradient", {x}, {values}, grad(sum(y * weights), x));
            }
        }
    cases.run();
}
