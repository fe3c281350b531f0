// Files of BITALE_DUMP.
#include "runtime/dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>

#include "codegen/print/comments.h"
#include "codegen/print/writer.h"
#include "graph/base/atomic_file.h"
#include "graph/base/lines.h"
#include "graph/base/log.h"
#include "graph/base/numbers.h"
#include "graph/base/options.h"
#include "graph/base/outside.h"
#include "graph/base/text.h"
#include "graph/show/debugprint.h"
#include "graph/show/dot.h"
#include "graph/walk/traverse.h"
#include "runtime/cuda/device_name.h"
#include "runtime/cuda/dump.h"
#include "runtime/exec/program_io.h"
#include "runtime/figures.h"
#include "runtime/memory/limit.h"
#include "runtime/named_lengths.h"
#include "runtime/picture.h"
#include "runtime/report.h"
#include "runtime/state.h"

namespace bitale {

namespace {

void write(const std::string& folder, const std::string& name, const std::string& text) {
    dump_file(folder + "/" + name, text);
}

std::string plain_name(const std::string& name) {
    std::string s;
    for (const char c : name) s += is_letter_or_digit(c) || c == '-' || c == '.' ? c : '_';
    return s;
}

// A picture of more nodes than this takes Graphviz minutes; of as many as `most_painted`, some seconds.
constexpr std::size_t most_drawn = 2000, most_painted = 400;
constexpr int painting_seconds = 20;

// NAME.svg where Graphviz is there and the graph is not too large, else NAME.svg.txt with the reason.
void write_svg(const std::string& folder, const std::string& name, const std::string& dot,
               std::size_t nodes) {
    try {
        if (nodes > most_painted)
            throw Error(fmt::format("not drawn: Graphviz takes minutes for {} nodes", nodes));
        write(folder, name + ".svg", svg_of(dot, painting_seconds));
    } catch (const Error& e) {
        write(folder, name + ".svg.txt", std::string(e.what()) + "\n");
    }
}

void write_graph(const std::string& folder, const std::string& name, const Graph& graph,
                 const std::function<std::string()>& picture) {
    write(folder, name + ".txt", debugprint(graph));
    const std::size_t nodes = topological(graph.roots()).size();
    if (nodes > most_drawn) return;
    const std::string dot = picture();
    write(folder, name + ".dot", dot);
    write_svg(folder, name, dot, nodes);
}

// The readable text of a kernel behind what uses it: the numbers and titles of steps.
std::string readable_file(const Program& program, const KernelText& kernel, const std::string& include) {
    Writer heading;
    int number = 0;
    for (const Region* region : {&program.once, &program.body})
        for (const Step& step : region->steps) {
            ++number;
            const KernelLaunch* launch = kernel_of(step);
            if (!launch || program.kernels[static_cast<std::size_t>(launch->kernel)].name != kernel.name)
                continue;
            heading.comment(fmt::format("{} of the report: {}", number, step.title));
            if (const std::string lines = lines_of(step.fused, 16); !lines.empty()) heading.comment(lines);
        }
    const NamedLengths named = with_named_lengths(kernel.readable, program);
    for (const std::string& line : named.explained) heading.comment(line);
    return heading.text() + include + named.text;
}

// kernels/NAME: what is compiled, the same for readers, and what all of them begin with.
void write_kernels(const std::string& folder, const Program& program) {
    const std::string kernels = folder + "/kernels";
    if (program.kernels.empty()) return;
    if (outside::make_folders(kernels) != 0)
        return warn("BITALE_DUMP: " + in_quotes(kernels) + " cannot be made: " + std::strerror(errno));
    const bool cuda = !program.cuda_prelude.empty();
    const std::string suffix = cuda ? ".cu" : ".cpp", include = "#include \"prelude.h\"\n\n";
    write(kernels, "prelude.h", cuda ? program.cuda_prelude : program.prelude);
    for (const KernelText& kernel : program.kernels) {
        write(kernels, kernel.name + suffix,
              include + without_comments(cuda ? kernel.cuda_body : kernel.body));
        write(kernels, kernel.name + ".readable" + suffix, readable_file(program, kernel, include));
    }
}

void write_memory_plan(const Function::State& state) {
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

struct FileOfDump {
    const char *name, *words;
};
constexpr FileOfDump files_of_dump[] = {
    {"report.txt", "open this first: kernels and your lines by their share, what is stored and why"},
    {"report_full.txt", "what is fused, scheduled, checked and stored, kernel by kernel"},
    {"memory_plan.svg", "where the memory of a call goes; .txt and .json have the same"},
    {"graph_after.svg", "the optimised graph, with a frame around each kernel"},
    {"graph_after.svg.txt",
     "why there is no picture of the optimised graph; graph_after.dot is its text for Graphviz"},
    {"graph_after.txt", "the optimised graph as text"},
    {"graph_before.svg", "the graph as written"},
    {"graph_before.txt", "the graph as written, as text"},
    {"program.json", "all of it for programs, with a schema in docs/program.schema.json"}};

// README.txt: which file to open first, and where each kernel is. Of the files that there are.
std::string guide_of(const Function::State& state) {
    std::string text = fmt::format("Function {}{}, device {}\n\n", printable(state.name),
                                   at_line(state.where), state.device->name());
    for (const FileOfDump& file : files_of_dump)
        if (access((state.dump_folder + "/" + file.name).c_str(), F_OK) == 0)
            text += fmt::format("  {:<20}  {}\n", file.name, file.words);
    if (state.optimised)
        text += fmt::format("  {:<20}  the graph after each pass that changed it\n", "pass_N_NAME.txt");
    if (!state.program || state.program->kernels.empty()) return text;
    text +=
        "\nKernels, by their numbers in the report. NAME.readable.* has your names, NAME.* is what is "
        "compiled.\n\n";
    const bool cuda = !state.program->cuda_prelude.empty();
    int number = 0;
    for (const Region* region : {&state.program->once, &state.program->body})
        for (const Step& step : region->steps) {
            ++number;
            const KernelLaunch* launch = kernel_of(step);
            const std::string file =
                launch ? fmt::format("kernels/{}.readable.{}",
                                     state.program->kernels[static_cast<std::size_t>(launch->kernel)].name,
                                     cuda ? "cu" : "cpp")
                       : step_name(*state.program, step);
            text += fmt::format("  {:>3}  {}  {}\n", number, file, printable(step.title));
        }
    return text;
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
    write_graph(state.dump_folder, "graph_before", *state.plain,
                [&] { return graphviz(state.plain->roots()); });
    if (!state.program) return;
    write_graph(state.dump_folder, "graph_after", *state.optimised, [&] { return picture_of(state); });
    write_kernels(state.dump_folder, *state.program);
    write(state.dump_folder, "program.json", program_to_json(*state.program));
    if (const auto gpu = cuda::parse_device_name(state.device->name())) {
        const std::string& target = gpu->emulated ? options().dump_target : state.program->target;
        state.dumped = cuda::dump_cuda(*state.program, target, state.dump_folder);
        return;
    }
}

void dump_report(const Function::State& state) {
    if (state.dump_folder.empty()) return;
    write(state.dump_folder, "report.txt", report_of(state, Detail::brief));
    write(state.dump_folder, "report_full.txt", report_of(state, Detail::complete));
    if (state.executable) write_memory_plan(state);  // else its versions have plans
    write(state.dump_folder, "README.txt", guide_of(state));
}

}  // namespace bitale
