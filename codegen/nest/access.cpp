#include "codegen/nest/access.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

Int offset_of(const ScalarNode& read, const ShapeOf& shape_of) {
    if (read.at.empty()) return 0;
    const Shape& shape = shape_of(read.operand);
    Int offset = 0;
    for (std::size_t d = 0; d < read.at.size(); ++d) offset = offset * shape[d] + read.at[d];
    return offset;
}

std::optional<Int> stride_of(const Int& x, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    if (!id) return Int(0);
    Int step = substitute(x, {{id, variable + 1}}) - x;
    if (depends_on(step, id)) return {};
    return step;
}

std::optional<std::size_t> axis_along(const ScalarNode& read, const Int& variable) {
    std::optional<std::size_t> found;
    for (std::size_t d = 0; d < read.at.size(); ++d) {
        if (!depends_on(read.at[d], variable.symbol_id())) continue;
        if (found || depends_on(read.at[d] - variable, variable.symbol_id())) return {};
        found = d;
    }
    return found;
}

namespace {

// What stays the same over a whole reduction is read once: it is no reason to run results in lanes, unless
// terms are looked up, whose lanes would have to gather.
bool moves_in_sum(const Nest& nest, const ScalarNode& read) {
    if (nest.reduced.empty()) return true;
    const auto depends = [&](const Scalar& x) {
        return std::any_of(nest.reduced.begin(), nest.reduced.end(),
                           [&](const Loop& l) { return varies(nest, x, l.variable); });
    };
    return depends(std::make_shared<const ScalarNode>(read)) ||
           std::any_of(nest.lets.begin(), nest.lets.end(), [&](const Let& l) { return depends(l.value); });
}

// Reads that stay the same over the whole sum, in factors that do not, `m` of (x - m) * y, or as places in
// them, `list[i]` of x[list[i], j] * y.
std::set<const ScalarNode*> same_in_factors(const Nest& nest) {
    std::set<const ScalarNode*> all;
    for (const Scalar& factor : nest.body->arguments) {
        std::set<const ScalarNode*> same;
        bool moves = false;
        for_each_read(factor, [&](const ScalarNode& s) {
            if (moves_in_sum(nest, s))
                moves = true;
            else
                same.insert(&s);
        });
        if (moves) all.merge(same);
    }
    for (const Let& l : nest.lets)
        for_each_read(l.value, [&](const ScalarNode& s) {
            if (!moves_in_sum(nest, s)) all.insert(&s);
        });
    return all;
}

}  // namespace

int unit_stride_reads(const Nest& nest, const Int& variable, const ShapeOf& shape_of) {
    const std::uint64_t id = variable.symbol_id();
    if (!id) return 0;
    // Axes of length 1 behind it do not count, but for products: both factors have a say in their loops, and
    // filters of one element are laid out for them.
    const bool as_written = adds_products(nest);
    const std::set<const ScalarNode*> same =
        as_written ? same_in_factors(nest) : std::set<const ScalarNode*>();
    int n = 0;
    for_each_read(nest, [&](const ScalarNode& s) {
        if (as_written ? same.contains(&s) : !moves_in_sum(nest, s)) return;
        std::size_t last = s.at.size();
        while (!as_written && last > 1 && shape_of(s.operand)[last - 1].is(1)) --last;
        if (last == 0 || !depends_on(s.at[last - 1], id)) return;
        const std::optional<Int> step = stride_of(offset_of(s, shape_of), variable);
        n += step && step->is(1);
    });
    return n;
}

bool unit_stride(const Nest& nest, const Int& variable, const ShapeOf& shape_of) {
    return unit_stride_reads(nest, variable, shape_of) > 0;
}

namespace {

// The step of x with the variable while all its quotients by a number stay; nothing where it has others, or
// shorter ones.
std::optional<Int> step_in_runs(const Int& x, const Int& variable, std::int64_t shortest) {
    const std::uint64_t id = variable.symbol_id();
    Int step = 0;
    for (const Int::Term& t : x.terms()) {
        Int factor = t.factor;
        bool moves = false;
        for (const AtomPtr& a : t.atoms) {
            if (a->kind == Atom::Kind::symbol && a->id == id) {
                if (moves) return {};
                moves = true;
                continue;
            }
            factor = factor * Int::from(a);
            if (!depends_on(Int::from(a), id)) continue;
            const bool runs = a->kind == Atom::Kind::floordiv && a->b.is_constant() &&
                              a->b.constant() >= shortest && !depends_on(a->a - variable, id);
            if (!runs) return {};
        }
        if (moves) step = step + factor;
    }
    return step;
}

}  // namespace

bool unit_stride_in_runs(const Nest& nest, const Int& variable, std::int64_t shortest,
                         const ShapeOf& shape_of) {
    bool found = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        const std::optional<Int> step = step_in_runs(offset_of(s, shape_of), variable, shortest);
        found = found || (step && step->is(1));
    });
    return found;
}

bool short_stride(const Nest& nest, const Int& variable, const ShapeOf& shape_of) {
    constexpr std::int64_t longest = 4;
    bool found = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        const std::optional<Int> step = stride_of(offset_of(s, shape_of), variable);
        found = found || (step && step->is_constant() && !step->is(0) && step->constant() <= longest &&
                          step->constant() >= -longest);
    });
    return found;
}

}  // namespace bitale
