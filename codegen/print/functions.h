// Where functions of a kernel begin.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bitale {

// Of the entries of a kernel: "", "_finish".
const char* suffix_of(std::size_t phase);
// The first line of an entry; KERNEL stands for the kernel's name.
std::string cpu_entry(const std::string& suffix);
std::string cuda_entry(const std::string& suffix, int threads);

// A host compiler's time grows faster than the length of a function: a phase of more segments than these is
// several functions on a CPU, which its entry calls one after another.
constexpr std::size_t segments_of_function = 32;
std::string part_entry(const std::string& suffix, std::size_t number);
std::string call_of_part(const std::string& suffix, std::size_t number);

// Of the sizes s0, s1 and so on, those that a function declares: all, or those that `body`, a part, mentions.
std::vector<std::size_t> declared_sizes(std::size_t number, bool is_part, std::string_view body);

// The lines of a text, without their ends.
std::vector<std::string_view> lines_of(std::string_view text);
// The words of a text, in order: identifiers and numbers.
std::vector<std::string_view> words_of(std::string_view text);

}  // namespace bitale
