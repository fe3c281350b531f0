#include "codegen/schedule/gpu_transpose.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/member.h"

namespace bitale::gpu {

namespace {

constexpr std::int64_t tile_side = 32;
constexpr double worth_a_tile = 16;

Int offset_of(const ScalarNode& read, const Shape& shape) {
    Int offset = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + read.at[d];
    return offset;
}

bool lies_along(const ScalarNode& read, const Shape& shape, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    if (!id) return false;
    const Int offset = offset_of(read, shape);
    return (substitute(offset, {{id, variable + 1}}) - offset).is(1);
}

bool depends(const ScalarNode& read, const Int& variable) {
    return std::any_of(read.at.begin(), read.at.end(),
                       [&](const Int& x) { return depends_on(x, variable.symbol_id()); });
}

// A read that has to pass through a tile.
bool crosses(const ScalarNode& read, const Shape& shape, const Int& last, const Int& other) {
    return lies_along(read, shape, other) && !lies_along(read, shape, last) && depends(read, last);
}

// The number by which an index divides the variable; 0 where none does.
std::int64_t divisor_of(const Int& index, const Int& variable) {
    for (const Int::Term& term : index.terms())
        for (const AtomPtr& atom : term.atoms)
            if (atom->kind == Atom::Kind::floordiv && atom->a == variable && atom->b.is_constant())
                return atom->b.constant();
    return 0;
}

// One axis of the result that a reshape made of two: two loops, if an operand is read by the quotient and the
// rest of its index. False where there is none.
bool separate_axes(Transpose& t) {
    for (std::size_t d = 0; d + 1 < t.nest.parallel.size(); ++d) {
        const Loop& whole = t.nest.parallel[d];
        if (!whole.variable.symbol_id() || !whole.extent.is_constant()) continue;
        std::int64_t divisor = 0;
        for_each_read(t.nest, [&](const ScalarNode& s) {
            for (const Int& x : s.at) divisor = std::max(divisor, divisor_of(x, whole.variable));
        });
        const std::int64_t extent = whole.extent.constant();
        if (divisor < 2 || divisor >= extent || extent % divisor != 0) continue;
        const Loop outer = make_loop("outer", extent / divisor), inner = make_loop("inner", divisor);
        const Substitution both{{whole.variable.symbol_id(), outer.variable * divisor + inner.variable}};
        std::vector<Loop> loops = t.nest.parallel;
        loops[d] = inner;
        loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(d), outer);
        t.nest = substitute(t.nest, both);
        t.nest.parallel = std::move(loops);
        for (Int& x : t.at) x = substitute(x, both);
        return true;
    }
    return false;
}

bool finds_axis(Transpose& t, const Values& values) {
    const Nest& nest = t.nest;
    const Loop& last = nest.parallel.back();
    t.axis = -1;
    for_each_read(nest, [&](const ScalarNode& s) {
        for (std::size_t d = 0; d + 1 < nest.parallel.size(); ++d)
            if (typical(nest.parallel[d].extent) >= worth_a_tile &&
                crosses(s, values.list[s.operand.value()].shape, last.variable, nest.parallel[d].variable))
                t.axis = static_cast<int>(d);
    });
    return t.axis >= 0;
}

}  // namespace

std::optional<Transpose> match_transpose(const Group& group, const Values& values) {
    if (group.values.size() != 1) return std::nullopt;
    Transpose t;
    t.value = group.values[0];
    t.nest = fully_composed_nest(values, t.value);
    const Nest& nest = t.nest;
    if (nest.combine != Combine::none || nest.parallel.size() < 2 || !nest.guards.empty() ||
        !nest.lets.empty())
        return std::nullopt;
    const Loop& last = nest.parallel.back();
    if (!last.variable.symbol_id() || typical(last.extent) < worth_a_tile) return std::nullopt;
    bool guarded = false;
    for_each_read(nest, [&](const ScalarNode& s) { guarded = guarded || !s.guards.empty(); });
    if (guarded) return std::nullopt;
    for (const Loop& l : nest.parallel) t.at.push_back(l.variable);
    while (!finds_axis(t, values))
        if (!separate_axes(t)) return std::nullopt;
    return t;
}

Segment schedule_transpose(const Transpose& t, const SegmentContext& context, KernelBuilder& builder,
                           const std::string& title, std::string& notes) {
    const auto value = [&](int v) -> const Value& { return context.values.list[v]; };
    const Loop last = t.nest.parallel.back(), other = t.nest.parallel[t.axis];
    Segment segment;
    segment.title = title;
    // A task is a tile of the two axes at one point of the others.
    Shape grid;
    for (const Loop& l : t.nest.parallel) grid.push_back(l.extent);
    grid[t.axis] = ceildiv(other.extent, tile_side);
    grid.back() = ceildiv(last.extent, tile_side);
    segment.tasks = count_of(grid);
    segment.task = make_loop("task", segment.tasks).variable;
    const std::vector<Int> tile = unflattened(segment.task, grid);
    const Int row = Int::symbol("row", {0, tile_side - 1}),
              column = Int::symbol("column", {0, tile_side - 1});
    const Int first_row = tile[t.axis] * tile_side, first_column = tile.back() * tile_side;
    Substitution here;
    for (std::size_t d = 0; d < tile.size(); ++d)
        if (const std::uint64_t id = t.nest.parallel[d].variable.symbol_id()) here[id] = tile[d];
    here[other.variable.symbol_id()] = first_row + row;
    here[last.variable.symbol_id()] = first_column + column;
    const Loop rows{row, min(tile_side, other.extent - first_row)},
        columns{column, min(tile_side, last.extent - first_column)};

    const auto over = [&](const std::vector<Loop>& loops, const Stmts& body) {
        Nest points;
        points.parallel = loops;
        LoopBuilder builder_of_loops(points);
        return builder_of_loops.threads(loops, [&](LoopBuilder& inner) { return inner.substituted(body); });
    };
    std::map<std::pair<int, Int>, int> tiles;  // by operand and offset
    Stmts load;
    Nest nest = t.nest;
    nest.parallel.clear();
    nest = map_reads(nest, [&](const Scalar& s) -> Scalar {
        auto r = std::make_shared<ScalarNode>(*s);
        const Type type = value(s->operand.value()).stored_type();
        r->operand = Operand::of_place(context.in_memory(s->operand.value(), builder));
        if (!crosses(*s, type.shape, last.variable, other.variable)) return r;
        const auto [at, is_new] = tiles.emplace(std::pair(s->operand.value(), offset_of(*s, type.shape)), -1);
        if (is_new) {
            // One element more to a line: a column of the tile then lies in 32 different banks.
            at->second =
                builder.scratch(Place::Scope::local, type.dtype, {Int(tile_side), Int(tile_side + 1)});
            segment.body.push_back(declare(at->second));
            load.push_back(set(at->second, {column, row}, substitute(Scalar(r), here)));
        }
        return place_read(type.dtype, at->second, {column, row});
    });
    // The sizes of the loops are those of the tile: neighbouring threads have neighbouring rows.
    for (Stmt& s : over({columns, rows}, load)) segment.body.push_back(std::move(s));
    segment.body.push_back(barrier());
    Member member;
    member.nest = substitute(nest, here);
    const Type type = value(t.value).stored_type();
    std::vector<Int> to;
    for (const Int& x : t.at) to.push_back(substitute(x, here));
    for (const int buffer : context.buffers_to_write(t.value))
        member.destinations.push_back({builder.global(buffer, type.dtype, type.shape, true), to});
    for (Stmt& s : over({rows, columns}, stores(member, member.nest.body)))
        segment.body.push_back(std::move(s));
    notes += "  tiles of 32 x 32 elements through shared memory\n";
    return segment;
}

}  // namespace bitale::gpu
