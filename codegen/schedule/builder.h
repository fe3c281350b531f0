// KernelBuilder: the places of one kernel while its segments are scheduled.
#pragma once

#include <map>

#include "codegen/kernel/ir.h"
#include "codegen/nest/access.h"

namespace bitale {

// The index of a point, given its position in row-major order.
std::vector<Int> unflattened(const Int& position, const Shape& shape);

class KernelBuilder {
  public:
    // The place of a program buffer, made on first use; its position in the launch's buffer list is the order
    // of use.
    int global(int buffer, DType dtype, const Shape& extents, bool written);
    int scratch(Place::Scope scope, DType dtype, Shape extents, std::vector<Part> parts = {});

    // Of the places.
    ShapeOf shapes() const {
        return [this](Operand of) -> const Shape& {
            return ir.places[static_cast<std::size_t>(of.place())].extents;
        };
    }

    KernelIR ir;
    bool short_text = false;   // Target::fast_compile: nothing is written out that a loop can say
    std::vector<int> buffers;  // program buffers in the order of the launch's list

  private:
    std::map<int, int> places_;
};

}  // namespace bitale
