// Sums of products: which factor varies along which loop, and what that allows.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/nest/tree.h"

namespace bitale {

// A floating-point sum whose body is a product: it is added by fused multiply-adds.
bool adds_products(const Nest& nest);

// A factor that is an element of the accumulator's type, in memory.
bool is_element(const Nest& nest, const Scalar& factor);

// The lets that a scalar of the nest needs, in their order.
std::vector<Let> lets_of(const Nest& nest, const Scalar& body);
// Whether the scalar's value depends on the variable, itself or through its lets.
bool varies(const Nest& nest, const Scalar& scalar, const Int& variable);

// The loops over results along which the first factor alone varies, the second alone, and both.
struct ProductAxes {
    std::vector<Loop> rows, columns, common;
};
ProductAxes product_axes(const Nest& nest);

// Every loop over results varies one factor alone, and both factors have such loops.
bool multiplies_matrices(const Nest& nest);
// The same with one loop over terms.
bool is_matrix_product(const Nest& nest);

// A vector times a matrix: one factor alone varies along the results.
bool has_one_row(const Nest& nest);

// Whether neighbours among the last loop's results read neighbours of the factor, which then needs no other
// order in memory.
bool runs_along_last(const Nest& nest, const Scalar& factor);

// The loop over results of a convolution, or of one of its gradients, that is best innermost: channels, along
// which one factor alone varies, by one axis of what it reads.
struct ChannelAxis {
    std::size_t loop = 0;
    int factor = 0;
    // What the factor reads along the channels: which operand, by which of its axes.
    std::vector<std::pair<Operand, std::size_t>> reads;
};
std::optional<ChannelAxis> channel_axis(const Nest& nest);
// The axis of a convolution's filters: all images of the first loop share the one array that has it.
std::optional<ChannelAxis> filters_axis(const Nest& nest);

// Worth a tile of results for each block of a GPU: long sums, and many results for both factors to serve.
bool is_large_product(const Nest& nest, const ReductionTree& tree);

// The nest with the channels of `original` as its last loop over results.
Nest with_channels_last(Nest nest, const Nest& original);

}  // namespace bitale
