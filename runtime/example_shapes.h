// Example shapes of a function's inputs, before anything is reported for them.
#pragma once

#include "bitale/function.h"

namespace bitale {

// Throws GraphError for what is no input, ShapeError and IndexError for shapes that no call can have.
void check_shapes(const Function::State& function, const ExampleShapes& shapes);

}  // namespace bitale
