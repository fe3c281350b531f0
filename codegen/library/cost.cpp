#include "codegen/library/cost.h"

#include <algorithm>
#include <cmath>

#include "codegen/group/values.h"

namespace bitale {

namespace {

// Of a core with 512-bit vectors; others are slower at all of it.
constexpr double flops_per_ns = 230, lanes = 16;
// A call with its own job for the pool, and what the library spends before it computes.
constexpr double call_ns = 2500;
// An element stored by one kernel and read by another, from the cache that both cores share.
constexpr double passed_ns = 0.13;
// Parts of the peak that are reached: measured on the products of small networks.
constexpr double by_library = 0.9, thin_by_library = 0.68, in_lanes = 0.08, without_lanes = 0.05;

double filled(double columns) { return columns / (std::ceil(columns / lanes) * lanes); }

}  // namespace

ProductCost cost_of_product(const GemmCall& call, double passed) {
    const double m = typical(call.m), n = typical(call.n), k = typical(call.k);
    const double flops = 2 * m * n * k;
    // Along the columns of b, or along the rows of a stored the other way, neighbours lie side by side.
    const bool columns = !call.transpose_b && call.n.is_constant(),
               rows = call.transpose_a && call.m.is_constant();
    const double generated =
        std::max(columns ? in_lanes * filled(n) : 0.0, rows ? in_lanes * filled(m) : 0.0);
    const double library = (n <= lanes ? thin_by_library : by_library) * filled(n);
    return {call_ns + passed * passed_ns + flops / (flops_per_ns * library),
            flops / (flops_per_ns * std::max(generated, without_lanes))};
}

}  // namespace bitale
