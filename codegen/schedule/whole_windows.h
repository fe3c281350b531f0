// Windows that lie partly outside of what they read, as windows whose taps are all inside: a window at a
// border begins with its first tap that is inside, and repeats the last one. Neither the best element nor the
// first one that is as good changes.
//
//     for y: best of a[2 * y - 1 + k] for k below 3, where 0 <= 2 * y - 1 + k < n
//
//     for y: best of a[2 * y - 1 + min(first + k, last)] for k below 3, where
//         first = max(0, 1 - 2 * y), last = min(2, n - 2 * y)
#pragma once

#include <optional>

#include "graph/ir/nest.h"

namespace bitale {

struct WholeWindows {
    Nest nest;  // without guards
    Int first;  // what is to be added to its positions
};

// Of a nest of best elements or their positions. Nothing where `lanes` has a part in a guard, where guards
// ask for anything but a range of each loop of the window, or where a window might be empty.
std::optional<WholeWindows> whole_windows(const Nest& nest, const Int& lanes);

}  // namespace bitale
