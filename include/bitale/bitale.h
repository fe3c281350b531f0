// Bitale: symbolic computation graphs in C++, compiled for a device at run time. Includes every public
// header.
#pragma once

#include "bitale/array.h"        // IWYU pragma: export
#include "bitale/array_ops.h"    // IWYU pragma: export
#include "bitale/checkpoint.h"   // IWYU pragma: export
#include "bitale/counts.h"       // IWYU pragma: export
#include "bitale/dlpack.h"       // IWYU pragma: export
#include "bitale/dtype.h"        // IWYU pragma: export
#include "bitale/error.h"        // IWYU pragma: export
#include "bitale/expr.h"         // IWYU pragma: export
#include "bitale/function.h"     // IWYU pragma: export
#include "bitale/io.h"           // IWYU pragma: export
#include "bitale/memory_plan.h"  // IWYU pragma: export
#include "bitale/ops.h"          // IWYU pragma: export
#include "bitale/packed.h"       // IWYU pragma: export
#include "bitale/train.h"        // IWYU pragma: export
