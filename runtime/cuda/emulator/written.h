// Which bytes of a block of memory somebody has written: a bit for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace bitale::cuda {

class WrittenBytes {
  public:
    explicit WrittenBytes(std::size_t bytes) : bits_((bytes + word_bits - 1) / word_bits, 0) {}

    void mark(std::size_t first, std::size_t count);
    // As far as they are marked in `from`, from `first_there` on; the others become unwritten again.
    void copy(std::size_t first, std::size_t count, const WrittenBytes& from, std::size_t first_there);
    // The first byte of the range that nobody has written.
    std::optional<std::size_t> gap(std::size_t first, std::size_t count) const;

  private:
    static constexpr std::size_t word_bits = 64;
    // The bits of word `word` that lie in the range.
    static std::uint64_t mask(std::size_t word, std::size_t first, std::size_t end);

    std::vector<std::uint64_t> bits_;
};

}  // namespace bitale::cuda
