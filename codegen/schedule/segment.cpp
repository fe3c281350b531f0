#include "codegen/schedule/segment.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/nest/compose.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/member.h"

namespace bitale {

namespace {

constexpr std::int64_t pointwise_block = 2048, vector_block = 64;

Int bounded(const std::string& name, const Int& extent) { return make_loop(name, extent).variable; }

class SegmentScheduler {
  public:
    SegmentScheduler(const Group& group, const SegmentContext& context, KernelBuilder& builder,
                     std::string& notes)
        : group_(group), context_(context), builder_(builder), notes_(notes) {}

    void run(Phase& first, Phase& second) {
        for (const int v : group_.values) title(v);
        if (!group_.checks.empty()) {
            first.segments.push_back(check_segment());
        } else if (group_.split) {
            split(first, second);
        } else {
            first.segments.push_back(collapsed() ? pointwise_segment() : row_segment());
        }
    }

  private:
    const Value& value(int v) const { return context_.values.list[v]; }

    void title(int v) {
        if (!title_.empty()) title_ += " + ";
        title_ += value(v).node->op->name;
    }

    // ---- reads
    // --------------------------------------------------------------------------------------------------

    Scalar placed(const Scalar& s, const std::function<Scalar(const Scalar&)>& staged) const {
        if (const auto at = local_.find(s->operand); at != local_.end()) {
            auto r = std::make_shared<ScalarNode>(*s);
            r->operand = at->second;
            r->at = inside_block(s->at);
            return r;
        }
        if (value(s->operand).storage == Value::Storage::staged) return staged(s);
        auto r = std::make_shared<ScalarNode>(*s);
        const Type& type = value(s->operand).node->type;
        r->operand = builder_.global(context_.buffer_to_read(s->operand), type.dtype, type.shape, false);
        return r;
    }

    // A row of the first axis, as an index into scratch that holds one block of rows.
    std::vector<Int> inside_block(const std::vector<Int>& at) const {
        std::vector<Int> r = at;
        if (r.empty()) return r;
        if (block_ == 1)
            r.erase(r.begin());
        else
            r[0] = r[0] - task_ * block_;
        return r;
    }

    Nest with_places(const Nest& nest) const {
        return map_reads(nest, [&](const Scalar& s) {
            return placed(s, [&](const Scalar& read) -> Scalar {
                const auto at = stages_.find(read->operand);
                BITALE_CHECK(at != stages_.end(), "a staged value without its copy");
                return at->second.read(*read, *this);
            });
        });
    }

    // The member's nest with staged values either kept (this group has a copy) or inlined.
    Nest nest_for(int v) const {
        return nest_with(v, [&](int operand) { return stages_.contains(operand); });
    }
    Nest nest_with(int v, const std::function<bool(int)>& copied) const {
        return in_rows(simplify(compose(context_.values.list[v].nest, [&](int operand) -> const Nest* {
            const Value& o = value(operand);
            const bool in = o.storage == Value::Storage::inlined ||
                            (o.storage == Value::Storage::staged && !copied(operand));
            return in ? &o.nest : nullptr;
        })));
    }

    // ---- staged copies
    // ------------------------------------------------------------------------------------------

    struct Stage {
        int place = -1;
        std::vector<Int> low;  // of the copy's index space; beyond the value's own where reads are guarded
        std::vector<Int> extents;
        Scalar outside;  // what guarded reads give there; null: reads keep their guards

        Scalar read(const ScalarNode& s, const SegmentScheduler& in) const {
            auto r = std::make_shared<ScalarNode>(s);
            r->operand = place;
            for (std::size_t d = 0; d < r->at.size(); ++d) r->at[d] = r->at[d] - low[d];
            r->at = in.inside_block(r->at);
            if (outside) {
                r->guards.clear();
                r->otherwise = nullptr;
            }
            return r;
        }
    };

    using Row = std::function<Int(const Nest&)>;
    using Reads = std::map<int, std::vector<std::pair<Int, Scalar>>>;

    // What the members read of staged values when those that are refused a copy are inlined.
    Reads staged_reads(const Row& row, const std::set<int>& refused) const {
        Reads reads;
        for (const int v : group_.values) {
            const Nest nest = refused.empty()
                                  ? context_.grouping.nests[v]
                                  : nest_with(v, [&](int operand) { return !refused.contains(operand); });
            for_each_read(nest, [&](const ScalarNode& s) {
                if (value(s.operand).storage == Value::Storage::staged)
                    reads[s.operand].emplace_back(row(nest), std::make_shared<ScalarNode>(s));
            });
        }
        return reads;
    }

    // Copies of staged values that the members read within their own row. `row` is the variable of the first
    // axis in a member's nest. Inlining a value that cannot be copied shows more reads of the others, so all
    // are looked at again whenever one is refused.
    void stage(const Row& row, Stmts& before) {
        std::set<int> refused;
        std::vector<Copied> copies;
        for (bool settled = false; !settled;) {
            copies.clear();
            settled = true;
            std::int64_t used = used_;
            for (const auto& [v, list] : staged_reads(row, refused)) {
                Copied one;
                one.value = v;
                if (!stageable(v, list, one.stage) || !copy_of(v, one) ||
                    used + one.bytes > context_.target.local_bytes) {
                    refused.insert(v);
                    settled = false;
                    break;
                }
                used += one.bytes;
                copies.push_back(std::move(one));
            }
        }
        for (Copied& one : copies) {
            const Value& own = value(one.value);
            used_ += one.bytes;
            one.stage.place = builder_.scratch(Place::Scope::local, own.node->type.dtype, one.extents);
            Member member;
            member.nest = in_block(one.nest);
            std::vector<Int> to;
            for (const Loop& l : member.nest.parallel) to.push_back(l.variable);
            member.destinations = {{one.stage.place, to}};
            member.nest = with_places(member.nest);
            before.push_back(declare(one.stage.place));
            before.push_back(comment("copy of " + describe(*own.node)));
            append(before, schedule_pointwise(member, context_.target));
            before.push_back(barrier());
            stages_[one.value] = one.stage;
            notes_ +=
                "  staged " + describe(*own.node) + ", " + std::to_string(one.bytes) + " bytes a task\n";
        }
    }

    struct Copied {
        int value = 0;
        Stage stage;
        Shape extents;  // of the scratch
        std::int64_t bytes = 0;
        Nest nest;  // over the whole first axis, with everything inlined
    };

    // The copy as a nest of its own over the (possibly wider) index space, reading the value. False if it
    // would need what a member of this group computes: copies come first.
    bool copy_of(int v, Copied& one) const {
        const Stage& made = one.stage;
        const Type& type = value(v).node->type;
        one.extents.assign(made.extents.begin() + (block_ == 1 ? 1 : 0), made.extents.end());
        if (block_ != 1) one.extents[0] = block_;
        one.bytes = count_of(one.extents).constant() * bytes_of(type.dtype);
        Nest copy;
        copy.dtype = type.dtype;
        std::vector<Int> at;
        std::vector<Guard> guards;
        for (std::size_t d = 0; d < made.extents.size(); ++d) {
            const Loop l = make_loop("c", made.extents[d]);
            copy.parallel.push_back(l);
            at.push_back(l.variable + made.low[d]);
            const bool wider = !made.low[d].is(0) || !(made.extents[d] == type.shape[d]);
            if (made.outside && wider) guards.push_back({at.back(), 0, type.shape[d]});
        }
        copy.body = scalar_read(type.dtype, v, at, guards, guards.empty() ? nullptr : made.outside);
        one.nest = simplify(compose(copy, [&](int operand) -> const Nest* {
            const Value::Storage storage = value(operand).storage;
            return storage == Value::Storage::inlined || storage == Value::Storage::staged
                       ? &value(operand).nest
                       : nullptr;
        }));
        bool computed_here = false;
        for_each_read(one.nest, [&](const ScalarNode& s) {
            computed_here |=
                std::find(group_.values.begin(), group_.values.end(), s.operand) != group_.values.end();
        });
        return !computed_here;
    }

    bool stageable(int v, const std::vector<std::pair<Int, Scalar>>& reads, Stage& made) const {
        const Type& type = value(v).node->type;
        if (type.shape.empty()) return false;
        for (std::size_t d = 1; d < type.shape.size(); ++d)
            if (!type.shape[d].is_constant()) return false;
        bool widen = true;
        Scalar outside;
        std::vector<IntRange> ranges(type.shape.size(), IntRange{0, 0});
        for (std::size_t d = 1; d < ranges.size(); ++d) ranges[d] = {0, type.shape[d].constant() - 1};
        for (const auto& [row, read] : reads) {
            if (row.is_constant() || !(read->at[0] == row)) return false;
            for (std::size_t d = 1; d < ranges.size(); ++d) {
                const IntRange r = read->at[d].range();
                ranges[d] = {std::min(ranges[d].low, r.low), std::max(ranges[d].high, r.high)};
            }
            for (const Guard& g : read->guards) {
                bool own = false;
                for (std::size_t d = 0; d < read->at.size(); ++d)
                    own = own || (g.value == read->at[d] && g.low.is(0) && g.high == type.shape[d]);
                widen = widen && own;
            }
            if (read->otherwise) {
                widen = widen && read->otherwise->kind == ScalarNode::Kind::constant &&
                        (!outside || (outside->number == read->otherwise->number &&
                                      outside->integer == read->otherwise->integer));
                outside = read->otherwise;
            }
        }
        const bool guarded = outside != nullptr;
        made.low.assign(type.shape.size(), 0);
        made.extents = {type.shape[0]};
        for (std::size_t d = 1; d < ranges.size(); ++d) {
            const bool wide = guarded && widen;
            made.low[d] = wide ? ranges[d].low : 0;
            made.extents.push_back(wide ? Int(ranges[d].high - ranges[d].low + 1) : type.shape[d]);
        }
        if (guarded && widen) made.outside = outside;
        return true;
    }

    // The parallel loops of a nest over the whole first axis, cut down to the rows of this task.
    Nest in_block(const Nest& nest) const {
        if (nest.parallel.empty()) return nest;
        Nest r = nest;
        const Int row = nest.parallel[0].variable;
        if (block_ == 1) {
            r.parallel.erase(r.parallel.begin());
            return row.symbol_id() ? substitute(r, {{row.symbol_id(), task_}}) : r;
        }
        const Int inside = Int::symbol("row", {0, block_ - 1});
        if (row.symbol_id()) r = substitute(r, {{row.symbol_id(), task_ * block_ + inside}});
        r.parallel[0] = {inside, min(block_, nest.parallel[0].extent - task_ * block_)};
        return r;
    }

    // ---- segments
    // -----------------------------------------------------------------------------------------------

    // Blocks of the first axis: one row, or several where the vector lanes run along it.
    void choose_block() {
        const Nest& first = context_.grouping.nests[group_.values[0]];
        if (first.parallel.empty()) {
            block_ = 1;
            return;
        }
        bool all_maps = true, along_rows = false;
        for (const int v : group_.values) {
            const Nest& nest = context_.grouping.nests[v];
            const bool map = nest.combine == Combine::none;
            all_maps = all_maps && map;
            if (!map && tree_of(nest).lanes == 1) along_rows = along_rows || vector_loop(nest) == 0;
        }
        const double inner = typical_count({first.parallel.begin() + 1, first.parallel.end()});
        if (all_maps)
            block_ = std::max<std::int64_t>(
                1, static_cast<std::int64_t>(static_cast<double>(pointwise_block) / inner));
        else if (along_rows)
            block_ = vector_block;
    }

    bool is_local(int v) {
        const Type& type = value(v).node->type;
        if (context_.leaves_group(v)) return false;
        std::int64_t count = block_;
        for (std::size_t d = 1; d < type.shape.size(); ++d) {
            if (!type.shape[d].is_constant()) return false;
            count *= type.shape[d].constant();
        }
        const std::int64_t bytes = count * bytes_of(type.dtype);
        if (used_ + bytes > context_.target.local_bytes) return false;
        used_ += bytes;
        return true;
    }

    Segment row_segment() {
        choose_block();
        Segment segment;
        segment.title = title_;
        segment.tasks = ceildiv(group_.extent, block_);
        segment.task = task_ = bounded("task", segment.tasks);
        for (const int v : group_.values) {
            if (!is_local(v)) continue;
            const Type& type = value(v).node->type;
            Shape extents = type.shape;
            if (!extents.empty()) {
                if (block_ == 1)
                    extents.erase(extents.begin());
                else
                    extents[0] = block_;
            }
            local_[v] = builder_.scratch(Place::Scope::local, type.dtype, extents);
            segment.body.push_back(declare(local_[v]));
        }
        stage([](const Nest& nest) { return nest.parallel.empty() ? Int(0) : nest.parallel[0].variable; },
              segment.body);
        for (const int v : group_.values) {
            const Nest nest = in_block(nest_for(v));
            Member member = finish_member(v, with_places(nest), nest.parallel);
            segment.body.push_back(comment(describe(*value(v).node)));
            append(segment.body, nest.combine == Combine::none
                                     ? schedule_pointwise(member, context_.target)
                                     : schedule_reduce(member, context_.target, builder_));
            segment.body.push_back(barrier());
        }
        notes_ += "  tasks of " + std::to_string(block_) + (block_ == 1 ? " row" : " rows") +
                  " of the first axis\n";
        return segment;
    }

    Member finish_member(int v, Nest nest, const std::vector<Loop>& parallel) {
        Member member;
        member.tree = tree_of(context_.grouping.nests[v]);
        std::vector<Int> inside, whole;
        for (const Loop& l : parallel) inside.push_back(l.variable);
        whole = inside;
        if (!value(v).node->type.shape.empty()) {
            if (block_ == 1)
                whole.insert(whole.begin(), task_);
            else
                whole[0] = whole[0] + task_ * block_;
        }
        if (const auto at = local_.find(v); at != local_.end())
            member.destinations.push_back({at->second, inside});
        const Type& type = value(v).node->type;
        if (!local_.contains(v))
            for (const int buffer : context_.buffers_to_write(v))
                member.destinations.push_back({builder_.global(buffer, type.dtype, type.shape, true), whole});
        member.nest = std::move(nest);
        return member;
    }

    // A group of maps over one shape whose every access is linear in the joined axes runs as one long axis.
    bool collapsed() {
        const Value& first = value(group_.values[0]);
        if (first.node->type.shape.empty()) return false;
        const Int count = count_of(first.node->type.shape);
        for (const int v : group_.values) {
            const Nest nest = fully_composed_nest(context_.values, v);
            if (nest.combine != Combine::none || !(value(v).node->type.shape == first.node->type.shape))
                return false;
            if (!nest.guards.empty() || !nest.lets.empty()) return false;
            const Int point = Int::symbol("point", {0, IntRange::highest});
            const Nest flat = flattened(nest, point);
            bool linear = true;
            for_each_read(flat, [&](const ScalarNode& s) {
                Int offset = 0;
                const Shape& shape = value(s.operand).node->type.shape;
                for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + s.at[d];
                linear =
                    linear && s.guards.empty() &&
                    (offset.is_constant() || offset == point || offset == point + offset.constant_term());
                const bool member =
                    std::find(group_.values.begin(), group_.values.end(), s.operand) != group_.values.end();
                linear = linear && (!member || offset == point);
            });
            if (!linear || has_index(flat.body)) return false;
        }
        (void)count;
        return true;
    }

    static bool has_index(const Scalar& s) {
        if (!s) return false;
        if (s->kind == ScalarNode::Kind::index || s->kind == ScalarNode::Kind::select) return true;
        return std::any_of(s->arguments.begin(), s->arguments.end(), has_index);
    }

    static Nest flattened(const Nest& nest, const Int& point) {
        Substitution with;
        Int rest = point;
        for (auto l = nest.parallel.rbegin(); l != nest.parallel.rend(); ++l) {
            const bool outermost = l + 1 == nest.parallel.rend();
            if (const std::uint64_t id = l->variable.symbol_id())
                with[id] = outermost ? rest : mod(rest, l->extent);
            rest = floordiv(rest, l->extent);
        }
        Nest r = substitute(nest, with);
        r.parallel.clear();
        return r;
    }

    Segment pointwise_segment() {
        block_ = pointwise_block;
        const Int count = count_of(value(group_.values[0]).node->type.shape);
        Segment segment;
        segment.title = title_;
        segment.tasks = ceildiv(count, block_);
        segment.task = task_ = bounded("task", segment.tasks);
        for (const int v : group_.values) {
            const Type& type = value(v).node->type;
            const std::int64_t bytes = block_ * bytes_of(type.dtype);
            if (context_.leaves_group(v) || used_ + bytes > context_.target.local_bytes) continue;
            used_ += bytes;
            local_[v] = builder_.scratch(Place::Scope::local, type.dtype, {Int(block_)});
            segment.body.push_back(declare(local_[v]));
        }
        const Int inside = Int::symbol("point", {0, block_ - 1});
        const Int point = task_ * block_ + inside;
        for (const int v : group_.values) {
            const Nest full = fully_composed_nest(context_.values, v);
            Nest flat = flattened(full, point);
            flat.parallel = {{inside, min(block_, count - task_ * block_)}};
            flat = map_reads(flat, [&](const Scalar& s) -> Scalar {
                auto r = std::make_shared<ScalarNode>(*s);
                if (const auto at = local_.find(s->operand); at != local_.end()) {
                    r->operand = at->second;
                    r->at = {inside};
                    return r;
                }
                const Type& type = value(s->operand).node->type;
                r->operand =
                    builder_.global(context_.buffer_to_read(s->operand), type.dtype, type.shape, false);
                return r;
            });
            Member member;
            member.nest = flat;
            const Type& type = value(v).node->type;
            if (local_.contains(v)) {
                member.destinations.push_back({local_[v], {inside}});
            } else {
                std::vector<Int> at(type.shape.size());
                Int rest = point;
                for (std::size_t d = type.shape.size(); d-- > 0;) {
                    at[d] = d == 0 ? rest : mod(rest, type.shape[d]);
                    rest = floordiv(rest, type.shape[d]);
                }
                for (const int buffer : context_.buffers_to_write(v))
                    member.destinations.push_back(
                        {builder_.global(buffer, type.dtype, type.shape, true), at});
            }
            segment.body.push_back(comment(describe(*value(v).node)));
            append(segment.body, schedule_pointwise(member, context_.target));
            segment.body.push_back(barrier());
        }
        notes_ += "  one axis of " + count.text() + " elements in blocks of " + std::to_string(block_) + "\n";
        return segment;
    }

    void split(Phase& first, Phase& second) {
        const int v = group_.values[0];
        const Value& own = value(v);
        const ReductionTree tree = tree_of(context_.grouping.nests[v]);
        const Int extent = context_.grouping.nests[v].reduced[0].extent;
        const Int chunks = ceildiv(extent, tree.chunk);
        Type partial{accumulator_of(own.nest), own.node->type.shape};
        partial.shape.insert(partial.shape.begin(), chunks);
        const int buffer = context_.new_buffer(partial, own.node->op->name + "_parts",
                                               "partial results of a reduction that is cut into chunks");
        const int place = builder_.global(buffer, partial.dtype, partial.shape, true);

        Segment segment;
        segment.title = title_ + " (chunks)";
        segment.tasks = chunks;
        segment.task = bounded("chunk", chunks);
        // The iterations of the split loop play the part of rows: staged copies hold one of them at a time.
        const Int row = Int::symbol("row", {0, IntRange::highest});
        task_ = row;
        block_ = 1;
        Stmts per_row;
        stage([](const Nest& nest) { return nest.reduced[0].variable; }, per_row);
        Nest nest = with_places_in_row(nest_for(v), row);
        Member member;
        member.nest = nest;
        member.tree = tree;
        SplitReduce parts = schedule_split(member, context_.target, builder_, place, segment.task);
        append(per_row, std::move(parts.inside));
        per_row.push_back(barrier());
        segment.body = std::move(parts.before);
        const Int begin = segment.task * tree.chunk;
        segment.body.push_back(
            loop(row, begin, min(begin + tree.chunk, extent), Binding::serial, std::move(per_row)));
        segment.body.push_back(barrier());
        append(segment.body, std::move(parts.after));
        first.segments.push_back(std::move(segment));

        Segment last;
        last.title = title_ + " (sum of chunks)";
        last.tasks = 1;
        last.task = Int(0);
        Member whole;
        whole.nest = nest;
        const Type& type = own.node->type;
        std::vector<Int> at;
        for (const Loop& l : nest.parallel) at.push_back(l.variable);
        for (const int b : context_.buffers_to_write(v))
            whole.destinations.push_back({builder_.global(b, type.dtype, type.shape, true), at});
        last.body = schedule_finish(whole, context_.target, builder_, place, chunks);
        second.segments.push_back(std::move(last));
        notes_ += "  reduction of " + extent.text() + " in chunks of " + tree.chunk.text() +
                  (tree.lanes > 1 ? ", 16 lanes" : "") + "\n";
    }

    Nest with_places_in_row(Nest nest, const Int& row) const {
        const std::uint64_t id = nest.reduced[0].variable.symbol_id();
        Nest r = id ? substitute(nest, {{id, row}}) : nest;
        r.reduced[0] = {row, 1};
        return with_places(r);
    }

    Segment check_segment() {
        const int number = group_.checks[0];
        const Check& check_ = context_.graph.checks[number];
        const int v = context_.values.number.at(check_.value.get());
        const Type& type = check_.value->type;
        Nest nest;
        std::vector<Int> at;
        for (const Int& extent : type.shape) {
            nest.parallel.push_back(make_loop("i", extent));
            at.push_back(nest.parallel.back().variable);
        }
        nest.dtype = type.dtype;
        nest.body = scalar_read(type.dtype, v, at);
        nest = simplify(compose(nest, [&](int operand) -> const Nest* {
            const Value::Storage storage = value(operand).storage;
            return storage == Value::Storage::inlined || storage == Value::Storage::staged
                       ? &value(operand).nest
                       : nullptr;
        }));
        Segment segment;
        segment.title = "check of " + check_.what;
        block_ = type.shape.empty() ? 1 : pointwise_block;
        segment.tasks = ceildiv(group_.extent, block_);
        segment.task = task_ = bounded("task", segment.tasks);
        nest = with_places(in_block(nest));
        Int element = 0;
        for (std::size_t d = 0; d < nest.parallel.size(); ++d)
            element = element * (d < type.shape.size() ? type.shape[d] : Int(1)) + nest.parallel[d].variable +
                      (d == 0 ? task_ * block_ : Int(0));
        builder_.ir.errors_buffer = errors_position();
        LoopBuilder loops(nest);
        const auto body = [&](LoopBuilder& inner) {
            return inner.substituted({check(number, nest.body, check_.low, check_.high, element)});
        };
        segment.body = context_.target.kind == Target::Kind::cuda ? loops.threads(nest.parallel, body)
                                                                  : loops.nest(nest.parallel, body);
        return segment;
    }

    int errors_position() {
        const int place = builder_.global(context_.errors_buffer(), DType::int64, {Int(4)}, true);
        return builder_.ir.places[place].buffer;
    }

    static void append(Stmts& to, Stmts from) {
        for (Stmt& s : from) to.push_back(std::move(s));
    }

    const Group& group_;
    const SegmentContext& context_;
    KernelBuilder& builder_;
    std::string& notes_;
    std::string title_;
    Int task_;
    std::int64_t block_ = 1;
    std::int64_t used_ = 0;     // bytes of scratch
    std::map<int, int> local_;  // values to scratch places
    std::map<int, Stage> stages_;
};

}  // namespace

void schedule_group(const Group& group, const SegmentContext& context, KernelBuilder& builder, Phase& first,
                    Phase& second, std::string& notes) {
    SegmentScheduler(group, context, builder, notes).run(first, second);
}

}  // namespace bitale
