#include "graph/walk/length.h"

#include <unordered_map>

#include "graph/walk/traverse.h"

namespace bitale {

std::optional<Int> length_of(const NodePtr& scalar) {
    if (scalar->type.rank() != 0 || !is_integer(scalar->type.dtype)) return std::nullopt;
    if (is_constant(scalar)) return Int(constant_value(scalar).item<std::int64_t>());
    std::unordered_map<const Node*, std::optional<Int>> known;
    for (const NodePtr& node : topological({scalar})) {
        std::optional<Int>& x = known[node.get()];
        if (node->type.rank() == 0 && is_constant(node) && is_integer(node->type.dtype)) {
            x = Int(constant_value(node).item<std::int64_t>());
        } else if (const Attribute* symbol = node->attributes.find("symbol");
                   symbol && node->op == input_op()) {
            x = std::get<Int>(*symbol);
        } else if (node->op->as_length) {
            std::vector<Int> inputs;
            for (const NodePtr& input : node->inputs)
                if (const std::optional<Int>& i = known.at(input.get())) inputs.push_back(*i);
            if (inputs.size() == node->inputs.size()) x = node->op->as_length(*node, inputs);
        }
    }
    return known.at(scalar.get());
}

}  // namespace bitale
