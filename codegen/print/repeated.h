// Parts of a function that are equal but for the arrays and places that they work on, as the steps of an
// unrolled recurrence are, become one function that is called for each of them: what a host compiler takes
// grows with the text.
//
//     static void KERNEL_same0(const f32* p3, f32* p9, const i64 k0) { ... p3[(896 + k0) + j5] ... }
//     ...
//     KERNEL_same0(p3, p9, 0);
//     KERNEL_same0(p4, p10, 896);
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bitale {

struct RepeatedParts {
    std::string functions, body;
};

// `head`: the function's declarations; `headings`: the lines of the body at which parts begin, which are
// comments. `number`: of the functions of the kernel so far.
RepeatedParts with_repeated_parts_once(std::string_view head, std::string_view body,
                                       const std::vector<std::size_t>& headings, int& number);

}  // namespace bitale
