#include "ops/shape/unpack.h"

#include <cstddef>
#include <vector>

#include "graph/base/check.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

BitPlanes planes_of(const Node& node) {
    return {.type = StorageType(static_cast<int>(node.attributes.get<std::int64_t>("bits")), false),
            .shape = static_dims(node.attributes.get<std::vector<Int>>("shape")),
            .planes = node.attributes.get<std::vector<std::int64_t>>("planes"),
            .packed = static_dims(node.inputs[0]->type.shape)};
}

// The byte that an element lies in, and how far up: where the elements of a loop are of one plane, both are
// plain for vector lanes. Where calls are computed in parts of a batch, the length of an axis of one plane is
// the number of rows of a part.
Nest nest_unpack(const Node& node) {
    const std::int64_t bits = node.attributes.get<std::int64_t>("bits");
    const auto& planes = node.attributes.get<std::vector<std::int64_t>>("planes");
    const Shape& packed = node.inputs[0]->type.shape;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.dtype = DType::uint8;
    std::vector<Int> at;
    Int plane = 0;
    for (std::size_t i = 0; i < packed.size(); ++i) {
        const Int& element = nest.parallel[i].variable;
        const Int own = planes[i] == 1 ? Int(0) : floordiv(element, packed[i]);
        at.push_back(element - own * packed[i]);
        plane = plane * planes[i] + own;
    }
    const Scalar byte = scalar_read(DType::uint8, 0, at), shift = scalar_index(DType::uint8, plane * bits);
    nest.body = scalar_apply(shift_right_op(), DType::uint8, {byte, shift});
    if (bits < 8)
        nest.body = scalar_apply(bitwise_and_op(), DType::uint8,
                                 {nest.body, scalar_integer(DType::uint8, (1 << bits) - 1)});
    return nest;
}

}  // namespace

const Op* unpack_op() {
    static const Op* op = register_op({
        .name = "unpack",
        .kind = OpKind::view,
        .arity = 1,
        .infer =
            [](const Nodes& inputs, const Attributes& attributes, Where) {
                BITALE_CHECK(inputs[0]->type.dtype == DType::uint8, "bits are unpacked from bytes");
                return Type{DType::uint8, attributes.get<std::vector<Int>>("shape")};
            },
        .gradient = [](const NodePtr&, const NodePtr&) { return Nodes{nullptr}; },
        .evaluate = [](const Node& node,
                       const std::vector<Array>& inputs) { return unpacked(planes_of(node), inputs[0]); },
        .nest = nest_unpack,
    });
    return op;
}

NodePtr make_unpack(const BitPlanes& planes, const NodePtr& bytes, Where where) {
    if (planes.type.bits() == 8) return bytes;
    return make_node(unpack_op(), {bytes},
                     {{"bits", std::int64_t{planes.type.bits()}},
                      {"shape", Shape(planes.shape.begin(), planes.shape.end())},
                      {"planes", planes.planes}},
                     where);
}

}  // namespace bitale
