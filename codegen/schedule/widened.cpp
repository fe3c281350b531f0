#include "codegen/schedule/widened.h"

#include <memory>

#include "codegen/kernel/tails.h"
#include "codegen/nest/walk.h"

namespace bitale {

Scalar widened(const Scalar& scalar, const Loop& lanes, std::int64_t whole,
               std::map<std::vector<Int>, Scalar>& done, Stmts& before, KernelBuilder& builder) {
    return rebuild(scalar, [&](const std::shared_ptr<ScalarNode>& s) -> Scalar {
        if (s->kind != ScalarNode::Kind::cast || s->arguments[0]->kind != ScalarNode::Kind::read ||
            bits_of(s->arguments[0]->dtype) >= 32 || !is_integer(s->arguments[0]->dtype))
            return s;
        const Scalar& read = s->arguments[0];
        std::vector<Int> key = read->at;
        key.emplace_back(read->operand.place());
        Scalar& copy = done[key];
        if (!copy) {
            const int place = builder.scratch(Place::Scope::private_, DType::int32, {Int(whole)});
            before.push_back(declare(place));
            const Int& lane = lanes.variable;
            before.push_back(filled_lanes(lane, lanes.extent, whole,
                                          {set(place, {lane}, scalar_cast(DType::int32, read))}));
            copy = place_read(DType::int32, place, {lane});
        }
        return scalar_cast(s->dtype, copy);
    });
}

}  // namespace bitale
