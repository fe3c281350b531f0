#include "ops/rules/signs.h"

#include <algorithm>
#include <optional>

#include "ops/autodiff/modifiers.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/logsumexp.h"
#include "ops/nn/root.h"
#include "ops/nn/softmax.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"

namespace bitale {

namespace {

Sign sign_of(const Array& value) {
    Sign all = Sign::above_zero;
    for (std::int64_t i = 0; i < value.size(); ++i)
        all = std::min(all, value.at(i) > 0    ? Sign::above_zero
                            : value.at(i) == 0 ? Sign::not_below_zero
                                               : Sign::any);
    return all;
}

}  // namespace

bool only_moves(const NodePtr& node) {
    return algebra::is_named(node,
                             {"reshape", "permute", "expand", "slice", "flip", "rows", "gather", "pick"});
}

Sign Signs::least_of(const Nodes& nodes) {
    Sign least = Sign::above_zero;
    for (const NodePtr& node : nodes) least = std::min(least, of(node));
    return least;
}

Sign Signs::of(const NodePtr& x) {
    constexpr int most = 2048;
    if (++visited_ >= most) return Sign::any;
    if (const std::optional<Array> number = uniform_value(x)) return sign_of(*number);
    if (is_constant(x)) return sign_of(constant_value(x));
    const Op* op = x->op;
    if (op->name == "length") return Sign::above_zero;
    if (!match_.may_look_through(x)) return Sign::any;
    // Signed integers wrap.
    if (is_unsigned_integer(x->type.dtype) || x->type.dtype == boolean) return Sign::not_below_zero;
    if (is_integer(x->type.dtype) && op != cast_op()) return Sign::any;
    if (op == sqr_op() || op == abs_op() || op == relu_op() || op == norm_op() || op == root_op())
        return Sign::not_below_zero;
    if (op == cosh_op()) return Sign::above_zero;
    if (op == exp_op() || op == exp2_op() || op == softmax_op() || op == sigmoid_op() ||
        op == softplus_op() || op == sqrt_op())
        return zeros_ == Zeros::any ? Sign::not_below_zero : Sign::any;
    const Nodes& in = x->inputs;
    if (op == cast_op()) {
        const DType from = in[0]->type.dtype;
        const bool holds =
            is_float(x->type.dtype) || from == boolean || bytes_of(from) < bytes_of(x->type.dtype);
        return holds ? of(in[0]) : Sign::any;
    }
    if (op == add_op()) {
        const Sign a = of(in[0]), b = of(in[1]);
        return std::min(a, b) == Sign::any ? Sign::any : std::max(a, b);
    }
    if (op == sub_op()) {  // what is left of a share
        const std::optional<Array> one = uniform_value(in[0]);
        const bool is_share = in[1]->op == sigmoid_op() || in[1]->op == softmax_op();
        return one && one->at(0) >= 1 && is_share && zeros_ == Zeros::any ? Sign::not_below_zero : Sign::any;
    }
    if (op == expm1_op()) return std::min(of(in[0]), Sign::not_below_zero);
    if (op == maximum_op()) return std::max(of(in[0]), of(in[1]));
    if (op == mul_op() || op == div_op()) return least_of(in);
    if (op == where_op()) return least_of({in[1], in[2]});
    if (op == pow_op() || op == reciprocal_op() || op == disconnected_grad_op() || only_moves(x))
        return of(in[0]);
    // A sum of nothing is 0.
    if (op == sum_op() || op == mean_op() || op == prod_op() || op == max_op() || op == min_op())
        return std::min(of(in[0]), Sign::not_below_zero);
    return algebra::is_named(x, {"concat"}) ? least_of(in) : Sign::any;
}

}  // namespace bitale
