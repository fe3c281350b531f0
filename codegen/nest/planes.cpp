#include "codegen/nest/planes.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "codegen/nest/walk.h"

namespace bitale {

bool in_guards(const Nest& nest, std::uint64_t id) {
    const auto guarded = [&](const std::vector<Guard>& guards) {
        return std::any_of(guards.begin(), guards.end(), [&](const Guard& g) { return depends_on(g, id); });
    };
    if (guarded(nest.guards)) return true;
    const auto part = [&](const ScalarNode& s) { return guarded(s.guards); };
    return any_part(nest.body, part) || std::any_of(nest.lets.begin(), nest.lets.end(), [&](const Let& l) {
               return depends_on(l.value, id) || depends_on(l.extent, id);
           });
}

std::int64_t divided_by(const Nest& full, const Loop& loop, const ShapeOf& shape_of) {
    const std::uint64_t id = loop.variable.symbol_id();
    if (!id || !loop.extent.is_constant() || in_guards(full, id)) return 0;
    const std::int64_t extent = loop.extent.constant();
    std::int64_t least = extent;
    bool plain = true;
    const auto look = [&](const Int& x) {
        for (const Int::Term& t : x.terms())
            for (const AtomPtr& a : t.atoms) {
                if (a->kind == Atom::Kind::symbol || !(depends_on(a->a, id) || depends_on(a->b, id)))
                    continue;
                const bool by_number = a->kind == Atom::Kind::floordiv && a->a.symbol_id() == id &&
                                       a->b.is_constant() && a->b.constant() > 1 &&
                                       extent % a->b.constant() == 0;
                plain = plain && by_number;
                if (by_number) least = std::min(least, a->b.constant());
            }
    };
    for_each_read(full.body, [&](const ScalarNode& s) { look(offset_of(s, shape_of)); });
    for_each_index(full.body, look);
    return plain && least < extent ? least : 0;
}

Nest with_results_in_planes(Nest nest, const ShapeOf& shape_of) {
    for (std::size_t i = 0; i < nest.parallel.size();) {
        const Loop old = nest.parallel[i];
        const std::int64_t length = divided_by(nest, old, shape_of);
        if (length == 0) {
            ++i;
            continue;
        }
        const Loop outer = make_loop("r", old.extent.constant() / length), inner = make_loop("r", length);
        nest = substitute(nest, {{old.variable.symbol_id(), outer.variable * length + inner.variable}});
        nest.parallel[i] = inner;
        nest.parallel.insert(nest.parallel.begin() + static_cast<std::ptrdiff_t>(i), outer);
    }
    return nest;
}

}  // namespace bitale
