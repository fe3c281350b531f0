// KernelBuilder: the places of one kernel while its segments are scheduled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

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

    // Of a segment that begins: what scratch of its tasks is counted from here.
    void begin_segment() { first_of_segment_ = ir.places.size(); }
    // Scratch that one statement alone uses, in turns with that of others (kernel/shared_memory.h).
    void takes_turns(int place) { in_turns_.insert(place); }
    // All other scratch of the segment's tasks, side by side.
    std::int64_t bytes_of_segment() const;

    KernelIR ir;
    bool short_text = false;   // Target::fast_compile: nothing is written out that a loop can say
    std::vector<int> buffers;  // program buffers in the order of the launch's list

  private:
    std::map<int, int> places_;
    std::size_t first_of_segment_ = 0;
    std::set<int> in_turns_;
};

}  // namespace bitale
