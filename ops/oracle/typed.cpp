// The typed oracle.
#include "ops/oracle/typed.h"

#include <utility>

#include "graph/ir/shared.h"
#include "ops/oracle/stable_losses.h"
#include "ops/oracle/walk.h"

namespace bitale {

namespace {

// How the oracle holds a value: floats as float64, rounded to their dtype.
Array held(const Array& x, DType dtype) { return is_float(dtype) ? x.as(dtype).as(DType::float64) : x; }

class Typed {
  public:
    Typed() : walk_([this](const NodePtr& node, const auto& operands) { return value_of(node, operands); }) {}

    std::vector<Array> run(const Nodes& roots) { return walk_.run(roots); }

  private:
    Array value_of(const NodePtr& node, const std::vector<Array>& operands) {
        const Op& op = *node->op;
        const DType dtype = node->type.dtype;
        if (is_constant(node)) return held(constant_value(node), dtype);
        if (const SharedPtr shared = shared_of(node)) return held(current_value(shared), dtype);
        BITALE_CHECK(op.kind != OpKind::leaf, "an input without a value: " + describe(*node));
        if (op.checks)
            for (const Check& check : op.checks(*node))
                require(check, walk_.run_on_operands(check.value, *node, operands));
        if (!op.evaluate) {
            BITALE_CHECK(op.decompose, op.name + " can be neither evaluated nor decomposed");
            return walk_.run_on_operands(op.decompose(node), *node, operands);
        }
        const Array value = op.evaluate(*node, operands);
        const DType wide = is_float(dtype) ? DType::float64 : dtype;
        BITALE_CHECK(value.dtype() == wide && shape_of(value.shape()) == node->type.shape,
                     "the evaluation of " + describe(*node) + " gave " + std::string(name_of(value.dtype())) +
                         " " + text_of(value.shape()));
        return held(value, dtype);
    }

    static void require(const Check& check, const Array& value) {
        const std::int64_t low = check.low.constant(), high = check.high.constant();
        dispatch(value.dtype(), [&](auto t) {
            using T = decltype(t);
            if constexpr (std::is_integral_v<T>) {
                const T* x = static_cast<const T*>(value.data());
                for (std::int64_t i = 0; i < value.size(); ++i) {
                    const auto index = static_cast<std::int64_t>(x[i]);
                    if (!std::in_range<std::int64_t>(+x[i]) || index < low || index >= high)
                        out_of_range(check, std::to_string(+x[i]), i);
                }
            }
        });
    }

    EvaluationWalk<Array> walk_;
};

}  // namespace

std::vector<Array> evaluate(const Nodes& roots, const LeafValues& leaves) {
    std::vector<Array> results = Typed().run(with_stable_losses(with_leaves(roots, leaves)));
    for (std::size_t i = 0; i < roots.size(); ++i) results[i] = results[i].as(roots[i]->type.dtype);
    return results;
}

}  // namespace bitale
