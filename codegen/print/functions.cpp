#include "codegen/print/functions.h"

#include <fmt/format.h>

#include <cctype>

namespace bitale {

const char* suffix_of(std::size_t phase) { return phase == 0 ? "" : "_finish"; }

std::string cpu_entry(const std::string& suffix) {
    return "extern \"C\" void KERNEL" + suffix +
           "(void* const* buffers, const i64* sizes, i64 first, i64 last) {";
}

std::string cuda_entry(const std::string& suffix, int threads) {
    // How many blocks of one warp a multiprocessor takes, it says by itself: without the 1, ptxas spills
    // registers (sm_120) for more blocks than there can be.
    return fmt::format(
        "extern \"C\" __global__ void __launch_bounds__({}{}) KERNEL{}(const "
        "KERNEL_arguments arguments) {{",
        threads, threads == 32 ? ", 1" : "", suffix);
}

std::string part_entry(const std::string& suffix, std::size_t number) {
    return fmt::format(
        "static __attribute__((noinline)) void KERNEL{}_part{}(void* const* buffers, const i64* sizes, i64 "
        "first, "
        "i64 last) {{",
        suffix, number);
}

std::string call_of_part(const std::string& suffix, std::size_t number) {
    return fmt::format("  KERNEL{}_part{}(buffers, sizes, first, last);\n", suffix, number);
}

std::set<std::string> words_of(const std::string& text) {
    const auto is_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::set<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && is_of_word(text[end])) ++end;
        if (end > at) words.insert(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

}  // namespace bitale
