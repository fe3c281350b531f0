#include "codegen/nest/runs.h"

#include <algorithm>

#include "codegen/nest/walk.h"

namespace bitale {

std::optional<RunForm> run_form(const Nest& nest) {
    if (nest.combine != Combine::sum || nest.reduced.size() != 1 || nest.parallel.empty() ||
        nest.guards.size() != 1)
        return {};
    const Guard& guard = nest.guards[0];
    const Int& row = nest.parallel[0].variable;
    if (!row.symbol_id() || !(guard.low == row) || !(guard.high == row + 1)) return {};
    const auto key = std::find_if(nest.lets.begin(), nest.lets.end(),
                                  [&](const Let& let) { return let.symbol == guard.value; });
    if (key == nest.lets.end()) return {};
    const bool wider = key->value->kind == ScalarNode::Kind::cast;
    const Scalar& read = wider ? key->value->arguments[0] : key->value;
    if (read->kind != ScalarNode::Kind::read || !read->guards.empty() || read->at.size() != 1 ||
        read->at[0] != nest.reduced[0].variable)
        return {};
    return RunForm{guard.value.symbol_id(), read->operand, read->dtype};
}

bool sums_runs(const Nest& nest) { return run_form(nest).has_value(); }

bool looks_for_own_keys(const Nest& nest) {
    const Scalar& body = nest.body;
    if (nest.combine != Combine::sum || nest.parallel.empty() || !applies(*body, Opcode::where) ||
        !is_zero(body->arguments[2]))
        return false;
    const Scalar& here = body->arguments[0];
    if (!applies(*here, Opcode::eq)) return false;
    const Scalar& number = here->arguments[1];
    return number->kind == ScalarNode::Kind::index && number->index.symbol_id() != 0 &&
           number->index == nest.parallel[0].variable;
}

}  // namespace bitale
