#include "ops/reduce/integer_sum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/rewrite/pattern.h"
#include "graph/walk/traverse.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/join.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

constexpr int most_bits = 16;  // so that float32 has each of the integers

bool is_small_integer(DType dtype) { return !is_float(dtype) && bits_of(dtype) <= most_bits; }

bool is_wide_float(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

// Gives elements of its first operand, moved or repeated, and none but these.
bool moves_elements(const Node& node) {
    if (node.op->kind != OpKind::view || node.inputs.empty() || node.type.dtype != node.inputs[0]->type.dtype)
        return false;
    const std::string& name = node.op->name;
    return node.op == reshape_op() || node.op == permute_op() || node.op == expand_op() ||
           node.op == flip_op() || name == "slice" || name == "rows" || name == "gather";
}

// Likewise, or zeros and integers beside them.
bool gives_integers(const Node& node) {
    if (node.op->kind != OpKind::view || node.inputs.empty() || node.type.dtype != node.inputs[0]->type.dtype)
        return false;
    if (node.op == pad_op() && node.attributes.get<double>("value") != 0) return false;
    // The other parts keep the dtype that the first one would lose.
    if (node.op == concat_op() && node.inputs.size() > 1) return false;
    if (node.op == set_slice_op() || node.op == set_rows_op()) return false;
    return std::none_of(node.inputs.begin() + 1, node.inputs.end(),
                        [](const NodePtr& x) { return is_float(x->type.dtype); });
}

// The scalar that an operand repeats, or null.
NodePtr scalar_of_operand(const NodePtr& x) {
    if (x->type.rank() == 0) return x;
    if (x->op == expand_op() && x->inputs[0]->type.rank() == 0) return x->inputs[0];
    const std::optional<Array> value = uniform_value(x);
    return value ? make_constant(*value, x->where) : nullptr;
}

NodePtr as(DType dtype, const NodePtr& x) {
    return x->type.dtype == dtype ? x : make_node(cast_op(), {x}, {{"dtype", dtype}}, x->where);
}

struct Range {
    double low, high;
    double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};

Range range_of_dtype(DType dtype) {
    if (dtype == DType::boolean) return {0, 1};
    const bool is_signed = is_signed_integer(dtype);
    const double high = std::ldexp(1.0, bits_of(dtype) - (is_signed ? 1 : 0));
    return {is_signed ? -high : 0, high - 1};
}

Range hull(double a, double b) { return {std::min(a, b), std::max(a, b)}; }

// Whether a dtype has all numbers in the range; floats round them, but neither overflow nor vanish.
bool holds(DType dtype, const Range& range) {
    constexpr double exact_integers = 0x1p53;
    if (dtype == DType::float64) return range.magnitude() <= 0x1p900;
    if (dtype == DType::float32) return range.magnitude() <= 0x1p100;
    const Range all = range_of_dtype(dtype);
    return range.magnitude() <= exact_integers && range.low >= all.low && range.high <= all.high;
}

}  // namespace

// A map of the terms and of a scalar that is the same for all of them.
bool IntegerSum::take_step(const NodePtr& node) {
    const Op* const op = node->op;
    const DType dtype = node->type.dtype;
    if (op == neg_op()) {
        steps_.push_back({op, nullptr, false, dtype, node->origins});
        return true;
    }
    if (op != add_op() && op != sub_op() && op != mul_op() && op != div_op()) return false;
    for (const std::size_t k : {1U, 0U}) {
        if (k == 0 && op == div_op()) continue;
        const NodePtr scalar = scalar_of_operand(node->inputs[k]);
        if (!scalar || node->inputs[1 - k]->type.rank() == 0) continue;
        if (!is_constant(scalar) && (op != mul_op() || !is_wide_float(dtype))) continue;
        steps_.push_back({op, scalar, k == 0, dtype, node->origins});
        return true;
    }
    return false;
}

// Of all terms that there may be, after each step. Notes whether float32 would round what is shifted.
bool IntegerSum::stays_in_range() {
    constexpr double least_scale = 0x1p-100, exact_in_float32 = 0x1p24;
    const auto count = static_cast<double>(count_.range().high);
    bool exact = true;  // so far float32 has every sum of terms
    Range range = range_of_dtype(integers_->type.dtype);
    double scale = 1;
    exact = exact && range.magnitude() * count <= exact_in_float32;
    shift_rounds_ = false;
    for (const Step& step : steps_) {
        const bool known = step.scalar && is_constant(step.scalar);
        const double s = known ? constant_value(step.scalar).at(0) : 1;
        if (!std::isfinite(s)) return false;
        if (step.op == neg_op()) range = {-range.high, -range.low};
        if (step.op == add_op()) range = {range.low + s, range.high + s};
        if (step.op == sub_op())
            range =
                step.is_first ? Range{s - range.high, s - range.low} : Range{range.low - s, range.high - s};
        if (step.op == mul_op()) range = hull(range.low * s, range.high * s);
        if (step.op == div_op()) range = hull(range.low / s, range.high / s);
        if (step.op == mul_op()) scale *= std::abs(s);
        if (step.op == div_op()) scale /= std::abs(s);
        const bool shifts = step.op == add_op() || step.op == sub_op();
        exact = exact && step.op != div_op() && s == std::trunc(s) && (known || step.op != mul_op()) &&
                range.magnitude() * count <= exact_in_float32 &&
                (!shifts || std::abs(s) * count <= exact_in_float32);
        shift_rounds_ = shift_rounds_ || (shifts && !exact);
        // A cast from integers to floats loses nothing that a float of 24 bits has.
        const bool rounds =
            step.op == cast_op() && step.dtype == DType::float32 && range.magnitude() > exact_in_float32;
        if (rounds || !(scale >= least_scale) || !holds(step.dtype, range)) return false;
    }
    return true;
}

std::optional<IntegerSum> IntegerSum::of(const Node& sum, const Int& count,
                                         const std::function<bool(const NodePtr&)>& may_look_through) {
    constexpr std::size_t most_steps = 16;
    const DType dtype = sum.type.dtype;
    if (sum.op != sum_op() || !(is_wide_float(dtype) || is_integer(dtype))) return {};
    // Integers of few bits may have been computed of others: the innermost ones come last.
    struct Candidate {
        std::size_t steps, moves;
        NodePtr integers;
        bool others;
    };
    std::vector<Candidate> candidates;
    IntegerSum r;
    r.dtype_ = dtype;
    r.count_ = count;
    Nodes moves;
    bool others = false;  // elements that are not the integers'
    NodePtr at = sum.inputs[0];
    while (r.steps_.size() + moves.size() < most_steps && at->type.rank() > 0 &&
           !(may_look_through && !may_look_through(at))) {
        if (at->op->kind == OpKind::view) {
            if (!gives_integers(*at)) break;
            others = others || !moves_elements(*at);
            moves.push_back(at);
            at = at->inputs[0];
        } else if (at->op == cast_op()) {
            const NodePtr& from = at->inputs[0];
            if (is_float(from->type.dtype)) break;
            r.steps_.push_back({cast_op(), nullptr, false, at->type.dtype, {}});
            if (is_small_integer(from->type.dtype))
                candidates.push_back({r.steps_.size(), moves.size(), from, others});
            at = from;
        } else {
            if (!r.take_step(at)) break;
            at = at->inputs[r.steps_.back().is_first ? 1 : 0];
        }
    }
    const std::vector<Step> all = std::exchange(r.steps_, {});
    for (; !candidates.empty(); candidates.pop_back()) {
        const Candidate& c = candidates.back();
        r.steps_.assign(all.rend() - static_cast<std::ptrdiff_t>(c.steps), all.rend());
        r.integers_ = c.integers;
        if (!r.stays_in_range()) continue;
        std::erase_if(r.steps_, [](const Step& step) { return step.op == cast_op(); });
        if (r.is_plain() || !c.others) break;
    }
    if (candidates.empty()) return {};
    moves.resize(candidates.back().moves);
    for (const Step& step : r.steps_)
        r.has_variable_ = r.has_variable_ || (step.scalar && !is_constant(step.scalar));
    // Where each result has its own float64, there are to be fewer of them than terms.
    constexpr std::int64_t worth_float64 = 8;
    if (dtype == DType::float32 && !r.is_plain()) {
        const bool few = count.range().high < worth_float64;
        if (few && r.shift_rounds_) return {};
        r.in_float64_ = r.shift_rounds_ || (!few && !r.has_variable_);
    }
    for (; !moves.empty(); moves.pop_back()) {
        Nodes operands = moves.back()->inputs;
        operands[0] = r.integers_;
        r.integers_ = with_inputs(moves.back(), std::move(operands));
    }
    return r;
}

DType IntegerSum::wide() const { return in_float64_ ? DType::float64 : dtype_; }

NodePtr IntegerSum::value(const NodePtr& total) const {
    const Where where = total->where;
    const auto make = [&](const Op* op, Nodes inputs) { return make_node(op, std::move(inputs), {}, where); };
    NodePtr r = total;
    for (const Step& step : steps_) {
        Nodes operands{r};
        if (step.scalar) {
            NodePtr s = as(wide(), step.scalar);
            // A sum of no terms is 0, also where the factor is no number.
            if (!is_constant(step.scalar) && count_.range().low < 1)
                s = make(where_op(), {make(gt_op(), {number_of(count_, DType::int64, where),
                                                     scalar_node(DType::int64, 0, where)}),
                                      s, scalar_node(wide(), 0, where)});
            if (step.op == add_op() || step.op == sub_op())
                s = make(mul_op(), {number_of(count_, wide(), where), s});
            operands.insert(step.is_first ? operands.begin() : operands.end(), s);
        }
        r = make(step.op, std::move(operands));
        const_cast<Node&>(*r).origins = step.origins;  // not shared yet
    }
    return as(dtype_, r);
}

}  // namespace bitale
