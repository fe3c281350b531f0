#include "ops/oracle/wide.h"

#include "graph/ir/shared.h"
#include "graph/types/convert.h"
#include "ops/linear/eigh.h"
#include "ops/oracle/walk.h"
#include "ops/oracle/wide_eigh.h"
#include "ops/oracle/wide_nest.h"

namespace bitale {

namespace {

WidePtr widened(const Array& x) {
    auto wide = std::make_shared<WideValue>();
    wide->dtype = x.dtype();
    wide->shape = x.shape();
    wide->values.resize(static_cast<std::size_t>(x.size()));
    dispatch(x.dtype(), [&](auto t) {
        using T = decltype(t);
        const T* from = static_cast<const T*>(x.data());
        for (std::size_t i = 0; i < wide->values.size(); ++i) {
            if constexpr (std::is_arithmetic_v<T>)
                wide->values[i] = static_cast<long double>(from[i]);
            else
                wide->values[i] = static_cast<long double>(static_cast<float>(from[i]));
        }
    });
    return wide;
}

class Wide {
  public:
    Wide() : walk_([this](const NodePtr& node, const auto& operands) { return value_of(node, operands); }) {}

    std::vector<WidePtr> run(const Nodes& roots) { return walk_.run(roots); }

  private:
    WidePtr value_of(const NodePtr& node, const std::vector<WidePtr>& operands) {
        const Op& op = *node->op;
        if (is_constant(node)) return widened(constant_value(node));
        if (const SharedPtr shared = shared_of(node)) return widened(current_value(shared));
        BITALE_CHECK(op.kind != OpKind::leaf, "an input without a value: " + describe(*node));
        if (op.checks)
            for (const Check& check : op.checks(*node))
                require(check, *walk_.run_on_operands(check.value, *node, operands));
        const WidePtr value = op.kind == OpKind::composite
                                  ? walk_.run_on_operands(op.decompose(node), *node, operands)
                              : &op == eigh_op() ? std::make_shared<const WideValue>(wide_eigh(*operands[0]))
                                                 : run_wide(nest_of(*node), operands);
        BITALE_CHECK(value->dtype == node->type.dtype && shape_of(value->shape) == node->type.shape,
                     "the wide evaluation of " + describe(*node) + " gave " +
                         std::string(name_of(value->dtype)) + " " + text_of(value->shape));
        return value;
    }

    static void require(const Check& check, const WideValue& x) {
        const auto low = static_cast<long double>(check.low.constant()),
                   high = static_cast<long double>(check.high.constant());
        for (std::size_t i = 0; i < x.values.size(); ++i)
            if (!(x.values[i] >= low && x.values[i] < high))
                out_of_range(check, std::to_string(static_cast<std::int64_t>(x.values[i])),
                             static_cast<std::int64_t>(i));
    }

    EvaluationWalk<WidePtr> walk_;
};

}  // namespace

Array WideValue::rounded() const {
    Array r(dtype, shape);
    dispatch(dtype, [&](auto t) {
        using T = decltype(t);
        T* to = static_cast<T*>(r.mutable_data());
        for (std::size_t i = 0; i < values.size(); ++i) {
            if constexpr (std::is_arithmetic_v<T>)
                to[i] = static_cast<T>(values[i]);
            else
                to[i] = T(static_cast<float>(values[i]));
        }
    });
    return r;
}

std::vector<WidePtr> evaluate_wide(const Nodes& roots, const LeafValues& leaves) {
    return Wide().run(with_leaves(roots, leaves));
}

std::vector<Array> rounded(const std::vector<WidePtr>& values) {
    std::vector<Array> r;
    for (const WidePtr& x : values) r.push_back(x->rounded());
    return r;
}

}  // namespace bitale
