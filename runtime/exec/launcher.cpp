#include "runtime/exec/launcher.h"

#include "graph/base/check.h"

namespace bitale {

bool Launcher::routine(const RoutineShape& shape, void* const* /*buffers*/) {
    BITALE_CHECK(false, "a device without routines is asked for " + shape.name);
}

ConvData conv_data(const ConvShape& shape, void* const* buffers) {
    ConvData data;
    for (void** tensor : in_order(shape.kind, data)) *tensor = *buffers++;
    if (shape.bias) data.bias = *buffers;
    return data;
}

}  // namespace bitale
