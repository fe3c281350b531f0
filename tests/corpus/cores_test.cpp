// Tasks of the corpus' kernels on many cores: all that is much work has enough of them.
#include <fmt/format.h>

#include <map>
#include <set>

#include "codegen/pipeline.h"
#include "graph/base/options.h"
#include "ops/rules/phases.h"
#include "runtime/exec/shares.h"
#include "runtime/validate.h"
#include "tests/corpus/plans.h"
#include "tests/support/catch.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

constexpr int many_cores = 16;
constexpr double least_efficiency = 0.8, much_work = 100e6;  // picoseconds

// Graphs that have a kernel with less, and why.
const std::map<std::string, std::string>& exceptions() {
    static const auto& list = *new std::map<std::string, std::string>{
        {"attention", "eight heads: products of 34 MB would go through memory between two kernels"},
        {"attention_unknown_length", "eight heads: no task is cut along lengths that only a call tells"},
        {"conv_5x5_deep", "two chunks of its sum, whose order they are: each more stores 0.9 MB of results"},
        {"conv_float64", "six rows of three times twelve results, whose lanes are along the twelve"},
        {"gru_step", "a recurrence of 32 rows, of which a tile of registers has four"},
        {"language_model_step", "sixteen rows of the gradient are turned at once"},
        {"residual_five_pooled", "gradients of filters beside the layer before them, for the sake of memory"},
        {"resnet8_step", "sums over a batch that follow one another, early for the sake of memory: 1.4 ms"},
        {"transformer_layer", "four heads of 64 places, and 64 rows: all kernels below 200 us"},
        {"views", "tasks move two tiles of 16 x 16 elements: below 150 us"},
    };
    return list;
}

// Without a library of products, tasks of theirs keep all rows that share a factor larger than the second
// cache: half of the rows cost one core 8 to 11 % more in the step of a network of 784, 500 and 10.
const std::set<std::string>& with_large_factors() {
    static const auto& list = *new std::set<std::string>{
        "autoencoder_step",     "cifar_cnn_overlap_step", "cifar_cnn_step", "keras_cnn_dropout_step",
        "keras_cnn_evaluation", "keras_cnn_step",         "mlp_step",       "mlp_step_arguments",
        "small_cnn_evaluation", "small_cnn_step",
    };
    return list;
}

Program program_of(const corpus::Graph& graph, const Target& target,
                   std::map<std::uint64_t, std::int64_t>& values) {
    const ScopedOptions usual{Options{}};
    FunctionOptions options;
    options.updates = graph.updates;
    options.name = graph.name;
    options.on_unused_input = OnUnused::ignore;
    Request request = validate(graph.inputs, graph.outputs, options, Where::current());
    optimize(request.graph);
    for (const SizeSource& source : request.signature.sources) {
        const Argument& argument = graph.arguments.at(static_cast<std::size_t>(source.input));
        values[source.symbol] = source.axis >= 0 ? argument.shape.at(static_cast<std::size_t>(source.axis))
                                                 : argument.value().item<std::int64_t>();
    }
    return generate(request.graph, target, nullptr, nullptr);
}

std::vector<std::vector<TaskCost>> costs_of(const Step& step,
                                            const std::map<std::uint64_t, std::int64_t>& values) {
    std::vector<std::vector<TaskCost>> phases;
    const auto* kernel = std::get_if<KernelStep>(&step.operation);
    if (!kernel) return phases;
    for (const std::vector<TaskWork>& phase : kernel->work) {
        std::vector<TaskCost>& costs = phases.emplace_back();
        for (const TaskWork& w : phase)
            costs.push_back({evaluate(w.tasks, values), evaluate(w.picoseconds, values)});
    }
    return phases;
}

// Lines about the kernels of a graph that are much work and leave cores without any.
std::string wasteful_kernels(const std::string& name, const Target& target) {
    std::map<std::uint64_t, std::int64_t> values;
    const Program program = program_of(make(name, Purpose::plan), target, values);
    std::string text;
    for (const Region* region : {&program.once, &program.body})
        for (const Step& step : region->steps) {
            const std::vector<std::vector<TaskCost>> phases = costs_of(step, values);
            double work = 0;
            for (const std::vector<TaskCost>& phase : phases) work += total_of(phase);
            const double efficiency = predicted_efficiency(phases, many_cores);
            if (work > much_work && efficiency < least_efficiency)
                text += fmt::format("{}: {:.0f} us, predicted efficiency {:.2f}\n", step.title, 1e-6 * work,
                                    efficiency);
        }
    return text;
}

}  // namespace

TEST_CASE("kernels of much work have tasks for sixteen cores") {
    std::set<std::string> wasteful, wasteful_alone;
    for (const std::string& name : names())
        for (const auto& [target, description] : targets()) {
            if (description.kind == Target::Kind::cuda) continue;
            const std::string kernels = wasteful_kernels(name, description);
            if (kernels.empty()) continue;
            const bool alone = !description.has_gemm && with_large_factors().contains(name);
            (alone ? wasteful_alone : wasteful).insert(name);
            INFO(name << " for " << target << ":\n" << kernels);
            CHECK((alone || exceptions().contains(name)));
        }
    for (const auto& [name, reason] : exceptions()) {
        INFO(name << " keeps all cores at work now: it is no exception any more");
        CHECK(wasteful.contains(name));
    }
    CHECK(wasteful_alone == with_large_factors());
}
