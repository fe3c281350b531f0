#include "runtime/cuda/emulator/faults.h"

#include <fmt/format.h>

#include <atomic>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "runtime/cuda/emulator/devices.h"
#include "runtime/cuda/emulator/module.h"

namespace bitale::cuda {

namespace {

constexpr const char* variable = "BITALE_EMULATED_FAULT";

struct Planted {
    Planted() : fault(parse_fault(secure_getenv(variable), problem)) {}
    std::string problem;
    Fault fault;
    std::atomic<std::int64_t> launches{0};
};
Planted& planted() {
    static Planted& p = *new Planted;
    return p;
}

std::atomic<int> broken{no_device};

template <class T>
void change_number(void* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    value = std::isfinite(value) ? value + std::fmax(T{1}, std::fabs(value)) : T{1};
    std::memcpy(at, &value, sizeof value);
}

// By the type's name in generated text.
void change(const std::string& type, char* at) {
    if (type == "f32") return change_number<float>(at);
    if (type == "f64") return change_number<double>(at);
    const bool half = type == "f16" || type == "bf16";
    at[half ? 1 : 0] = static_cast<char>(at[half ? 1 : 0] ^ (half ? 0x40 : 1));
}

}  // namespace

Fault parse_fault(const char* text, std::string& problem) {
    if (!text || !*text) return {};
    const std::string_view all = text;
    const std::size_t colon = all.find(':');
    const std::string_view kind = all.substr(0, colon),
                           where = colon == std::string_view::npos ? "" : all.substr(colon + 1);
    Fault fault;
    fault.at_next = kind == "illegal-next";
    fault.kind = kind == "illegal" || fault.at_next ? Fault::Kind::illegal
                 : kind == "wrong"                  ? Fault::Kind::wrong
                 : kind == "hang"                   ? Fault::Kind::hang
                                                    : Fault::Kind::none;
    bool good = fault.kind != Fault::Kind::none && !where.empty();
    if (good && where[0] == '#') {
        const char* const end = where.data() + where.size();
        const auto [last, error] = std::from_chars(where.data() + 1, end, fault.launch);
        good = error == std::errc() && last == end && fault.launch > 0;
    } else {
        fault.kernel = where;
    }
    if (good) return fault;
    problem = fmt::format(
        "{}={}: neither illegal, illegal-next, wrong nor hang, then a colon and a part of a kernel's name, "
        "or # and the "
        "number of a launch",
        variable, all);
    return {};
}

const std::string& fault_problem() { return planted().problem; }

bool streams_run_at_once() { return planted().fault.at_next; }

Fault::Kind fault_of_launch(const std::string& kernel) {
    Planted& p = planted();
    if (p.fault.kind == Fault::Kind::none) return Fault::Kind::none;
    // A loop's own kernels are met by their names alone: numbers count generated kernels.
    const bool here = p.fault.kernel.empty()
                          ? !kernel.starts_with("bitale_") && ++p.launches == p.fault.launch
                          : kernel.find(p.fault.kernel) != std::string::npos;
    return here ? p.fault.kind : Fault::Kind::none;
}

// A generated kernel names what it writes in its first lines: "f32* B_RESTRICT p3 =
// (f32*)arguments.buffers[1];"; of what it only reads, the type begins with const.
void spoil_result(const EmulatedKernel& kernel, void* const* arguments) {
    const std::string source = kernel.module->source();
    std::size_t at = source.find(" " + kernel.name + "(const ");
    if (at == std::string::npos) return;
    std::istringstream lines(source.substr(source.find('\n', at) + 1));
    for (std::string line; std::getline(lines, line) && line != "}";) {
        const std::size_t first = line.find_first_not_of(' '), star = line.find("* B_RESTRICT p"),
                          buffer = line.find("arguments.buffers[");
        if (star == std::string::npos || buffer == std::string::npos || line.compare(first, 6, "const ") == 0)
            continue;
        const std::size_t number = std::strtoul(line.c_str() + buffer + 18, nullptr, 10);
        // The buffers are the first member of the struct.
        void* address = nullptr;
        std::memcpy(&address, static_cast<const char*>(arguments[0]) + number * sizeof address,
                    sizeof address);
        return change(line.substr(first, star - first), static_cast<char*>(address));
    }
}

void break_device(int device) { broken = device; }
bool device_is_broken() { return broken != no_device && broken == chosen_device(); }

}  // namespace bitale::cuda
