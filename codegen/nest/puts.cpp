#include "codegen/nest/puts.h"

#include <algorithm>

#include "codegen/nest/walk.h"

namespace bitale {

std::optional<PutForm> put_form(const Nest& nest, PutRows rows) {
    if (nest.combine != Combine::sum || nest.reduced.empty() || !nest.guards.empty() ||
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
