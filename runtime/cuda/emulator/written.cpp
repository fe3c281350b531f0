#include "runtime/cuda/emulator/written.h"

#include <bit>

namespace bitale::cuda {

std::uint64_t WrittenBytes::mask(std::size_t word, std::size_t first, std::size_t end) {
    const std::size_t begin = word * word_bits;
    std::uint64_t bits = ~std::uint64_t{0};
    if (first > begin) bits &= ~std::uint64_t{0} << (first - begin);
    if (end < begin + word_bits) bits &= ~(~std::uint64_t{0} << (end - begin));
    return bits;
}

void WrittenBytes::mark(std::size_t first, std::size_t count) {
    const std::size_t end = first + count;
    for (std::size_t w = first / word_bits; w * word_bits < end; ++w) bits_[w] |= mask(w, first, end);
}

std::optional<std::size_t> WrittenBytes::gap(std::size_t first, std::size_t count) const {
    const std::size_t end = first + count;
    for (std::size_t w = first / word_bits; w * word_bits < end; ++w)
        if (const std::uint64_t missing = mask(w, first, end) & ~bits_[w])
            return w * word_bits + static_cast<std::size_t>(std::countr_zero(missing));
    return std::nullopt;
}

void WrittenBytes::copy(std::size_t first, std::size_t count, const WrittenBytes& from,
                        std::size_t first_there) {
    const std::vector<std::uint64_t> there = from.bits_;  // it may be the same one
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t a = first_there + i, b = first + i;
        const std::uint64_t bit = there[a / word_bits] >> (a % word_bits) & 1;
        bits_[b / word_bits] =
            (bits_[b / word_bits] & ~(std::uint64_t{1} << (b % word_bits))) | bit << (b % word_bits);
    }
}

}  // namespace bitale::cuda
