#include "codegen/schedule/changed_part.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "codegen/nest/walk.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

using IsOld = std::function<bool(const ScalarNode&)>;

// Whether the value is the old element at the same place, where `held` guards hold.
bool keeps(const Scalar& s, const std::vector<Int>& identity, const std::vector<Guard>& held,
           const IsOld& is_old) {
    return s && s->kind == ScalarNode::Kind::read && s->at == identity && is_old(*s) &&
           std::all_of(s->guards.begin(), s->guards.end(), [&](const Guard& guard) {
               return std::find(held.begin(), held.end(), guard) != held.end();
           });
}

// The value where the guards hold.
Scalar without(const Scalar& scalar, const std::vector<Guard>& guards) {
    return rebuild(scalar, [&](std::shared_ptr<ScalarNode> s) -> Scalar {
        const std::size_t before = s->guards.size();
        std::erase_if(s->guards, [&](const Guard& guard) {
            return std::find(guards.begin(), guards.end(), guard) != guards.end();
        });
        if (before == 0 || !s->guards.empty()) return s;
        if (s->kind == ScalarNode::Kind::select) return s->arguments[0];
        s->otherwise = nullptr;
        return s;
    });
}

class Box {
  public:
    explicit Box(const Nest& nest) : nest_(nest) {
        for (const Loop& l : nest.parallel) {
            starts_.emplace_back(0);
            counts_.push_back(l.extent);
            is_cut_.push_back(false);
        }
        for (const Let& let : nest.lets)
            (moves(let.value) || moves(let.extent) ? inner_ : outer_).push_back(let);
    }

    // Whether the box is cut down to where the guard holds: then it holds in all of the box.
    bool cut(const Guard& guard) {
        for (std::size_t d = 0; d < nest_.parallel.size(); ++d) {
            const Loop& loop = nest_.parallel[d];
            const std::uint64_t id = loop.variable.symbol_id();
            if (!id || is_cut_[d] || !depends_on(guard.value, id)) continue;
            Int start = loop.variable - guard.value + guard.low;
            const Int count = guard.high - guard.low;
            if (moves(start) || moves(count) || !is_host_known(count) ||
                !lies_within(start, count, loop.extent))
                return false;
            starts_[d] = std::move(start);
            counts_[d] = count;
            return is_cut_[d] = true;
        }
        return false;
    }

    bool is_smaller() const { return std::find(is_cut_.begin(), is_cut_.end(), true) != is_cut_.end(); }

    ChangedPart around(const Scalar& body) const {
        ChangedPart part{{}, nest_, starts_};
        part.around.lets = outer_;
        part.around.body = scalar_integer(DType::int64, 0);
        part.nest.lets = inner_;
        Substitution inside;
        for (std::size_t d = 0; d < starts_.size(); ++d) {
            if (!is_cut_[d]) continue;
            part.nest.parallel[d] = make_loop("part", counts_[d]);
            inside[nest_.parallel[d].variable.symbol_id()] = starts_[d] + part.nest.parallel[d].variable;
        }
        part.nest.body = substitute(body, inside);
        for (Let& let : part.nest.lets) {
            let.value = substitute(let.value, inside);
            let.extent = substitute(let.extent, inside);
        }
        return part;
    }

  private:
    // Whether it changes from element to element.
    template <class X>
    bool moves(const X& x) const {
        const auto uses = [&](const Int& symbol) {
            return symbol.symbol_id() && depends_on(x, symbol.symbol_id());
        };
        return std::any_of(nest_.parallel.begin(), nest_.parallel.end(),
                           [&](const Loop& l) { return uses(l.variable); }) ||
               std::any_of(inner_.begin(), inner_.end(), [&](const Let& let) { return uses(let.symbol); });
    }

    bool is_host_known(const Int& x) const {
        return std::none_of(outer_.begin(), outer_.end(),
                            [&](const Let& let) { return depends_on(x, let.symbol.symbol_id()); });
    }

    // A first row that only the device knows is in range, by the check of whoever reads it.
    bool lies_within(const Int& start, const Int& count, const Int& extent) const {
        const bool is_first_row =
            std::any_of(outer_.begin(), outer_.end(), [&](const Let& let) { return let.symbol == start; });
        return start.non_negative() && (is_first_row || (start + count - extent).range().high <= 0);
    }

    const Nest& nest_;
    std::vector<Let> outer_, inner_;  // those that are the same for all elements, and the others
    std::vector<Int> starts_;
    Shape counts_;
    std::vector<bool> is_cut_;
};

}  // namespace

std::optional<ChangedPart> changed_part(const Nest& nest, const IsOld& is_old) {
    if (nest.combine != Combine::none || !nest.guards.empty()) return {};
    const std::vector<Int> identity = variables_of(nest.parallel);
    Box box(nest);
    // From the outermost choice on, as long as the old element is what it leaves.
    std::vector<Guard> held, cut;
    for (const ScalarNode* s = nest.body.get();
         !s->guards.empty() && keeps(s->otherwise, identity, held, is_old);) {
        for (const Guard& guard : s->guards) {
            held.push_back(guard);
            if (box.cut(guard)) cut.push_back(guard);
        }
        if (s->kind == ScalarNode::Kind::read) break;
        s = s->arguments[0].get();
    }
    if (!box.is_smaller()) return {};
    return box.around(without(nest.body, cut));
}

}  // namespace bitale
