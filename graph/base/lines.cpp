#include "graph/base/lines.h"

#include <algorithm>
#include <string_view>

namespace bitale {

namespace {

// The path of the sources as the compiler was given it, the same for all of them.
std::string_view root_of_sources() {
    constexpr std::string_view here = __FILE__, own = "graph/base/lines.cpp";
    static_assert(here.size() >= own.size());
    return here.substr(0, here.size() - own.size());
}

}  // namespace

bool is_of_library(const Where& where) {
    std::string_view file = where.file;
    const std::string_view root = root_of_sources();
    if (!file.starts_with(root)) return false;
    file.remove_prefix(root.size());
    // Those that make nodes. With paths relative to a build folder the root is "../../", which others may
    // have too: hence the folders below.
    constexpr std::string_view folders[] = {
        "include/bitale/",  "graph/ir/",   "graph/walk/",    "graph/rewrite/", "ops/autodiff/", "ops/dsl/",
        "ops/elementwise/", "ops/linear/", "ops/nn/",        "ops/random/",    "ops/reduce/",   "ops/rules/",
        "ops/shape/",       "ops/train/",  "codegen/group/", "codegen/split/", "codegen/tune/"};
    return std::any_of(std::begin(folders), std::end(folders),
                       [&](std::string_view folder) { return file.starts_with(folder); });
}

Where of_user(const Where& where) { return is_of_library(where) ? Where{} : where; }

std::string at_line(const Where& where) {
    return where.line && !is_of_library(where) ? " at " + where.text() : "";
}

}  // namespace bitale
