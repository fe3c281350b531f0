// Shapes: one Int per axis.
#pragma once

#include <string>
#include <vector>

#include "bitale/array.h"
#include "graph/types/index.h"

namespace bitale {

using Shape = std::vector<Int>;

struct Type {
    DType dtype = DType::float32;
    Shape shape;
    int rank() const { return static_cast<int>(shape.size()); }
    bool operator==(const Type&) const = default;
};

Int count_of(const Shape& shape);
bool is_static(const Shape& shape);
Dims static_dims(const Shape& shape);  // InternalError unless is_static
Shape shape_of(const Dims& dims);
std::string text_of(const Shape& shape);  // "[n, 28, 28]"; a length that is a long formula shows as "<=128"
std::string text_of(const Type& type);    // "float32 [n, 28, 28]"
// An upper bound of the bytes, IntRange::highest when unbounded.
std::int64_t bytes_bound(const Type& type);

}  // namespace bitale
