#include "codegen/nest/operations.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "codegen/nest/phases.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/puts.h"
#include "codegen/nest/runs.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

using Loops = std::set<std::size_t>;  // by position: parallel ones, then reduced ones

class Counter {
  public:
    explicit Counter(const Nest& nest) {
        for (const std::vector<Loop>* list : {&nest.parallel, &nest.reduced})
            for (const Loop& l : *list) {
                for (const AtomPtr& a : symbols_of(l.variable)) by_symbol_[a->id] = {extents_.size()};
                extents_.push_back(l.extent);
            }
        // Operands of a part come before it.
        for (const Let& let : nest.lets) {
            parts(let.value);
            for (const AtomPtr& a : symbols_of(let.symbol)) by_symbol_[a->id] = by_part_.at(let.value.get());
        }
        for (const Guard& guard : nest.guards)
            if (const std::optional<Multiple> multiple = asks_for_multiple(guard)) {
                rare_.push_back({{}, multiple->divisor});
                add(multiple->x, rare_.back().loops);
            }
        const std::optional<PutForm> puts = put_form(nest);
        if (puts) {
            parts(puts->key);
            parts(puts->value);
        } else {
            parts(nest.body);
        }
        if (nest.combine != Combine::none) {
            Loops all;
            // Of keys each belongs to one row, or place; along a prefix each place adds one element; a row
            // is put in order as a whole.
            const std::size_t end = extents_.size() - (is_prefix(nest) ? 1 : 0);
            for (std::size_t k = sums_runs(nest) ? 1 : 0; k < end; ++k) all.insert(k);
            if (is_order(nest.combine)) all.erase(nest.parallel.size() - 1);
            if (puts) all.erase(puts->place);
            cost_[all] += 1;
        }
    }

    Int total() const {
        Int sum = 0;
        for (const auto& [loops, cost] : cost_) {
            Int points = cost;
            for (const std::size_t k : loops) points = points * extents_[k];
            for (const Rare& rare : rare_)
                if (std::includes(loops.begin(), loops.end(), rare.loops.begin(), rare.loops.end()))
                    points = floordiv(points, rare.divisor);
            sum = sum + points;
        }
        return sum;
    }

  private:
    struct Rare {  // one in `divisor` of the points of the loops
        Loops loops;
        std::int64_t divisor = 1;
    };

    void parts(const Scalar& scalar) {
        for_each_part(scalar, [&](const ScalarNode& s) {
            if (by_part_.contains(&s)) return;
            Loops loops;
            for (const Scalar& a : s.arguments) add(by_part_.at(a.get()), loops);
            if (s.otherwise) add(by_part_.at(s.otherwise.get()), loops);
            for (const Int& x : s.at) add(x, loops);
            if (s.kind == ScalarNode::Kind::index) add(s.index, loops);
            for (const Guard& g : s.guards)
                for (const Int* x : {&g.value, &g.low, &g.high}) add(*x, loops);
            if (s.kind == ScalarNode::Kind::apply)
                cost_[loops] += s.op->map->cost;
            else if (s.kind == ScalarNode::Kind::cast || s.kind == ScalarNode::Kind::select)
                cost_[loops] += 1;
            by_part_[&s] = std::move(loops);
        });
    }
    void add(const Int& x, Loops& to) const {
        for (const AtomPtr& a : symbols_of(x))
            if (const auto at = by_symbol_.find(a->id); at != by_symbol_.end()) add(at->second, to);
    }
    static void add(const Loops& from, Loops& to) { to.insert(from.begin(), from.end()); }

    std::vector<Int> extents_;
    std::map<std::uint64_t, Loops> by_symbol_;
    std::unordered_map<const ScalarNode*, Loops> by_part_;
    std::map<Loops, std::int64_t> cost_;
    std::vector<Rare> rare_;  // points that the guards of the nest ask for
};

}  // namespace

Int operations_of(const Nest& nest) { return Counter(nest).total(); }

}  // namespace bitale
