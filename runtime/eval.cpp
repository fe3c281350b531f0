// eval: compiles and calls in one.
#include "bitale/function.h"
#include "graph/base/border.h"

namespace bitale {

namespace {
const ApiBorder evaluating("to evaluate an expression");
}  // namespace

Array eval(const Expr& x, const std::vector<std::pair<Expr, Array>>& inputs, Where where) try {
    std::vector<Input> variables;
    std::vector<Array> values;
    for (const auto& [variable, value] : inputs) {
        variables.emplace_back(variable);
        values.push_back(value);
    }
    FunctionOptions options;
    options.name = "eval at " + where.text();
    options.on_unused_input = OnUnused::ignore;
    return function(variables, {x}, options, where).call(values);
} catch (const std::bad_alloc&) {
    evaluating.fail();
}

}  // namespace bitale
