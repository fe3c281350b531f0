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
std::string narrow_source(const Values& values, int image) {
    constexpr std::size_t most = 64;
    std::vector<int> stack{image};
    std::set<int> seen;
    while (!stack.empty() && seen.size() < most) {
        const int v = stack.back();
        stack.pop_back();
        if (!seen.insert(v).second) continue;
        const Value& value = values.list[static_cast<std::size_t>(v)];
        const Node& node = *value.node;
        if (node.op->kind == OpKind::leaf) {
            if (node.type.rank() >= 3 && !is_float(node.type.dtype))
                return "its input is " + std::string(name_of(node.type.dtype));
            continue;
        }
        if (value.nest.combine != Combine::none) continue;
        const bool some_rows = node.op->name == "gather" || node.op->name == "rows";
        if (some_rows && node.type.rank() >= 3 && shared_of(node.inputs[0]))
            return "its input is a minibatch of a data set";
        for (const NodePtr& input : node.inputs) stack.push_back(values.number.at(input.get()));
    }
    return "";
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
    const auto no = [](std::string why) { return ConvChoice{{}, "generated, because " + std::move(why)}; };

    ConvCall call;
    call.kind = *kind;
    const ConvTensor a = tensor_of(node->inputs[0]->type.shape), b = tensor_of(node->inputs[1]->type.shape),
                     result = tensor_of(node->type.shape);
    call.image = *kind == ConvCall::Kind::image_gradient ? result : a;
    call.filters = *kind == ConvCall::Kind::filter_gradient ? result : b;
    call.output = *kind == ConvCall::Kind::forward ? result : *kind == ConvCall::Kind::image_gradient ? a : b;
    const Int& channels = call.image.shape[1];
    if (typical(channels) < least_channels)
        return no("its input has " + channels.text() + (channels == Int(1) ? " channel" : " channels"));
    if (node->type.dtype != DType::float32) return no("it is " + std::string(name_of(node->type.dtype)));
    if (*kind != ConvCall::Kind::image_gradient)
        if (std::string source = narrow_source(values, values.number.at(node->inputs[0].get()));
            !source.empty())
            return no(std::move(source));
    double operations = 2 * typical(channels);
    for (const Int& n : call.output.shape) operations *= typical(n);
    for (const std::size_t axis : {2, 3}) operations *= typical(call.filters.shape[axis]);
    if (operations < least_operations) return no("it is too small for a library");
    if (!target.has_conv) return no("there is no library for convolutions");

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
                        "because it is a large float32 convolution of stored tensors, " + channels.text() +
                            " channels"},
            {}};
}

}  // namespace bitale
