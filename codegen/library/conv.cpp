#include "codegen/library/conv.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/shared.h"

namespace bitale {

namespace {

// Measured on no GPU: below so many operations a launch costs more than the sums, and with fewer channels the
// library's kernels are mostly idle.
constexpr double least_operations = 1e7, least_channels = 4;

std::optional<ConvCall::Kind> kind_of(const Node& node) {
    if (node.op->name == "conv") return ConvCall::Kind::forward;
    if (node.op->name == "conv_grad_x") return ConvCall::Kind::image_gradient;
    if (node.op->name == "conv_grad_w") return ConvCall::Kind::filter_gradient;
    return std::nullopt;
}

ConvTensor tensor_of(const Shape& shape) {
    ConvTensor t;
    std::copy_n(shape.begin(), t.shape.size(), t.shape.begin());
    return t;
}

// What an image is read from when nothing before it is stored: bytes, or rows of a data set.
std::string narrow_source(const Node& image) {
    constexpr std::size_t most = 64;
    std::vector<const Node*> stack{&image};
    std::set<const Node*> seen;
    while (!stack.empty() && seen.size() < most) {
        const Node& node = *stack.back();
        stack.pop_back();
        if (!seen.insert(&node).second) continue;
        if (node.op->kind == OpKind::leaf) {
            if (node.type.rank() >= 3 && !is_float(node.type.dtype))
                return "its input is " + std::string(name_of(node.type.dtype));
            continue;
        }
        if (node.op->kind == OpKind::reduce) continue;
        const bool some_rows = node.op->name == "gather" || node.op->name == "rows";
        if (some_rows && node.type.rank() >= 3 && shared_of(node.inputs[0]))
            return "its input is a minibatch of a data set";
        for (const NodePtr& input : node.inputs) stack.push_back(input.get());
    }
    return "";
}

// The shapes of a convolution's image, filters and output.
struct ConvShapes {
    const Shape &image, &filters, &output;
};
ConvShapes shapes_of(const Node& node, ConvCall::Kind kind) {
    const Shape &a = node.inputs[0]->type.shape, &b = node.inputs[1]->type.shape, &result = node.type.shape;
    switch (kind) {
        case ConvCall::Kind::forward: return {a, b, result};
        case ConvCall::Kind::image_gradient: return {result, b, a};
        default: return {a, result, b};
    }
}

// Why a library that exists should not compute it; empty if it should.
std::string better_generated(const Node& node, ConvCall::Kind kind, const Target& target) {
    if (node.type.rank() != 4) return "it has groups of channels";
    const ConvShapes shapes = shapes_of(node, kind);
    const Int& channels = shapes.image[1];
    if (typical(channels) < least_channels)
        return "its input has " + channels.text() + (channels == Int(1) ? " channel" : " channels");
    if (node.type.dtype != DType::float32) return "it is " + std::string(name_of(node.type.dtype));
    if (kind != ConvCall::Kind::image_gradient)
        if (std::string source = narrow_source(*node.inputs[0]); !source.empty()) return source;
    double operations = 2 * typical(channels);
    for (const Int& n : shapes.output) operations *= typical(n);
    for (const std::size_t axis : {2, 3}) operations *= typical(shapes.filters[axis]);
    if (operations < least_operations) return "it is too small for a library";
    return target.has_conv ? "" : "there is no library for convolutions";
}

}  // namespace

ConvValues conv_values(const ConvCall& call, const std::vector<int>& operands, int result) {
    switch (call.kind) {
        case ConvCall::Kind::forward: return {operands[0], operands[1], result};
        case ConvCall::Kind::image_gradient: return {result, operands[0], operands[1]};
        default: return {operands[0], result, operands[1]};
    }
}

void set_strides(ConvCall& call, const ConvValues& places, const Values& values) {
    const auto set = [&](ConvTensor& t, int value) {
        const std::vector<std::size_t>& order = values.list[static_cast<std::size_t>(value)].order;
        Int stride = 1;
        for (std::size_t d = t.shape.size(); d-- > 0;) {
            const std::size_t axis = order.empty() ? d : order[d];
            t.strides[axis] = stride;
            stride = stride * t.shape[axis];
        }
    };
    set(call.image, places.image);
    set(call.filters, places.filters);
    set(call.output, places.output);
}

ConvChoice choose_conv(const Values& values, int number, const Target& target) {
    const NodePtr& node = values.list[static_cast<std::size_t>(number)].node;
    const std::optional<ConvCall::Kind> kind = kind_of(*node);
    if (!kind || target.kind != Target::Kind::cuda) return {};
    if (const std::string why = better_generated(*node, *kind, target); !why.empty())
        return {{}, "generated, because " + why};

    ConvCall call;
    call.kind = *kind;
    const ConvShapes shapes = shapes_of(*node, *kind);
    call.image = tensor_of(shapes.image);
    call.filters = tensor_of(shapes.filters);
    call.output = tensor_of(shapes.output);
    const auto pair = [&](const char* name) {
        const auto& list = node->attributes.get<std::vector<std::int64_t>>(name);
        return std::array<std::int64_t, 2>{list.at(0), list.at(1)};
    };
    call.stride = pair("stride");
    call.dilation = pair("dilation");
    call.pad = pair("pad");
    call.flip = node->attributes.get<bool>("flip");
    call.precision = target.precision;
    // Read in the order image, filters, output.
    int first = values.number.at(node->inputs[0].get()), second = values.number.at(node->inputs[1].get());
    if (*kind == ConvCall::Kind::image_gradient) std::swap(first, second);
    return {LibraryCall{call,
                        {first, second},
                        {},
                        "because it is a large float32 convolution of stored tensors, " +
                            shapes.image[1].text() + " channels"},
            {}};
}

bool library_computes(const Node& node, const Target& target) {
    const std::optional<ConvCall::Kind> kind = kind_of(node);
    return kind && target.kind == Target::Kind::cuda && better_generated(node, *kind, target).empty();
}

}  // namespace bitale
