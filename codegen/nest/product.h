// Sums of products: which factor varies along which loop, and what that allows.
#pragma once

#include "codegen/nest/tree.h"

namespace bitale {

// A floating-point sum whose body is a product: it is added by fused multiply-adds.
bool adds_products(const Nest& nest);

// The lets that a scalar of the nest needs, in their order.
std::vector<Let> lets_of(const Nest& nest, const Scalar& body);
// Whether the scalar's value depends on the variable, itself or through its lets.
bool varies(const Nest& nest, const Scalar& scalar, const Int& variable);

// The loops over results along which the first factor alone varies, the second alone, and both.
struct ProductAxes {
    std::vector<Loop> rows, columns, common;
};
ProductAxes product_axes(const Nest& nest);

// Worth a tile of results for each block of a GPU: long sums, and many results for both factors to serve.
bool is_large_product(const Nest& nest, const ReductionTree& tree);

}  // namespace bitale
