#include "codegen/schedule/gpu_tile.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "codegen/nest/phases.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/accumulation.h"

namespace bitale::gpu {

namespace {

// 16 x 16 threads, each with every 16th row and column of the tile.
constexpr std::int64_t side = 16, most_rows = 64, piece = 16;

Int count(const std::vector<Loop>& loops) {
    Int n = 1;
    for (const Loop& l : loops) n = n * l.extent;
    return n;
}

bool divides(std::int64_t n, const Int& x) { return x.is_constant() && x.constant() % n == 0; }

// What the loops' variables are at a position in their row-major order.
void place(const std::vector<Loop>& loops, const Int& position, Substitution& here) {
    Shape shape;
    for (const Loop& l : loops) shape.push_back(l.extent);
    const std::vector<Int> at = unflattened(position, shape);
    for (std::size_t d = 0; d < loops.size(); ++d)
        if (const std::uint64_t id = loops[d].variable.symbol_id()) here[id] = at[d];
}

Stmts over(const std::vector<Loop>& loops, const Nest& lets, const Stmts& body) {
    Nest points = lets;
    points.parallel = loops;
    LoopBuilder builder(points);
    return builder.threads(loops, [&](LoopBuilder& inner) { return inner.substituted(body); });
}

std::vector<Destination> destinations_of(int value, const std::vector<Int>& at, const SegmentContext& context,
                                         KernelBuilder& builder) {
    std::vector<Destination> all;
    const Type type = context.values.list[value].stored_type();
    for (const int buffer : context.buffers_to_write(value))
        all.push_back({builder.global(buffer, type.dtype, type.shape, true), at});
    return all;
}

class BlockTiler {
  public:
    // The results that the nest has: where they belong, over its loops.
    BlockTiler(int value, const Nest& nest, std::vector<Int> at, const SegmentContext& context,
               KernelBuilder& builder)
        : value_(value),
          at_(std::move(at)),
          context_(context),
          builder_(builder),
          nest_(with_places(nest)),
          axes_(product_axes(nest_)),
          rows_(count(axes_.rows)),
          columns_(count(axes_.columns)),
          sum_(count(nest_.reduced)),
          tile_columns_(typical_count(axes_.columns) >= 48   ? 64
                        : typical_count(axes_.columns) >= 24 ? 32
                                                             : 16) {}

    Segment run(const std::string& title, std::string& notes) {
        const Shape grid{ceildiv(rows_, most_rows), count(axes_.common), ceildiv(columns_, tile_columns_)};
        Segment segment;
        segment.title = title;
        segment.tasks = count_of(grid);
        segment.task = make_loop("task", segment.tasks).variable;
        const std::vector<Int> tile = unflattened(segment.task, grid);
        place(axes_.common, tile[1], common_);
        first_row_ = tile[0] * most_rows;
        first_column_ = tile[2] * tile_columns_;
        const DType dtype = accumulator_of(nest_);
        const std::int64_t down = most_rows / side, across = tile_columns_ / side;
        const int acc = builder_.scratch(Place::Scope::private_, dtype, {Int(down), Int(across)});
        const Int first = Int::symbol("first", {0, sum_.range().high});
        const Loop inside{Int::symbol("k", {0, piece - 1}), piece};
        const Int left = divides(piece, sum_) ? Int(piece) : min(piece, sum_ - first);
        Stmts fill;
        const Scalar a = staged(*nest_.body->arguments[0], axes_.rows, first_row_, most_rows, rows_, first,
                                inside, segment.body, fill),
                     b = staged(*nest_.body->arguments[1], axes_.columns, first_column_, tile_columns_,
                                columns_, first, inside, segment.body, fill);
        // Thread (i, j) has rows i, i + 16, ... and columns j, j + 16, ... of the tile.
        const Loop i{Int::symbol("i", {0, side - 1}), side}, j{Int::symbol("j", {0, side - 1}), side};
        const Int r = Int::symbol("r", {0, down - 1}), c = Int::symbol("c", {0, across - 1});
        const Substitution own{{row_.symbol_id(), i.variable + r * side},
                               {column_.symbol_id(), j.variable + c * side}};
        const auto each = [&](Stmts body) {
            return Stmts{loop(r, 0, down, Binding::unrolled,
                              {loop(c, 0, across, Binding::unrolled, std::move(body))})};
        };
        const Scalar product = scalar_apply(nest_.body->op, dtype, {substitute(a, own), substitute(b, own)});
        const Stmts clear = each({set(acc, {r, c}, neutral(nest_.combine, dtype))}),
                    add = each({accumulate(acc, {r, c}, nest_.combine, product, true)}),
                    store = each(stored(place_read(dtype, acc, {r, c}), first_row_ + substitute(row_, own),
                                        first_column_ + substitute(column_, own)));
        segment.body.push_back(declare(acc));
        append(segment.body, over({i, j}, {}, clear));
        fill.push_back(barrier());
        append(fill, over({i, j}, {}, {loop(inside.variable, 0, left, Binding::serial, add)}));
        fill.push_back(barrier());
        segment.body.push_back(loop(first, 0, sum_, Binding::serial, std::move(fill), piece));
        append(segment.body, over({i, j}, {}, store));
        notes += note(down, across);
        return segment;
    }

  private:
    std::string note(std::int64_t down, std::int64_t across) const {
        return "  tiles of " + std::to_string(most_rows) + " x " + std::to_string(tile_columns_) +
               " results, " + std::to_string(down) + " x " + std::to_string(across) +
               " a thread, 16 terms at a time in shared memory\n";
    }

    Nest with_places(const Nest& nest) const {
        return map_reads(nest, [&](const Scalar& s) {
            auto r = std::make_shared<ScalarNode>(*s);
            r->operand = Operand::of_place(context_.in_memory(s->operand.value(), builder_));
            return r;
        });
    }

    // The factor's piece [k, row or column of the tile]; read at row_ or column_. Beyond the ends the last
    // row, column or term stands once more: nothing is stored of it.
    Scalar staged(const ScalarNode& factor, const std::vector<Loop>& loops, const Int& first_line,
                  std::int64_t lines, const Int& all_lines, const Int& first, const Loop& inside,
                  Stmts& declarations, Stmts& fill) {
        const bool of_rows = &loops == &axes_.rows;
        const Int own = of_rows ? row_ : column_;
        const int place_ = builder_.scratch(Place::Scope::local, factor.dtype, {Int(piece), Int(lines)});
        declarations.push_back(declare(place_));
        Substitution here = common_;
        place(loops, min(first_line + own, all_lines - 1), here);
        const Int term = first + inside.variable;
        place(nest_.reduced, divides(piece, sum_) ? term : min(term, sum_ - 1), here);
        Nest part;
        const Scalar body = std::make_shared<ScalarNode>(factor);
        part.lets = lets_of(nest_, body);
        part.dtype = factor.dtype;
        part.body = body;
        const Loop line{own, lines};
        // Neighbouring threads read neighbouring elements.
        const bool along_sum = unit_stride(part, nest_.reduced.back().variable, builder_.shapes());
        part = substitute(part, here);
        append(fill, over(along_sum ? std::vector<Loop>{line, inside} : std::vector<Loop>{inside, line}, part,
                          {set(place_, {inside.variable, own}, part.body)}));
        return place_read(factor.dtype, place_, {inside.variable, own});
    }

    Stmts stored(const Scalar& value, const Int& row, const Int& column) const {
        Substitution here = common_;
        place(axes_.rows, row, here);
        place(axes_.columns, column, here);
        Member member;
        member.nest.dtype = nest_.dtype;
        std::vector<Int> to;
        for (const Int& x : at_) to.push_back(substitute(x, here));
        member.destinations = destinations_of(value_, to, context_, builder_);
        return {when({{row, 0, rows_}, {column, 0, columns_}}, stores(member, value))};
    }

    const int value_;
    const std::vector<Int> at_;
    const SegmentContext& context_;
    KernelBuilder& builder_;
    const Nest nest_;
    const ProductAxes axes_;
    const Int rows_, columns_, sum_;
    const std::int64_t tile_columns_;
    const Int row_ = Int::symbol("row", {0, most_rows - 1}),
              column_ = Int::symbol("column", {0, most_rows - 1});
    Int first_row_, first_column_;
    Substitution common_;
};

// Results that are 0, a few for each thread of a block.
Segment schedule_zeros(int value, const Nest& nest, const std::vector<Int>& at, const SegmentContext& context,
                       KernelBuilder& builder, const std::string& title) {
    constexpr std::int64_t points = 1024;
    const Int all = count(nest.parallel);
    Segment segment;
    segment.title = title + " (zeros)";
    segment.tasks = ceildiv(all, points);
    segment.task = make_loop("task", segment.tasks).variable;
    const Int inside = Int::symbol("point", {0, points - 1});
    Substitution here;
    place(nest.parallel, segment.task * points + inside, here);
    Member member;
    member.nest.parallel = {{inside, min(points, all - segment.task * points)}};
    member.nest.dtype = nest.dtype;
    member.nest.body = nest.body;
    std::vector<Int> to;
    for (const Int& x : at) to.push_back(substitute(x, here));
    member.destinations = destinations_of(value, to, context, builder);
    segment.body = schedule_pointwise(member, context.target, builder);
    return segment;
}

bool has_terms(const Nest& nest) { return nest.combine != Combine::none; }

// The phases of a sum, where some of them are worth tiles, and none is another map than zeros.
std::vector<ResultPhase> phases_in_tiles(const Nest& nest, const ReductionTree& tree) {
    if (tree.lanes > 1 || tree.split) return {};
    std::vector<ResultPhase> phases = phases_of(nest);
    const bool any = std::any_of(phases.begin(), phases.end(), [&](const ResultPhase& phase) {
        return is_large_product(phase.nest, tree);
    });
    const bool all = std::all_of(phases.begin(), phases.end(), [](const ResultPhase& phase) {
        return has_terms(phase.nest) ? adds_products(phase.nest) && phase.nest.guards.empty()
                                     : phase.nest.body->kind == ScalarNode::Kind::constant;
    });
    return any && all ? std::move(phases) : std::vector<ResultPhase>();
}

}  // namespace

bool is_tiled(const Nest& nest, const ReductionTree& tree) {
    return is_large_product(nest, tree) || !phases_in_tiles(nest, tree).empty();
}

std::vector<Segment> schedule_tiles(int value, const SegmentContext& context, KernelBuilder& builder,
                                    const std::string& title, std::string& notes) {
    const Nest whole = fully_composed_nest(context.values, value);
    std::vector<ResultPhase> phases = phases_in_tiles(whole, context.grouping.trees[value]);
    if (phases.empty()) phases = {{whole, {}}};
    std::vector<Segment> segments;
    for (const ResultPhase& phase : phases) {
        std::vector<Int> at;
        for (const Loop& l : whole.parallel) at.push_back(substitute(l.variable, phase.results));
        segments.push_back(has_terms(phase.nest)
                               ? BlockTiler(value, phase.nest, at, context, builder).run(title, notes)
                               : schedule_zeros(value, phase.nest, at, context, builder, title));
    }
    return segments;
}

}  // namespace bitale::gpu
