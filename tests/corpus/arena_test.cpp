// How near the arena comes to what lives at the fullest step, which no placement can be below.
#include <fmt/format.h>

#include <map>

#include "codegen/pipeline.h"
#include "graph/base/options.h"
#include "ops/rules/phases.h"
#include "runtime/validate.h"
#include "tests/corpus/plans.h"
#include "tests/support/catch.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

Placement placement_of(const corpus::Graph& graph, const Target& target) {
    const ScopedOptions usual{Options{}};
    FunctionOptions wishes;
    wishes.updates = graph.updates;
    wishes.name = graph.name;
    wishes.on_unused_input = OnUnused::ignore;
    Request request = validate(graph.inputs, graph.outputs, wishes, Where::current());
    optimize(request.graph);
    Program program = generate(request.graph, target);
    std::map<std::uint64_t, std::int64_t> values;
    for (const SizeSource& source : request.signature.sources) {
        const Argument& argument = graph.arguments.at(static_cast<std::size_t>(source.input));
        values[source.symbol] = source.axis < 0 ? static_cast<std::int64_t>(argument.value().at(0))
                                                : argument.shape.at(static_cast<std::size_t>(source.axis));
    }
    return plan_arena(program, values);
}

void check_near(const std::string& name, const corpus::Graph& graph) {
    for (const auto& [target, description] : targets()) {
        Placement placement;
        try {
            placement = placement_of(graph, description);
        } catch (const std::exception&) {
            continue;  // a known defect, which budgets.txt lists
        }
        INFO(name << " on " << target << ": " << placement.bytes << " of at least " << placement.least_bytes);
        CHECK(placement.least_bytes <= placement.bytes);
        CHECK(static_cast<double>(placement.bytes) <= 1.05 * static_cast<double>(placement.least_bytes));
    }
}

Expr normalised(Builder& b, const Expr& x, std::int64_t channels, const std::string& name) {
    const Axes axes = {0, 2, 3};
    const Expr centred = x - mean(x, axes, {.keepdims = true});
    const Expr variance = mean(sqr(centred), axes, {.keepdims = true});
    const auto channel = [](const Expr& v) { return expand_dims(expand_dims(expand_dims(v, 0), 2), 3); };
    return centred / sqrt(variance + 1e-5) * channel(b.bias(channels, "scale_" + name) + 1) +
           channel(b.bias(channels, "shift_" + name));
}

// He et al. 2016, 16 blocks of two convolutions with batch normalisation, of four widths, and a training
// step.
corpus::Graph sixteen_blocks() {
    Builder b("residual_sixteen", Purpose::plan);
    const Expr x = b.bytes({64, 3, 32, 32}, "x"), labels = b.labels(64, 10, "labels");
    const auto convolution = [&](const Expr& h, std::int64_t from, std::int64_t to, int kernel, int stride,
                                 const std::string& name) {
        return conv2d(h, b.weights({to, from, kernel, kernel}, "w_" + name),
                      {.border_mode = half, .subsample = stride, .filter_flip = false});
    };
    Expr h = relu(normalised(b, convolution(cast(x, float32) / 255, 3, 16, 3, 1, "first"), 16, "first"));
    std::int64_t from = 16;
    for (int k = 0; k < 16; ++k) {
        const std::int64_t to = std::int64_t{16} << (k / 4);
        const int stride = to == from ? 1 : 2;
        const std::string name = std::to_string(k);
        Expr inner = relu(normalised(b, convolution(h, from, to, 3, stride, name + "a"), to, name + "a"));
        inner = normalised(b, convolution(inner, to, to, 3, 1, name + "b"), to, name + "b");
        h = relu(inner + (to == from ? h : convolution(h, from, to, 1, stride, name + "c")));
        from = to;
    }
    const Expr b_out = b.bias(10, "b_out"), w_out = b.weights({from, 10}, "w_out");
    const Expr y = dot(mean(h, {2, 3}), w_out) + b_out;
    const Expr loss = mean(softmax_crossentropy(y, labels));
    b.output(loss, "loss");
    b.update(momentum(loss, b.parameters(), 0.1, {.momentum = 0.9}));
    return std::move(b).graph();
}

}  // namespace

TEST_CASE("the arena of every graph is at most a twentieth above what lives at once") {
    for (const std::string& name : names()) check_near(name, make(name, Purpose::plan));
}

TEST_CASE("the arena of a residual network of 16 blocks is at most a twentieth above what lives at once") {
    check_near("16 blocks", sixteen_blocks());
}
