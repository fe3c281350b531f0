// The helper functions that a program's kernels call, as text to put in front of them.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace bitale {

// The identifiers b_... and B_..., and the type f64, if they occur in a text.
std::set<std::string> device_names(std::string_view text);

// The types and macros of codegen/device/base.h, then those parts of the other headers there that define one
// of the names, or what these need in turn; in one fixed order, so that equal sets give equal texts.
// Overloads for f64 are left out unless `f64` is among the names. Names that no header defines are taken for
// the kernel's own. With `cuda`, the text for NVRTC, else for a host compiler.
std::string device_prelude(bool cuda, const std::set<std::string>& used);
// Everything.
std::string device_prelude(bool cuda);

}  // namespace bitale
