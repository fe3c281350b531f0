#include "codegen/schedule/flat.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "codegen/nest/walk.h"
#include "codegen/schedule/collapse.h"
#include "codegen/schedule/member.h"

namespace bitale {

Segment schedule_flat(const Group& group, const SegmentContext& context, KernelBuilder& builder,
                      const std::string& title, std::string& notes) {
    constexpr std::int64_t block = 2048;
    const auto value = [&](int v) -> const Value& { return context.values.list[v]; };
    const Int count = count_of(value(group.values[0]).shape);
    Segment segment;
    segment.title = title;
    segment.tasks = ceildiv(count, block);
    segment.task = make_loop("task", segment.tasks).variable;
    std::map<int, int> local;  // values to scratch places
    std::int64_t used = 0;
    for (const int v : group.values) {
        const Type type = value(v).stored_type();
        const std::int64_t bytes = block * bytes_of(type.dtype);
        if (context.leaves_group(v) || used + bytes > context.target.local_bytes) continue;
        used += bytes;
        local[v] = builder.scratch(Place::Scope::local, type.dtype, {Int(block)});
        segment.body.push_back(declare(local[v]));
    }
    const Int inside = Int::symbol("point", {0, block - 1});
    const Int point = segment.task * block + inside;
    for (const int v : group.values) {
        Nest flat = flattened(fully_composed_nest(context.values, v), point);
        flat.parallel = {{inside, min(block, count - segment.task * block)}};
        flat = map_reads(flat, [&](const Scalar& s) -> Scalar {
            auto r = std::make_shared<ScalarNode>(*s);
            if (const auto at = local.find(s->operand.value()); at != local.end()) {
                r->operand = Operand::of_place(at->second);
                r->at = {inside};
                return r;
            }
            r->operand = Operand::of_place(context.in_memory(s->operand.value(), builder));
            return r;
        });
        Member member;
        member.nest = flat;
        const Type type = value(v).stored_type();
        if (local.contains(v)) {
            member.destinations.push_back({local[v], {inside}});
        } else {
            const std::vector<Int> at = unflattened(point, type.shape);
            for (const int buffer : context.buffers_to_write(v))
                member.destinations.push_back({builder.global(buffer, type.dtype, type.shape, true), at});
        }
        member.past =
            !local.contains(v) && member.destinations.size() == 1 && leaves_caches(group, context, v);
        segment.body.push_back(comment_of(*value(v).node));
        append(segment.body, schedule_pointwise(member, context.target, builder));
        segment.body.push_back(barrier());
    }
    notes += "  one axis of " + count.text() + " elements in blocks of " + std::to_string(block) + "\n";
    return segment;
}

bool leaves_caches(const Group& group, const SegmentContext& context, int value) {
    constexpr std::int64_t most_kept = 16 << 20;
    const Type type = context.values.list[value].stored_type();
    const Int count = count_of(type.shape);
    if (!count.is_constant() || count.constant() * bytes_of(type.dtype) < most_kept) return false;
    return std::none_of(group.values.begin(), group.values.end(), [&](int reader) {
        bool reads = false;
        for_each_read(fully_composed_nest(context.values, reader),
                      [&](const ScalarNode& s) { reads = reads || s.operand.value() == value; });
        return reads;
    });
}

}  // namespace bitale
