#include "codegen/schedule/gpu_product.h"

#include <algorithm>

#include "codegen/group/values.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/schedule/accumulation.h"

namespace bitale::gpu {

namespace {

constexpr std::int64_t most_threads = 256, shortest_sum = 48, shortest_piece = 8, longest_piece = 64,
                       most_side_by_side = 6;

std::int64_t high(const Loop& l) { return l.extent.range().high; }

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

// A factor's part of the sum in shared memory, [k within the piece, the axes it varies over]; or the factor
// itself, where it lies there already.
struct Piece {
    Scalar read;  // over the variables of the nest's loops
    Stmts declare, fill;
};

Piece piece_of(const Member& member, const Scalar& factor, const Int& first, const Loop& inside,
               std::int64_t length, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    // Beyond the end of the sum the last term stands once more; nothing adds it.
    const Int& terms = nest.reduced[0].extent;
    const bool whole = terms.is_constant() && terms.constant() % length == 0;
    const Int term = first + inside.variable;
    const std::uint64_t sum = nest.reduced[0].variable.symbol_id();
    if (factor->kind == ScalarNode::Kind::read && factor->guards.empty() && lets_of(nest, factor).empty() &&
        builder.ir.places[factor->operand.place()].scope == Place::Scope::local)
        return {substitute(factor, {{sum, term}}), {}, {}};
    const std::vector<Loop> axes = axes_of(nest, factor);
    Shape shape{Int(length)};
    std::vector<Int> at{inside.variable};
    for (const Loop& l : axes) {
        shape.emplace_back(high(l));
        at.push_back(l.variable);
    }
    const int place = builder.scratch(Place::Scope::local, factor->dtype, shape);
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

}  // namespace

bool is_thin_product(const Nest& nest, const ReductionTree& tree) {
    if (!adds_products(nest) || tree.lanes > 1 || tree.split) return false;
    if (nest.reduced.size() != 1 || !nest.guards.empty() || nest.reduced[0].variable.symbol_id() == 0)
        return false;
    if (typical(nest.reduced[0].extent) < shortest_sum) return false;
    const std::int64_t points = most_points(nest.parallel, most_threads);
    if (points > most_threads) return false;
    std::int64_t bytes = 0;
    for (const Scalar& factor : nest.body->arguments) {
        const std::int64_t own = most_points(axes_of(nest, factor), most_threads);
        if (own == points) return false;  // nothing to share
        bytes += own * bytes_of(factor->dtype);
    }
    return bytes * 8 <= product_bytes;
}

bool is_thin_sum(const Nest& nest, const ReductionTree& tree) {
    if (nest.combine == Combine::none || nest.combine == Combine::affine || gives_places(nest.combine) ||
        is_prefix(nest) || adds_products(nest))
        return false;
    if (tree.lanes > 1 || tree.split || nest.reduced.size() != 1 || !nest.guards.empty()) return false;
    if (nest.reduced[0].variable.symbol_id() == 0 || typical(nest.reduced[0].extent) < shortest_sum)
        return false;
    const std::int64_t points = most_points(nest.parallel, most_threads);
    return points <= most_threads / 2 &&
           points * bytes_of(nest.body->dtype) * shortest_piece <= product_bytes;
}

Stmts schedule_thin(const Member& member, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    const Loop& sum = nest.reduced[0];
    const bool product = adds_products(nest);
    const std::vector<Scalar> factors = product ? nest.body->arguments : std::vector<Scalar>{nest.body};
    std::int64_t bytes = 0;
    for (const Scalar& factor : factors)
        bytes += most_points(axes_of(nest, factor), most_threads) * bytes_of(factor->dtype);
    std::int64_t length = longest_piece;
    while (length * bytes > product_bytes) length /= 2;
    const Int first = Int::symbol("first", {0, sum.extent.range().high});
    const Loop inside{Int::symbol("k", {0, length - 1}), length};
    const DType dtype = accumulator_of(nest);
    const int acc = builder.scratch(Place::Scope::private_, dtype, {});
    Stmts body{declare(acc)}, piece;
    std::vector<Scalar> terms;
    for (const Scalar& factor : factors) {
        Piece p = piece_of(member, factor, first, inside, length, builder);
        append(body, std::move(p.declare));
        append(piece, std::move(p.fill));
        terms.push_back(p.read);
    }
    // Every point has its own thread: there are no more points than threads.
    const auto own = [&](const Stmts& statements) {
        Nest points;
        points.parallel = nest.parallel;
        LoopBuilder loops(points);
        return loops.threads(nest.parallel,
                             [&](LoopBuilder& inner) { return inner.substituted(statements); });
    };
    const Scalar term =
        product ? scalar_apply(nest.body->op, nest.body->dtype, terms) : scalar_cast(dtype, terms[0]);
    piece.push_back(barrier());
    append(piece, own({loop(inside.variable, 0, min(length, sum.extent - first), Binding::serial,
                            {accumulate(acc, {}, nest.combine, term, product)})}));
    piece.push_back(barrier());
    append(body, own({set(acc, {}, neutral(nest.combine, dtype))}));
    body.push_back(loop(first, 0, sum.extent, Binding::serial, std::move(piece), length));
    append(body, own(stores(member, place_read(dtype, acc, {}))));
    return body;
}

Sharing shared_axis(const Nest& nest) {
    Sharing best;
    // With unknown lengths every address is long arithmetic already: more of it would not fit the registers.
    const bool known = std::all_of(nest.parallel.begin(), nest.parallel.end(),
                                   [](const Loop& l) { return l.extent.is_constant(); });
    if (!adds_products(nest) || !known) return best;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Loop& l = nest.parallel[i];
        if (!l.variable.symbol_id() || !l.extent.is_constant()) continue;
        const bool shared = std::any_of(nest.body->arguments.begin(), nest.body->arguments.end(),
                                        [&](const Scalar& f) { return !varies(nest, f, l.variable); });
        if (!shared || mentions(nest.guards, l.variable) || mentions(nest.lets, l.variable)) continue;
        std::int64_t results = most_side_by_side;
        while (results > 1 && l.extent.constant() % results != 0) --results;
        if (results > best.results) best = {static_cast<int>(i), results};
    }
    // A block that has no more than one result a thread has nothing to give.
    const double points = typical_count(nest.parallel);
    while (best.results > 1 && points / static_cast<double>(best.results) < most_threads) {
        std::int64_t fewer = best.results - 1;
        while (fewer > 1 && nest.parallel[best.axis].extent.constant() % fewer != 0) --fewer;
        best.results = fewer;
    }
    return best.results > 1 ? best : Sharing{};
}

}  // namespace bitale::gpu
