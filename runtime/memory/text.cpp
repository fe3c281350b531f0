// A MemoryPlan as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "graph/base/text.h"
#include "runtime/memory/limit.h"

namespace bitale {

namespace {

constexpr const char* kind_names[] = {
    "argument",  "shared variable", "constant",      "result", "saved for gradients",
    "temporary", "partial sums",    "rows of tasks", "kept",   "workspace",
    "staging",   "control"};
// Of the JSON.
constexpr const char* kind_words[] = {"argument", "shared",    "constant",     "result",
                                      "saved",    "temporary", "partial_sums", "task_rows",
                                      "once",     "workspace", "staging",      "control"};

std::string step_words(const MemoryPlan& plan, int step) {
    const MemoryPlan::Step& s = plan.steps.at(static_cast<std::size_t>(step));
    return fmt::format("step {} ({})", step + 1, printable(s.what.empty() ? s.kernel : s.what));
}

std::string shortened(const std::string& text, std::size_t most) {
    return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

// A column of so many characters.
std::string lifetime(const MemoryPlan& plan, const MemoryPlan::Buffer& b) {
    if (b.on_host) return "on the host";
    if (b.offset < 0) return "all of it";
    const bool whole = b.first == 0 && b.last + 1 == static_cast<int>(plan.steps.size());
    if (whole) return "all of it";
    return b.first == b.last ? fmt::format("{}", b.first + 1) : fmt::format("{}-{}", b.first + 1, b.last + 1);
}

// shared variable "w" at net.cpp:12
std::string variable_words(const MemoryPlan::Buffer& b) {
    return fmt::format("{} {}{}", name_of(b.kind), in_quotes(b.name),
                       b.where.empty() ? "" : printable(b.where.substr(b.where.find(" at "))));
}

bool is_variable(const MemoryPlan::Buffer& b) {
    return b.kind == MemoryPlan::Kind::argument || b.kind == MemoryPlan::Kind::shared;
}

}  // namespace

std::string name_of(MemoryPlan::Kind kind) { return kind_names[static_cast<int>(kind)]; }

std::string bytes_text(std::int64_t bytes) {
    const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    auto x = static_cast<double>(bytes);
    std::size_t u = 0;
    while (std::abs(x) >= 999.95 && u + 1 < std::size(units)) x /= 1000, ++u;
    return u == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", x, units[u]);
}

std::string description_of(const MemoryPlan::Buffer& b) {
    std::string what = b.name.empty() ? name_of(b.kind) : in_quotes(b.name);
    if (!b.where.empty()) what = printable(b.where);
    if (is_variable(b)) what = variable_words(b);
    if (b.kind == MemoryPlan::Kind::result) what = "result of " + what;
    if (b.kind == MemoryPlan::Kind::partial_sums || b.kind == MemoryPlan::Kind::task_rows)
        what = fmt::format("{} of {}", name_of(b.kind), what);
    if (b.formula.empty()) return fmt::format("{}: {}", what, bytes_text(b.bytes));
    const std::string numbers = text_of(b.shape);
    // Names of lengths tell which of them is the batch; arithmetic on them tells nobody anything.
    const bool tells = numbers != b.formula && b.formula.find('(') == std::string::npos;
    return fmt::format("{}: {} {} = {}{}", what, name_of(b.dtype), numbers, bytes_text(b.bytes),
                       tells ? ", of " + b.formula : "");
}

void require_present(const MemoryPlan& plan) {
    if (plan.device.empty() || plan.peak_step >= static_cast<int>(plan.steps.size()))
        throw GraphError(
            "an empty MemoryPlan is used, or one that was moved from; assign what memory_plan() of a "
            "function "
            "gives, or copy instead of moving");
}

std::string MemoryPlan::to_string() const {
    require_present(*this);
    constexpr std::size_t most_rows = 14;
    std::string s = fmt::format("Memory of a call of {} on {}", in_quotes(function), printable(device));
    for (std::size_t i = 0; i < lengths.size(); ++i)
        s += fmt::format("{}{} = {}", i ? ", " : ", ", printable(lengths[i].first), lengths[i].second);
    s += fmt::format(
        "\n  {} at most{}{}\n", bytes_text(peak_bytes),
        host_bytes > 0 ? fmt::format(" on the device, {} on the host", bytes_text(host_bytes)) : "",
        limit > 0 ? fmt::format("; the limit is {}", bytes_text(limit)) : "");
    if (peak_step >= 0) {
        s +=
            fmt::format("  {} of it hold what lives between steps; the fullest is {}, with {}\n",
                        bytes_text(arena_bytes), step_words(*this, peak_step), bytes_text(least_arena_bytes));
    }
    if (!recomputed.empty()) s += "  " + printable(recomputed) + "\n";
    s += "\n     bytes  steps        what (steps as the report numbers them)\n";
    std::int64_t rest = 0;
    std::size_t shown = 0;
    for (const Buffer& b : buffers) {
        if (b.kind == Kind::control || shown == most_rows) {
            rest += b.bytes;
            continue;
        }
        ++shown;
        std::string what = name_of(b.kind);
        if (is_variable(b) && !b.name.empty())
            what = variable_words(b);
        else if (!b.where.empty())
            what += ", " + printable(b.where);
        else if (!b.name.empty())
            what += ", " + in_quotes(b.name);
        if (!b.formula.empty()) what += fmt::format(", {} {}", name_of(b.dtype), text_of(b.shape));
        s +=
            fmt::format("{:>10}  {:<11}  {}\n", bytes_text(b.bytes), lifetime(*this, b), shortened(what, 88));
        if (b.offset >= 0) s += fmt::format("{:25}{}\n", "", shortened(printable(b.reason), 84));
    }
    if (rest > 0) s += fmt::format("{:>10}  {:<11}  {} more\n", bytes_text(rest), "", buffers.size() - shown);
    for (const std::string& note : notes) s += "  Not counted: " + printable(note) + "\n";
    return s;
}

std::ostream& operator<<(std::ostream& out, const MemoryPlan& plan) { return out << plan.to_string(); }

std::string MemoryPlan::json() const {
    require_present(*this);
    using Json = nlohmann::ordered_json;
    Json j;
    j["bitale_memory_plan"] = 1;
    j["function"] = function;
    j["device"] = device;
    j["peak_bytes"] = peak_bytes;
    j["host_bytes"] = host_bytes;
    j["limit_bytes"] = limit;
    j["micro_batch"] = micro_batch;
    j["recomputed"] = recomputed;
    j["arena_bytes"] = arena_bytes;
    j["least_arena_bytes"] = least_arena_bytes;
    j["peak_step"] = peak_step;
    j["lengths"] = Json::array();
    for (const auto& [name, length] : lengths) j["lengths"].push_back({{"name", name}, {"length", length}});
    j["steps"] = Json::array();
    for (const Step& step : steps)
        j["steps"].push_back({{"kernel", step.kernel},
                              {"what", step.what},
                              {"once", step.once},
                              {"live_bytes", step.live_bytes}});
    j["buffers"] = Json::array();
    for (const Buffer& b : buffers) {
        Json buffer{{"kind", kind_words[static_cast<int>(b.kind)]},
                    {"name", b.name},
                    {"bytes", b.bytes},
                    {"reserved_bytes", b.reserved},
                    {"offset", b.offset},
                    {"first_step", b.first},
                    {"last_step", b.last},
                    {"where", b.where},
                    {"reason", b.reason},
                    {"on_host", b.on_host}};
        if (!b.formula.empty()) {
            buffer["dtype"] = name_of(b.dtype);
            buffer["shape"] = b.shape;
            buffer["formula"] = b.formula;
        }
        j["buffers"].push_back(std::move(buffer));
    }
    j["notes"] = notes;
    return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bitale
