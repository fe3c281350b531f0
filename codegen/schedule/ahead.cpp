#include "codegen/schedule/ahead.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "codegen/nest/compose.h"

namespace bitale {

namespace {

// As much is on its way from memory at a time; longer rows are fetched by the machine itself.
constexpr std::int64_t on_their_way = 4096, longest_row = 8192, farthest = 8;

bool mentions(const Scalar& s, const std::set<std::uint64_t>& symbols) {
    bool found = false;
    for_each_read(s, [&](const ScalarNode& read) {
        for (const Int& x : read.at)
            for (const std::uint64_t id : symbols) found = found || depends_on(x, id);
    });
    return found;
}

}  // namespace

Stmts ask_ahead(const Nest& nest, const Int& row, const Int& rows, const KernelBuilder& builder) {
    Stmts found;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        const Place& place = builder.ir.places[static_cast<std::size_t>(s.operand)];
        if (!found.empty() || place.scope != Place::Scope::global || s.at.size() < 2) return;
        std::int64_t bytes = bytes_of(place.dtype);
        for (std::size_t d = 1; d < place.extents.size(); ++d) {
            if (!place.extents[d].is_constant()) return;
            bytes *= place.extents[d].constant();
        }
        const bool by_let = std::any_of(nest.lets.begin(), nest.lets.end(), [&](const Let& l) {
            return depends_on(s.at[0], l.symbol.symbol_id()) && mentions(l.value, {row.symbol_id()});
        });
        if (!by_let || bytes <= 0 || bytes > longest_row) return;
        const std::int64_t distance = std::clamp<std::int64_t>(on_their_way / bytes, 1, farthest);
        Substitution later{{row.symbol_id(), max(0, min(row + distance, rows - 1))}};
        for (const Let& l : nest.lets) {
            const Int symbol = Int::symbol("later", l.symbol.range());
            found.push_back(let(symbol, substitute(l.value, later), substitute(l.extent, later)));
            later[l.symbol.symbol_id()] = symbol;
        }
        std::vector<Int> at(s.at.size(), 0);
        at[0] = substitute(s.at[0], later);
        found.push_back(ask(s.operand, std::move(at), bytes));
    });
    return found;
}

}  // namespace bitale
