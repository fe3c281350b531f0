#include "codegen/schedule/copies.h"

#include <cstddef>
#include <memory>
#include <string>

#include "codegen/nest/compose.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/pointwise.h"

namespace bitale {

namespace {

class CopyMaker {
  public:
    CopyMaker(const StagedCopy& copy, const TaskRows& rows, const SegmentContext& context,
              KernelBuilder& builder)
        : copy_(copy), rows_(rows), context_(context), builder_(builder) {}

    Stmts run(const std::function<Nest(const Nest&)>& placed) {
        Stmts body;
        if (!copy_.in_memory) body.push_back(declare(copy_.place));
        body.push_back(comment_of(*own().node, "copy of "));
        if (copy_.filled) append(body, fill());
        Member member;
        member.nest = rows_.cut(copy_.nest);
        std::vector<Int> to;
        for (const Loop& l : member.nest.parallel) to.push_back(l.variable);
        to = rows_.whole(std::move(to));
        if (copy_.filled)
            for (std::size_t d = 1; d < to.size(); ++d)
                if (!copy_.window[d]) to[d] = to[d] - copy_.low[d];
        member.destinations = {{copy_.place, to}};
        member.nest = placed(member.nest);
        append(body, schedule_pointwise(member, context_.target, builder_));
        body.push_back(barrier());
        return body;
    }

  private:
    const Value& own() const { return context_.values.list[static_cast<std::size_t>(copy_.value)]; }

    // What lies outside of the value: small scratch as a whole, of what is larger the border alone.
    Stmts fill() {
        std::vector<Loop> all;
        if (rows_.block > 1)
            all.push_back(make_loop("c", copy_.in_memory
                                             ? min(rows_.block, copy_.extents[0] - rows_.task * rows_.block)
                                             : Int(rows_.block)));
        const std::size_t rows = all.size();
        for (std::size_t d = 1; d < copy_.extents.size(); ++d)
            all.push_back(make_loop("c", copy_.extents[d]));
        if (!copy_.in_memory) return fill_box(all, std::vector<Int>(all.size(), 0));
        Stmts body;
        for (std::size_t d = 1; d < copy_.extents.size(); ++d)
            for (const bool behind : {false, true}) {
                const Int end = own().shape[d] - copy_.low[d],
                          count = behind ? copy_.extents[d] - end : -copy_.low[d];
                if (count.is(0)) continue;
                std::vector<Loop> box = all;
                std::vector<Int> first(all.size(), 0);
                box[d - 1 + rows] = make_loop("c", count);
                if (behind) first[d - 1 + rows] = end;
                append(body, fill_box(box, first));
            }
        return body;
    }

    Stmts fill_box(const std::vector<Loop>& loops, const std::vector<Int>& first) {
        Member box;
        std::vector<Int> at;
        for (std::size_t d = 0; d < loops.size(); ++d) at.push_back(first[d] + loops[d].variable);
        box.nest.parallel = loops;
        box.nest.dtype = own().node->type.dtype;
        box.nest.body = copy_.outside;
        box.destinations = {{copy_.place, rows_.whole(std::move(at))}};
        return schedule_pointwise(box, context_.target, builder_);
    }

    const StagedCopy& copy_;
    const TaskRows& rows_;
    const SegmentContext& context_;
    KernelBuilder& builder_;
};

}  // namespace

std::vector<Int> TaskRows::whole(std::vector<Int> at) const {
    if (block == 1)
        at.insert(at.begin(), task);
    else
        at[0] = at[0] + task * block;
    return at;
}

Nest TaskRows::cut(const Nest& nest) const {
    if (nest.parallel.empty()) return nest;
    Nest r = nest;
    const Int row = nest.parallel[0].variable;
    if (block == 1) {
        r.parallel.erase(r.parallel.begin());
        return row.symbol_id() ? substitute(r, {{row.symbol_id(), task}}) : r;
    }
    const Int in = Int::symbol("row", {0, block - 1});
    if (row.symbol_id()) r = substitute(r, {{row.symbol_id(), task * block + in}});
    r.parallel[0] = {in, min(block, nest.parallel[0].extent - task * block)};
    return r;
}

Part TaskRows::part() const { return {0, task * block, block}; }

Shape TaskRows::shape(Shape whole) const {
    whole[0] = block;
    return whole;
}

Stmts make_copy(StagedCopy& copy, const TaskRows& rows, const SegmentContext& context, KernelBuilder& builder,
                const std::function<Nest(const Nest&)>& placed) {
    const Node& node = *context.values.list[static_cast<std::size_t>(copy.value)].node;
    const DType dtype = node.type.dtype;
    if (copy.in_memory) {
        if (copy.buffer < 0)
            copy.buffer = context.new_buffer(
                {dtype, copy.scratch}, title_of(node) + " (copy)",
                "read many times by sums of products, too large for the scratch of one task",
                BufferInfo::Role::task_rows);
        copy.place = builder.global(copy.buffer, dtype, copy.scratch, true);
        builder.ir.places[static_cast<std::size_t>(copy.place)].parts = {rows.part()};
    } else {
        copy.place = builder.scratch(Place::Scope::local, dtype, copy.scratch, {rows.part()});
    }
    return CopyMaker(copy, rows, context, builder).run(placed);
}

Scalar read_copy(const ScalarNode& s, const StagedCopy& copy) {
    auto r = std::make_shared<ScalarNode>(s);
    r->operand = Operand::of_place(copy.place);
    for (std::size_t d = 0; d < r->at.size(); ++d) r->at[d] = r->at[d] - copy.low[d];
    return r;
}

}  // namespace bitale
