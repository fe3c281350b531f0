#include "runtime/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "graph/base/border.h"
#include "graph/base/text.h"
#include "runtime/state.h"

namespace bitale {

namespace {

const ApiBorder counts_printing("for the text of counts"), reporting_counts("for counts");

double mean_count(std::int64_t sum, std::int64_t count) {
    return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

std::string things_counted(double n, const char* thing) {
    return fmt::format("{:.10g} {}{}", n, thing, n == 1 ? "" : "s");
}

// The place of the worst request, on a line of its own.
std::string worst_place(const LaunchCounts& launch, const AccessCounts& sum,
                        std::int64_t AccessCounts::*worst) {
    constexpr std::size_t columns = 66;
    for (const AccessCounts& a : launch.accesses) {
        if (a.memory != sum.memory || a.store != sum.store || a.*worst != sum.*worst) continue;
        const std::string where = printable(a.where);
        return "          " + (where.size() > columns ? where.substr(0, columns - 3) + "..." : where) + "\n";
    }
    return "";
}

std::string head_of_counts(const LaunchCounts& l) {
    const auto launches = static_cast<double>(std::max<std::int64_t>(1, l.launches)),
               blocks = static_cast<double>(l.blocks);
    std::string text =
        fmt::format("  {:>3}. {}: {} of {}{}\n", l.number, printable(l.kernel),
                    things_counted(blocks, "block"), things_counted(static_cast<double>(l.threads), "thread"),
                    l.waves > 0 ? ", " + things_counted(static_cast<double>(l.waves), "wave") : "");
    text += fmt::format("       {:.10g} of {} threads at work, {:.3g} barriers a block, a chain of {}\n",
                        static_cast<double>(l.working) / launches, l.blocks * l.threads,
                        static_cast<double>(l.barriers) / launches / blocks,
                        things_counted(static_cast<double>(l.chain), "load"));
    for (const bool store : {false, true}) {
        const AccessCounts global = l.sum(AccessCounts::Memory::global, store);
        if (global.requests == 0) continue;
        text +=
            fmt::format("       {:.10g} {}: {:.1f} sectors and {:.1f} lines each, at worst {} and {}\n",
                        static_cast<double>(global.requests) / launches, store ? "stores" : "loads",
                        mean_count(global.sectors, global.requests),
                        mean_count(global.lines, global.requests), global.worst_sectors, global.worst_lines) +
            worst_place(l, global, &AccessCounts::worst_sectors);
    }
    for (const bool store : {false, true}) {
        const AccessCounts shared = l.sum(AccessCounts::Memory::shared, store);
        if (shared.requests == 0) continue;
        text += fmt::format("       {:.10g} shared {}: {:.1f} turns of the banks each, at worst {}\n",
                            static_cast<double>(shared.requests) / launches, store ? "stores" : "loads",
                            mean_count(shared.turns, shared.requests), shared.worst_turns);
        if (shared.worst_turns > 1) text += worst_place(l, shared, &AccessCounts::worst_turns);
    }
    return text;
}

std::string mean_and_worst_count(std::int64_t sum, std::int64_t requests, std::int64_t worst) {
    return worst == 0 ? "-" : fmt::format("{:.1f} / {}", mean_count(sum, requests), worst);
}

std::string table_of_counts(const LaunchCounts& l) {
    const auto row = [](const auto&... cells) {
        return fmt::format("       {:>12} {:>9} {:>7} {:>10} {:>10} {:>10} {:>6}  {}\n", cells...);
    };
    std::string text = row("", "requests", "threads", "sectors", "lines", "turns", "waits", "where");
    for (const AccessCounts& a : l.accesses)
        text +=
            row(std::string(a.memory == AccessCounts::Memory::shared ? "shared " : "") +
                    (a.store ? "store" : "load"),
                mean_count(a.requests, l.launches), fmt::format("{:.1f}", mean_count(a.threads, a.requests)),
                mean_and_worst_count(a.sectors, a.requests, a.worst_sectors),
                mean_and_worst_count(a.lines, a.requests, a.worst_lines),
                mean_and_worst_count(a.turns, a.requests, a.worst_turns), a.waits, printable(a.where));
    return text;
}

}  // namespace

void AccessCounts::add(const AccessCounts& other) {
    requests += other.requests;
    threads += other.threads;
    sectors += other.sectors;
    lines += other.lines;
    turns += other.turns;
    worst_sectors = std::max(worst_sectors, other.worst_sectors);
    worst_lines = std::max(worst_lines, other.worst_lines);
    worst_turns = std::max(worst_turns, other.worst_turns);
    waits += other.waits;
}

AccessCounts LaunchCounts::sum(AccessCounts::Memory memory, bool store) const {
    AccessCounts all;
    all.memory = memory;
    all.store = store;
    for (const AccessCounts& a : accesses)
        if (a.memory == memory && a.store == store) all.add(a);
    return all;
}

const AccessCounts* LaunchCounts::worst(std::int64_t AccessCounts::*value) const {
    const AccessCounts* found = nullptr;
    for (const AccessCounts& a : accesses)
        if (a.*value > (found ? found->*value : 0)) found = &a;
    return found;
}

std::string KernelCounts::to_string() const {
    return counts_printing([&] { return counts_text(*this, Detail::complete); });
}

std::string KernelCounts::json() const {
    using nlohmann::ordered_json;
    return counts_printing([&] {
        ordered_json list = ordered_json::array();
        for (const LaunchCounts& l : launches) {
            ordered_json accesses = ordered_json::array();
            for (const AccessCounts& a : l.accesses) {
                ordered_json one = {
                    {"where", a.where},
                    {"memory", a.memory == AccessCounts::Memory::shared ? "shared" : "global"},
                    {"store", a.store},
                    {"requests", a.requests},
                    {"threads", a.threads}};
                if (a.memory == AccessCounts::Memory::shared)
                    one.update({{"turns", a.turns}, {"worst_turns", a.worst_turns}});
                else
                    one.update({{"sectors", a.sectors},
                                {"worst_sectors", a.worst_sectors},
                                {"lines", a.lines},
                                {"worst_lines", a.worst_lines},
                                {"waits", a.waits}});
                accesses.push_back(std::move(one));
            }
            list.push_back({{"number", l.number},
                            {"kernel", l.kernel},
                            {"launches", l.launches},
                            {"blocks", l.blocks},
                            {"threads", l.threads},
                            {"waves", l.waves},
                            {"working", l.working},
                            {"barriers", l.barriers},
                            {"chain", l.chain},
                            {"accesses", std::move(accesses)}});
        }
        const ordered_json all = {{"bitale_counts", 1}, {"launches", std::move(list)}};
        return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    });
}

KernelCounts counts_of(const Function::State& state) {
    const Executable* const executable = state.current.load(std::memory_order_acquire);
    if (!executable) return {};
    const std::lock_guard lock(state.device->turns());
    return {executable->counts()};
}

KernelCounts Function::counts() const {
    const State& state = used(state_);
    return reporting_counts([&] {
        if (!state.specialised || state.is_compiled()) return counts_of(state);
        const Specialised::Version version = state.specialised->latest();
        return version ? counts_of(*version) : KernelCounts{};
    });
}

std::string counts_text(const KernelCounts& counts, Detail detail) {
    if (counts.launches.empty()) return "";
    std::string text = "Counted by the emulator, of each launch:\n";
    for (const LaunchCounts& l : counts.launches) {
        text += head_of_counts(l);
        if (detail == Detail::complete) text += table_of_counts(l);
    }
    return text;
}

}  // namespace bitale
