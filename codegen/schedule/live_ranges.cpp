#include "codegen/schedule/live_ranges.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "codegen/nest/positions.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Copies that wait for k members are made at 2 k, member k is computed at 2 k + 1.
class Lives {
  public:
    Lives(const Group& group, const SegmentContext& context, const std::vector<StagedCopy>& copies,
          const RowOf& row, const std::set<int>& scattered)
        : group_(group), context_(context), copies_(copies), row_(row), scattered_(scattered) {}

    std::vector<LiveRange> run(const std::map<int, int>& local) {
        for (const StagedCopy& copy : copies_) {
            if (!copy.in_memory) continue;
            const DType dtype = context_.values.list[static_cast<std::size_t>(copy.value)].node->type.dtype;
            begin({copy.value, true, made_at(copy), made_at(copy), {dtype, copy.scratch}});
        }
        for (std::size_t k = 0; k < group_.values.size(); ++k) {
            const int v = group_.values[k];
            const Value& value = context_.values.list[static_cast<std::size_t>(v)];
            if (local.contains(v) || context_.leaves_group(v) || value.shape.empty()) continue;
            // Maxima and their positions are computed together.
            const int first = computed_at(is_second_of_two(k) ? k - 1 : k);
            begin({v, false, first, computed_at(k), value.stored_type()});
        }
        for (const StagedCopy& copy : copies_)
            for_each_read(copy.nest,
                          [&](const ScalarNode& s) { read(s.operand.value(), true, made_at(copy)); });
        for (std::size_t k = 0; k < group_.values.size(); ++k)
            for (const std::size_t made : {k, is_second_of_two(k) ? k - 1 : k}) find_reads_of_member(k, made);
        return std::move(ranges_);
    }

  private:
    static int computed_at(std::size_t member) { return 2 * static_cast<int>(member) + 1; }
    static int made_at(const StagedCopy& copy) { return 2 * static_cast<int>(copy.after); }

    bool is_second_of_two(std::size_t k) const {
        if (k == 0) return false;
        const auto combine = [&](std::size_t member) {
            return context_.grouping.nests[static_cast<std::size_t>(group_.values[member])].combine;
        };
        return combine(k - 1) != Combine::none && combine(k) == position_or_best(combine(k - 1));
    }

    void begin(LiveRange range) {
        (range.is_copy ? copy_ : value_).emplace(range.value, ranges_.size());
        ranges_.push_back(std::move(range));
    }

    void read(int v, bool copy_too, int time) {
        const auto until = [&](const std::map<int, std::size_t>& those) {
            if (const auto at = those.find(v); at != those.end())
                ranges_[at->second].last = std::max(ranges_[at->second].last, time);
        };
        until(value_);
        if (copy_too) until(copy_);
    }

    // With the copies that are made once so many members are computed.
    void find_reads_of_member(std::size_t k, std::size_t members) {
        std::map<int, StagedCopy> made;
        for (const StagedCopy& copy : copies_)
            if (copy.after <= members) made.emplace(copy.value, copy);
        const int v = group_.values[k];
        for_each_read(CopyReads(context_.values, made).member(v, row_, scattered_.contains(v)),
                      [&](const ScalarNode& s) {
                          if (s.operand.is_copy())
                              read(s.operand.copy(), true, computed_at(k));
                          else
                              read(s.operand.value(), false, computed_at(k));
                      });
    }

    const Group& group_;
    const SegmentContext& context_;
    const std::vector<StagedCopy>& copies_;
    const RowOf& row_;
    const std::set<int>& scattered_;
    std::vector<LiveRange> ranges_;
    std::map<int, std::size_t> value_, copy_;  // which of ranges_
};

}  // namespace

std::vector<std::size_t> shared_buffers(const std::vector<LiveRange>& ranges) {
    std::vector<std::size_t> order(ranges.size()), slot(ranges.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return ranges[a].first < ranges[b].first; });
    std::vector<std::size_t> latest;  // of each slot, who was the last there
    for (const std::size_t s : order) {
        const auto is_free = [&](std::size_t other) {
            const LiveRange& before = ranges[other];
            return before.is_copy == ranges[s].is_copy && before.last < ranges[s].first &&
                   before.type.dtype == ranges[s].type.dtype && before.type.shape == ranges[s].type.shape;
        };
        const auto at = std::find_if(latest.begin(), latest.end(), is_free);
        slot[s] = static_cast<std::size_t>(at - latest.begin());
        if (at == latest.end())
            latest.push_back(s);
        else
            *at = s;
    }
    return slot;
}

std::vector<LiveRange> live_ranges_in_memory(const Group& group, const SegmentContext& context,
                                             const std::vector<StagedCopy>& copies,
                                             const std::map<int, int>& local, const RowOf& row,
                                             const std::set<int>& scattered) {
    return Lives(group, context, copies, row, scattered).run(local);
}

void SharedBuffers::plan(const std::vector<LiveRange>& ranges, const Part& part,
                         const SegmentContext& context, KernelBuilder& builder) {
    const std::vector<std::size_t> slot = shared_buffers(ranges);
    std::map<std::size_t, int> first;  // the value that has a slot first
    for (std::size_t s = 0; s < ranges.size(); ++s) {
        if (ranges[s].is_copy) {
            shared_by_copy_.emplace(ranges[s].value, slot[s]);
            continue;
        }
        const auto [at, is_first] = first.emplace(slot[s], ranges[s].value);
        if (is_first) continue;
        context.put_into_buffer_of(ranges[s].value, at->second);
        const int place = builder.global(context.buffer_to_read(ranges[s].value), ranges[s].type.dtype,
                                         ranges[s].type.shape, true);
        builder.ir.places[static_cast<std::size_t>(place)].parts = {part};
    }
}

void SharedBuffers::take(StagedCopy& copy) const {
    const auto slot = shared_by_copy_.find(copy.value);
    if (slot == shared_by_copy_.end()) return;
    if (const auto at = buffer_of_.find(slot->second); at != buffer_of_.end()) copy.buffer = at->second;
}

void SharedBuffers::keep(const StagedCopy& copy) {
    if (const auto slot = shared_by_copy_.find(copy.value); slot != shared_by_copy_.end())
        buffer_of_.emplace(slot->second, copy.buffer);
}

}  // namespace bitale
