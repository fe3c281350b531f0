#include "ops/linear/conv_geometry.h"

#include "ops/dsl/wording.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/lengths.h"

namespace bitale {

ConvGeometry ConvGeometry::of(const Attributes& attributes) {
    const auto pair = [&](const char* name) {
        const auto& list = attributes.get<std::vector<std::int64_t>>(name);
        BITALE_CHECK(list.size() == 2, std::string("a convolution's ") + name + " has a height and a width");
        return std::array<std::int64_t, 2>{list[0], list[1]};
    };
    return {pair("stride"), pair("dilation"), pair("pad"), attributes.get<bool>("flip")};
}

Attributes ConvGeometry::attributes() const {
    const auto list = [](const std::array<std::int64_t, 2>& pair) {
        return std::vector<std::int64_t>(pair.begin(), pair.end());
    };
    return {{"stride", list(stride)}, {"dilation", list(dilation)}, {"pad", list(pad)}, {"flip", flip}};
}

std::int64_t ConvGeometry::span(int axis, std::int64_t kernel) const {
    return (kernel - 1) * dilation[static_cast<std::size_t>(axis)] + 1;
}

Int ConvGeometry::output_length(int axis, const Int& input, std::int64_t kernel) const {
    const auto i = static_cast<std::size_t>(axis);
    return floordiv(input + 2 * pad[i] - span(axis, kernel), stride[i]) + 1;
}

namespace {

template <class T>
T place_of(const ConvGeometry& geometry, int axis, const T& out, const T& element, std::int64_t kernel) {
    const auto i = static_cast<std::size_t>(axis);
    const T tap = geometry.flip ? T(kernel - 1) - element : element;
    return out * T(geometry.stride[i]) - T(geometry.pad[i]) + tap * T(geometry.dilation[i]);
}

}  // namespace

Int ConvGeometry::place(int axis, const Int& out, const Int& element, std::int64_t kernel) const {
    return place_of(*this, axis, out, element, kernel);
}

std::int64_t ConvGeometry::place(int axis, std::int64_t out, std::int64_t element,
                                 std::int64_t kernel) const {
    return place_of(*this, axis, out, element, kernel);
}

DType conv_dtype(const Nodes& inputs, const char* first, const char* second, Where where) {
    const DType a = inputs[0]->type.dtype, b = inputs[1]->type.dtype;
    const auto computes = [](DType t) { return t == float32 || t == float64; };
    if (a == b && computes(a)) return a;
    const DType cure = computes(a) ? a : computes(b) ? b : float32;
    const char* const wrong = a == cure ? second : first;
    throw TypeError(where, "conv2d takes two operands of one dtype, float32 or float64; " +
                               std::string(first) + " is " + describe(*inputs[0]) + ", " + second + " is " +
                               describe(*inputs[1]) + "; write " +
                               cast_text(inputs[a == cure ? 1 : 0], cure, wrong) +
                               (a == cure || b == cure ? "" : " and " + cast_text(inputs[1], cure, second)));
}

void require_4d(const NodePtr& node, const char* what, const char* layout, Where where) {
    if (node->type.rank() == 4) return;
    throw ShapeError(
        where, "conv2d takes " + std::string(what) + " of rank 4, " + layout + ", not " + describe(*node));
}

ConvAxes ConvAxes::of(int rank) {
    if (rank == 4) return {};
    BITALE_CHECK(rank == 5, "a convolution's operands have four axes, or five with groups");
    return {true, 1, 2, 2, 3};
}

ConvAxes ConvAxes::of(const Nodes& inputs, const char* first, const char* second, Where where) {
    const bool grouped = inputs[0]->type.rank() == 5 && inputs[1]->type.rank() == 5;
    if (!grouped) {
        require_4d(inputs[0], first, "[n, channels, height, width]", where);
        require_4d(inputs[1], second, "[outputs, channels, height, width]", where);
    }
    return of(grouped ? 5 : 4);
}

std::vector<Int> ConvAxes::at_image(const Int& n, const Int& group, const Int& c, const Int& y,
                                    const Int& x) const {
    return grouped ? std::vector<Int>{n, group, c, y, x} : std::vector<Int>{n, c, y, x};
}

std::vector<Int> ConvAxes::at_filter(const Int& group, const Int& o, const Int& c, const Int& y,
                                     const Int& x) const {
    return grouped ? std::vector<Int>{group, o, c, y, x} : std::vector<Int>{o, c, y, x};
}

void require_groups(const ConvAxes& axes, const Int& a, const Int& b, Where where) {
    if (axes.grouped) require_equal(a, b, "the groups of the two operands", where);
}

std::int64_t kernel_length(const NodePtr& filters, int axis, Where where) {
    const Int& length = filters->type.shape[static_cast<std::size_t>(filters->type.rank() - 2 + axis)];
    if (length.is_constant() && length.constant() > 0) return length.constant();
    throw ShapeError(where,
                     "conv2d's filters need a height and a width of at least 1 that are known when the "
                     "graph is built, as in input(float32, {-1, -1, 3, 3}, \"w\"); they are " +
                         describe(*filters));
}

void require_equal(const Int& a, const Int& b, const std::string& what, Where where) {
    if (never_equal(a, b))
        throw ShapeError(where, "conv2d: " + what + " differ: " + a.text() + " and " + b.text());
}

Scalar scalar_product(Scalar a, Scalar b) {
    const DType dtype = a->dtype;
    return scalar_apply(mul_op(), dtype, {std::move(a), std::move(b)});
}

}  // namespace bitale
