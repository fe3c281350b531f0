#include "runtime/exec/launcher.h"

#include "graph/base/check.h"

namespace bitale {

bool Launcher::routine(const RoutineShape& shape, void* const* /*buffers*/) {
    BITALE_CHECK(false, "a device without routines is asked for " + shape.name);
}

ConvData conv_data(const ConvShape& shape, void* const* buffers) {
    ConvData data;
    switch (shape.kind) {
        case ConvCall::Kind::forward: data = {buffers[0], buffers[1], buffers[2], nullptr}; break;
        case ConvCall::Kind::image_gradient: data = {buffers[2], buffers[0], buffers[1], nullptr}; break;
        case ConvCall::Kind::filter_gradient: data = {buffers[0], buffers[2], buffers[1], nullptr}; break;
    }
    if (shape.bias) data.bias = buffers[3];
    return data;
}

}  // namespace bitale
