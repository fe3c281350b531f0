#include "codegen/print/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "graph/base/numbers.h"

namespace bitale {

namespace {

bool is_word(char c) { return is_letter_or_digit(c) || c == '_'; }

}  // namespace

const char* suffix_of(std::size_t phase) { return phase == 0 ? "" : "_finish"; }

std::string cpu_entry(const std::string& suffix) {
    return "extern \"C\" void KERNEL" + suffix +
           "(void* const* buffers, const i64* sizes, i64 first, i64 last) {";
}

std::string cuda_entry(const std::string& suffix, int threads) {
    // Without the 1, ptxas keeps to 32 registers, so that a multiprocessor is full, and a thread waits for
    // two loads at a time where the text has sixteen together.
    return fmt::format(
        "extern \"C\" __global__ void __launch_bounds__({}, 1) KERNEL{}(const KERNEL_arguments arguments) {{",
        threads, suffix);
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

std::vector<std::size_t> declared_sizes(std::size_t number, bool is_part, std::string_view body) {
    std::set<std::size_t> declared;
    for (std::size_t i = 0; !is_part && i < number; ++i) declared.insert(i);
    for (const std::string_view word : words_of(is_part ? body : "")) {
        std::size_t size = 0;
        const char *digits = word.data() + 1, *end = word.data() + word.size();
        if (word[0] == 's' && digits < end && std::from_chars(digits, end, size).ptr == end && size < number)
            declared.insert(size);
    }
    return {declared.begin(), declared.end()};
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t end = std::min(text.find('\n', i), text.size());
        lines.push_back(text.substr(i, end - i));
        i = end + 1;
    }
    return lines;
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && is_word(text[end])) ++end;
        if (end > i) words.push_back(text.substr(i, end - i));
        i = end + 1;
    }
    return words;
}

}  // namespace bitale
