#include "codegen/schedule/collapse.h"

#include <algorithm>

#include "codegen/nest/walk.h"

namespace bitale {

bool collapses(const Group& group, const Values& values) {
    const auto value = [&](int v) -> const Value& { return values.list[v]; };
    const Value& first = value(group.values[0]);
    if (first.shape.empty()) return false;
    for (const int v : group.values) {
        const Nest nest = fully_composed_nest(values, v);
        if (nest.combine != Combine::none || !(value(v).shape == first.shape)) return false;
        if (!nest.guards.empty() || !nest.lets.empty()) return false;
        const Int point = Int::symbol("point", {0, IntRange::highest});
        const Nest flat = flattened(nest, point);
        bool linear = true;
        for_each_read(flat, [&](const ScalarNode& s) {
            Int offset = 0;
            const Shape& shape = value(s.operand.value()).shape;
            for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + s.at[d];
            linear = linear && s.guards.empty() &&
                     (offset.is_constant() || offset == point || offset == point + offset.constant_term());
            const bool member =
                std::find(group.values.begin(), group.values.end(), s.operand.value()) != group.values.end();
            linear = linear && (!member || offset == point);
        });
        const bool numbered = any_part(flat.body, [](const ScalarNode& s) {
            return s.kind == ScalarNode::Kind::index || s.kind == ScalarNode::Kind::select;
        });
        if (!linear || numbered) return false;
    }
    return true;
}

Nest flattened(const Nest& nest, const Int& point) {
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

}  // namespace bitale
