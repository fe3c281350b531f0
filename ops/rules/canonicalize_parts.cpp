// Parts of a concatenation: a slice that takes one of them whole is that part, also through maps. The
// gradient of a concatenation of n parts slices one value n times; each slice would otherwise choose among n
// parts. Many slices of one value at equal distances, put side by side, are windows of it.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/rules/rules.h"
#include "ops/shape/gather.h"
#include "ops/shape/join.h"
#include "ops/shape/sequence.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// The parts of a concatenation by start and length. Those of the last one are kept, because slices of the
// same one follow each other: n slices of n parts would otherwise add up n * n lengths.
class Parts {
  public:
    NodePtr find(const NodePtr& concat, const Cut& cut) {
        constexpr std::size_t many = 16;
        if (concat->inputs.size() < many) return nullptr;
        if (concat->attributes.get<std::int64_t>("axis") != static_cast<std::int64_t>(cut.axis))
            return nullptr;
        if (of_.lock() != concat) {
            parts_.clear();
            const std::vector<Int> starts = starts_of_parts(concat->inputs, cut.axis);
            for (std::size_t k = 0; k < concat->inputs.size(); ++k)
                parts_.emplace(std::pair(starts[k], concat->inputs[k]->type.shape[cut.axis]), k);
            of_ = concat;
        }
        const auto at = parts_.find({cut.start, cut.count});
        return at == parts_.end() ? nullptr : concat->inputs[at->second];
    }

  private:
    std::weak_ptr<const Node> of_;
    std::map<std::pair<Int, Int>, std::size_t> parts_;
};

NodePtr part_of(const NodePtr& concat, const Cut& cut) {
    // Of a thread whose variables are gone: destructors of static objects may build functions.
    constinit thread_local bool are_gone = false;
    struct Kept {
        Parts parts;
        ~Kept() { are_gone = true; }
    };
    if (are_gone) return Parts().find(concat, cut);
    thread_local Kept kept;
    return kept.parts.find(concat, cut);
}

// The slice of x if a part is found below it; null otherwise. `depth` bounds what is computed again where
// other values need x too.
NodePtr taken(const Match& m, const NodePtr& x, const Cut& cut, int depth, Where where) {
    if (!m.may_look_through(x) && x != m.root()->inputs[0]) return nullptr;
    if (x->op == concat_op()) return part_of(x, cut);
    if (x->op->kind != OpKind::map || depth == 0) return nullptr;
    Nodes inputs = x->inputs;
    bool found = false;
    for (NodePtr& input : inputs) {
        if (input->type.rank() == 0) continue;
        if (NodePtr part = taken(m, input, cut, depth - 1, where)) {
            input = std::move(part);
            found = true;
        } else {
            input = make_slice(input, static_cast<int>(cut.axis), cut.start, cut.count, 1, where);
        }
    }
    return found ? make_node(x->op, std::move(inputs), x->attributes, x->where) : nullptr;
}

NodePtr without_concat(const Match& m) {
    constexpr int most_maps = 4;
    const NodePtr& slice = m.root();
    const NodePtr& x = slice->inputs[0];
    if (x->op != concat_op() && x->op->kind != OpKind::map) return nullptr;
    if (slice->attributes.find("places")) return nullptr;
    const std::optional<Cut> cut = cut_of(*slice);
    return cut ? taken(m, x, *cut, most_maps, slice->where) : nullptr;
}

// The slice that a part of a stack is, with one more axis of length 1; null for another part.
NodePtr stacked_slice(const NodePtr& part, std::size_t axis, const Match& m) {
    if (part->op != reshape_op() || !m.may_look_through(part)) return nullptr;
    const NodePtr& slice = part->inputs[0];
    if (slice->op != slice_op() || !m.may_look_through(slice) || slice->attributes.find("places"))
        return nullptr;
    Shape shape = slice->type.shape;
    if (axis > shape.size()) return nullptr;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    return part->type.shape == shape ? slice : nullptr;
}

// first + step * (0, 1, ..., count - 1), repeated along the other axis of [.., ..].
Expr places_along(const Int& first, const Int& step, const Int& count, bool down, const Shape& all,
                  Where where) {
    const Expr numbers =
        wrap(make_reshape(make_iota(count, where), down ? Shape{count, 1} : Shape{1, count}, where));
    const Expr scaled = apply(mul_op(), {numbers, wrap(make_length(step, where))}, {}, where);
    return expand_to(apply(add_op(), {scaled, wrap(make_length(first, where))}, {}, where), all, where);
}

Int with_room(const Int& x, const Int& length);

// As min(3, length) is 3 there, max(0, length - 3) is length - 3, and max(0, 3 - length) 0.
Int with_room(const Atom& a, const Int& length) {
    const Int p = with_room(a.a, length), q = with_room(a.b, length);
    if (a.kind == Atom::Kind::floordiv) return floordiv(p, q);
    if (a.kind == Atom::Kind::max && p.is(0) && (q - length).is_constant()) return q;
    if (a.kind == Atom::Kind::max) return p.is(0) && (q + length).is_constant() ? Int(0) : max(p, q);
    if (p == length && q.is_constant()) return q;
    return q == length && p.is_constant() ? p : min(p, q);
}

// x for an axis that is no shorter than any number that it is compared with.
Int with_room(const Int& x, const Int& length) {
    Int r = x;
    for (const Int::Term& t : x.terms()) {
        Int old = t.factor, now = t.factor;
        for (const AtomPtr& a : t.atoms) {
            old = old * Int::from(a);
            now = now * (a->kind == Atom::Kind::symbol ? Int::from(a) : with_room(*a, length));
        }
        r = r - old + now;
    }
    return r;
}

// Of slices of one value that begin at equal distances and are equally long, the first; null for others.
// Where a slice would begin behind the end, it is empty, and so are all: a stack has parts of one length.
// Some slice begins within, whose length is that of all.
struct Stacked {
    NodePtr x;
    Cut first;
    Int step;
};

std::optional<Stacked> equal_slices(const NodePtr& concat, std::size_t axis, const Match& m) {
    Stacked all;
    bool begins_within = false;
    for (std::size_t k = 0; k < concat->inputs.size(); ++k) {
        const NodePtr slice = stacked_slice(concat->inputs[k], axis, m);
        const std::optional<Cut> own = slice ? cut_of(*slice) : std::nullopt;
        if (!own || (k > 0 && (all.x != slice->inputs[0] || all.first.axis != own->axis))) return {};
        const Int& length = slice->inputs[0]->type.shape[own->axis];
        const Cut cut{own->axis, with_room(own->start, length), with_room(own->count, length)};
        begins_within = begins_within || cut.start == own->start;
        if (k == 0) all = {slice->inputs[0], cut, 0};
        if (k == 1) all.step = cut.start - all.first.start;
        if (!(cut.count == all.first.count) ||
            !(cut.start - all.first.start == static_cast<std::int64_t>(k) * all.step))
            return {};
    }
    return begins_within && all.step.is_constant() && !all.step.is(0) ? std::optional(all) : std::nullopt;
}

// stack({x[start:start + n], x[start + step:start + step + n], ...}, axis): rows of x at i + start + step *
// k, a view, of which elements do not choose among many parts.
NodePtr windows_of(const Match& m) {
    constexpr std::size_t fewest = 12;
    const NodePtr& root = m.root();
    if (root->op != concat_op() || root->inputs.size() < fewest) return nullptr;
    const auto axis = static_cast<std::size_t>(root->attributes.get<std::int64_t>("axis"));
    const std::optional<Stacked> stacked = equal_slices(root, axis, m);
    if (!stacked) return nullptr;
    const auto& [x, first, step] = *stacked;
    const Where where = root->where;
    const Shape all{max(first.count, 0), static_cast<std::int64_t>(root->inputs.size())};
    const Expr places = apply(add_op(),
                              {places_along(0, 1, all[0], true, all, where),
                               places_along(first.start, step, all[1], false, all, where)},
                              {}, where);
    // The rows in front, then the parts, then the other axes: each where it is in the stack.
    std::vector<std::int64_t> in_front{static_cast<std::int64_t>(first.axis)}, order;
    for (std::int64_t d = 0; d < x->type.rank(); ++d) {
        const bool is_cut = d == in_front[0];
        order.push_back(is_cut ? 0 : 1 + static_cast<std::int64_t>(in_front.size()));
        if (!is_cut) in_front.push_back(d);
    }
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    const NodePtr rows = make_node(gather_op(), {make_permute(x, in_front, where), places.node()}, {}, where);
    return make_permute(rows, order, where);
}

}  // namespace

std::vector<Rule> part_rules() {
    return {{"slice-part", Pattern::apply("slice", {Pattern::any("x").again()}), without_concat},
            {"stack-windows", Pattern::of_kind(OpKind::view, "view"), windows_of}};
}

}  // namespace bitale
