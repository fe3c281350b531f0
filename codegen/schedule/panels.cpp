#include "codegen/schedule/panels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/lanes.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::int64_t panel = 64, narrow_panel = 32;  // results side by side
constexpr std::int64_t longest_piece = 128;  // terms of the sum for which copies are made: they stay in L1
constexpr std::int64_t most_rows = 64;
constexpr double lanes_of_register = 16;
constexpr double few_rows = 14;  // which a register tile has at once, two registers wide

// How far every read that moves along the variable moves by one step of it; 0 where they differ.
Int step_along(const Nest& nest, const Scalar& factor, const Int& variable, const ShapeOf& shape_of) {
    std::vector<Int> steps;
    for_each_read(factor, [&](const ScalarNode& s) {
        const Int offset = offset_of(s, shape_of);
        const Int step = substitute(offset, {{variable.symbol_id(), variable + 1}}) - offset;
        if (!step.is(0)) steps.push_back(step);
    });
    // An index that was looked up leads anywhere.
    for (const Let& l : lets_of(nest, factor))
        for_each_read(l.value, [&](const ScalarNode& s) {
            for (const Int& x : s.at)
                if (depends_on(x, variable.symbol_id())) steps.emplace_back(0);
        });
    const bool one = !steps.empty() &&
                     std::all_of(steps.begin(), steps.end(), [&](const Int& s) { return s == steps[0]; });
    return one ? steps[0] : Int(0);
}

// The variable's own step is 1 wherever it is read, but for jumps at multiples of a number, as between the
// planes of elements that share bytes: registers are filled from neighbours all the same.
bool walks_pieces(const Nest& nest, const Scalar& factor, const Int& variable, const ShapeOf& shape_of) {
    const std::uint64_t id = variable.symbol_id();
    bool any = false, all = true;
    const auto jumps = [&](const Int::Term& t) {
        return t.atoms.size() == 1 && t.atoms[0]->kind == Atom::Kind::floordiv &&
               t.atoms[0]->b.is_constant() && t.atoms[0]->b.constant() >= panel &&
               !depends_on(t.atoms[0]->a - variable, id);
    };
    for_each_read(factor, [&](const ScalarNode& s) {
        const Int offset = offset_of(s, shape_of);
        if (!depends_on(offset, id)) return;
        Int step = 0;
        for (const Int::Term& t : offset.terms()) {
            const bool moves = std::any_of(t.atoms.begin(), t.atoms.end(),
                                           [&](const AtomPtr& a) { return depends_on(Int::from(a), id); });
            if (!moves || jumps(t)) continue;
            if (t.atoms.size() == 1 && t.atoms[0]->kind == Atom::Kind::symbol)
                step = step + t.factor;
            else
                all = false;
        }
        any = true;
        all = all && step.is(1);
    });
    for (const Let& l : lets_of(nest, factor))
        for_each_read(l.value, [&](const ScalarNode& s) {
            for (const Int& x : s.at) all = all && !depends_on(x, id);
        });
    return any && all;
}

// Never the constant 0: a loop that may not run at all needs its variable (make_loop).
Int bounded_symbol(const char* name, std::int64_t end) {
    return Int::symbol(
        name, {0, end >= IntRange::highest ? IntRange::highest : std::max<std::int64_t>(end - 1, 1)});
}

// The factor that has the columns.
const Scalar& columns_factor(const Nest& nest, const Int& column) {
    return nest.body->arguments[varies(nest, nest.body->arguments[1], column) ? 1 : 0];
}

// In memory, one after another.
bool is_run(const Nest& nest, const Scalar& factor, const Int& variable, const ShapeOf& shape_of) {
    return is_element(nest, factor) && lets_of(nest, factor).empty() &&
           step_along(nest, factor, variable, shape_of).is(1);
}

// The widest panels of whole registers that leave no narrower one; 0 where there are none.
std::int64_t even_panel(const Int& results) {
    constexpr std::int64_t step = 16;
    for (std::int64_t width = panel; width >= narrow_panel; width -= step)
        if (floordiv(results, width) * width == results) return width;
    return 0;
}

class Panels {
  public:
    Panels(const Member& member, const Target& target, KernelBuilder& builder)
        : member_(member), nest_(member.nest), target_(target), builder_(builder) {}

    std::optional<Stmts> run() {
        if (!target_.has_vectors() || member_.tree.lanes > 1 || !is_matrix_product(nest_)) return {};
        if (nest_.dtype != nest_.accumulator) return {};
        const std::optional<std::size_t> axis = lane_axis(nest_, builder_.shapes());
        if (!axis || !bounded(*axis)) return {};
        axis_ = *axis;
        vector_ = varies(nest_, nest_.body->arguments[1], nest_.parallel[axis_].variable) ? 1 : 0;
        return panels();
    }

  private:
    // Copies and partial results are scratch: their sizes have to be known.
    bool bounded(std::size_t axis) const {
        std::int64_t rows = 1;
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i) {
            if (i == axis) continue;
            const std::int64_t high = nest_.parallel[i].extent.range().high;
            if (high > most_rows) return false;
            rows *= std::max<std::int64_t>(high, 1);
        }
        constexpr std::int64_t fewest_rows = 2;
        return rows >= fewest_rows && rows <= most_rows;
    }

    // Nothing where the factors leave no tile of registers.
    std::optional<Stmts> panels() {
        const Loop& lanes = nest_.parallel[axis_];
        const std::int64_t most = lanes.extent.range().high;
        constexpr std::int64_t whole = 16;
        const std::int64_t even = lanes.extent.is_constant() && most <= panel ? 0 : even_panel(lanes.extent);
        // Over no columns at all nothing is computed.
        const bool several = most > panel || even > 0 || lanes.extent.range().low < 1;
        width_ = even > 0                     ? even
                 : most > panel               ? panel
                 : lanes.extent.is_constant() ? lanes.extent.constant()
                                              : (most + whole - 1) / whole * whole;
        first_lane_ = several ? bounded_symbol("panel", most) : Int(0);
        lane_ = Int::symbol("lane", {0, width_ - 1});
        count_ = even > 0                                 ? Int(width_)
                 : several || !lanes.extent.is_constant() ? min(width_, lanes.extent - first_lane_)
                                                          : lanes.extent;
        const Loop& sum = nest_.reduced[0];
        const std::int64_t terms = sum.extent.range().high;
        // Without copies, all terms at once: the partial results never leave their registers.
        computed_ = !lies_well(vector_) && computed_in_lanes();
        const bool copied = !stays(0) || !stays(1);
        length_ = std::max<std::int64_t>(copied ? std::min(longest_piece, terms) : terms, 1);
        const bool pieces = terms > length_;
        first_term_ = pieces ? bounded_symbol("first", terms) : Int(0);
        term_ = bounded_symbol("term", length_);

        Stmts before, copies;
        Member piece;
        piece.tree = member_.tree;
        piece.nest.accumulator = nest_.accumulator;
        piece.nest.dtype = nest_.dtype;
        piece.nest.combine = nest_.combine;
        piece.nest.parallel = nest_.parallel;
        piece.nest.parallel[axis_] = {lane_, width_};
        piece.nest.reduced = {{term_, pieces ? min(length_, sum.extent - first_term_) : sum.extent}};
        const std::vector<Scalar> factors{factor(0, before, copies), factor(1, before, copies)};
        piece.nest.body = scalar_apply(nest_.body->op, nest_.body->dtype, factors);
        if (computed_) {
            piece.nest.lets = lets_of(nest_, nest_.body->arguments[static_cast<std::size_t>(vector_)]);
            piece.nest = substitute(piece.nest, to_terms());
        }

        Stmts body = std::move(before), inside = std::move(copies);
        if (!pieces && count_.is(width_)) {
            // All of the sum at once, straight to where the results belong.
            piece.destinations = here(member_.destinations);
            if (const auto plan = plan_lanes(piece, target_, builder_, TileUse::fresh, computed_)) {
                append(inside, schedule_lanes(*plan, piece, builder_, TileUse::fresh));
                append(body, std::move(inside));
                return over_panels(std::move(body), several);
            }
        }
        Shape shape;
        std::vector<Int> at;
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i) {
            if (i == axis_) continue;
            shape.emplace_back(nest_.parallel[i].extent.range().high);
            at.push_back(nest_.parallel[i].variable);
        }
        shape.emplace_back(width_);
        at.push_back(lane_);
        const int acc = builder_.scratch(Place::Scope::local, nest_.accumulator, shape);
        piece.destinations = {{acc, at}};
        const TileUse use = pieces ? TileUse::continued : TileUse::fresh;
        const std::optional<LanePlan> plan = plan_lanes(piece, target_, builder_, use, computed_);
        if (!plan) return {};
        append(inside, schedule_lanes(*plan, piece, builder_, use));
        body.insert(body.begin(), declare(acc));
        if (pieces) {
            append(body, pass(scalar_integer(nest_.accumulator, 0), width_, {{acc, at}}));
            body.push_back(loop(first_term_, 0, sum.extent, Binding::serial, std::move(inside), length_));
        } else {
            append(body, std::move(inside));
        }
        append(body, pass(place_read(nest_.accumulator, acc, at), count_, here(member_.destinations)));
        return over_panels(std::move(body), several);
    }

    Stmts over_panels(Stmts body, bool several) const {
        if (!several) return body;
        return {loop(first_lane_, 0, nest_.parallel[axis_].extent, Binding::serial, std::move(body), width_)};
    }

    Substitution to_here() const {
        return {{nest_.parallel[axis_].variable.symbol_id(), first_lane_ + lane_}};
    }

    Substitution to_terms() const {
        Substitution where = to_here();
        where[nest_.reduced[0].variable.symbol_id()] = first_term_ + term_;
        return where;
    }

    std::vector<Destination> here(const std::vector<Destination>& list) const {
        std::vector<Destination> r = list;
        for (Destination& d : r)
            for (Int& x : d.at) x = substitute(x, to_here());
        return r;
    }

    // One pass over the results of a panel.
    Stmts pass(const Scalar& value, const Int& lanes, std::vector<Destination> destinations) const {
        Member all;
        all.nest.dtype = nest_.dtype;
        all.nest.body = value;
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i)
            if (i != axis_) all.nest.parallel.push_back(nest_.parallel[i]);
        all.nest.parallel.push_back({lane_, lanes});
        all.destinations = std::move(destinations);
        return schedule_pointwise(all, target_, builder_);
    }

    // In memory, as the product reads it. Behind a buffer there is room to read one register, but not more.
    bool lies_well(int number) const {
        const Scalar& own = nest_.body->arguments[static_cast<std::size_t>(number)];
        if (!is_element(nest_, own) || !lets_of(nest_, own).empty()) return false;
        return number != vector_ ||
               (count_.is(width_) &&
                step_along(nest_, own, nest_.parallel[axis_].variable, builder_.shapes()).is(1));
    }

    // Few rows use what is computed from bytes, or what a gather finds: in registers rather than as a copy.
    bool computed_in_lanes() const {
        constexpr std::int64_t room = 64;
        const Scalar& own = nest_.body->arguments[static_cast<std::size_t>(vector_)];
        const Int& lane = nest_.parallel[axis_].variable;
        const ScalarNode* read = read_in_lanes(nest_, own, lane);
        double rows = 1;
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i)
            if (i != axis_) rows *= static_cast<double>(nest_.parallel[i].extent.range().high);
        return read && rows <= few_rows && step_along(nest_, own, lane, builder_.shapes()).is(1) &&
               (count_.is(width_) || (width_ - 1) * bytes_of(read->dtype) < room);
    }

    // Read where it is.
    bool stays(int number) const { return lies_well(number) || (computed_ && number == vector_); }

    // What the product reads: the factor itself, or its copy.
    Scalar factor(int number, Stmts& before, Stmts& copies) {
        const Scalar& own = nest_.body->arguments[static_cast<std::size_t>(number)];
        const Substitution where = to_terms();
        const bool vector = number == vector_;
        if (computed_ && vector) return own;  // as long as its lets have their own symbols
        if (lies_well(number)) return substitute(own, where);
        // [term, lane] of the one, [rows, term] of the other.
        std::vector<Loop> loops;
        const Loop terms{term_, min(length_, nest_.reduced[0].extent - first_term_)};
        Shape shape;
        std::vector<Int> at;
        const auto add = [&](const Loop& l, const Int& most) {
            loops.push_back(l);
            shape.push_back(most);
            at.push_back(l.variable);
        };
        if (vector) add(terms, length_);
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i)
            if (i != axis_ && varies(nest_, own, nest_.parallel[i].variable))
                add(nest_.parallel[i], nest_.parallel[i].extent.range().high);
        if (vector)
            add({lane_, count_}, width_);
        else
            add(terms, length_);
        const int place = builder_.scratch(Place::Scope::local, own->dtype, shape);
        before.push_back(declare(place));
        if (vector && !count_.is(width_)) append(before, unused_lanes(place, own->dtype, shape));
        Member copy;
        copy.nest.lets = lets_of(nest_, own);
        copy.nest.dtype = own->dtype;
        copy.nest.body = own;
        // Along memory, if it lies the other way.
        const bool turned = vector
                                ? step_along(nest_, own, nest_.reduced[0].variable, builder_.shapes()).is(1)
                                : step_along(nest_, own, loops[0].variable, builder_.shapes()).is(1);
        if (turned && loops.size() == 2) std::swap(loops[0], loops[1]);
        copy.nest = substitute(copy.nest, where);
        copy.nest.parallel = loops;
        copy.destinations = {{place, at}};
        append(copies, schedule_pointwise(copy, target_, builder_));
        return place_read(own->dtype, place, at);
    }

    // The last panel's registers have lanes that no result needs. Whatever lay there before may be subnormal
    // floats, and multiplying one takes a hundred cycles:
    //
    //     for each term: for each lane from count to width: copy[term, lane] = 0
    Stmts unused_lanes(int place, DType dtype, const Shape& shape) const {
        Member zeros;
        zeros.nest.dtype = dtype;
        zeros.nest.body = scalar_cast(dtype, scalar_integer(DType::int64, 0));
        std::vector<Int> at;
        for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
            zeros.nest.parallel.push_back(make_loop("term", shape[i]));
            at.push_back(zeros.nest.parallel.back().variable);
        }
        const Loop unused{bounded_symbol("unused", width_), width_ - count_};
        zeros.nest.parallel.push_back(unused);
        at.push_back(count_ + unused.variable);
        zeros.destinations = {{place, at}};
        return schedule_pointwise(zeros, target_, builder_);
    }

    const Member& member_;
    const Nest& nest_;
    const Target& target_;
    KernelBuilder& builder_;
    std::size_t axis_ = 0;
    int vector_ = 1;
    bool computed_ = false;  // the vectors, each time that a tile reads them
    std::int64_t width_ = 0, length_ = 0;
    Int lane_, first_lane_, count_, term_, first_term_;
};

}  // namespace

std::optional<std::size_t> lane_axis(const Nest& nest, const ShapeOf& shape_of) {
    constexpr double turned = 0.25, neighbours = 0.2, fewest = 2;
    std::optional<std::size_t> best;
    double most = 0;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Loop& l = nest.parallel[i];
        const double extent = typical(l.extent);
        if (!l.variable.symbol_id() || extent < fewest) continue;
        const std::size_t f = varies(nest, nest.body->arguments[1], l.variable) ? 1 : 0;
        const bool straight = step_along(nest, nest.body->arguments[f], l.variable, shape_of).is(1) ||
                              walks_pieces(nest, nest.body->arguments[f], l.variable, shape_of);
        const double filled = extent / (std::ceil(extent / lanes_of_register) * lanes_of_register);
        const double score =
            filled * (straight ? 1 : turned) + (i + 1 == nest.parallel.size() ? neighbours : 0);
        if (score <= most) continue;
        most = score;
        best = i;
    }
    return best;
}

namespace {

bool is_one_of(const std::vector<Loop>& loops, const Loop& loop) {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const Loop& l) { return l.variable.symbol_id() == loop.variable.symbol_id(); });
}

// Without the axes that both factors have.
Nest one_product(Nest nest) {
    const std::vector<Loop> common = product_axes(nest).common;
    std::erase_if(nest.parallel, [&](const Loop& l) { return is_one_of(common, l); });
    return nest;
}

}  // namespace

std::optional<RowsOfMember> rows_of_product(const Nest& nest, const ShapeOf& shape_of, std::size_t axis) {
    constexpr double tasks = 8;
    constexpr std::int64_t fewest = 4, most = 32, register_lanes = 16;
    if (axis >= nest.parallel.size() || !adds_products(nest)) return {};
    const Nest one = one_product(nest);
    const Loop& loop = nest.parallel[axis];
    if (!is_matrix_product(one) || !is_one_of(one.parallel, loop)) return {};
    const std::optional<std::size_t> lanes = lane_axis(one, shape_of);
    if (!lanes) return {};
    if (one.parallel[*lanes].variable.symbol_id() == loop.variable.symbol_id())
        return RowsOfMember{panel, register_lanes};
    const double extent = typical(loop.extent);
    const auto share = static_cast<std::int64_t>(std::ceil(extent / tasks));
    std::int64_t rows = std::clamp((share + fewest - 1) / fewest * fewest, fewest, most);
    // A few rows share each element of the other factor, if parts of its columns keep all cores busy.
    if (extent <= few_rows && typical(one.parallel[*lanes].extent) >= tasks * panel)
        rows = std::max(rows, static_cast<std::int64_t>(extent));
    // Tiles that come out even leave no rows over, which would run one by one.
    for (std::int64_t even = rows; 2 * even > rows; --even)
        if (std::fmod(extent, static_cast<double>(even)) == 0) {
            rows = even;
            break;
        }
    // What shares the elements of the other factor lies within a row, too.
    const ProductAxes axes = product_axes(one);
    double inside = 0, shared = typical_count(one.reduced);
    for (const std::vector<Loop>* loops : {&axes.rows, &axes.columns})
        if (is_one_of(*loops, loop))
            inside = typical_count(*loops) / std::max(extent, 1.0);
        else
            shared *= typical_count(*loops);
    // More of them where those come from farther than the first cache, and all where they come from farther
    // than the second one: then every task waits for memory.
    constexpr double near = 8192, second_cache = 1 << 17, of_near = 4, of_far = 8;
    const auto all = static_cast<double>(rows);
    const double wanted = shared <= near           ? of_near
                          : shared <= second_cache ? std::clamp(all / 2, of_near, of_far)
                                                   : all;
    return RowsOfMember{rows,
                        std::min(rows, static_cast<std::int64_t>(std::ceil(wanted / std::max(inside, 1.0))))};
}

// The columns from `begin` on, of which there are `count`.
Member columns_of(const Member& member, std::size_t axis, const Int& begin, const Int& count) {
    Member part = member;
    const Int all = part.nest.parallel[axis].variable, here = bounded_symbol("column", count.range().high);
    const Substitution move{{all.symbol_id(), here + begin}};
    part.nest = substitute(part.nest, move);
    part.nest.parallel[axis] = {here, count};
    for (Destination& d : part.destinations)
        for (Int& x : d.at) x = substitute(x, move);
    return part;
}

// for each panel of 64 columns, of 32 if their number is unknown:
//     products of the rows with the panel
// products of the rows with the narrower panel that is left
//
// Panels whose width is known are read where they are, those of other widths are copied.
std::optional<Stmts> whole_panels(const Member& member, std::size_t lanes, const Target& target,
                                  KernelBuilder& builder) {
    const Nest& nest = member.nest;
    const Loop& l = nest.parallel[lanes];
    const std::int64_t width = l.extent.is_constant() ? panel : narrow_panel;
    const bool even = l.extent.range().high <= width || even_panel(l.extent) > 0;
    const bool in_place = is_matrix_product(nest) && nest.lets.empty() && l.variable.symbol_id() &&
                          is_run(nest, columns_factor(nest, l.variable), l.variable, builder.shapes());
    if (even || !in_place || builder.short_text) return Panels(member, target, builder).run();
    const Int whole = floordiv(l.extent, width) * width;
    std::optional<Stmts> first = Panels(columns_of(member, lanes, 0, whole), target, builder).run();
    if (!first) return {};
    std::optional<Stmts> rest =
        Panels(columns_of(member, lanes, whole, l.extent - whole), target, builder).run();
    if (!rest) return {};
    append(*first, std::move(*rest));
    return first;
}

// for each point of the axes that both factors have, and each block of rows:
//     panels of one matrix product
std::optional<Stmts> schedule_panels(const Member& member, const Target& target, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    if (!target.has_vectors() || member.tree.lanes > 1 || !adds_products(nest) || !nest.guards.empty() ||
        nest.reduced.size() != 1)
        return {};
    const std::vector<Loop> common = product_axes(nest).common;
    Member one = member;
    one.nest = one_product(nest);
    const std::optional<std::size_t> lanes = lane_axis(one.nest, builder.shapes());
    if (!lanes) return {};
    std::int64_t rows = 1;
    std::size_t longest = 0;  // of the loops over rows
    const auto high = [](const Loop& l) { return std::max<std::int64_t>(l.extent.range().high, 1); };
    for (std::size_t i = 0; i < one.nest.parallel.size(); ++i) {
        if (i == *lanes) continue;
        const Loop& l = one.nest.parallel[i];
        if (rows == 1 || high(l) > high(one.nest.parallel[longest])) longest = i;
        rows = high(l) > IntRange::highest / rows ? IntRange::highest : rows * high(l);
    }
    if (one.nest.parallel.size() < 2) return {};
    std::optional<Int> first_row;
    const Loop all_rows = one.nest.parallel[longest];
    std::int64_t height = most_rows;
    if (rows > most_rows && !common.empty() && all_rows.variable.symbol_id()) {
        if (rows > high(all_rows)) return {};
        // Blocks that come out even leave no rows over.
        constexpr std::int64_t fewest = 16;
        if (all_rows.extent.is_constant())
            for (std::int64_t h = most_rows; h >= fewest; --h)
                if (all_rows.extent.constant() % h == 0) {
                    height = h;
                    break;
                }
        first_row = bounded_symbol("first_row", high(all_rows));
        const Int row = Int::symbol("row", {0, height - 1});
        const bool even = all_rows.extent.is_constant() && all_rows.extent.constant() % height == 0;
        const Substitution in_block{{all_rows.variable.symbol_id(), *first_row + row}};
        one.nest = substitute(one.nest, in_block);
        one.nest.parallel[longest] = {row, even ? Int(height) : min(height, all_rows.extent - *first_row)};
        for (Destination& d : one.destinations)
            for (Int& x : d.at) x = substitute(x, in_block);
    }
    std::optional<Stmts> body = whole_panels(one, *lanes, target, builder);
    if (!body) return {};
    if (first_row)
        body = Stmts{loop(*first_row, 0, all_rows.extent, Binding::serial, *std::move(body), height)};
    for (std::size_t i = common.size(); i-- > 0;)
        if (common[i].variable.symbol_id())
            body = Stmts{loop(common[i].variable, 0, common[i].extent, Binding::serial, *std::move(body))};
    return body;
}

}  // namespace bitale
