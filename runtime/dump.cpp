// Files of BITALE_DUMP.
#include "runtime/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "graph/base/atomic_file.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/base/outside.h"
#include "graph/base/text.h"
#include "graph/show/debugprint.h"
#include "graph/show/dot.h"
#include "runtime/cpu/objects.h"
#include "runtime/cuda/device_name.h"
#include "runtime/cuda/dump.h"
#include "runtime/exec/program_io.h"
#include "runtime/memory/limit.h"
#include "runtime/report.h"
#include "runtime/state.h"

namespace bitale {

namespace {

void write(const std::string& folder, const std::string& name, const std::string& text) {
    dump_file(folder + "/" + name, text);
}

std::string plain_name(const std::string& name) {
    std::string s;
    for (const char c : name)
        s += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
    return s;
}

// A picture of more nodes than this takes Graphviz minutes.
constexpr std::size_t most_drawn = 2000;

void write_graph(const std::string& folder, const std::string& name, const Graph& graph) {
    const std::string text = debugprint(graph.roots());
    write(folder, name + ".txt", text);
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    if (lines <= most_drawn) write(folder, name + ".dot", graphviz(graph.roots()));
}

}  // namespace

std::string make_dump_folder(const std::string& name) {
    if (options().dump.empty()) return {};
    static std::atomic<int> number{0};
    std::string folder = fmt::format("{}/{:03}_{}", options().dump, ++number, plain_name(name));
    if (outside::make_folders(folder) == 0) return folder;
    warn("BITALE_DUMP: " + in_quotes(folder) + " cannot be made: " + std::strerror(errno));
    return {};
}

void dump_before_compiling(Function::State& state) {
    if (state.dump_folder.empty()) return;
    write_graph(state.dump_folder, "graph_before", *state.plain);
    if (!state.program) return;
    write_graph(state.dump_folder, "graph_after", *state.optimised);
    write(state.dump_folder, "program.json", program_to_json(*state.program));
    if (const auto gpu = cuda::parse_device_name(state.device->name())) {
        const std::string& target = gpu->emulated ? options().dump_target : state.program->target;
        state.dumped = cuda::dump_cuda(*state.program, target, state.dump_folder);
        return;
    }
    const std::vector<TranslationUnit> units = translation_units(*state.program);
    for (std::size_t u = 0; u < units.size(); ++u)
        write(state.dump_folder, fmt::format("kernels_{}.cpp", u), units[u].text);
}

void dump_report(const Function::State& state) {
    if (state.dump_folder.empty()) return;
    write(state.dump_folder, "report.txt", report_of(state));
    if (!state.executable) return;  // its versions have plans
    try {
        const std::lock_guard turn(state.device->turns());
        const MemoryPlan plan = memory_plan_of(state, {});
        write(state.dump_folder, "memory_plan.txt", plan.to_string());
        write(state.dump_folder, "memory_plan.json", plan.json());
        write(state.dump_folder, "memory_plan.svg", plan.svg());
    } catch (const GraphError& e) {  // lengths are missing
        write(state.dump_folder, "memory_plan.txt", std::string(e.what()) + "\n");
    } catch (const ShapeError& e) {
        write(state.dump_folder, "memory_plan.txt", std::string(e.what()) + "\n");
    } catch (const IndexError& e) {
        write(state.dump_folder, "memory_plan.txt", std::string(e.what()) + "\n");
    }
}

}  // namespace bitale
