// Scans: each element combined with those before it along an axis.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// All: "axis" (int64), "reverse" (bool): from the end; "exclusive" (bool): without the element itself, so
// that the first is 0, 1 or -inf. The shape is that of x.
const Op* cumsum_op();   // x of any dtype; the dtype of sum(x)
const Op* cumprod_op();  // likewise, of prod(x)
const Op* cummax_op();   // x, floats; NaN wins. No gradient
// a, b, floats of one type: s[i] = a[i] * s[i - 1] + b[i], where s[-1] is 0; exclusive: s[i - 1].
const Op* recurrence_op();

struct Scan {
    std::int64_t axis = 0;
    bool exclusive = false, reverse = false;

    Attributes attributes() const { return {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}}; }
    // The same walk as whoever comes to it from its end.
    Scan backwards() const { return {axis, exclusive, !reverse}; }
    Scan without_own() const { return {axis, true, reverse}; }
};
Scan scan_of(const Node& node);

void register_scan_ops();

}  // namespace bitale
