#include "runtime/cuda/targets.h"

#include <fmt/format.h>

#include <algorithm>

#include "bitale/error.h"
#include "graph/base/log.h"

namespace bitale::cuda {

namespace {

constexpr Status unsupported_ptx = 222;

bool is_ptx(const std::string& target) { return target.starts_with("compute_"); }

}  // namespace

std::vector<std::string> targets_for(const std::string& architecture, const std::vector<int>& known) {
    const int wanted = std::stoi(architecture.substr(3));
    std::vector<std::string> list;
    for (auto k = known.rbegin(); k != known.rend(); ++k)
        if (*k <= wanted && *k / 10 == wanted / 10) list.push_back(fmt::format("sm_{}", *k));
    for (auto k = known.rbegin(); k != known.rend(); ++k)
        if (*k <= wanted) list.push_back(fmt::format("compute_{}", *k));
    if (list.empty()) list.push_back(architecture);  // the compiler says what it knows
    return list;
}

bool is_refusal(Status status) {
    constexpr Status invalid_image = 200, no_image = 209, invalid_ptx = 218, no_ptx_compiler = 221,
                     no_ptx_compilation = 223;
    for (const Status s :
         {invalid_image, no_image, invalid_ptx, no_ptx_compiler, unsupported_ptx, no_ptx_compilation})
        if (status == s) return true;
    return false;
}

std::string Targets::current(const std::string& architecture) {
    const std::lock_guard lock(mutex_);
    if (architecture_ != architecture) {
        list_ = targets_for(architecture, known_());
        architecture_ = architecture;
        at_ = 0;
        refusals_.clear();
    }
    return list_[at_];
}

void Targets::refuse(const std::string& target, Status status, const std::string& words) {
    const std::lock_guard lock(mutex_);
    const std::string refused = list_.at(at_);
    if (refused != target) return;  // another function was first
    refusals_.push_back(fmt::format("{} ({})", refused, words));
    // The version of PTX is the compiler's, whatever it is for: an older target does not help.
    const bool all_ptx = is_ptx(refused) && status == unsupported_ptx;
    do {
        ++at_;
    } while (at_ < list_.size() && all_ptx && is_ptx(list_[at_]));
    if (at_ < list_.size()) {
        log(1, fmt::format("the driver refuses machine code for {}: {}; {} is tried", refused, words,
                           list_[at_]));
        return;
    }
    at_ = 0;
    const std::string all = fmt::format("{}", fmt::join(refusals_, ", "));
    refusals_.clear();
    throw DeviceError(
        fmt::format("the driver refuses all code that can be made for a GPU of {}: {}; there are {}: "
                    "install a newer driver, or name the folder of an older NVRTC by cuda_home in "
                    "BITALE_FLAGS",
                    architecture_, all, versions_()));
}

std::string Targets::note() const {
    const std::lock_guard lock(mutex_);
    if (refusals_.empty()) return "";
    return fmt::format("{}, because the driver refuses {}", list_[at_], fmt::join(refusals_, ", "));
}

}  // namespace bitale::cuda
