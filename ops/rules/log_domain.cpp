#include "ops/rules/log_domain.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ops/autodiff/modifiers.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/logsumexp.h"
#include "ops/nn/pick.h"
#include "ops/nn/root.h"
#include "ops/nn/softmax.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/kept.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/signs.h"
#include "ops/shape/gather.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using algebra::is_named;
using Axes = std::vector<std::int64_t>;

// How far a value may leave the range of its dtype while its logarithm stays.
struct Danger {
    bool over = false, under = false;
    explicit operator bool() const { return over || under; }
};

class LogDomain {
  public:
    LogDomain(const Match& match, Where where) : match_(match), where_(where) {}

    Danger danger(const NodePtr& x) {
        if (!visit(x)) return {};
        const Op* op = x->op;
        const auto of = [&](std::size_t i) { return danger(x->inputs[i]); };
        if (op == exp_op() || op == exp2_op())
            return {!is_at_most_zero(x->inputs[0]), !is_non_negative(x->inputs[0])};
        if (op == expm1_op()) return {!is_at_most_zero(x->inputs[0]), false};
        if (op == cosh_op()) return {true, false};
        if (op == pow_op()) {
            const std::optional<Array> power = uniform_value(x->inputs[1]);
            const Danger base = power ? of(0) : Danger{};
            return power && power->at(0) < 0 ? Danger{base.under, base.over} : base;
        }
        if (op == softmax_op() || op == sigmoid_op()) return {false, true};
        if (op == mul_op()) {
            const Danger a = of(0), b = of(1);
            return {a.over || b.over, a.under || b.under};
        }
        if (op == div_op()) {
            const Danger a = of(0), b = of(1);
            return {a.over || b.under, a.under || b.over};
        }
        if (op == reciprocal_op()) {
            const Danger a = of(0);
            return {a.under, a.over};
        }
        if (op == add_op()) {
            const Danger a = of(0), b = of(1);
            return {a.over || b.over, a.under && b.under};
        }
        if (op == where_op()) {
            const Danger a = of(1), b = of(2);
            return {a.over || b.over, a.under || b.under};
        }
        if (op == prod_op() && !reduced_axes(*x).empty()) return {true, true};
        const bool follows = op == sum_op() || op == mean_op() || op == sqrt_op() || op == sqr_op() ||
                             op == root_op() || (op == cast_op() && is_harmless(*x)) ||
                             op == disconnected_grad_op() || only_moves(x);
        if (follows && is_float(x->inputs[0]->type.dtype)) return of(0);
        if (is_named(x, {"concat"})) {
            Danger all;
            for (std::size_t i = 0; i < x->inputs.size(); ++i) {
                const Danger each = of(i);
                all = {all.over || each.over, all.under || each.under};
            }
            return all;
        }
        return {};
    }

    // A logarithm behind a cast that rounds would be rounded otherwise: harmless where the result is rounded
    // so itself. Whoever stores halves wants what halves give.
    bool is_harmless(const Node& cast) const {
        const DType from = cast.inputs[0]->type.dtype, to = cast.type.dtype;
        return is_float(from) && (to == DType::float32 || to == DType::float64) &&
               (bytes_of(to) > bytes_of(from) || to == match_.root()->type.dtype);
    }

    // log(x), or null. With `known_sign`, only of what is not negative; the logarithm of a product of many
    // factors finds out otherwise.
    NodePtr log_of(const NodePtr& x, bool known_sign) {
        if (!visit(x)) return nullptr;
        if (known_sign && !is_non_negative(x)) return nullptr;
        if (!danger(x)) {
            const std::optional<Array> one = x->op == sub_op() ? uniform_value(x->inputs[0]) : std::nullopt;
            const bool is_rest = one && one->at(0) == 1;
            const NodePtr rest = is_rest ? log_of_rest(x->inputs[1]) : nullptr;
            return rest ? rest : leaf(x);
        }
        const Op* op = x->op;
        const Nodes& in = x->inputs;
        if (op == exp_op()) return in[0];
        if (op == exp2_op()) return make(mul_op(), {in[0], number(in[0], std::log(2.0))});
        if (op == expm1_op()) return make(add_op(), {in[0], make(log1mexp_op(), {negative(in[0])})});
        if (op == cosh_op()) return make(logcosh_op(), {in[0]});
        if (op == pow_op()) {
            const NodePtr a = log_of(in[0], true);
            return a ? make(mul_op(), {a, in[1]}) : nullptr;
        }
        if (op == softmax_op()) return make(log_softmax_op(), {in[0]}, x->attributes);
        if (op == sigmoid_op()) return negative(make(softplus_op(), {negative(in[0])}));
        if (op == mul_op() || op == div_op()) {
            const NodePtr a = log_of(in[0], true), b = a ? log_of(in[1], true) : nullptr;
            return b ? make(op == mul_op() ? add_op() : sub_op(), {a, b}) : nullptr;
        }
        if (op == reciprocal_op()) {
            const NodePtr a = log_of(in[0], known_sign);
            return a ? negative(a) : nullptr;
        }
        if (op == add_op()) {
            const NodePtr a = log_of(in[0], true), b = a ? log_of(in[1], true) : nullptr;
            return b ? make(logaddexp_op(), {a, b}) : nullptr;
        }
        if (op == where_op()) {
            const NodePtr a = log_of(in[1], known_sign), b = a ? log_of(in[2], known_sign) : nullptr;
            return b ? make(where_op(), {in[0], a, b}) : nullptr;
        }
        if (op == sqrt_op() || op == sqr_op() || op == root_op()) {
            const double power = op == root_op()  ? x->attributes.get<double>("exponent")
                                 : op == sqr_op() ? 2
                                                  : 0.5;
            const NodePtr a = log_of(in[0], op == sqr_op());
            return a ? make(mul_op(), {a, number(a, power)}) : nullptr;
        }
        if (op == sum_op() || op == mean_op()) return of_total(x);
        if (op == prod_op()) return of_product(x, known_sign);
        if (is_named(x, {"concat"})) return of_parts(x, known_sign);
        const NodePtr a = log_of(in[0], known_sign);
        if (!a) return nullptr;
        Nodes inputs = in;
        inputs[0] = a;
        return make(op, std::move(inputs), x->attributes);
    }

    NodePtr log_of_rest(const NodePtr& x) {
        if (!visit(x)) return nullptr;
        if (x->op == exp_op()) return make(log1mexp_op(), {x->inputs[0]});
        if (x->op == sigmoid_op()) return negative(make(softplus_op(), {x->inputs[0]}));
        if (!only_moves(x) && x->op != disconnected_grad_op()) return nullptr;
        const NodePtr inner = log_of_rest(x->inputs[0]);
        if (!inner) return nullptr;
        Nodes inputs = x->inputs;
        inputs[0] = inner;
        return make(x->op, std::move(inputs), x->attributes);
    }

  private:
    // Expressions that people write are small; a barrier is a value like any other.
    bool visit(const NodePtr& x) {
        constexpr int most = 2048;
        return ++visited_ < most && is_float(x->type.dtype) && match_.may_look_through(x);
    }

    NodePtr make(const Op* op, Nodes inputs, Attributes attributes = {}) const {
        return make_node(op, std::move(inputs), std::move(attributes), where_);
    }
    NodePtr negative(const NodePtr& x) const { return make(neg_op(), {x}); }
    NodePtr number(const NodePtr& like, double x) const {
        return scalar_node(like->type.dtype, static_cast<double>(Array(x).as(like->type.dtype).at(0)),
                           where_);
    }

    // Where x is 0, what moves it is not asked: sums that it is a term of have a gradient there.
    NodePtr leaf(const NodePtr& x) const {
        const std::optional<Array> value = uniform_value(x);
        if (value) return number(x, std::log(value->at(0)));
        const NodePtr logarithm = make(log_op(), {x});
        if (Signs(match_, Zeros::any).of(x) != Sign::not_below_zero) return logarithm;
        return make(where_op(), {make(gt_op(), {x, number(x, 0)}), logarithm, number(x, -INFINITY)});
    }

    NodePtr of_total(const NodePtr& x) {
        const Axes axes = reduced_axes(*x);
        const Shape& shape = x->inputs[0]->type.shape;
        const bool of_nothing = std::any_of(axes.begin(), axes.end(), [&](std::int64_t axis) {
            return shape[static_cast<std::size_t>(axis)].is(0);
        });
        const DType dtype = x->type.dtype;
        if (of_nothing || axes.empty() || (dtype != float32 && dtype != float64)) return nullptr;
        const NodePtr terms = log_of(x->inputs[0], true);
        if (!terms) return nullptr;
        const NodePtr total = make(logsumexp_op(), {terms}, x->attributes);
        if (x->op == sum_op()) return total;
        return make(sub_op(), {total, make(log_op(), {number_of(reduced_count(*x), dtype, where_)})});
    }

    // Of factors that may be negative: log(abs), and NaN where an odd number of them is.
    NodePtr of_product(const NodePtr& x, bool known_sign) {
        const NodePtr& factors = x->inputs[0];
        if (is_non_negative(factors)) {
            const NodePtr terms = log_of(factors, true);
            return terms ? make(sum_op(), {terms}, x->attributes) : nullptr;
        }
        if (known_sign) return nullptr;
        const NodePtr terms = make(log_op(), {make(abs_op(), {factors})});
        const NodePtr sign = make(prod_op(), {make(sign_op(), {factors})}, x->attributes);
        const NodePtr negative = make(lt_op(), {sign, number(sign, 0)});
        return make(where_op(), {negative, number(sign, NAN), make(sum_op(), {terms}, x->attributes)});
    }

    NodePtr of_parts(const NodePtr& x, bool known_sign) {
        Nodes parts;
        for (const NodePtr& part : x->inputs) {
            parts.push_back(log_of(part, known_sign));
            if (!parts.back()) return nullptr;
            // A number is one for all elements.
            if (parts.back()->type.shape != part->type.shape)
                parts.back() = make_expand(parts.back(), part->type.shape, where_);
        }
        return make(x->op, std::move(parts), x->attributes);
    }

    // Exponents of what is scaled before, as by its largest value, and of distances.
    bool is_at_most_zero(const NodePtr& x) const {
        if (!match_.may_look_through(x)) return false;
        if (x->op == neg_op()) return is_non_negative(x->inputs[0]);
        if (x->op == mul_op() || x->op == div_op()) {
            for (const std::size_t i : {0, 1}) {
                const std::optional<Array> number = uniform_value(x->inputs[i]);
                if (number && number->at(0) <= 0) return is_non_negative(x->inputs[1 - i]);
                if (is_at_most_zero(x->inputs[i])) return is_non_negative(x->inputs[1 - i]);
            }
            return false;
        }
        if (only_moves(x)) return is_at_most_zero(x->inputs[0]);
        Axes all;
        for (std::int64_t axis = 0; axis < x->type.rank(); ++axis) all.push_back(axis);
        return is_below_maximum(x, all);
    }

    bool is_non_negative(const NodePtr& x) const { return Signs(match_, Zeros::any).of(x) != Sign::any; }

    const Match& match_;
    const Where where_;
    int visited_ = 0;
};

}  // namespace

NodePtr log_of(const NodePtr& x, const Match& match, Where where) {
    return LogDomain(match, where).danger(x) ? LogDomain(match, where).log_of(x, false) : nullptr;
}

NodePtr log_of_rest(const NodePtr& x, const Match& match, Where where) {
    return LogDomain(match, where).log_of_rest(x);
}

NodePtr log_of_positive(const NodePtr& x, const Match& match, Where where) {
    return LogDomain(match, where).danger(x) ? LogDomain(match, where).log_of(x, true) : nullptr;
}

bool may_overflow(const NodePtr& x, const Match& match) { return LogDomain(match, {}).danger(x).over; }

}  // namespace bitale
