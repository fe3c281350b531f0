#include "codegen/schedule/score.h"

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kernel/work.h"
#include "codegen/schedule/launch_model.h"
#include "graph/base/check.h"

namespace bitale {

namespace {

// The symbols that a call knows.
std::set<std::uint64_t> lengths_of(const Graph& graph) {
    std::set<std::uint64_t> symbols = numbers_of(graph);
    for (const NodePtr& input : graph.inputs)
        for (const Int& n : input->type.shape)
            if (const std::uint64_t id = n.symbol_id()) symbols.insert(id);
    return symbols;
}

}  // namespace

double predicted_time(const Group& group, const SegmentContext& context, bool short_text,
                      std::optional<TaskPlan> plan) {
    // The buffers of this kernel are no buffers of the program: they have the values' numbers.
    int next = static_cast<int>(context.values.list.size());
    SegmentContext alone = context;
    alone.buffer_to_read = [](int v) { return v; };
    alone.buffers_to_write = [](int v) { return std::vector<int>{v}; };
    alone.new_buffer = [&next](auto&&...) { return next++; };
    alone.put_into_buffer_of = [](int, int) {};
    alone.errors_buffer = [&next] { return next++; };
    KernelBuilder builder;
    builder.short_text = short_text;
    std::string notes;
    Phase first, second;
    const bool cut = plan && plan->cut;
    schedule_group(group, alone, builder, first, second, notes, std::move(plan));
    double time = 0;
    if (!context.target.gpu) {
        for (const Phase* phase : {&first, &second})
            for (const Segment& segment : phase->segments)
                time += 1e-6 * typical(segment.tasks) * typical(work_of(builder.ir, segment, context.target));
        return time;
    }
    for (const Phase* phase : {&first, &second})
        if (!phase->segments.empty())
            time += predict_launch(builder.ir, *phase, *context.target.gpu, numbers_of(context.graph))
                        .microseconds;
    if (!cut) return time;
    // Legal is what verify() proves: that a task stays in its part.
    builder.ir.phases.push_back(std::move(first));
    try {
        verify(builder.ir, lengths_of(context.graph));
    } catch (const InternalError&) {
        return std::numeric_limits<double>::infinity();
    }
    return time;
}

}  // namespace bitale
