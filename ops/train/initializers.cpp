// Initial values, computed on the host. Random ones come from Philox, so a seed gives the same values
// everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "bitale/train.h"
#include "graph/base/border.h"
#include "ops/random/philox.h"

namespace bitale {

namespace {

const ApiBorder filling("for initial values");

// Each kind of value draws from a stream of its own: equal seeds do not make equal patterns.
enum class Stream : std::uint64_t { uniform = 1, normal = 2, permutation = 3 };

std::uint64_t key_of(std::uint64_t seed, Stream stream) {
    return philox::key_of(seed, static_cast<std::uint64_t>(stream));
}

struct Fans {
    double in, out;
};

// [in, out] of a matrix; [out, in, kh, kw] of filters, where every tap is one connection.
Fans fans_of(const Dims& shape, const char* name) {
    if (shape.size() == 2) return {static_cast<double>(shape[0]), static_cast<double>(shape[1])};
    if (shape.size() == 4) {
        const double taps = static_cast<double>(shape[2]) * static_cast<double>(shape[3]);
        return {static_cast<double>(shape[1]) * taps, static_cast<double>(shape[0]) * taps};
    }
    throw ShapeError(std::string(name) +
                     " makes matrices [in, out] and filters [out, in, height, width], not " + text_of(shape));
}

// value(i) for every element, rounded to float32.
template <class F>
Array filled(const Dims& shape, F&& value) try {
    Array r(float32, shape);
    auto* to = static_cast<float*>(r.mutable_data());
    for (std::int64_t i = 0; i < r.size(); ++i)
        to[i] = static_cast<float>(value(static_cast<std::uint64_t>(i)));
    return r;
} catch (const std::bad_alloc&) {
    filling.fail();
}

// A uniform number in [0, bound) without bias: 64 random bits, the incomplete last interval is rejected.
std::uint64_t bounded(std::uint64_t key, std::uint64_t index, std::uint64_t bound) {
    const std::uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound
    for (std::uint64_t attempt = 0;; ++attempt) {
        const std::uint64_t bits = philox::word(key, attempt, index, 0) |
                                   static_cast<std::uint64_t>(philox::word(key, attempt, index, 1)) << 32;
        if (bits >= rejected) return bits % bound;
    }
}

}  // namespace

Array zeros(const Dims& shape, DType dtype) {
    return filling([&] { return Array(dtype, shape); });
}

Array ones(const Dims& shape, DType dtype) { return full_of(shape, 1, dtype); }

Array full_of(const Dims& shape, double value, DType dtype) {
    const Array number = Array(value).as(dtype);
    return filling([&] {
        Array r(dtype, shape);
        const auto width = static_cast<std::size_t>(bytes_of(dtype));
        char* to = static_cast<char*>(r.mutable_data());
        for (std::int64_t i = 0; i < r.size(); ++i, to += width) std::memcpy(to, number.data(), width);
        return r;
    });
}

Array uniform_values(const Dims& shape, double low, double high, std::uint64_t seed) {
    if (!(low <= high))
        throw Error(fmt::format(
            "uniform_values: there is no number from {} to {}; give the smaller bound first", low, high));
    const auto first = static_cast<float>(low), end = static_cast<float>(high);
    if (!std::isfinite(first) || !std::isfinite(end))
        throw Error(
            fmt::format("uniform_values: float32 does not have all numbers from {} to {}; give finite "
                        "bounds of at most 3.4e38",
                        low, high));
    // Rounding to float32 may reach the end of the interval.
    const double most = std::max(first, std::nextafter(end, -std::numeric_limits<float>::infinity()));
    const std::uint64_t key = key_of(seed, Stream::uniform);
    return filled(shape, [&](std::uint64_t i) {
        return std::min(low + (high - low) * philox::unit(philox::word(key, 0, i)), most);
    });
}

Array glorot_uniform(const Dims& shape, std::uint64_t seed) {
    const Fans fans = fans_of(shape, "glorot_uniform");
    const double limit = std::sqrt(6 / (fans.in + fans.out));
    return uniform_values(shape, -limit, limit, seed);
}

Array he_normal(const Dims& shape, std::uint64_t seed) {
    const double deviation = std::sqrt(2 / fans_of(shape, "he_normal").in);
    const std::uint64_t key = key_of(seed, Stream::normal);
    return filled(shape, [&](std::uint64_t i) {
        return deviation * philox::normal(philox::word(key, 0, i, 0), philox::word(key, 0, i, 1));
    });
}

Array permutation(std::int64_t count, std::uint64_t seed) try {
    if (count < 0)
        throw ShapeError("permutation: the count must be at least 0, but is " + std::to_string(count));
    Array r(int64, {count});
    auto* order = static_cast<std::int64_t*>(r.mutable_data());
    std::iota(order, order + count, 0);
    const std::uint64_t key = key_of(seed, Stream::permutation);
    for (auto i = static_cast<std::uint64_t>(count); i > 1; --i)
        std::swap(order[i - 1], order[bounded(key, i, i)]);
    return r;
} catch (const std::bad_alloc&) {
    filling.fail();
}

}  // namespace bitale
