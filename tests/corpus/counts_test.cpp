// What the training steps of the examples ask of a GPU's memory, as the emulator counts it: against
// tests/corpus/counts.txt, and against what the launch model predicts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "codegen/program.h"
#include "runtime/cpu/compiler.h"
#include "runtime/state.h"
#include "tests/corpus/kept.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/nets.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT
using namespace bitale::test;    // NOLINT

namespace {

constexpr auto of_global = AccessCounts::Memory::global, of_shared = AccessCounts::Memory::shared;

constexpr const char* counts_head =
    "# step: number of the kernel and phase: of one launch blocks, threads of a block, threads at work, "
    "waves,\n"
    "# barriers of all blocks, chain of loads; requests of warps, all their sectors, those of the worst one, "
    "all\n"
    "# lines, those of the worst one, of loads and of stores; requests, turns of banks, those of the worst "
    "one, of\n"
    "# shared loads and of shared stores (docs/gpu.md, The counting emulator)\n";
const std::vector<std::string> counted_words = {
    "blocks",      "threads",       "working",       "waves",       "barriers",     "chain",
    "loads",       "sectors",       "worst sectors", "lines",       "worst lines",  "stores",
    "sectors",     "worst sectors", "lines",         "worst lines", "shared loads", "turns",
    "worst turns", "shared stores", "turns",         "worst turns"};

struct CountedStep {
    const char* net;
    std::int64_t batch;
};
// Of the eight steps of gpu_steps, with fewer images where the emulator takes long.
constexpr CountedStep counted_steps[] = {{"logistic", 600}, {"mlp", 20},  {"mlp", 128}, {"small", 8},
                                         {"small", 32},     {"keras", 2}, {"cifar", 2}};

struct CountedLaunch {
    std::string name;  // "mlp 20: 3.1"
    LaunchCounts counts;
    PredictedLaunch predicted;
};

std::vector<CountedLaunch> launches_of(const CountedStep& s) {
    Net net =
        make_net(s.net, {.device = "emulator", .images = s.batch, .batch = s.batch, .test_batch = s.batch});
    net.step(0);
    const Program& program = *net.step.state().program;
    std::vector<CountedLaunch> all;
    std::map<std::string, PredictedLaunch> predicted;
    for (const Region* region : {&program.once, &program.body})
        for (const Step& step : region->steps) {
            const auto* kernel = std::get_if<KernelStep>(&step.operation);
            if (!kernel) continue;
            const KernelText& text = program.kernels[static_cast<std::size_t>(kernel->launch.kernel)];
            REQUIRE(kernel->predicted.size() == text.entries.size());
            for (std::size_t p = 0; p < text.entries.size(); ++p)
                predicted[text.entries[p]] = kernel->predicted[p];
        }
    std::map<int, int> phases;
    for (LaunchCounts& l : net.step.counts().launches) {
        REQUIRE(predicted.contains(l.kernel));
        const PredictedLaunch model = predicted.at(l.kernel);
        all.push_back({fmt::format("{} {}: {}.{}", s.net, s.batch, l.number, ++phases[l.number]), l, model});
    }
    return all;
}

const std::vector<CountedLaunch>& all_counted_launches() {
    static const std::vector<CountedLaunch> all = [] {
        const CountedEmulator scope;
        std::vector<CountedLaunch> list;
        for (const CountedStep& s : counted_steps)
            for (CountedLaunch& c : launches_of(s)) list.push_back(std::move(c));
        return list;
    }();
    return all;
}

using CountNumbers = std::vector<std::int64_t>;

CountNumbers numbers_of(const LaunchCounts& l) {
    const std::int64_t n = std::max<std::int64_t>(1, l.launches);
    CountNumbers all = {l.blocks, l.threads, l.working / n, l.waves, l.barriers / n, l.chain};
    for (const bool store : {false, true}) {
        const AccessCounts a = l.sum(of_global, store);
        all.insert(all.end(), {a.requests / n, a.sectors / n, a.worst_sectors, a.lines / n, a.worst_lines});
    }
    for (const bool store : {false, true}) {
        const AccessCounts a = l.sum(of_shared, store);
        all.insert(all.end(), {a.requests / n, a.turns / n, a.worst_turns});
    }
    return all;
}

std::map<std::string, CountNumbers> counts_in(const std::string& text) {
    std::map<std::string, CountNumbers> all;
    std::istringstream file(text);
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        const std::size_t end = line.find(": ", line.find(": ") + 1);
        std::istringstream words(line.substr(end + 2));
        CountNumbers& numbers = all[line.substr(0, end)];
        for (std::int64_t number = 0; words >> number;) numbers.push_back(number);
    }
    return all;
}

// The file has the choices of g++ 12 of what is loaded twice.
bool counts_left_out() {
    if (emulator_left_out()) return true;
    const CompilerSearch search = find_compiler();
    if (search.found && search.found->identity.find("g++-12") != std::string::npos) return false;
    WARN("the counts are those of g++ 12");
    return true;
}

}  // namespace

TEST_CASE("what training steps ask of a GPU's memory is what was counted before") {
    if (counts_left_out()) return;
    if (updates_files()) {
        std::string text = counts_head;
        for (const CountedLaunch& c : all_counted_launches())
            text += fmt::format("{}: {}\n", c.name, fmt::join(numbers_of(c.counts), " "));
        return keep("counts.txt", text);
    }
    const std::map<std::string, CountNumbers> before = counts_in(kept("counts.txt"));
    CHECK(before.size() == all_counted_launches().size());
    for (const CountedLaunch& c : all_counted_launches()) {
        INFO(c.name << ". " << how_to_update);
        REQUIRE(before.contains(c.name));
        const CountNumbers& old = before.at(c.name);
        const CountNumbers now = numbers_of(c.counts);
        REQUIRE(now.size() == counted_words.size());
        REQUIRE(old.size() == now.size());
        for (std::size_t k = 0; k < now.size(); ++k) {
            INFO(counted_words[k] << ": " << now[k] << ", were " << old[k]);
            CHECK(20 * std::abs(now[k] - old[k]) <= old[k]);
        }
    }
}

namespace {

// Where the model is off by more than the bounds below, and why.
struct OffModel {
    const char* launch;
    const char* why;
};
constexpr const char *from_memory =
                         "lanes read at an index that was read itself, which the model takes to be the same",
                     *from_lane =
                         "a loop begins at the thread's lane, which the model takes to be 0 for all lanes",
                     *not_aligned =
                         "the model looks at the first turn of loops, which is aligned as later ones are not",
                     *four_turns = "the model has four turns in flight of a loop that nothing unrolls",
                     *named_waits = "the model waits for each value that gets a name, one after another";
const std::vector<OffModel> off_sectors = {
    {"logistic 600: 1.1", from_memory}, {"logistic 600: 3.1", from_memory}, {"small 8: 6.1", from_lane},
    {"small 8: 7.1", not_aligned},      {"small 8: 7.2", from_lane},        {"small 32: 8.1", not_aligned},
    {"small 32: 8.2", from_lane},       {"keras 2: 7.1", from_lane},        {"mlp 20: 4.1", from_lane}};
const std::vector<OffModel> off_chain = {{"cifar 2: 6.1", four_turns},
                                         {"small 8: 8.1", four_turns},
                                         {"small 32: 9.1", four_turns},
                                         {"keras 2: 11.1", named_waits}};

bool is_off(const std::vector<OffModel>& list, const std::string& launch) {
    return std::any_of(list.begin(), list.end(), [&](const OffModel& off) { return launch == off.launch; });
}

}  // namespace

// Blocks, threads and waves are those that were predicted. The model never has more sectors than are counted,
// and at most a quarter and one fewer. A chain is at most a tenth and one longer than predicted, and not less
// than half of that, but for eight loads. Threads that do anything are at least 0.45 of those at work on
// average.
TEST_CASE("the launch model predicts what is counted") {
    if (counts_left_out()) return;
    for (const CountedLaunch& c : all_counted_launches()) {
        const PredictedLaunch& p = c.predicted;
        const LaunchCounts& l = c.counts;
        const auto sectors = static_cast<double>(
                       std::max(l.sum(of_global, false).worst_sectors, l.sum(of_global, true).worst_sectors)),
                   working = static_cast<double>(l.working) / static_cast<double>(l.launches * l.blocks),
                   chain = static_cast<double>(l.chain);
        INFO(fmt::format(
            "{}, predicted / counted: blocks {} / {}, threads {} / {}, waves {} / {}, threads at work "
            "{:.0f} / {:.0f}, worst sectors {} / {}, chain {} / {}",
            c.name, p.blocks, l.blocks, p.threads, l.threads, p.waves, l.waves, p.working, working, p.sectors,
            sectors, p.loads, chain));
        CHECK(p.blocks == static_cast<double>(l.blocks));
        CHECK(p.threads == static_cast<double>(l.threads));
        CHECK(p.waves == static_cast<double>(l.waves));
        CHECK(working >= 0.45 * p.working);
        CHECK(sectors >= p.sectors);
        if (!is_off(off_sectors, c.name)) CHECK(sectors <= 1.25 * p.sectors + 1);
        if (is_off(off_chain, c.name)) continue;
        CHECK(chain <= 1.1 * p.loads + 1);
        CHECK(p.loads <= 2 * chain + 8);
    }
}
