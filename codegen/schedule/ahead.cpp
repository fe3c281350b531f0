#include "codegen/schedule/ahead.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// As much is on its way from memory at a time; longer rows are fetched by the machine itself.
constexpr std::int64_t on_their_way = 4096, longest_row = 8192, farthest = 16;

// By an index, or by where it is read.
bool varies_with_any(const Nest& nest, const std::vector<Loop>& loops, const Int& row) {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop& l) {
        if (!l.variable.symbol_id() || l.variable == row) return false;
        return std::any_of(nest.lets.begin(), nest.lets.end(), [&](const Let& let) {
            return varies(nest, let.value, l.variable) || depends_on(let.extent, l.variable.symbol_id());
        });
    });
}

// Where the nest reads first and last in a row of the place, whose number is the read's first index.
std::pair<std::vector<Int>, std::vector<Int>> part_of_row(const Nest& nest, const ScalarNode& read,
                                                          const Int& row) {
    Substitution first, last;
    for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
        for (const Loop& l : *loops)
            if (const std::uint64_t id = l.variable.symbol_id(); id && id != row.symbol_id()) {
                first[id] = 0;
                last[id] = l.extent - 1;
            }
    std::pair<std::vector<Int>, std::vector<Int>> r;
    for (const Int& x : read.at) {
        r.first.push_back(substitute(x, first));
        r.second.push_back(substitute(x, last));
    }
    return r;
}

// How many bytes that are at most, the part of a line of the cache before them included; 0 where nothing is
// known of it.
std::int64_t bytes_of_row(const Nest& nest, const ScalarNode& read, const Int& row, const Place& place) {
    constexpr std::int64_t line = 64;
    const auto [first, last] = part_of_row(nest, read, row);
    Int whole = 1, part = 0;
    for (std::size_t d = 1; d < place.extents.size(); ++d) {
        whole = whole * place.extents[d];
        part = part * place.extents[d] + last[d] - first[d];
    }
    if (!whole.is_constant()) return 0;
    const std::int64_t all = whole.constant() * bytes_of(place.dtype);
    const IntRange range = part.range();
    if (range.low < 0 || range.high >= whole.constant()) return all;
    return std::min(all, (range.high + 1) * bytes_of(place.dtype) + line - 1);
}

// Indices that the task computes itself are not there yet for later rows.
bool has_later_rows(const Nest& nest, const Int& row, const KernelBuilder& builder) {
    bool has = true;
    for (const Let& l : nest.lets)
        for_each_read(l.value, [&](const ScalarNode& s) {
            for (const Part& part : builder.ir.places[static_cast<std::size_t>(s.operand.place())].parts)
                has = has && !depends_on(s.at[static_cast<std::size_t>(part.axis)], row.symbol_id());
        });
    return has;
}

}  // namespace

Stmts ask_ahead(const Nest& nest, const Int& row, const Int& rows, const KernelBuilder& builder) {
    // Loops inside that of the rows have no iteration yet where a row is asked for.
    if (varies_with_any(nest, nest.parallel, row) || varies_with_any(nest, nest.reduced, row) ||
        !has_later_rows(nest, row, builder))
        return {};
    Stmts found;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        const Place& place = builder.ir.places[static_cast<std::size_t>(s.operand.place())];
        if (!found.empty() || place.scope != Place::Scope::global || s.at.size() < 2) return;
        const std::int64_t bytes = bytes_of_row(nest, s, row, place);
        const bool by_let = std::any_of(nest.lets.begin(), nest.lets.end(), [&](const Let& l) {
            return depends_on(s.at[0], l.symbol.symbol_id()) && varies(nest, l.value, row);
        });
        if (!by_let || bytes <= 0 || bytes > longest_row) return;
        const std::int64_t distance = std::clamp<std::int64_t>(on_their_way / bytes, 1, farthest);
        Substitution later{{row.symbol_id(), max(0, min(row + distance, rows - 1))}};
        for (const Let& l : nest.lets) {
            const Int symbol = Int::symbol("later", l.symbol.range());
            found.push_back(let(symbol, substitute(l.value, later), substitute(l.extent, later)));
            later[l.symbol.symbol_id()] = symbol;
        }
        std::vector<Int> at = part_of_row(nest, s, row).first;
        for (Int& x : at) x = substitute(x, later);
        found.push_back(prefetch(s.operand.place(), std::move(at), bytes));
    });
    return found;
}

}  // namespace bitale
