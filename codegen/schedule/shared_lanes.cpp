#include "codegen/schedule/shared_lanes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::int64_t lanes_of_block = 16, most_rows_of_block = 4, fewest_shared_columns = 8;

bool is_exact_in_registers(Opcode opcode) {
    return opcode == Opcode::add || opcode == Opcode::sub || opcode == Opcode::mul || opcode == Opcode::sqr;
}

// What registers can compute, element for element, of neighbours along the variable.
bool runs_in_registers(const Scalar& s, const Int& variable, const ShapeOf& shape_of) {
    const std::uint64_t id = variable.symbol_id();
    if (!depends_on(s, id)) return true;
    const auto is_element = [&](const ScalarNode& read) {
        const std::optional<Int> step = stride_of(offset_of(read, shape_of), variable);
        return read.kind == ScalarNode::Kind::read && read.guards.empty() && step && step->is(1);
    };
    if (s->kind == ScalarNode::Kind::cast) {
        const ScalarNode& from = *s->arguments[0];
        return s->dtype == DType::float32 && is_integer(from.dtype) && bytes_of(from.dtype) == 1 &&
               is_element(from);
    }
    if (s->dtype != DType::float32) return false;
    if (s->kind == ScalarNode::Kind::read) return is_element(*s);
    return s->kind == ScalarNode::Kind::apply && is_exact_in_registers(opcode_of(*s->op)) &&
           std::all_of(s->arguments.begin(), s->arguments.end(),
                       [&](const Scalar& a) { return runs_in_registers(a, variable, shape_of); });
}

// The loops over results that share what they read: with `rows`, a read of each term that varies with the
// columns stays as it is, and the other way round.
struct SharedAxes {
    std::size_t rows = 0, columns = 0;
};

std::optional<SharedAxes> shared_axes(const Nest& nest, const ReductionTree& tree, const ShapeOf& shape_of) {
    if (nest.combine != Combine::sum || nest.accumulator != DType::float32 || tree.lanes != lanes_of_block ||
        tree.split || nest.reduced.size() != 1 || !nest.guards.empty() || !nest.lets.empty() ||
        !nest.reduced[0].variable.symbol_id() || nest.body->dtype != DType::float32 ||
        !runs_in_registers(nest.body, nest.reduced[0].variable, shape_of))
        return {};
    std::size_t last = nest.parallel.size();
    while (last > 0 && !nest.parallel[last - 1].variable.symbol_id()) --last;
    if (last < 2 || nest.parallel[last - 1].extent.range().high < fewest_shared_columns) return {};
    const auto mentions = [](const ScalarNode& s, const Loop& l) {
        return std::any_of(s.at.begin(), s.at.end(),
                           [&](const Int& x) { return depends_on(x, l.variable.symbol_id()); });
    };
    const Loop& columns = nest.parallel[last - 1];
    for (std::size_t i = last - 1; i-- > 0;) {
        const Loop& rows = nest.parallel[i];
        if (!rows.variable.symbol_id() || rows.extent.range().high < 2 ||
            depends_on(columns.extent, rows.variable.symbol_id()))
            continue;
        bool of_rows = false, of_columns = false;
        for_each_read(nest.body, [&](const ScalarNode& s) {
            if (!mentions(s, nest.reduced[0])) return;
            of_rows = of_rows || (mentions(s, rows) && !mentions(s, columns));
            of_columns = of_columns || (mentions(s, columns) && !mentions(s, rows));
        });
        if (of_rows && of_columns) return SharedAxes{i, last - 1};
    }
    return {};
}

// Squares as products: of these there are registers.
Scalar as_products(const Scalar& body) {
    return rebuild(body, [](const std::shared_ptr<ScalarNode>& s) -> Scalar {
        if (!applies(*s, Opcode::sqr) || s->dtype != DType::float32) return s;
        return scalar_apply(Opcode::mul, s->dtype, {s->arguments[0], s->arguments[0]});
    });
}

class SharedLanes {
  public:
    SharedLanes(const Member& member, const SharedAxes& axes, const Target& target, KernelBuilder& builder)
        : member_(member),
          nest_(member.nest),
          builder_(builder),
          rows_(nest_.parallel[axes.rows]),
          columns_(nest_.parallel[axes.columns]),
          term_(nest_.reduced[0]),
          body_(as_products(nest_.body)),
          fused_(adds_products(nest_)),
          width_(std::min<std::int64_t>(lanes_of_block, target.vector_bytes / bytes_of(DType::float32))),
          registers_(lanes_of_block / width_),
          groups_(member.tree.groups),
          parts_(lanes_of_block * groups_),
          lane_(Int::symbol("lane", {0, width_ - 1})) {
        // The registers of the tile, those of a column, and two for what is between.
        height_ = std::min(most_rows_of_block, rows_.extent.range().high);
        while (height_ > 1 && height_ * registers_ + registers_ + 2 > target.vector_registers) height_ /= 2;
        const bool several = rows_.extent.range().high > height_;
        even_ = mod(rows_.extent, height_).is(0);
        first_row_ = several ? Int::symbol("rows", {0, rows_.extent.range().high}) : Int(0);
        const bool wide = columns_.extent.range().high > lanes_of_block;
        first_column_ = wide ? Int::symbol("columns", {0, columns_.extent.range().high}) : Int(0);
        count_ = wide ? min(lanes_of_block, columns_.extent - first_column_) : columns_.extent;
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i)
            if (i != axes.rows && i != axes.columns) outer_.push_back(nest_.parallel[i]);
    }

    std::int64_t height() const { return height_; }

    Stmts run() {
        parts_place_ = array({Int(height_), Int(lanes_of_block), Int(lanes_of_block)});
        Stmts body{declare(parts_place_)};
        const Int column = Int::symbol("column", {0, lanes_of_block - 1});
        body.push_back(loop(column, 0, count_, Binding::serial, one_column(column)));
        append(body, results());
        if (first_column_.symbol_id())
            body = {
                loop(first_column_, 0, columns_.extent, Binding::serial, std::move(body), lanes_of_block)};
        if (first_row_.symbol_id())
            body = {loop(first_row_, 0, rows_.extent, Binding::serial, std::move(body), height_)};
        for (auto l = outer_.rbegin(); l != outer_.rend(); ++l)
            if (l->variable.symbol_id())
                body = {loop(l->variable, 0, l->extent, Binding::serial, std::move(body))};
        return body;
    }

  private:
    int array(Shape extents) {
        return builder_.scratch(Place::Scope::private_, DType::float32, std::move(extents));
    }

    static Scalar element(int place, std::vector<Int> at) {
        return place_read(DType::float32, place, std::move(at));
    }

    // Rows behind the last one are the last one: what they come to is not stored.
    Scalar term(std::int64_t row, const Int& column, const Int& number) const {
        const Int own = first_row_ + row;
        return substitute(body_,
                          {{rows_.variable.symbol_id(), even_ ? own : min(own, max(rows_.extent - 1, 0))},
                           {columns_.variable.symbol_id(), first_column_ + column},
                           {term_.variable.symbol_id(), number}});
    }

    Stmts in_registers(Stmts body) const { return {lanes(lane_, width_, width_, std::move(body))}; }

    // f(row, register, its first lane)
    template <class F>
    Stmts of_tile(const F& f) const {
        Stmts s;
        for (std::int64_t p = 0; p < registers_; ++p)
            for (std::int64_t r = 0; r < height_; ++r) s.push_back(f(r, r * registers_ + p, p * width_));
        return in_registers(std::move(s));
    }

    // What is added in the first lanes; in the others what leaves a partial result as it is, to the bit.
    Scalar in_first_lanes(const Scalar& value, const Int& count) const {
        const std::vector<Guard> first{{lane_, 0, count}};
        if (!fused_) return scalar_select(first, value, scalar_constant(DType::float32, 0));
        return scalar_apply(value->op, value->dtype,
                            {scalar_select(first, value->arguments[0], scalar_constant(DType::float32, -0.0)),
                             scalar_select(first, value->arguments[1], scalar_constant(DType::float32, 0))});
    }

    // The terms that are left, of the registers that have some.
    Stmts left_over(int sums, const Int& column, std::int64_t group, const Int& whole,
                    const Int& rest) const {
        Stmts body;
        for (std::int64_t p = 0; p < registers_; ++p) {
            const std::int64_t first = group * lanes_of_block + p * width_;
            const Int more = max(rest - first, 0), count = min(more, width_);
            if (more.is(0)) continue;
            Stmts add;
            for (std::int64_t r = 0; r < height_; ++r) {
                const Scalar value = term(r, column, whole + first + lane_);
                add.push_back(accumulate(sums, {Int(r * registers_ + p), lane_}, Combine::sum,
                                         count.is(width_) ? value : in_first_lanes(value, count), fused_));
            }
            Stmts one = in_registers(std::move(add));
            if (!more.is_constant())
                one = {loop(Int::symbol("once", {0, 1}), 0, min(more, 1), Binding::serial, std::move(one))};
            append(body, std::move(one));
        }
        return body;
    }

    // The partial results of one column, of a group at a time.
    Stmts one_column(const Int& column) {
        const Int whole = floordiv(term_.extent, parts_) * parts_, rest = term_.extent - whole;
        const bool kept = groups_ == 1;
        const int sums = builder_.scratch(Place::Scope::vector, DType::float32,
                                          {Int(height_ * registers_), Int(width_)}),
                  all = kept ? -1 : array({Int(height_), Int(parts_)});
        const Int block = Int::symbol("block", {0, term_.extent.range().high});
        Stmts body{declare(sums)};
        if (!kept) body.push_back(declare(all));
        for (std::int64_t group = 0; group < groups_; ++group) {
            append(body, of_tile([&](std::int64_t, std::int64_t number, std::int64_t) {
                       return set(sums, {Int(number), lane_}, scalar_integer(DType::float32, 0));
                   }));
            Stmts add = of_tile([&](std::int64_t row, std::int64_t number, std::int64_t first) {
                return accumulate(sums, {Int(number), lane_}, Combine::sum,
                                  term(row, column, block + (group * lanes_of_block + first) + lane_),
                                  fused_);
            });
            body.push_back(loop(block, 0, whole, Binding::rolled, std::move(add), parts_));
            if (!rest.is(0)) append(body, left_over(sums, column, group, whole, rest));
            if (kept) continue;
            append(body, of_tile([&](std::int64_t row, std::int64_t number, std::int64_t first) {
                       return set(all, {Int(row), group * lanes_of_block + first + lane_},
                                  element(sums, {Int(number), lane_}));
                   }));
        }
        Stmts keep;
        for (std::int64_t row = 0; row < height_; ++row) {
            std::vector<Scalar> list;
            for (std::int64_t p = 0; p < parts_ / width_; ++p)
                list.push_back(kept ? element(sums, {Int(row * registers_ + p), lane_})
                                    : element(all, {Int(row), p * width_ + lane_}));
            keep.push_back(set(parts_place_, {Int(row), column, lane_}, halved(std::move(list))));
        }
        append(body, in_registers(std::move(keep)));
        return body;
    }

    // The first half of the registers with the second, until one is left.
    static Scalar halved(std::vector<Scalar> list) {
        while (list.size() > 1) {
            const std::size_t half = list.size() / 2;
            for (std::size_t i = 0; i < half; ++i)
                list[i] = scalar_apply(Opcode::add, DType::float32, {list[i], list[i + half]});
            list.resize(half);
        }
        return list[0];
    }

    // What the lanes of all columns come to, row by row.
    Stmts results() {
        const Int row = height_ > 1 ? Int::symbol("row", {0, height_ - 1}) : Int(0),
                  column = Int::symbol("column", {0, lanes_of_block - 1}),
                  other = Int::symbol("lane", {0, width_ - 1}),
                  point = Int::symbol("point", {0, lanes_of_block - 1});
        const int across = array({Int(lanes_of_block), Int(lanes_of_block)});
        Stmts body{declare(across),
                   loop(column, 0, count_, Binding::turned,
                        {loop(other, 0, width_, Binding::serial,
                              {set(across, {other, column}, element(parts_place_, {row, column, other}))})})};
        for (std::int64_t w = width_ / 2; w >= 1; w /= 2) {
            const Int l = w > 1 ? Int::symbol("l", {0, w - 1}) : Int(0);
            body.push_back(loop(
                l, 0, w, Binding::unrolled,
                {loop(point, 0, lanes_of_block, Binding::simd,
                      {accumulate(across, {l, point}, Combine::sum, element(across, {l + w, point}))})}));
        }
        const Substitution here{{rows_.variable.symbol_id(), first_row_ + row},
                                {columns_.variable.symbol_id(), first_column_ + point}};
        body.push_back(loop(point, 0, count_, Binding::simd,
                            substitute(stores(member_, element(across, {Int(0), point})), here)));
        if (!row.symbol_id()) return body;
        const Int count = even_ ? Int(height_) : min(height_, rows_.extent - first_row_);
        return {loop(row, 0, count, Binding::serial, std::move(body))};
    }

    const Member& member_;
    const Nest& nest_;
    KernelBuilder& builder_;
    const Loop rows_, columns_, term_;
    const Scalar body_;
    const bool fused_;
    const std::int64_t width_, registers_;  // lanes of a register, registers of 16 lanes
    const std::int64_t groups_, parts_;     // partial results of a result: 16 of each group
    const Int lane_;
    std::int64_t height_ = 1;  // rows of a tile
    bool even_ = false;        // tiles have no rows over
    Int first_row_, first_column_, count_;
    std::vector<Loop> outer_;
    int parts_place_ = -1;
};

}  // namespace

std::optional<Stmts> schedule_shared_lanes(const Member& member, const Target& target,
                                           KernelBuilder& builder) {
    if (!target.has_vectors() || builder.short_text) return {};
    const std::optional<SharedAxes> axes = shared_axes(member.nest, member.tree, builder.shapes());
    if (!axes) return {};
    SharedLanes lanes(member, *axes, target, builder);
    if (lanes.height() == 1) return {};
    return lanes.run();
}

std::optional<RowsOfMember> rows_of_shared_lanes(const Nest& nest, const ReductionTree& tree,
                                                 const ShapeOf& shape_of) {
    const std::optional<SharedAxes> axes = shared_axes(nest, tree, shape_of);
    if (!axes || axes->rows != 0) return {};
    return RowsOfMember{most_rows_of_block, most_rows_of_block};
}

}  // namespace bitale
