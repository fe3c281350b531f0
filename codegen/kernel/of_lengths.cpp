#include "codegen/kernel/of_lengths.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/nest/walk.h"

namespace bitale {

namespace {

class Keeper {
  public:
    Keeper(KernelIR& kernel, const std::set<std::uint64_t>& lengths) : kernel_(kernel), lengths_(lengths) {}

    void run(Segment& segment) {
        kept_.clear();
        replace_in(segment.body);
        Stmts body;
        for (const auto& [value, place] : kept_) {
            body.push_back(declare(place));
            body.push_back(set(place, {}, value));
        }
        append(body, std::move(segment.body));
        segment.body = std::move(body);
    }

  private:
    enum class On : std::uint8_t { nothing, lengths, more };
    using Depends = std::unordered_map<const ScalarNode*, On>;

    void replace_in(Stmts& body) {
        for (Stmt& s : body) {
            // Printed in forms of their own, which know the scalars that they find.
            if (s.binding == Binding::lanes || s.binding == Binding::turned) continue;
            if (s.kind == Stmt::Kind::set || s.kind == Stmt::Kind::accumulate)
                s.value = s.fused ? with_factors_replaced(*s.value) : replaced(s.value);
            replace_in(s.body);
        }
    }

    Scalar with_factors_replaced(const ScalarNode& product) {
        auto r = std::make_shared<ScalarNode>(product);
        for (Scalar& factor : r->arguments) factor = replaced(factor);
        return r;
    }

    // The largest parts that lengths determine, read from where they are kept.
    Scalar replaced(const Scalar& value) {
        if (!any_part(value, [](const ScalarNode& part) { return part.kind == ScalarNode::Kind::index; }))
            return value;
        const Depends depends = dependences(value);
        const bool any = std::any_of(depends.begin(), depends.end(),
                                     [](const auto& part) { return part.second == On::lengths; });
        std::unordered_map<const ScalarNode*, Scalar> made;
        return any ? replaced(value, depends, made) : value;
    }

    Scalar replaced(const Scalar& value, const Depends& depends,
                    std::unordered_map<const ScalarNode*, Scalar>& made) {
        if (!value || depends.at(value.get()) == On::nothing) return value;
        if (const auto at = made.find(value.get()); at != made.end()) return at->second;
        if (depends.at(value.get()) == On::lengths) return made[value.get()] = kept(value);
        auto r = std::make_shared<ScalarNode>(*value);
        for (Scalar& a : r->arguments) a = replaced(a, depends, made);
        r->otherwise = replaced(r->otherwise, depends, made);
        return made[value.get()] = r;
    }

    Depends dependences(const Scalar& value) const {
        Depends depends;
        for_each_part(value, [&](const ScalarNode& part) {
            On own = On::more;
            switch (part.kind) {
                case ScalarNode::Kind::constant: own = On::nothing; break;
                case ScalarNode::Kind::index: own = of_index(part.index); break;
                case ScalarNode::Kind::cast:
                case ScalarNode::Kind::apply:
                    own = On::nothing;
                    for (const Scalar& a : part.arguments) own = std::max(own, depends.at(a.get()));
                    break;
                case ScalarNode::Kind::read:
                case ScalarNode::Kind::select: break;
            }
            depends[&part] = own;
        });
        return depends;
    }

    On of_index(const Int& x) const {
        if (x.is_constant()) return On::nothing;
        const std::vector<AtomPtr> symbols = symbols_of(x);
        const bool known = std::all_of(symbols.begin(), symbols.end(),
                                       [&](const AtomPtr& symbol) { return lengths_.contains(symbol->id); });
        return known ? On::lengths : On::more;
    }

    Scalar kept(const Scalar& value) {
        auto at = std::find_if(kept_.begin(), kept_.end(),
                               [&](const auto& other) { return same_scalars(other.first, value); });
        if (at == kept_.end()) {
            kernel_.places.push_back({Place::Scope::private_, value->dtype, {}, -1, true});
            at = kept_.insert(kept_.end(), {value, static_cast<int>(kernel_.places.size()) - 1});
        }
        return place_read(value->dtype, at->second, {});
    }

    KernelIR& kernel_;
    const std::set<std::uint64_t>& lengths_;
    std::vector<std::pair<Scalar, int>> kept_;
};

}  // namespace

void keep_values_of_lengths(KernelIR& kernel, const std::set<std::uint64_t>& lengths) {
    Keeper keeper(kernel, lengths);
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments) keeper.run(segment);
}

}  // namespace bitale
