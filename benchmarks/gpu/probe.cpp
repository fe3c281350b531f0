// gpu_probe: what a GPU, its driver and its libraries do, part by part, for scripts/gpu_check: facts, a check
// of each part that Bitale stands on, and ceilings. Writes all it finds out into one JSON file.
#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/ceilings.h"
#include "gpu/engines.h"
#include "gpu/libraries.h"
#include "gpu/machine.h"
#include "gpu/parts.h"
#include "gpu/record.h"
#include "graph/base/options.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cuda/libraries.h"

using namespace bitale;
using namespace bitale::cuda;
using bench::Json;
using bench::Machine;

namespace {

// Of cudaDeviceAttr, for people.
const std::vector<std::pair<const char*, int>> attributes = {{"multiprocessors", 16},
                                                             {"threads_a_multiprocessor", 39},
                                                             {"blocks_a_multiprocessor", 106},
                                                             {"registers_a_block", 12},
                                                             {"registers_a_multiprocessor", 82},
                                                             {"shared_bytes_a_block", 8},
                                                             {"shared_bytes_a_multiprocessor", 81},
                                                             {"shared_bytes_a_block_at_most", 97},
                                                             {"l2_bytes", 38},
                                                             {"clock_kHz", 13},
                                                             {"memory_clock_kHz", 36},
                                                             {"memory_bus_bits", 37},
                                                             {"ecc", 32}};

Json libraries() {
    Json list = Json::object();
    for (const LibraryStatus& library : library_list()) list[library.name] = library.text;
    return list;
}

Json information(Machine& machine) {
    Json r = {{"name", machine.name()},
              {"index", machine.index()},
              {"emulated", machine.emulated()},
              {"capability", fmt::format("{}.{}", machine.attribute(capability_major),
                                         machine.attribute(capability_minor))}};
    int count = 0, driver = 0, runtime = 0;
    machine.require(machine.runtime().cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    r["devices"] = count;
    if (machine.runtime().cudaDriverGetVersion(&driver) == success) r["driver"] = driver;
    if (machine.runtime().cudaRuntimeGetVersion(&runtime) == success) r["runtime"] = runtime;
    std::size_t free = 0, total = 0;
    machine.require(machine.runtime().cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    r["memory_bytes"] = total;
    r["free_bytes"] = free;
    for (const auto& [name, number] : attributes)
        if (const int value = machine.attribute(number); value != 0) r[name] = value;
    r["graphs"] = machine.backend().graphs ? "yes" : machine.backend().why_no_graphs;
    r["loops_in_graphs"] = machine.backend().loops ? "yes" : machine.backend().why_no_loops;
    r["libraries"] = libraries();
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) r["host_cores"] = CPU_COUNT(&cores);
    const CompilerSearch compiler = find_compiler();
    r["host_compiler"] = compiler.found ? compiler.found->identity : "none: " + compiler.problem;
    return r;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json, device;
    std::vector<std::string> only;
    bool reduced = false, engines = false;
    CLI::App app("Parts of a GPU, one by one", "gpu_probe");
    app.add_option("--json", json, "The file of the results");
    app.add_option("--device", device, "cuda, cuda:1, emulator; default: that of BITALE_FLAGS, else cuda");
    app.add_option(
        "--only", only,
        "Only this item: information, kernel, graph, while, cublaslt, cudnn, nan, copy, fma, launch, "
        "graph_node, while_turn; may be repeated");
    app.add_flag(
        "--engines", engines,
        "Instead of these, engines of cuDNN and algorithms of cuBLASLt for the calls of training steps, "
        "each timed and checked; items: b128, d, e, e64, and each with \" tf32\" behind it");
    app.add_flag("--reduced", reduced, "Small sizes, for the emulator");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error);
    }
    try {
        if (device.empty()) device = options().device == "cpu" ? "cuda" : options().device;
        Json head = {{"program", "gpu_probe"}, {"device", device}, {"reduced", reduced}};
        bench::Record record(json, std::move(head), only);
        std::unique_ptr<Machine> machine;
        std::string problem;
        try {
            machine = std::make_unique<Machine>(device);
            record.set("emulated", machine->emulated());
            machine->on_launch = [&](const std::string& kernel) { record.set("launching", kernel); };
        } catch (const std::exception& e) {
            problem = e.what();
        }
        record.item("information", [&]() -> Json {
            if (!machine) throw bench::Wrong(problem, {{"libraries", libraries()}});
            return information(*machine);
        });
        if (!machine) record.stop(problem);
        record.gone = [&] { return machine ? machine->gone() : ""; };
        if (engines) {
            for (const Precision precision : {Precision::float32, Precision::tf32})
                for (const std::string workload : {"b128", "d", "e", "e64"})
                    record.item(workload + (precision == Precision::tf32 ? " tf32" : ""), [&] {
                        return probe_engines(*machine, record, {device, workload, precision, reduced});
                    });
            return record.finish();
        }
        record.item("kernel", [&] { return probe_kernel(*machine); });
        record.item("graph", [&] { return probe_graph(*machine); });
        record.item("while", [&] { return probe_while(*machine); });
        record.item("cublaslt", [&] { return probe_cublaslt(*machine); });
        record.item("cudnn", [&] { return probe_cudnn(*machine); });
        record.item("nan", [&] { return probe_nan(*machine, device); });
        const auto ceiling = [&](const char* name, Json (*measure)(Machine&, bool)) {
            record.item(name, [&] {
                machine->clocks().take();
                Json r = measure(*machine, reduced);
                if (Json clocks = machine->clocks().take(); !clocks.is_null())
                    r["clocks"] = std::move(clocks);
                return r;
            });
        };
        ceiling("copy", bench::measure_copy);
        ceiling("fma", bench::measure_fma);
        ceiling("launch", bench::measure_launch);
        ceiling("graph_node", bench::measure_graph_node);
        ceiling("while_turn", bench::measure_while_turn);
        return record.finish();
    } catch (const std::exception& e) {
        fmt::print(stderr, "gpu_probe: {}\n", e.what());
        return 1;
    }
}
