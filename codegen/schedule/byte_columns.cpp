#include "codegen/schedule/byte_columns.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "codegen/group/values.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/bytes.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::int64_t part_of_columns = 8192;

const ScalarNode* byte_of(const Nest& nest) {
    if (nest.combine != Combine::sum || !is_integer(nest.accumulator) || !nest.guards.empty() ||
        !nest.lets.empty())
        return nullptr;
    const ScalarNode* body = &summand(nest);
    const bool byte = body->kind == ScalarNode::Kind::read && body->guards.empty() &&
                      bytes_of(body->dtype) == 1 &&
                      (is_integer(body->dtype) || body->dtype == DType::boolean);
    return byte && bits_of(nest.accumulator) >= bits_of(DType::int32) ? body : nullptr;
}

bool bounded_by(const std::vector<Loop>& loops, const Int& variable) {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const Loop& l) { return depends_on(l.extent, variable.symbol_id()); });
}

Substitution at_zero(const std::vector<Loop>& loops) {
    Substitution zero;
    for (const Loop& l : loops)
        if (const std::uint64_t id = l.variable.symbol_id()) zero[id] = 0;
    return zero;
}

std::vector<Loop> columns_of(const Nest& nest, const ByteColumns& columns) {
    return {nest.parallel.end() - static_cast<std::ptrdiff_t>(columns.results), nest.parallel.end()};
}

Stmts around(const std::vector<Loop>& loops, Stmts body) {
    for (auto l = loops.rbegin(); l != loops.rend(); ++l)
        if (l->variable.symbol_id())
            body = {loop(l->variable, 0, l->extent, Binding::serial, std::move(body))};
    return body;
}

// place[to] += columns, `width` of them from number `first` on.
Stmts added(const Nest& nest, const ByteColumns& columns, int place, std::vector<Int> to, const Int& first,
            const Int& width) {
    Substitution zero = at_zero(columns_of(nest, columns));
    for (Int& x : to) x = substitute(x, zero);
    to.back() = to.back() + first;
    if (const std::uint64_t id = columns.rows.variable.symbol_id()) zero[id] = 0;
    std::vector<Int> from = columns.byte->at;
    for (Int& x : from) x = substitute(x, zero);
    from.back() = from.back() + first;
    return around(columns.outer, {add_columns(place, std::move(to), columns.byte->operand.place(),
                                              std::move(from), columns.rows.extent, width, columns.far)});
}

std::vector<Int> variables_of(const std::vector<Loop>& loops, const Int& first) {
    std::vector<Int> at{first};
    for (const Loop& l : loops) at.push_back(l.variable);
    return at;
}

// The rows that in_rows() has made of one long loop, as that loop again: `count` of them from `begin` on, for
// which `row` stands.
std::optional<Nest> as_one_loop(const Nest& nest, const Int& row, const Int& begin, const Int& count,
                                const ShapeOf& shape_of) {
    const ScalarNode* byte = byte_of(nest);
    if (!byte || nest.reduced.size() != 2 || !row.symbol_id()) return {};
    const Loop inside = nest.reduced[1];
    Int length = inside.extent, points = count * length;
    if (!length.is_constant()) {
        const AtomPtr least = inside.extent.as_atom();
        if (!least || least->kind != Atom::Kind::min) return {};
        const bool first = least->a.is_constant();
        length = first ? least->a : least->b;
        const Int all = (first ? least->b : least->a) + row * length;
        if (!length.is_constant() || depends_on(all, row.symbol_id())) return {};
        points = min(count * length, all - begin * length);
    }
    const Int offset = offset_of(*byte, shape_of);
    const std::optional<Int> far = stride_of(offset, row), near = stride_of(offset, inside.variable);
    if (!inside.variable.symbol_id() || !far || !near || !(*far == *near * length)) return {};
    const std::int64_t high = points.range().high;
    const Int point = Int::symbol("k", {0, std::max<std::int64_t>(1, high - 1)});
    Nest r = substitute(nest, {{row.symbol_id(), begin}, {inside.variable.symbol_id(), point}});
    r.reduced = {{point, points}};
    return r;
}

}  // namespace

std::optional<ByteColumns> byte_columns(const Nest& nest, const std::vector<Loop>& reduced,
                                        const ShapeOf& shape_of) {
    ByteColumns r;
    r.byte = byte_of(nest);
    if (!r.byte) return {};
    const Int offset = offset_of(*r.byte, shape_of);
    bool any = false;
    for (auto l = nest.parallel.rbegin(); l != nest.parallel.rend(); ++l) {
        if (l->variable.symbol_id()) {
            const std::optional<Int> step = stride_of(offset, l->variable);
            if (!step || !(*step == r.width) || bounded_by(reduced, l->variable)) break;
            any = true;
        }
        r.width = r.width * l->extent;
        ++r.results;
    }
    if (!any) return {};
    r.outer = reduced;
    while (!r.outer.empty() && !r.outer.back().variable.symbol_id()) r.outer.pop_back();
    if (r.outer.empty()) {
        r.rows = {0, 1};
        r.far = r.width;
        return r;
    }
    r.rows = r.outer.back();
    r.outer.pop_back();
    const std::optional<Int> far = stride_of(offset, r.rows.variable);
    if (!far || far->range().low < 0 || far->is(0) || bounded_by(r.outer, r.rows.variable)) return {};
    r.far = *far;
    return r;
}

std::optional<ReductionTree> order_of_byte_columns(const Nest& nest, const ShapeOf& shape_of) {
    constexpr double fewest_rows = 32, fewest_bytes = 1 << 16;
    constexpr std::int64_t rows_of_chunk = 64, bytes_of_chunk = 1 << 16, most_chunks = 64;
    if (nest.reduced.empty() || !nest.reduced[0].variable.symbol_id()) return {};
    const std::optional<ByteColumns> columns = byte_columns(nest, nest.reduced, shape_of);
    // in_rows() bounds the second loop by the first.
    if (!columns || columns->results != nest.parallel.size()) return {};
    const double rows = typical_count(nest.reduced), bytes = rows * typical_count(nest.parallel);
    const bool known = columns->width.is_constant() &&
                       std::all_of(nest.reduced.begin(), nest.reduced.end(),
                                   [](const Loop& l) { return l.extent.range().high < IntRange::highest; });
    if (rows < fewest_rows || (known && bytes < fewest_bytes)) return {};
    Int of_iteration = 1, width = columns->width;
    for (std::size_t i = 1; i < nest.reduced.size(); ++i) {
        const Int& extent = nest.reduced[i].extent;
        of_iteration =
            of_iteration *
            (bounded_by({nest.reduced[i]}, nest.reduced[0].variable) ? Int(extent.range().high) : extent);
    }
    const Int fewest =
        max(ceildiv(rows_of_chunk, of_iteration), floordiv(bytes_of_chunk, width * of_iteration));
    ReductionTree tree;
    tree.split = true;
    tree.chunk = max(fewest, ceildiv(nest.reduced[0].extent, most_chunks));
    return tree;
}

std::optional<ChunkOfColumns> chunk_of_columns(const Member& member, const KernelBuilder& builder,
                                               const Int& row, const Int& begin, const Int& count) {
    ChunkOfColumns chunk;
    if (std::optional<Nest> one = as_one_loop(member.nest, row, begin, count, builder.shapes())) {
        chunk.nest = *std::move(one);
    } else {
        const Int inside = Int::symbol("row", {0, std::max<std::int64_t>(1, count.range().high - 1)});
        chunk.nest = substitute(member.nest, {{row.symbol_id(), begin + inside}});
        chunk.nest.reduced.front() = {inside, count};
    }
    const std::optional<ByteColumns> columns = byte_columns(chunk.nest, chunk.nest.reduced, builder.shapes());
    if (!columns || columns->results != chunk.nest.parallel.size()) return {};
    if (chunk.nest.parallel.size() == 1) chunk.parts = ceildiv(columns->width, part_of_columns);
    return chunk;
}

Stmts schedule_columns(const ChunkOfColumns& chunk, const KernelBuilder& builder, int place,
                       const Int& number, const Int& part) {
    const Nest& nest = chunk.nest;
    const ByteColumns columns = *byte_columns(nest, nest.reduced, builder.shapes());
    const Scalar zero = neutral(Combine::sum, nest.accumulator);
    const std::vector<Int> to = variables_of(nest.parallel, number);
    Stmts body;
    Int first = 0, width = columns.width;
    if (chunk.parts.is(1)) {
        LoopBuilder loops(nest);
        body = loops.nest(
            nest.parallel, [&](LoopBuilder&) { return Stmts{set(place, to, zero)}; }, Binding::simd);
    } else {
        first = part * part_of_columns;
        width = min(part_of_columns, columns.width - first);
        const Int column = Int::symbol("column", {0, part_of_columns - 1});
        body.push_back(loop(column, 0, width, Binding::simd, {set(place, {number, first + column}, zero)}));
    }
    append(body, added(nest, columns, place, to, first, width));
    return body;
}

bool schedule_chunks_of_columns(const std::vector<SumInChunks>& sums, const Loop& rows,
                                const KernelBuilder& builder, Segment& segment) {
    const auto chunk_of = [&](const Member& member, const Int& begin, const Int& count) {
        return chunk_of_columns(member, builder, rows.variable, begin, count);
    };
    Int parts = 1;
    for (const SumInChunks& sum : sums) {
        const auto chunk = chunk_of(*sum.member, 0, sum.member->tree.chunk);
        if (!chunk) return false;
        if (sums.size() == 1) parts = chunk->parts;
    }
    segment.tasks = ceildiv(rows.extent, sums.front().member->tree.chunk) * parts;
    segment.task = make_loop("chunk", segment.tasks).variable;
    const Int number = floordiv(segment.task, parts);
    for (const SumInChunks& sum : sums) {
        const Int length = sum.member->tree.chunk, begin = number * length;
        ChunkOfColumns chunk = *chunk_of(*sum.member, begin, min(length, rows.extent - begin));
        chunk.parts = parts;
        const Stmts body = schedule_columns(chunk, builder, sum.place, number, mod(segment.task, parts));
        segment.body.insert(segment.body.end(), body.begin(), body.end());
    }
    return true;
}

std::optional<Stmts> add_row_of_columns(const Member& member, const KernelBuilder& builder, int place,
                                        const Int& number) {
    const Nest& nest = member.nest;
    const std::vector<Loop> rest(nest.reduced.begin() + 1, nest.reduced.end());
    const std::optional<ByteColumns> columns = byte_columns(nest, rest, builder.shapes());
    if (!columns || columns->results != nest.parallel.size()) return {};
    return added(nest, *columns, place, variables_of(nest.parallel, number), 0, columns->width);
}

std::optional<Stmts> schedule_byte_columns(const Member& member, KernelBuilder& builder) {
    constexpr std::int64_t fewest_rows = 64, most_columns = 4096;
    const Nest& nest = member.nest;
    const std::optional<ByteColumns> columns = byte_columns(nest, nest.reduced, builder.shapes());
    if (!columns || columns->results == 0 || !columns->width.is_constant() ||
        columns->width.constant() > most_columns || columns->width.constant() < 2 ||
        columns->rows.extent.range().high < fewest_rows)
        return {};
    const std::vector<Loop> inside = columns_of(nest, *columns),
                            outside(nest.parallel.begin(),
                                    nest.parallel.end() - static_cast<std::ptrdiff_t>(columns->results));
    Shape shape;
    std::vector<Int> at;
    for (const Loop& l : inside) {
        shape.push_back(l.extent);
        at.push_back(l.variable);
    }
    const int sums = builder.scratch(Place::Scope::local, nest.accumulator, shape);
    const auto over_columns = [&](const Stmts& body) {
        Stmts r = body;
        bool innermost = true;
        for (auto l = inside.rbegin(); l != inside.rend(); ++l) {
            if (!l->variable.symbol_id()) continue;
            r = {loop(l->variable, 0, l->extent, innermost ? Binding::simd : Binding::serial, std::move(r))};
            innermost = false;
        }
        return r;
    };
    Stmts body{declare(sums)};
    append(body, over_columns({set(sums, at, neutral(Combine::sum, nest.accumulator))}));
    append(body, added(nest, *columns, sums, at, 0, columns->width));
    append(body, over_columns(stores(member, place_read(nest.accumulator, sums, at))));
    return around(outside, std::move(body));
}

}  // namespace bitale
