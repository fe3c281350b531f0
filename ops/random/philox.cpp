#include "ops/random/philox.h"

#include <cmath>
#include <numbers>

namespace bitale::philox {

Words block(Words c, KeyWords k) {
    constexpr std::uint64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
    constexpr std::uint32_t step_0 = 0x9E3779B9, step_1 = 0xBB67AE85;  // golden ratio, sqrt(3) - 1
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = multiplier_0 * c[0], b = multiplier_1 * c[2];
        c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
             static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
        k[0] += step_0;
        k[1] += step_1;
    }
    return c;
}

namespace {

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

std::uint32_t word(std::uint64_t key, std::uint64_t counter, std::uint64_t index, int which) {
    return block({low(index), high(index), low(counter), high(counter)},
                 {low(key), high(key)})[static_cast<std::size_t>(which)];
}

std::uint64_t key_of(std::uint64_t seed, std::uint64_t draw) {
    const Words w = block({low(draw), high(draw), 0, 0}, {low(seed), high(seed)});
    return w[0] | static_cast<std::uint64_t>(w[1]) << 32;
}

double normal(std::uint32_t first, std::uint32_t second) {
    return std::sqrt(-2 * std::log(positive_unit(first))) * std::cos(2 * std::numbers::pi * unit(second));
}

}  // namespace bitale::philox
