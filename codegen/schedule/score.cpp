#include "codegen/schedule/score.h"

#include <string>
#include <utility>
#include <vector>

#include "codegen/schedule/launch_model.h"

namespace bitale {

double predicted_time(const Group& group, const SegmentContext& context, bool short_text,
                      std::optional<TaskPlan> plan) {
    // The buffers of this kernel are no buffers of the program: they have the values' numbers.
    int next = static_cast<int>(context.values.list.size());
    SegmentContext alone = context;
    alone.buffer_to_read = [](int v) { return v; };
    alone.buffers_to_write = [](int v) { return std::vector<int>{v}; };
    alone.new_buffer = [&next](auto&&...) { return next++; };
    alone.errors_buffer = [&next] { return next++; };
    KernelBuilder builder;
    builder.short_text = short_text;
    std::string notes;
    Phase first, second;
    schedule_group(group, alone, builder, first, second, notes, std::move(plan));
    double time = 0;
    for (const Phase* phase : {&first, &second})
        if (!phase->segments.empty())
            time += predict_launch(builder.ir, *phase, *context.target.gpu, numbers_of(context.graph))
                        .microseconds;
    return time;
}

}  // namespace bitale
