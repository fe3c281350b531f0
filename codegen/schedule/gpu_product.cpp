#include "codegen/schedule/gpu_product.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "codegen/group/values.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/schedule/accumulation.h"

namespace bitale::gpu {

namespace {

constexpr std::int64_t most_threads = 256, shortest_sum = 48, shortest_piece = 8, longest_piece = 512,
                       most_side_by_side = 6, most_in_registers = 16;
constexpr std::int64_t most_results = 4;  // of a thread
// Results whose threads are so few that others should load for them, though nothing is shared.
constexpr std::int64_t few_results = 32;

std::int64_t high(const Loop& l) { return l.extent.range().high; }

// Whether one accumulator takes the terms in the order of the loops, and a term's number says where in these
// it is.
bool has_numbered_terms(const Nest& nest, const ReductionTree& tree) {
    if (tree.lanes > 1 || tree.split || (tree.by_rows && nest.reduced.size() > 1) || nest.reduced.empty())
        return false;
    if (nest.reduced.size() == 1 && !nest.reduced[0].variable.symbol_id()) return false;
    const bool known = std::all_of(nest.reduced.begin() + 1, nest.reduced.end(),
                                   [](const Loop& l) { return l.extent.is_constant(); });
    // All results have the same terms.
    return known && std::none_of(nest.parallel.begin(), nest.parallel.end(), [&](const Loop& l) {
               return l.variable.symbol_id() && depends_on(nest.reduced[0].extent, l.variable.symbol_id());
           });
}

// The sum as one loop over its terms, in the same order.
Nest over_terms(const Nest& nest) {
    if (nest.reduced.size() == 1) return nest;
    Shape shape;
    for (const Loop& l : nest.reduced) shape.push_back(l.extent);
    const Loop term = make_loop("term", count_of(shape));
    const std::vector<Int> at = unflattened(term.variable, shape);
    Substitution here;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (const std::uint64_t id = nest.reduced[d].variable.symbol_id()) here[id] = at[d];
    Nest flat = substitute(nest, here);
    flat.reduced = {term};
    return flat;
}

std::vector<Loop> axes_of(const Nest& nest, const Scalar& factor) {
    std::vector<Loop> axes;
    for (const Loop& l : nest.parallel)
        if (varies(nest, factor, l.variable)) axes.push_back(l);
    return axes;
}

// Upper bound of the points; more than `limit` where it is unknown.
std::int64_t most_points(const std::vector<Loop>& loops, std::int64_t limit) {
    std::int64_t n = 1;
    for (const Loop& l : loops) {
        if (high(l) > limit) return limit + 1;
        n *= std::max<std::int64_t>(high(l), 1);
        if (n > limit) return limit + 1;
    }
    return n;
}

// Threads that fill pieces along the sum write to banks of their own where rows have an odd number of words.
bool is_padded(const std::vector<Loop>& axes) { return axes.size() == 1 && high(axes[0]) % 2 == 0; }

// Of a piece, for one term.
std::int64_t bytes_of_term(const Nest& nest, const Scalar& factor) {
    const std::vector<Loop> axes = axes_of(nest, factor);
    return (most_points(axes, most_threads * most_results) + (is_padded(axes) ? 1 : 0)) *
           bytes_of(factor->dtype);
}

// A factor's part of the sum in shared memory, [k within the piece, the axes it varies over]; or the factor
// itself, where it lies there already.
struct Piece {
    Scalar read;  // over the variables of the nest's loops
    Stmts declare, fill;
};

Piece piece_of(const Member& member, const Scalar& factor, const Int& first, const Loop& inside,
               std::int64_t length, bool numbered, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    // Beyond the end of the sum the last term stands once more; nothing adds it.
    const Int& terms = nest.reduced[0].extent;
    const bool whole = terms.is_constant() && terms.constant() % length == 0;
    const Int term = first + inside.variable;
    const std::uint64_t sum = nest.reduced[0].variable.symbol_id();
    if (!numbered && factor->kind == ScalarNode::Kind::read && factor->guards.empty() &&
        lets_of(nest, factor).empty() &&
        builder.ir.places[factor->operand.place()].scope == Place::Scope::local)
        return {substitute(factor, {{sum, term}}), {}, {}};
    const std::vector<Loop> axes = axes_of(nest, factor);
    Shape shape{Int(length)};
    std::vector<Int> at{inside.variable};
    for (const Loop& l : axes) {
        shape.emplace_back(high(l));
        at.push_back(l.variable);
    }
    if (is_padded(axes)) shape.back() = Int(high(axes[0]) + 1);
    const int place = builder.scratch(Place::Scope::local, factor->dtype, shape);
    builder.takes_turns(place);
    Piece piece{place_read(factor->dtype, place, at), {declare(place)}, {}};
    Member fill;
    fill.nest.lets = lets_of(nest, factor);
    fill.nest.dtype = factor->dtype;
    fill.nest.body = factor;
    // Neighbouring threads read neighbouring elements.
    const bool along_sum = unit_stride(fill.nest, nest.reduced[0].variable, builder.shapes());
    fill.nest = substitute(fill.nest, {{sum, whole ? term : min(term, terms - 1)}});
    fill.nest.parallel = axes;
    fill.nest.parallel.insert(along_sum ? fill.nest.parallel.end() : fill.nest.parallel.begin(), inside);
    fill.destinations = {{place, at}};
    LoopBuilder loops(fill.nest);
    piece.fill = loops.threads(fill.nest.parallel, [&](LoopBuilder& inner) {
        return inner.substituted(stores(fill, fill.nest.body));
    });
    return piece;
}

// An axis of the results of which a thread has several, so many elements apart.
struct Beside {
    int axis = -1;
    std::int64_t results = 1;
};

// Nothing where there are too many results.
std::optional<Beside> beside(const Nest& nest) {
    const std::int64_t points = most_points(nest.parallel, most_threads * most_results);
    if (points <= most_threads) return Beside{};
    for (std::int64_t results = 2; results <= most_results && points <= most_threads * most_results;
         ++results)
        for (std::size_t i = nest.parallel.size(); i-- > 0;) {
            const Loop& l = nest.parallel[i];
            if (l.variable.symbol_id() && l.extent.is_constant() && l.extent.constant() % results == 0 &&
                points / results <= most_threads)
                return Beside{static_cast<int>(i), results};
        }
    return {};
}

// Whether neighbouring elements of something that is read are neighbouring iterations of the loop.
bool reads_along(const Nest& nest, const Loop& l) {
    const std::uint64_t id = l.variable.symbol_id();
    bool along = false;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        along = along || (!s.at.empty() && id && depends_on(s.at.back(), id));
    });
    return along;
}

}  // namespace

bool is_thin_product(const Nest& nest, const ReductionTree& tree) {
    if (!adds_products(nest)) return false;
    if (!nest.guards.empty() || !has_numbered_terms(nest, tree) || typical_count(nest.reduced) < shortest_sum)
        return false;
    if (!beside(nest)) return false;
    const std::int64_t points = most_points(nest.parallel, most_threads * most_results);
    std::int64_t bytes = 0;
    for (const Scalar& factor : nest.body->arguments) {
        const std::int64_t own = most_points(axes_of(nest, factor), most_threads * most_results);
        if (own == points && points > few_results) return false;  // nothing to share
        bytes += own * bytes_of(factor->dtype);
    }
    return bytes * 8 <= product_bytes;
}

bool is_thin_sum(const Nest& nest, const ReductionTree& tree) {
    if (nest.combine == Combine::none || nest.combine == Combine::affine || is_order(nest.combine) ||
        is_prefix(nest) || adds_products(nest))
        return false;
    // Along a row, a warp finds the position.
    if (gives_places(nest.combine) && (nest.reduced.empty() || reads_along(nest, nest.reduced.back())))
        return false;
    if (!nest.guards.empty() || !has_numbered_terms(nest, tree) || typical_count(nest.reduced) < shortest_sum)
        return false;
    const std::int64_t points = most_points(nest.parallel, most_threads);
    return points <= most_threads / 2 &&
           points * bytes_of(nest.body->dtype) * shortest_piece <= product_bytes;
}

bool has_room_for_pieces(const KernelBuilder& builder) {
    constexpr std::int64_t shared_bytes = 48 << 10,
                           slack = 512;  // of a block; arrays begin at multiples of 16
    return builder.bytes_of_segment() + product_bytes + slack <= shared_bytes;
}

Stmts schedule_thin(const Member& of_loops, KernelBuilder& builder, const PartialResults* kept) {
    Member member = of_loops;
    member.nest = over_terms(of_loops.nest);
    const Nest& nest = member.nest;
    const Loop& sum = nest.reduced[0];
    const bool product = adds_products(nest), numbered = of_loops.nest.reduced.size() > 1;
    const std::vector<Scalar> factors = product ? nest.body->arguments : std::vector<Scalar>{nest.body};
    std::int64_t bytes = 0;
    for (const Scalar& factor : factors) bytes += bytes_of_term(nest, factor);
    std::int64_t length = longest_piece;
    while (length * bytes > product_bytes) length /= 2;
    const Int first = Int::symbol("first", {0, sum.extent.range().high});
    const Loop inside{Int::symbol("k", {0, length - 1}), length};
    const DType dtype = accumulator_of(nest);
    // The threads' points, and where each of a thread's results is.
    const Beside several = *beside(nest);
    std::vector<Loop> points = nest.parallel;
    std::vector<std::vector<Int>> at(several.results);
    std::vector<Substitution> of_result(several.results);
    if (several.axis >= 0) {
        Loop& axis = points[static_cast<std::size_t>(several.axis)];
        const std::int64_t threads = axis.extent.constant() / several.results;
        const std::uint64_t id = axis.variable.symbol_id();
        axis = make_loop("point", threads);
        for (std::int64_t i = 0; i < several.results; ++i) {
            at[i] = {Int(i)};
            of_result[i] = {{id, axis.variable + i * threads}};
        }
    }
    const auto own = [&](const std::function<Stmts(const std::vector<Int>&)>& of_one) {
        Stmts statements;
        for (std::int64_t i = 0; i < several.results; ++i)
            append(statements, substitute(of_one(at[i]), of_result[i]));
        Nest all;
        all.parallel = points;
        LoopBuilder loops(all);
        return loops.threads(points, [&](LoopBuilder& inner) { return inner.substituted(statements); });
    };
    Stmts declared, piece;
    std::vector<Scalar> terms;
    for (const Scalar& factor : factors) {
        Piece p = piece_of(member, factor, first, inside, length, numbered, builder);
        append(declared, std::move(p.declare));
        append(piece, std::move(p.fill));
        terms.push_back(p.read);
    }
    piece.push_back(barrier());
    // The terms lie in the pieces.
    Member of_pieces = member;
    of_pieces.tree = {};
    of_pieces.nest.body = product ? scalar_apply(nest.body->op, nest.body->dtype, terms) : terms[0];
    const Accumulation acc(of_pieces, builder, several.axis >= 0 ? Shape{Int(several.results)} : Shape{});
    Stmts body = acc.declare_all(), adds;
    append(body, std::move(declared));
    const Substitution term{{sum.variable.symbol_id(), first + inside.variable}};
    for (std::int64_t i = 0; i < several.results; ++i)
        append(adds, substitute(acc.combine_point(term, {at[i]}), of_result[i]));
    Nest all;
    all.parallel = points;
    LoopBuilder threads(all);
    append(piece, threads.threads(points, [&](LoopBuilder& inner) {
        return inner.substituted(
            {loop(inside.variable, 0, min(length, sum.extent - first), Binding::serial, adds)});
    }));
    piece.push_back(barrier());
    append(body, own([&](const std::vector<Int>& i) {
               return kept ? Stmts{set(acc.place(), i, place_read(dtype, kept->place, kept->at))}
                           : acc.clear(i);
           }));
    body.push_back(loop(first, 0, sum.extent, Binding::serial, std::move(piece), length));
    append(body, own([&](const std::vector<Int>& i) {
               const Scalar result = acc.result(i);
               return kept ? Stmts{set(kept->place, kept->at, result)} : stores(member, result);
           }));
    return body;
}

std::vector<Sharing> shared_axes(const Nest& nest) {
    std::vector<Sharing> chosen;
    // With unknown lengths every address is long arithmetic already: more of it would not fit the registers.
    const bool known = std::all_of(nest.parallel.begin(), nest.parallel.end(),
                                   [](const Loop& l) { return l.extent.is_constant(); });
    if (!adds_products(nest) || !known) return chosen;
    double points = typical_count(nest.parallel);
    // Of each factor, the axis along which most results share it; of the second, no more than registers have
    // room for.
    std::int64_t most = most_side_by_side;
    for (const std::size_t factor : {std::size_t{0}, std::size_t{1}}) {
        Sharing best;
        for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
            const Loop& l = nest.parallel[i];
            const bool taken = !chosen.empty() && chosen[0].axis == static_cast<int>(i);
            if (taken || !l.variable.symbol_id() || varies(nest, nest.body->arguments[factor], l.variable) ||
                mentions(nest.guards, l.variable) || mentions(nest.lets, l.variable))
                continue;
            // A block that has no more than one result a thread has nothing to give.
            std::int64_t results = most;
            while (results > 1 && (l.extent.constant() % results != 0 ||
                                   points / static_cast<double>(results) < most_threads))
                --results;
            if (results > best.results) best = {static_cast<int>(i), results};
        }
        if (best.results == 1) continue;
        points /= static_cast<double>(best.results);
        chosen.push_back(best);
        most = most_in_registers / best.results;
    }
    return chosen;
}

}  // namespace bitale::gpu
