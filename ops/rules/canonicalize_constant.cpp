// Constants: what can be computed now is, as long as it stays small.
#include <algorithm>
#include <variant>
#include <vector>

#include "ops/oracle/typed.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

constexpr std::int64_t most_folded_elements = 64;

// A part of known length may begin where an unknown one ends.
bool depends_on_lengths(const Node& node) {
    const auto& entries = node.attributes.entries();
    return std::any_of(entries.begin(), entries.end(), [](const Attributes::Entry& entry) {
        if (const auto* one = std::get_if<Int>(&entry.second)) return !one->is_constant();
        const auto* several = std::get_if<std::vector<Int>>(&entry.second);
        return several && !is_static(*several);
    });
}

// The value of a node over constants. Repetition is left to expand: a number is cheaper than a buffer of
// them.
NodePtr folded(const Match& m) {
    const NodePtr& node = m.root();
    if (node->inputs.empty() || node->op == expand_op() || !is_static(node->type.shape)) return nullptr;
    if (depends_on_lengths(*node)) return nullptr;
    if (count_of(static_dims(node->type.shape)) > most_folded_elements) return nullptr;
    for (const NodePtr& input : node->inputs)
        if (!is_constant(input) || !m.may_look_through(input)) return nullptr;
    try {
        return make_constant(evaluate({node}, {}).at(0), node->where);
    } catch (const OutOfMemory&) {
        throw;
    } catch (const Error&) {
        return nullptr;  // a label out of range and the like: the user learns of it at the call
    }
}

NodePtr repeated_number(const Match& m) {
    const NodePtr& node = m.root();
    if (!is_constant(node) || node->type.rank() == 0) return nullptr;
    const std::optional<Array> value = uniform_value(node);
    return value ? make_expand(make_constant(*value, node->where), node->type.shape, node->where) : nullptr;
}

}  // namespace

std::vector<Rule> constant_rules() {
    std::vector<Rule> rules = {
        {"constant-uniform", Pattern::of_kind(OpKind::leaf, "constant"), repeated_number}};
    for (const OpKind kind : {OpKind::map, OpKind::view, OpKind::reduce, OpKind::composite})
        rules.push_back({"constant-fold", Pattern::of_kind(kind, "f"), folded});
    return rules;
}

}  // namespace bitale
