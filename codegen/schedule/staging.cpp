#include "codegen/schedule/staging.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

using Reads = std::map<int, std::vector<std::pair<Int, Scalar>>>;

class CopyPlanner {
  public:
    CopyPlanner(const Group& group, const SegmentContext& context, std::int64_t block, bool of_members,
                const std::set<int>& scattered)
        : group_(group), context_(context), block_(block), of_members_(of_members), scattered_(scattered) {}

    // What the members, and the copies themselves, read of staged values when those that are refused a copy
    // are inlined.
    Reads staged_reads(const RowOf& row, const std::set<int>& refused) {
        Reads reads;
        factors_.clear();
        std::vector<int> copied;
        const auto look = [&](const Nest& nest, const Int& own, bool inside) {
            const bool padded = wants_padding(nest);
            for_each_read(nest, [&](const ScalarNode& s) {
                if (value(s.operand).storage != Value::Storage::staged) {
                    if (padded && !s.guards.empty() && !refused.contains(s.operand)) {
                        reads[s.operand].emplace_back(own, std::make_shared<ScalarNode>(s));
                        factors_.insert(s.operand);
                    }
                    return;
                }
                if (!reads.contains(s.operand) && !refused.contains(s.operand)) copied.push_back(s.operand);
                auto read = std::make_shared<ScalarNode>(s);
                if (inside) {
                    read->guards.clear();
                    read->otherwise = nullptr;
                }
                reads[s.operand].emplace_back(own, std::move(read));
                if (padded) factors_.insert(s.operand);
            });
        };
        const auto kept = [&](int operand) { return !refused.contains(operand); };
        for (const int v : group_.values) {
            const Nest nest =
                refused.empty() ? context_.grouping.nests[v] : composed_nest(context_.values, v, kept);
            look(nest, row(nest), scattered_.contains(v));
        }
        while (!copied.empty()) {
            const int v = copied.back();
            copied.pop_back();
            const Nest nest = composed_nest(context_.values, v, kept);
            if (!nest.parallel.empty()) look(nest, nest.parallel[0].variable, false);
        }
        return reads;
    }

    // What is computed where a sum of products reads it, or guarded there, costs more than memory.
    void put_into_memory(StagedCopy& copy) const {
        copy.in_memory = factors_.contains(copy.value);
        copy.scratch = copy.extents;
    }

    // Whether every read stays in its own row; then which part of the index space the copy has.
    bool fits(const std::vector<std::pair<Int, Scalar>>& reads, StagedCopy& copy) const {
        const Shape& shape = value(copy.value).shape;
        if (shape.empty()) return false;
        for (std::size_t d = 1; d < shape.size(); ++d)
            if (!shape[d].is_constant()) return false;
        const std::int64_t most = context_.target.local_bytes;
        bool widen = true;
        Scalar outside;
        std::vector<IntRange> ranges(shape.size(), IntRange{0, 0});
        for (std::size_t d = 1; d < ranges.size(); ++d) ranges[d] = {0, shape[d].constant() - 1};
        for (const auto& entry : reads) {
            const Int& row = entry.first;
            const Scalar& read = entry.second;
            if (row.is_constant() || !(read->at[0] == row)) return false;
            for (std::size_t d = 1; d < ranges.size(); ++d) {
                // What no guard keeps inside is inside: at the latest the call compares the lengths.
                const bool guarded = std::any_of(read->guards.begin(), read->guards.end(),
                                                 [&](const Guard& g) { return g.value == read->at[d]; });
                if (!guarded) continue;
                const IntRange r = read->at[d].range();
                ranges[d] = {std::min(ranges[d].low, r.low), std::max(ranges[d].high, r.high)};
                if (ranges[d].low < -most || ranges[d].high > most) return false;
            }
            for (const Guard& g : read->guards) {
                bool own = false;  // not of the rows: the copy has no others
                for (std::size_t d = 1; d < read->at.size(); ++d)
                    own = own || (g.value == read->at[d] && g.low.is(0) && g.high == shape[d]);
                widen = widen && own;
            }
            if (read->otherwise) {
                widen = widen && read->otherwise->kind == ScalarNode::Kind::constant &&
                        (!outside || (outside->number == read->otherwise->number &&
                                      outside->integer == read->otherwise->integer));
                outside = read->otherwise;
            }
        }
        const bool wide = outside != nullptr && widen;
        copy.low.assign(shape.size(), 0);
        copy.extents = {shape[0]};
        for (std::size_t d = 1; d < ranges.size(); ++d) {
            copy.low[d] = wide ? ranges[d].low : 0;
            copy.extents.push_back(wide ? Int(ranges[d].high - ranges[d].low + 1) : shape[d]);
        }
        if (wide) copy.outside = outside;
        return true;
    }

    // The copy as a nest of its own over the (possibly wider) index space, reading the value. False if it
    // would need what a member of this group computes, and must not.
    bool write(StagedCopy& copy, const std::set<int>& refused) const {
        const Type type = value(copy.value).stored_type();
        copy.scratch.assign(copy.extents.begin() + (block_ == 1 ? 1 : 0), copy.extents.end());
        if (block_ != 1) copy.scratch[0] = block_;
        copy.bytes = count_of(copy.scratch).constant() * bytes_of(type.dtype);
        Nest nest;
        nest.dtype = type.dtype;
        std::vector<Int> at;
        std::vector<Guard> guards;
        // On a CPU the border is filled before, and the loops over what is inside have no guards.
        copy.filled = copy.outside && context_.target.kind != Target::Kind::cuda;
        for (std::size_t d = 0; d < copy.extents.size(); ++d) {
            const Loop l = make_loop("c", copy.filled ? type.shape[d] : copy.extents[d]);
            nest.parallel.push_back(l);
            at.push_back(copy.filled ? l.variable : l.variable + copy.low[d]);
            const bool wider = !copy.low[d].is(0) || !(copy.extents[d] == type.shape[d]);
            if (copy.outside && wider && !copy.filled) guards.push_back({at.back(), 0, type.shape[d]});
        }
        nest.body = scalar_read(type.dtype, copy.value, at, guards, guards.empty() ? nullptr : copy.outside);
        copy.nest = simplify(compose(nest, [&](int operand) -> const Nest* {
            const Value::Storage storage = value(operand).storage;
            const bool in =
                storage == Value::Storage::inlined ||
                (storage == Value::Storage::staged && (operand == copy.value || refused.contains(operand)));
            return in ? &value(operand).nest : nullptr;
        }));
        for_each_read(copy.nest, [&](const ScalarNode& s) {
            const auto member = std::find(group_.values.begin(), group_.values.end(), s.operand);
            if (member == group_.values.end()) return;
            copy.after = std::max(copy.after, static_cast<std::size_t>(member - group_.values.begin()) + 1);
        });
        return of_members_ || copy.after == 0;
    }

  private:
    // Each element that is summed with others is read many times, and a guard around a factor costs more than
    // its product: padding has to be in memory, even around what is there already.
    bool wants_padding(const Nest& nest) const {
        return context_.target.kind == Target::Kind::cpu && adds_products(nest);
    }

    const Value& value(int v) const { return context_.values.list[v]; }

    const Group& group_;
    const SegmentContext& context_;
    std::int64_t block_;
    bool of_members_;
    const std::set<int>& scattered_;
    std::set<int> factors_;  // read by sums of products
};

}  // namespace

Nest composed_nest(const Values& values, int v, const std::function<bool(int operand)>& copied) {
    return in_rows(exact_sum(simplify(compose(values.list[v].nest, [&](int operand) -> const Nest* {
        const Value& o = values.list[operand];
        const bool in =
            o.storage == Value::Storage::inlined || (o.storage == Value::Storage::staged && !copied(operand));
        return in ? &o.nest : nullptr;
    }))));
}

std::vector<StagedCopy> plan_copies(const Group& group, const SegmentContext& context, const RowOf& row,
                                    std::int64_t block, std::int64_t used, bool of_members,
                                    const std::set<int>& scattered) {
    CopyPlanner planner(group, context, block, of_members, scattered);
    std::set<int> refused;
    // Inlining a value that cannot be copied shows more reads of the others, so all are looked at again
    // whenever one is refused.
    for (;;) {
        std::vector<StagedCopy> copies;
        std::int64_t bytes = used;
        int refuse = -1;
        for (const auto& [v, reads] : planner.staged_reads(row, refused)) {
            StagedCopy copy;
            copy.value = v;
            const bool possible = planner.fits(reads, copy) && planner.write(copy, refused);
            if (possible && bytes + copy.bytes > context.target.local_bytes) planner.put_into_memory(copy);
            if (!possible || (bytes + copy.bytes > context.target.local_bytes && !copy.in_memory)) {
                refuse = v;
                break;
            }
            if (!copy.in_memory) bytes += copy.bytes;
            for (const StagedCopy& other : copies) {
                bool reads_it = false;
                for_each_read(copy.nest, [&](const ScalarNode& s) { reads_it |= s.operand == other.value; });
                if (reads_it) copy.after = std::max(copy.after, other.after);
            }
            copies.push_back(std::move(copy));
        }
        if (refuse < 0) return copies;
        refused.insert(refuse);
    }
}

}  // namespace bitale
