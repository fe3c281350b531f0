// Whether the values that a program computes once, and not at every call, still hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/program.h"
#include "runtime/exec/frame.h"

namespace bitale {

// They were computed from versions of shared variables, into places of an arena.
class OnceValues {
  public:
    explicit OnceValues(const Program& program);

    // The arena's places are these from now on.
    void place(const Placement& placement);
    // The arena has other memory.
    void forget() { computed_ = false; }
    // Whether they have to be computed, from the variables as they are. computed() says that this was done.
    bool are_due();
    void computed() { computed_ = true; }

  private:
    const Program& program_;
    std::vector<std::size_t> buffers_, shared_;
    std::vector<std::uint64_t> versions_;
    std::vector<std::int64_t> offsets_;
    bool computed_ = false;
};

}  // namespace bitale
