#include "codegen/library/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/library/conv_cost.h"
#include "graph/base/check.h"
#include "graph/ir/shared.h"

namespace bitale {

namespace {

// Not measured: below so many operations a launch costs more than the sums, and with fewer channels the
// library's kernels are mostly idle.
constexpr double least_operations = 1e7, least_channels = 4;

// Four axes as they are; of five, groups and what each has of channels, or filters, are one axis.
ConvTensor tensor_of(const Shape& shape, std::size_t groups) {
    ConvTensor t;
    for (std::size_t d = 0, next = 0; next < shape.size(); ++d, ++next) {
        t.shape[d] = shape[next];
        if (d == groups && shape.size() > t.shape.size()) t.shape[d] = shape[next] * shape[next + 1], ++next;
    }
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
        if (node.op->takes_rows && node.type.rank() >= 3 && shared_of(node.inputs[0]))
            return "its input is a minibatch of a data set";
        for (const NodePtr& input : node.inputs) stack.push_back(input.get());
    }
    return "";
}

// The call without the strides of its tensors; no groups where their number is not known.
ConvCall call_of(const Node& node, ConvCall::Kind kind, const Target& target) {
    const Shape &a = node.inputs[0]->type.shape, &b = node.inputs[1]->type.shape, &result = node.type.shape;
    const bool of_image = kind == ConvCall::Kind::image_gradient,
               of_filters = kind == ConvCall::Kind::filter_gradient;
    const Shape &image = of_image ? result : a, &filters = of_filters ? result : b,
                &output = of_image     ? a
                          : of_filters ? b
                                       : result;
    ConvCall call;
    call.kind = kind;
    call.image = tensor_of(image, 1);
    call.filters = tensor_of(filters, 0);
    call.output = tensor_of(output, 1);
    if (node.type.rank() > 4) call.groups = image[1].is_constant() ? image[1].constant() : 0;
    const auto pair = [&](const char* name) {
        const auto& list = node.attributes.get<std::vector<std::int64_t>>(name);
        return std::array<std::int64_t, 2>{list.at(0), list.at(1)};
    };
    call.stride = pair("stride");
    call.dilation = pair("dilation");
    call.pad = pair("pad");
    call.flip = node.attributes.get<bool>("flip");
    call.precision = target.precision;
    return call;
}

// Why groups should be generated: the library's tiles are mostly idle, or memory determines the time, and
// generated code computes its operands where it reads them and hands its results on.
std::string groups_better_generated(const ConvCall& call) {
    const GroupedCost cost = cost_of_groups(call);
    if (cost.library < cost.generated) return "";
    if (cost.generated <= 1)
        return fmt::format("its {} groups compute {:.1f} operations a byte, and generated code moves fewest",
                           call.groups, cost.operations_per_byte);
    return fmt::format("its {} groups fill {:.0f} % of a library's tiles", call.groups, 100 * cost.filled);
}

// Why a library that exists should not compute it; empty if it should.
std::string better_generated(const Node& node, const ConvCall& call, const Target& target) {
    const Int& channels = call.image.shape[1];
    if (typical(channels) < least_channels)
        return "its input has " + channels.text() + (channels == Int(1) ? " channel" : " channels");
    if (node.type.dtype != DType::float32) return "it is " + std::string(name_of(node.type.dtype));
    if (call.kind != ConvCall::Kind::image_gradient)
        if (std::string source = narrow_source(*node.inputs[0]); !source.empty()) return source;
    if (call.groups < 1) return "the number of its groups is not known";
    double operations = 2 * typical(call.filters.shape[1]);
    for (const Int& n : call.output.shape) operations *= typical(n);
    for (const std::size_t axis : {2, 3}) operations *= typical(call.filters.shape[axis]);
    if (operations < least_operations) return "it is too small for a library";
    if (call.groups > 1)
        if (std::string why = groups_better_generated(call); !why.empty()) return why;
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
        // Groups and their channels are one axis only where they are neighbours in memory.
        BITALE_CHECK(order.empty() || order.size() == t.shape.size(), "groups of channels in another order");
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
    const std::optional<ConvCall::Kind> kind = node->op->convolution;
    if (!kind) return {};
    if (!target.no_conv.empty())
        return {{}, node->type.rank() > 4 ? "generated, because " + target.no_conv : ""};
    const ConvCall call = call_of(*node, *kind, target);
    if (const std::string why = better_generated(*node, call, target); !why.empty())
        return {{}, "generated, because " + why};
    // Read in the order image, filters, output.
    int first = values.number.at(node->inputs[0].get()), second = values.number.at(node->inputs[1].get());
    if (*kind == ConvCall::Kind::image_gradient) std::swap(first, second);
    std::string why = "because it is a large float32 convolution of stored tensors, " +
                      call.image.shape[1].text() + " channels";
    if (call.groups > 1)
        why += fmt::format(" in {} groups, which fill {:.0f} % of the library's tiles", call.groups,
                           100 * cost_of_groups(call).filled);
    return {LibraryCall{call, {first, second}, {}, why}, {}};
}

bool library_computes(const Node& node, const Target& target) {
    const std::optional<ConvCall::Kind> kind = node.op->convolution;
    return kind && target.has_conv && better_generated(node, call_of(node, *kind, target), target).empty();
}

}  // namespace bitale
