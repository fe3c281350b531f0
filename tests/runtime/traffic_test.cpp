// What the training steps of the examples' networks move on a GPU, from their Programs: nodes and bytes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kernel/traffic.h"
#include "codegen/pipeline.h"
#include "graph/ir/shared.h"
#include "ops/rules/phases.h"
#include "runtime/cuda/target.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/nets.h"

using namespace bitale;
using namespace bitale::test;

namespace {

Program step_on_gpu(const Net& net) {
    Graph graph = *net.step.state().plain;
    optimize(graph);
    return generate(graph, cuda::target_of("sm_90"));
}

// A layer, dropout too, in elements: its parameters; its result and the winners of its pooling, for an image;
// and the map that a library's convolution leaves before pooling.
struct Layer {
    std::int64_t params = 0, result = 0, winners = 0, map_before_pooling = 0;
};
struct Layers {
    std::vector<Layer> list;
    std::int64_t state = 0;  // of the optimizer, for a parameter
};

Layers layers_of(const std::string& name) {
    if (name == "logistic") return {{{7850, 10}}, 0};
    if (name == "mlp") return {{{392500, 500}, {5010, 10}}, 0};
    if (name == "small") return {{{100, 1960, 1960}, {196100, 100}, {1010, 10}}, 2};
    if (name == "keras")
        return {
            {{320, 32 * 26 * 26}, {18496, 9216, 9216, 64 * 24 * 24}, {0, 9216}, {1179776, 128}, {1290, 10}},
            2};
    return {{{4864, 3136, 3136}, {3137000, 1000}, {10010, 10}}, 1};
}

// What a step must move that goes layer by layer: the definition is in docs/gpu.md.
std::int64_t ideal_bytes(const std::string& name, const Net& net) {
    constexpr std::int64_t real = 4;
    const Layers layers = layers_of(name);
    const std::int64_t batch = options_of(name).batch;
    // Pixels for their mean, forward, and for the gradient of the first layer; labels, places in the order.
    std::int64_t bytes = batch * (3 * net.pixels + 1 + 8);
    for (const Layer& l : layers.list) {
        const bool first = &l == &layers.list.front();
        const std::int64_t passes = first ? 1 : 2;  // the first layer has no gradient of its input
        bytes += l.params * real * (passes + 2 + 2 + 2 * layers.state);
        bytes += batch * (l.result * real * 5 + l.winners * 2 + l.map_before_pooling * real * 4);
    }
    return bytes;
}

std::map<std::uint64_t, std::int64_t> first_minibatch(const Program& program) {
    std::map<std::uint64_t, std::int64_t> values;
    for (const SizeSource& source : program.size_sources) values[source.symbol] = 0;
    return values;
}

// A line for each buffer that a step moves most of.
std::string largest(const Program& program) {
    const auto values = first_minibatch(program);
    std::vector<std::pair<std::int64_t, std::string>> list;
    for (const Step& step : program.body.steps) {
        list.emplace_back(evaluate(step.bytes, values), "ALL OF " + step.title);
        const auto* kernel = std::get_if<KernelStep>(&step.operation);
        for (std::size_t b = 0; kernel && b < kernel->launch.reads.size(); ++b) {
            const auto& info = program.buffers[static_cast<std::size_t>(kernel->launch.buffers[b])];
            const std::int64_t read = evaluate(kernel->launch.reads[b], values),
                               written = evaluate(kernel->launch.writes[b], values);
            list.emplace_back(read + written, fmt::format("{} ({} read, {} written) by {}", info.name, read,
                                                          written, step.title));
        }
    }
    std::sort(list.rbegin(), list.rend());
    std::string text;
    for (std::size_t k = 0; k < std::min<std::size_t>(list.size(), 25); ++k)
        text += fmt::format("{:>12}  {}\n", list[k].first, list[k].second);
    return text;
}

// The traffic of a kernel that copies rows of one place to another, found as the body says.
struct Copy {
    KernelIR kernel;
    Int rows = Int::symbol("rows", {0, 1000}), task = Int::symbol("task"), point = Int::symbol("point");
    Copy() {
        kernel.buffers = 3;
        kernel.places = {{Place::Scope::global, DType::uint8, {1000, 784}, 0, false},
                         {Place::Scope::global, DType::int64, {1000}, 1, false},
                         {Place::Scope::global, DType::float32, {rows, 784}, 2, true}};
    }
    std::vector<std::int64_t> moved(Stmts body, const Int& tasks, std::int64_t count) {
        kernel.phases = {{{Segment{task, tasks, std::move(body), ""}}}};
        const Traffic traffic = traffic_of(kernel);
        std::vector<std::int64_t> bytes;
        for (const auto* list : {&traffic.read, &traffic.written})
            for (const Int& x : *list) bytes.push_back(evaluate(x, {{rows.symbol_id(), count}}));
        return bytes;
    }
    Scalar pixel(const Int& row) const { return place_read(DType::uint8, 0, {row, point}); }
};

}  // namespace

TEST_CASE("the traffic of a kernel counts distinct bytes") {
    using List = std::vector<std::int64_t>;
    Copy copy;
    const Int row = Int::symbol("row"), chosen = Int::symbol("chosen");
    const auto over_points = [&](const Int& to, const Int& from) {
        return loop(copy.point, 0, 784, Binding::threads,
                    {set(2, {to, copy.point}, scalar_cast(DType::float32, copy.pixel(from)))});
    };
    // Row by row, and again: nothing counts twice.
    const List once = copy.moved({over_points(copy.task, copy.task)}, copy.rows, 20);
    CHECK(once == List{20 * 784, 0, 0, 0, 0, 20 * 784 * 4});
    CHECK(copy.moved({over_points(copy.task, copy.task), over_points(copy.task, copy.task)}, copy.rows, 20) ==
          once);
    // In blocks of 8 rows, of which the last is not whole: no more than the place has.
    const Int at = copy.task * 8 + row;
    const Stmts blocks = {
        loop(row, 0, min(8, copy.rows - copy.task * 8), Binding::serial, {over_points(at, at)})};
    CHECK(copy.moved(blocks, ceildiv(copy.rows, 8), 20) == List{24 * 784, 0, 0, 0, 0, 20 * 784 * 4});
    // Rows by number: as many as there are numbers.
    const Stmts gathered = {let(chosen, place_read(DType::int64, 1, {copy.task + 100}), 1000),
                            over_points(copy.task, chosen)};
    CHECK(copy.moved(gathered, copy.rows, 20) == List{20 * 784, 20 * 8, 0, 0, 0, 20 * 784 * 4});
    // Every second column of one row.
    const Stmts columns = {
        loop(copy.point, 0, 392, Binding::threads,
             {set(2, {0, copy.point},
                  scalar_cast(DType::float32, place_read(DType::uint8, 0, {0, copy.point})))})};
    CHECK(copy.moved(columns, 1, 20) == List{392, 0, 0, 0, 0, 392 * 4});
}

TEST_CASE("a training step on a GPU has few nodes") {
    const std::map<std::string, std::size_t> most = {
        {"logistic", 4}, {"mlp", 9}, {"small", 12}, {"keras", 16}, {"cifar", 16}};
    for (const auto& [name, limit] : most) {
        const Program program = step_on_gpu(make_net(name, options_of(name)));
        std::size_t nodes = 0;  // of a captured step: each phase of a kernel is one
        for (const Step& step : program.body.steps) {
            const auto* kernel = std::get_if<KernelStep>(&step.operation);
            nodes += kernel ? kernel->tasks.size() : 1;
        }
        INFO(name << ": " << nodes);
        CHECK(nodes <= limit);
        CHECK(program.once.steps.empty());
    }
}

TEST_CASE("a training step on a GPU moves few bytes") {
    for (const std::string& name : net_names()) {
        const Net net = make_net(name, options_of(name));
        const Program program = step_on_gpu(net);
        const auto values = first_minibatch(program);
        std::int64_t bytes = 0;
        for (const Step& step : program.body.steps) bytes += evaluate(step.bytes, values);
        const std::int64_t ideal = ideal_bytes(name, net);
        const double ratio = static_cast<double>(bytes) / static_cast<double>(ideal);
        INFO(name << ": " << bytes << " bytes of " << ideal << ", ratio " << ratio << "\n"
                  << largest(program));
        CHECK(ratio <= 1.25);
    }
}
