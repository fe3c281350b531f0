#include "codegen/schedule/segment.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/nest/positions.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/ahead.h"
#include "codegen/schedule/by_phase.h"
#include "codegen/schedule/byte_columns.h"
#include "codegen/schedule/changed_part.h"
#include "codegen/schedule/check.h"
#include "codegen/schedule/chooser.h"
#include "codegen/schedule/collapse.h"
#include "codegen/schedule/flat.h"
#include "codegen/schedule/live_ranges.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/order.h"
#include "codegen/schedule/pieces.h"
#include "codegen/schedule/prefix.h"
#include "codegen/schedule/puts.h"
#include "codegen/schedule/rows_of_task.h"
#include "codegen/schedule/runs.h"
#include "codegen/schedule/scatter.h"
#include "codegen/schedule/score.h"
#include "codegen/schedule/together.h"
#include "codegen/schedule/winners.h"
#include "graph/base/options.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

Int bounded(const std::string& name, const Int& extent) { return make_loop(name, extent).variable; }

class SegmentScheduler {
  public:
    SegmentScheduler(const Group& group, const SegmentContext& context, KernelBuilder& builder,
                     std::string& notes, std::optional<TaskPlan> plan)
        : group_(group), context_(context), builder_(builder), notes_(notes), plan_(std::move(plan)) {}

    void run(Phase& first, Phase& second) {
        for (const int v : group_.values) title_ += (title_.empty() ? "" : " + ") + title_of(*value(v).node);
        if (!group_.checks.empty()) {
            block_ = rows_of_check(group_, context_);
            task_ = bounded("task", ceildiv(group_.extent, block_));
            first.segments.push_back(schedule_check(group_, rows(), context_, builder_,
                                                    [&](const Nest& nest) { return with_places(nest); }));
        } else if (group_.split) {
            split(first, second);
        } else if (group_.tiled && is_prefix(context_.grouping.nests[group_.values[0]])) {
            const int only = group_.values[0];
            first.segments.push_back(schedule_prefix_of_columns(only, with_places(nest_for(only)),
                                                                leaves_caches(group_, context_, only),
                                                                context_, builder_, title_));
        } else if (group_.tiled && !is_order(context_.grouping.nests[group_.values[0]].combine)) {
            for (Segment& s : chooser().tiles(group_.values[0], context_, builder_, title_, notes_))
                first.segments.push_back(std::move(s));
        } else if (!sets_part(first) && !in_pieces(first)) {
            first.segments.push_back(one_kind_of_segment());
        }
    }

  private:
    const Value& value(int v) const { return context_.values.list[v]; }

    // A new value in the place of the old one that differs from it in one part alone.
    bool sets_part(Phase& first) {
        const int v = group_.values[0];
        if (group_.values.size() > 1) return false;
        const std::optional<ChangedPart> part =
            changed_part(fully_composed_nest(context_.values, v), [&](const ScalarNode& s) {
                const std::vector<int> to = context_.buffers_to_write(v);
                return to.size() == 1 && context_.buffer_to_read(s.operand.value()) == to[0];
            });
        if (!part) return false;
        first.segments.push_back(part_segment(v, part->nest, part->starts));
        Stmts& body = first.segments.back().body;
        body = LoopBuilder(with_places(part->around)).nest({}, [&](LoopBuilder&) { return body; });
        notes_ += "  the part that changes, in place\n";
        return true;
    }

    // A map by itself that is something else on each part of an axis: loops with guards have no vectors.
    bool in_pieces(Phase& first) {
        if (!target().has_vectors() || group_.values.size() > 1) return false;
        const int v = group_.values[0];
        const Nest nest = fully_composed_nest(context_.values, v);
        const std::vector<Piece> pieces = separate_pieces_of(nest);
        if (pieces.empty() || reads_what_it_writes(v, nest)) return false;
        for (const Piece& piece : pieces) {
            std::vector<Int> starts(nest.parallel.size(), 0);
            starts[piece.axis] = piece.start;
            first.segments.push_back(part_segment(v, piece.nest, starts));
        }
        notes_ += "  " + std::to_string(pieces.size()) + " parts by themselves\n";
        return true;
    }

    // An update in place, or results that are copied from one place to another: a task of its own part would
    // write what those of other parts read.
    bool reads_what_it_writes(int v, const Nest& nest) const {
        std::set<int> read;
        for_each_read(nest,
                      [&](const ScalarNode& s) { read.insert(context_.buffer_to_read(s.operand.value())); });
        const std::vector<int> written = context_.buffers_to_write(v);
        return written.size() > 1 || read.contains(written[0]);
    }

    // A part of a map's results, by where it lies along each axis.
    Segment part_segment(int v, const Nest& part, const std::vector<Int>& starts) {
        builder_.begin_segment();
        const std::size_t axis = axis_of_tasks(part);
        const Nest turned = with_axis_first(part, axis);
        block_ = rows_of_map(turned, context_.values.shapes());
        Segment segment;
        segment.title = title_;
        segment.tasks = ceildiv(turned.parallel[0].extent, block_);
        segment.task = task_ = bounded("task", segment.tasks);
        const Nest nest = rows().cut(turned);
        Member member = finish_member(v, with_places(nest), nest.parallel);
        for (Destination& d : member.destinations) d.at = put_back(d.at, axis, starts);
        segment.body = {comment_of(*value(v).node)};
        append(segment.body, schedule_pointwise(member, context_.target, builder_));
        return segment;
    }

    Segment one_kind_of_segment() {
        builder_.begin_segment();
        const int front = group_.values[0];
        if (group_.tiled)
            return schedule_order_of_vector(front, with_places(nest_for(front)), context_, builder_, title_);
        if (std::optional<Segment> whole = chooser().whole_group(group_, context_, builder_, title_, notes_))
            return *std::move(whole);
        // One thread walks the keys of its task.
        const bool skips =
            !target().tasks_have_threads() && !options().strict_math && options().enabled("skips_zeros");
        if (const std::optional<int> list =
                skips ? list_of_changed_rows(group_, context_) : std::optional<int>())
            return changed_rows_segment(*list);
        return row_segment();
    }

    // ---- reads

    Scalar placed(const Scalar& s) const {
        if (const StagedCopy* copy = copy_reads().sent_to(*s)) return read_copy(*s, *copy);
        auto r = std::make_shared<ScalarNode>(*s);
        if (const auto at = local_.find(s->operand.value()); at != local_.end()) {
            r->operand = Operand::of_place(at->second);
            return r;
        }
        BITALE_CHECK(value(s->operand.value()).storage != Value::Storage::staged,
                     "a staged value without its copy");
        r->operand = Operand::of_place(context_.in_memory(s->operand.value(), builder_));
        return r;
    }

    Nest with_places(const Nest& nest) const {
        return map_reads(nest, [&](const Scalar& s) { return placed(s); });
    }

    CopyReads copy_reads() const { return {context_.values, copies_}; }

    // The member's nest, reading the copies that are made.
    Nest nest_for(int v) const { return copy_reads().member(v, row_, scattered_.contains(v)); }

    // ---- staged copies

    // Copies of what the members read of staged values within their own row.
    void stage(CopiedBy by, Stmts& before) {
        planned_ = plan_copies(group_, context_, row_, block_, used_, by, scattered_,
                               {cut_ ? &*cut_ : nullptr, first_of_cut_});
        std::erase_if(scattered_, [&](int v) { return !places_are_stored(v); });
        for (const StagedCopy& copy : planned_)
            if (!copy.in_memory) used_ += copy.bytes.constant();
        // Threads of a block are not done at the same time, and parts of a row are tasks of their own.
        if (by == CopiedBy::rows && !target().tasks_have_threads())
            shared_.plan(live_ranges_in_memory(group_, context_, planned_, local_, row_, scattered_),
                         rows().part(), context_, builder_);
        make_copies(0, before);
    }

    bool places_are_stored(int v) const {
        const Nest& nest = context_.grouping.nests[v];
        const ScalarNode& places = *nest.body->arguments[scatter_form(nest)->factor];
        const Value& own = value(places.operand.value());
        return own.storage != Value::Storage::staged ||
               (in_own_row(places, places.guards, nest, row_(nest), own.shape) &&
                std::any_of(planned_.begin(), planned_.end(),
                            [&](const StagedCopy& copy) { return copy.value == places.operand.value(); }));
    }

    // The copies that can be made once so many members are computed.
    void make_copies(std::size_t after, Stmts& body) {
        for (StagedCopy& copy : planned_) {
            if (copy.after != after) continue;
            copy.nest = copy_reads().copy(copy);
            shared_.take(copy);
            append(body, make_copy(copy, rows(), context_, builder_,
                                   [&](const Nest& nest) { return with_places(nest); }));
            shared_.keep(copy);
            notes_ += "  staged " + describe(*value(copy.value).node) + ", " + copy.bytes.text() +
                      (copy.in_memory ? " bytes of memory a row\n" : " bytes a task\n");
            copies_.emplace(copy.value, copy);
        }
    }

    TaskRows rows() const { return {task_, block_}; }

    // The loops of a member with the cut axis down to its part.
    Nest in_cut(int v, const Nest& nest) const {
        if (!cut_) return nest;
        const auto axis = static_cast<std::size_t>(cut_->axis.at(v));
        const Int inside = cut_->width > 1 ? Int::symbol("part", {0, cut_->width - 1}) : Int(0);
        Nest r = substitute(nest, {{nest.parallel[axis].variable.symbol_id(), first_of_cut_ + inside}});
        r.parallel[axis] = {inside, cut_->width_at(first_of_cut_)};
        return r;
    }

    // ---- segments

    const Target& target() const { return context_.target; }
    const Chooser& chooser() const { return chooser_of(context_.target); }

    void choose_tasks() {
        const auto time = [&](const TaskPlan& plan) {
            return predicted_time(group_, context_, builder_.short_text, plan);
        };
        if (!plan_) plan_ = chooser().tasks(group_, context_, row_, time);
        block_ = plan_->rows;
        cut_ = plan_->cut;
        used_ = chooser().bytes_in_turns(group_, context_, block_);
    }

    bool is_local(int v) {
        const Type type = value(v).stored_type();
        if (context_.leaves_group(v)) return false;
        std::int64_t count = block_;
        for (std::size_t d = 1; d < type.shape.size(); ++d) {
            const bool is_cut = cut_ && cut_->axis.at(v) == static_cast<int>(d);
            if (!is_cut && !type.shape[d].is_constant()) return false;
            count *= is_cut ? cut_->width : type.shape[d].constant();
        }
        const std::int64_t bytes = count * bytes_of(type.dtype);
        if (used_ + bytes > context_.target.local_bytes) return false;
        used_ += bytes;
        return true;
    }

    void number(Segment& segment, const Int& tasks) {
        count_ = segment.tasks = tasks;
        number_ = segment.task = bounded("task", tasks);
    }

    Segment row_segment() {
        choose_tasks();
        builder_.begin_segment();
        Segment segment;
        segment.title = title_;
        const Int parts = cut_ ? cut_->parts() : 1;
        number(segment, ceildiv(group_.extent, block_) * parts);
        task_ = floordiv(segment.task, parts);
        if (cut_) first_of_cut_ = mod(segment.task, parts) * cut_->width;
        segment.body = members();
        if (cut_) segment.parts = parts_of_results();
        notes_ +=
            "  tasks of " + std::to_string(block_) + (block_ == 1 ? " row" : " rows") + " of the first axis";
        if (cut_)
            notes_ +=
                ", " + std::to_string(cut_->width) + " of " + std::to_string(cut_->extent) + " of the second";
        notes_ += "\n";
        return segment;
    }

    // What a task has of the buffers that it writes: a task that read more of them would read what others
    // are writing.
    std::map<int, std::vector<Part>> parts_of_results() {
        std::map<int, std::vector<Part>> parts;
        for (const int v : group_.values) {
            if (local_.contains(v)) continue;
            const Type type = value(v).stored_type();
            for (const int buffer : context_.buffers_to_write(v))
                parts[builder_.global(buffer, type.dtype, type.shape, true)] = {rows().part(),
                                                                                part_of_cut(v)};
        }
        return parts;
    }

    // Of a value, along the axis that is cut.
    Part part_of_cut(int v) const {
        return {static_cast<std::size_t>(cut_->axis.at(v)), first_of_cut_, cut_->width};
    }

    // Rows whose keys begin among those of a task, one at a time; the others stay as they are.
    Segment changed_rows_segment(int list) {
        builder_.begin_segment();
        constexpr std::int64_t keys_of_task = 64;
        const Type type = value(list).stored_type();
        const int sorted = context_.in_memory(list, builder_);
        const Int count = type.shape[0], last_key = max(0, count - 1);
        Segment segment;
        segment.title = title_;
        number(segment, ceildiv(count, keys_of_task));
        const IntRange places{0, std::max<std::int64_t>(0, count.range().high - 1)},
            rows{0, std::max<std::int64_t>(0, group_.extent.range().high - 1)};
        const Int place = Int::symbol("place", places), begin = segment.task * keys_of_task;
        const Int row = Int::symbol("row", rows), before = Int::symbol("before", rows),
                  last = Int::symbol("last", {0, count.range().high});
        const auto key = [&](const Int& at) {
            return scalar_cast(DType::int64, place_read(type.dtype, sorted, {at}));
        };
        block_ = 1;
        task_ = row;
        parts_[list] = {place, last};
        Stmts each = ask_for_rows(group_, place, last_key, key, context_, builder_);
        each.push_back(let(row, key(place), group_.extent));
        each.push_back(let(before, key(max(place - 1, 0)), group_.extent));
        Stmts body{search(last, sorted, place + 1, count, row + 1, 1)};
        append(body, members());
        // The first place of all, or another row than before.
        each.push_back(when({{row - before - min(place, 1), 0, group_.extent}}, std::move(body)));
        segment.body = {
            loop(place, begin, min(begin + keys_of_task, count), Binding::serial, std::move(each))};
        notes_ += "  rows of the first axis that have keys, one at a time\n";
        return segment;
    }

    Stmts members() {
        Stmts body;
        for (const int v : group_.values) {
            if (!is_local(v)) continue;
            const Type type = value(v).stored_type();
            Shape extents = type.shape;
            std::vector<Part> parts;
            if (!extents.empty()) {
                extents = rows().shape(std::move(extents));
                parts.push_back(rows().part());
            }
            if (cut_) {
                parts.push_back(part_of_cut(v));
                extents[parts.back().axis] = cut_->width;
            }
            local_[v] = builder_.scratch(Place::Scope::local, type.dtype, extents, std::move(parts));
            body.push_back(declare(local_[v]));
        }
        if (block_ == 1 && !cut_) scattered_ = scattered_members(group_, context_, used_);
        for (std::size_t i = 0; i < scattered_.size(); ++i) notes_ += "  zeros are skipped\n";
        stage(cut_ ? CopiedBy::parts : CopiedBy::rows, body);
        for (std::size_t i = 0; i < group_.values.size();) {
            const std::size_t several = one_loop(i);
            const std::optional<Stmts> all = scheduled_together(i, several);
            append(body, all ? *all : scheduled(group_.values[i]));
            for (const std::size_t end = all ? i + several : i + 1; i < end;) make_copies(++i, body);
        }
        return body;
    }

    Member member_of(int v) {
        const Nest nest = rows().cut(in_cut(v, nest_for(v)));
        Member member = finish_member(v, with_places(nest), nest.parallel);
        member.scattered = scattered_.contains(v);
        return member;
    }

    Stmts scheduled(int v) {
        const Member member = member_of(v);
        Stmts body{comment_of(*value(v).node)};
        if (const std::optional<RunForm> form = run_form(context_.grouping.nests[v])) {
            const int keys = form->keys.value();
            const auto [part, fresh] = parts_.try_emplace(keys);
            if (fresh)
                part->second =
                    find_part(context_.in_memory(keys, builder_), rows(), group_.extent, builder_, body);
            append(body, schedule_runs(member, with_places(nest_for(v)), rows(), part->second, builder_));
        } else if (!target().tasks_have_threads() && adds_at_places(context_.grouping.nests[v])) {
            append(body, schedule_puts(member));
        } else if (is_order(member.nest.combine)) {
            append(body, schedule_order(member, {number_, count_, used_}, context_, builder_));
        } else if (const std::vector<Member> phases = members_by_phase(member); !phases.empty()) {
            for (const Member& phase : phases) append(body, scheduled(phase));
            notes_ += "  results by their remainders, in " + std::to_string(phases.size()) +
                      (phases.size() == 1 ? " part\n" : " parts\n");
        } else {
            append(body, scheduled(member));
        }
        body.push_back(barrier());
        return body;
    }

    Stmts scheduled(const Member& member) {
        if (member.nest.combine == Combine::none)
            return schedule_pointwise(member, context_.target, builder_);
        Stmts body = schedule_reduce(member, context_.target, builder_);
        for (const Destination& d : member.destinations)
            BITALE_CHECK(target().tasks_have_threads() || !stores_under_guards(body, d.place),
                         "results of a reduction are stored where its guards hold alone");
        return body;
    }

    // So many members from this one on that one loop may compute.
    std::size_t one_loop(std::size_t first) const {
        const std::vector<int>& list = group_.values;
        const int shared = value(list[first]).together;
        const Combine other = position_or_best(nest_for(list[first]).combine);
        std::size_t end = first + 1;
        while (shared >= 0 && end < list.size() && value(list[end]).together == shared) ++end;
        if (end == first + 1 && end < list.size() && other != Combine::none &&
            nest_for(list[end]).combine == other)
            ++end;
        return end - first;
    }

    std::optional<Stmts> scheduled_together(std::size_t first, std::size_t count) {
        if (count < 2) return {};
        std::vector<Member> members;
        members.reserve(count);
        Stmts body;
        for (std::size_t k = first; k < first + count; ++k) {
            members.push_back(member_of(group_.values[k]));
            body.push_back(comment_of(*value(group_.values[k]).node, k > first ? "and " : ""));
        }
        std::optional<Stmts> all = schedule_together(std::move(members), context_.target, builder_);
        if (!all) return {};
        append(body, *std::move(all));
        body.push_back(barrier());
        return body;
    }

    Member finish_member(int v, Nest nest, const std::vector<Loop>& parallel) {
        Member member;
        member.tree = context_.grouping.trees[v];
        std::vector<Int> whole = variables_of(parallel);
        if (!value(v).shape.empty()) whole = rows().whole(std::move(whole));
        if (cut_) {
            Int& cut = whole[cut_->axis.at(v)];
            cut = cut + first_of_cut_;
        }
        if (const auto at = local_.find(v); at != local_.end())
            member.destinations.push_back({at->second, whole});
        const Type type = value(v).stored_type();
        if (!local_.contains(v))
            for (const int buffer : context_.buffers_to_write(v))
                member.destinations.push_back({builder_.global(buffer, type.dtype, type.shape, true), whole});
        member.past = target().stores_read_lines && !local_.contains(v) && member.destinations.size() == 1 &&
                      leaves_caches(group_, context_, v);
        member.nest = std::move(nest);
        return member;
    }

    // A reduction in chunks while its segment is made.
    struct Chunked {
        int value = 0, place = -1;  // the place of the partial results
        Member member;
        std::vector<Int> at;  // where results belong, over the loops of the member's nest
    };

    // Partial results lie as they are computed, with neighbouring channels side by side.
    Chunked chunked(int v, const Int& row, const Int& chunks) {
        const Nest& own = context_.grouping.nests[v];
        Chunked r;
        r.value = v;
        r.member.tree = context_.grouping.trees[v];
        Type partial{accumulator_of(own), {chunks}};
        for (const Loop& l : with_channels_last(nest_for(v), own).parallel) partial.shape.push_back(l.extent);
        const int buffer = context_.new_buffer(partial, title_of(*value(v).node) + " (parts)",
                                               "partial results of a reduction that is cut into chunks",
                                               BufferInfo::Role::partial_sums);
        r.place = builder_.global(buffer, partial.dtype, partial.shape, true);
        Nest inside = nest_for(v);
        const std::uint64_t id = inside.reduced[0].variable.symbol_id();
        if (id) inside = substitute(inside, {{id, row}});
        inside.reduced[0] = {row, 1};
        const Nest plain = with_places(inside);
        r.at = variables_of(plain.parallel);
        r.member.nest = with_channels_last(plain, own);
        if (target().has_vectors() && !r.member.nest.lets.empty() && adds_products(r.member.nest))
            r.member.nest = walking_forward(r.member.nest, r.at);
        return r;
    }

    void split(Phase& first, Phase& second) {
        const int front = group_.values[0];
        const ReductionTree tree = context_.grouping.trees[front];
        const Int extent = context_.grouping.nests[front].reduced[0].extent;
        const Int chunks = ceildiv(extent, tree.chunk);

        builder_.begin_segment();
        Segment segment;
        segment.title = title_ + " (chunks)";
        // The iterations of the split loop play the part of rows: staged copies hold one of them at a time.
        const Int row = Int::symbol("row", {0, std::max<std::int64_t>(0, extent.range().high - 1)});
        task_ = row;
        block_ = 1;
        Stmts per_row;
        const std::int64_t beside =
            chooser().bytes_beside_copies(context_.grouping.nests[front], value(front).shape, tree);
        used_ += beside;
        if (beside <= target().local_bytes / 2) stage(CopiedBy::chunks, per_row);
        std::vector<Chunked> reductions;
        for (const int v : group_.values) reductions.push_back(chunked(v, row, chunks));
        const Chunked& only = reductions.front();
        segment.tasks = chunks;
        segment.task = bounded("chunk", segment.tasks);
        std::optional<Stmts> whole;
        if (copies_.empty() && reductions.size() == 1)
            whole = chooser().chunks(only.member, target(), builder_, only.place, row, extent, segment);
        if (whole) {
            segment.body = *std::move(whole);
        } else if (sums_columns(reductions, {row, extent}, segment)) {
            notes_ += "  rows of bytes as vectors\n";
        } else {
            const Int begin = segment.task * tree.chunk;
            Stmts after;
            for (const Chunked& r : reductions) {
                SplitReduce parts =
                    schedule_split(r.member, context_.target, builder_, r.place, segment.task);
                if (!target().threads_hide_waits)
                    append(per_row, ask_ahead(r.member.nest, row, extent, builder_));
                append(per_row, std::move(parts.inside));
                per_row.push_back(barrier());
                append(segment.body, std::move(parts.before));
                append(after, std::move(parts.after));
            }
            segment.body.push_back(
                loop(row, begin, min(begin + tree.chunk, extent), Binding::serial, std::move(per_row)));
            segment.body.push_back(barrier());
            append(segment.body, std::move(after));
        }
        first.segments.push_back(std::move(segment));
        for (const Chunked& r : reductions) {
            second.segments.push_back(sum_of_chunks(r, chunks));
            const ReductionTree& own = r.member.tree;
            notes_ += "  reduction over " + extent.text() + " in parts of " + own.chunk.text() +
                      (own.by_rows ? " whole rows" : "") + (own.lanes > 1 ? ", 16 lanes" : "") +
                      ", combined in the second phase\n";
        }
    }

    bool sums_columns(const std::vector<Chunked>& reductions, const Loop& rows, Segment& segment) {
        std::vector<SumInChunks> sums;
        sums.reserve(reductions.size());
        for (const Chunked& r : reductions) sums.push_back({&r.member, r.place});
        return target().has_vectors() && copies_.empty() &&
               schedule_chunks_of_columns(sums, rows, builder_, segment);
    }

    Segment sum_of_chunks(const Chunked& r, const Int& chunks) {
        builder_.begin_segment();
        const Value& own = value(r.value);
        Segment last;
        last.title = title_of(*own.node) + " (sum of chunks)";
        Member whole{r.member.nest, {}, r.member.tree};
        const Type type = own.stored_type();
        for (const int b : context_.buffers_to_write(r.value))
            whole.destinations.push_back({builder_.global(b, type.dtype, type.shape, true), r.at});
        last.tasks = tasks_of_finish(context_.target, whole, builder_);
        last.task = bounded("task", last.tasks);
        last.body = schedule_finish(whole, context_.target, builder_, r.place, chunks, last.task);
        return last;
    }

    const Group& group_;
    const SegmentContext& context_;
    KernelBuilder& builder_;
    std::string& notes_;
    std::optional<TaskPlan> plan_;  // nothing: it is to be chosen
    std::string title_;
    const RowOf row_ = [split = group_.split](const Nest& nest) {
        if (split) return nest.reduced[0];
        return nest.parallel.empty() ? Loop{0, 1} : nest.parallel[0];
    };
    Int number_, count_;  // of the task, among so many that run beside each other
    Int task_;            // which rows it has
    std::int64_t block_ = 1;
    std::optional<AxisCut> cut_;
    Int first_of_cut_;
    std::int64_t used_ = 0;     // bytes of scratch
    std::map<int, int> local_;  // values to scratch places
    std::vector<StagedCopy> planned_;
    SharedBuffers shared_;
    std::map<int, StagedCopy> copies_;  // those that are made
    std::map<int, RunPart> parts_;      // of the lists of keys, for the task's rows
    std::set<int> scattered_;           // members that skip the zeros of a factor
};

}  // namespace

void schedule_group(const Group& group, const SegmentContext& context, KernelBuilder& builder, Phase& first,
                    Phase& second, std::string& notes, std::optional<TaskPlan> plan) {
    SegmentScheduler(group, context, builder, notes, std::move(plan)).run(first, second);
}

}  // namespace bitale
