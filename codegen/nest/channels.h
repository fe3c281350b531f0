// Channels that lie interleaved, as the colours of pixels do: neighbours in memory, and behind the last one
// the first of the next term.
#pragma once

#include "codegen/nest/access.h"

namespace bitale {

// The last loop over results that has a variable; -1: there is none.
int channel_loop(const Nest& nest);
// Whether a reduction reads such channels, each for a result of its own, along its last loop, and else only
// what is the same for all terms of that, or for all channels.
bool has_interleaved_channels(const Nest& nest, const ShapeOf& shape_of);

}  // namespace bitale
