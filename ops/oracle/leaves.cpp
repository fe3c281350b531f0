#include "ops/oracle/leaves.h"

#include <cstdlib>

#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

NodePtr constant_for(const Node& input, const Array& value) {
    bool fits = value.rank() == input.type.rank();
    for (std::size_t i = 0; fits && i < value.shape().size(); ++i)
        fits = !input.type.shape[i].is_constant() || input.type.shape[i].is(value.shape()[i]);
    if (!fits)
        throw ShapeError(input.where,
                         describe(input) + " cannot take a value of shape " + text_of(value.shape()));
    if (value.dtype() != input.type.dtype)
        throw TypeError(input.where, describe(input) + " cannot take " + std::string(name_of(value.dtype())));
    return make_stand_in(input, value);
}

}  // namespace

Nodes with_leaves(const Nodes& roots, const LeafValues& leaves) {
    for (const NodePtr& node : topological(roots))
        if (node->op == input_op() && !leaves.contains(node.get()))
            throw GraphError(node->where, "no value is given for " + describe(*node));
    // With constants in place of the inputs every length is a number, in types and attributes alike; shapes
    // that do not match are found by the ops' own rules. An input may matter for its length only.
    NodeMap constants;
    for (const auto& [node, value] : leaves) constants.emplace(node, constant_for(*node, value));
    return constants.empty() ? roots : replace(roots, constants);
}

Array current_value(const SharedPtr& shared) {
    const WritingValue writing(*shared);
    shared->bring_home();
    return shared->value;
}

void out_of_range(const Check& check, const std::string& value, std::int64_t element) {
    throw IndexError(fault_text(error_text(check), std::strtoll(value.c_str(), nullptr, 10), element,
                                check.high.constant()));
}

}  // namespace bitale
