#include "codegen/nest/puts.h"

#include <algorithm>

#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool never_negative(const Scalar& s) {
    switch (s->kind) {
        case ScalarNode::Kind::index: return s->index.non_negative();
        case ScalarNode::Kind::constant: return is_integer(s->dtype) && s->integer >= 0;
        case ScalarNode::Kind::cast: return s->dtype == DType::int64 && never_negative(s->arguments[0]);
        case ScalarNode::Kind::apply:
            return applies(*s, Opcode::add) &&
                   std::all_of(s->arguments.begin(), s->arguments.end(), never_negative);
        default: return false;
    }
}

}  // namespace

std::optional<PutForm> put_form(const Nest& nest, PutRows rows) {
    const bool largest = nest.combine == Combine::max && nest.accumulator == DType::int64;
    if ((nest.combine != Combine::sum && !largest) || nest.reduced.empty() || !nest.guards.empty() ||
        nest.dtype != nest.accumulator || !nest.body || nest.body->dtype != nest.accumulator ||
        !applies(*nest.body, Opcode::where) || !is_zero(nest.body->arguments[2]) ||
        !applies(*nest.body->arguments[0], Opcode::eq))
        return {};
    const std::vector<Scalar>& sides = nest.body->arguments[0]->arguments;
    for (std::size_t d = rows == PutRows::all ? 1 : 0; d < nest.parallel.size(); ++d) {
        const std::uint64_t id = nest.parallel[d].variable.symbol_id();
        if (!id) continue;
        for (const std::size_t own : {0U, 1U}) {
            const Scalar &number = sides[own], &key = sides[1 - own];
            const bool wide = number->dtype == DType::int64 || number->dtype == DType::int32;
            if (number->kind != ScalarNode::Kind::index || !wide || number->index.symbol_id() != id ||
                !is_integer(key->dtype))
                continue;
            const Scalar& value = nest.body->arguments[1];
            if (depends_on(key, id) || depends_on(value, id)) return {};
            if (largest && !never_negative(value)) return {};  // 0 is what a place begins with
            const bool same = std::none_of(nest.lets.begin(), nest.lets.end(), [&](const Let& l) {
                return depends_on(l.value, id) || depends_on(l.extent, id);
            });
            return same ? std::optional<PutForm>({d, key, value}) : std::nullopt;
        }
    }
    return {};
}

bool adds_at_places(const Nest& nest) { return put_form(nest).has_value(); }

}  // namespace bitale
