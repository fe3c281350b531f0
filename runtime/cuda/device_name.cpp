#include "runtime/cuda/device_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "bitale/error.h"

namespace bitale::cuda {

namespace {

bool all_digits(std::string_view text, std::size_t least, std::size_t most) {
    return text.size() >= least && text.size() <= most &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_index(std::string_view text) {
    constexpr std::size_t most_digits = 4;
    return all_digits(text, 1, most_digits) && (text.size() == 1 || text[0] != '0');
}

// sm_75, sm_120; not sm_90a: its code is for one architecture alone, and kernels need nothing of it.
bool is_architecture(std::string_view text) {
    return text.starts_with("sm_") && text.size() > 3 && text[3] != '0' && all_digits(text.substr(3), 2, 3);
}

}  // namespace

std::string DeviceName::text() const {
    const std::string kind = emulated ? "emulator" : "cuda";
    if (!architecture.empty()) return kind + ":" + architecture;
    return index == 0 ? kind : fmt::format("{}:{}", kind, index);
}

std::optional<DeviceName> parse_device_name(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    if (kind != "cuda" && kind != "emulator") return std::nullopt;
    DeviceName name;
    name.emulated = kind == "emulator";
    if (colon == std::string::npos) return name;
    const std::string rest = text.substr(colon + 1);
    if (is_index(rest)) {
        name.index = std::stoi(rest);
    } else if (!name.emulated && is_architecture(rest)) {
        name.architecture = rest;
    } else {
        throw DeviceError(fmt::format(
            "there is no device \"{}\"; {}", text,
            name.emulated ? "\"emulator\" may be followed by a number, as in \"emulator:1\""
                          : "\"cuda\" may be followed by the number of a GPU, as in \"cuda:1\", or by an "
                            "architecture to compile for without a GPU, as in \"cuda:sm_90\""));
    }
    return name;
}

}  // namespace bitale::cuda
