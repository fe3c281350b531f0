#include "codegen/library/cost.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "codegen/group/values.h"

namespace bitale {

namespace {

// Of a core with 512-bit vectors and float32; others are slower at all of it.
constexpr double single_flops_per_ns = 230, single_lanes = 16;
// A call with its own job for the pool, what the library spends before it computes, and what it interrupts.
constexpr double call_ns = 5000;
// What the library spends before each of several products.
constexpr double product_ns = 600;
// An element stored by one kernel and read by another, from the cache that both cores share.
constexpr double passed_ns = 0.13;
// An element that each task of generated code turns for itself, and how many tasks do so.
constexpr double turned_ns = 0.5, tasks = 8;
// The rows of one of several products that one panel has: they share what is turned, in one task.
constexpr double most_panel_rows = 64, most_turned = 32;
// A result whose terms run in lanes, as those of longer sums do: these are turned and added up.
constexpr double lanes_added_ns = 2.5, terms_in_lanes = 32;
// Parts of the peak that are reached: measured on the products of small networks.
constexpr double by_library = 0.9, thin_by_library = 0.68, generated = 0.5, thin_generated = 0.85;
// Few columns: the transpose of the product has few rows, for which the library has kernels.
constexpr double few_columns = 3, few_by_library = 0.4;
// Of products of bytes: four terms with an instruction of the library; generated code multiplies int32, which
// takes longer than float32 does.
constexpr double bytes_by_library = 3.5, integers_generated = 0.4;
// Whole registers of columns, of a factor that the second cache has room for beside what else is there: for
// any number of rows. Of a batch, for the rows of a panel and any number of columns.
constexpr double near_generated = 0.62, near_elements = 32 << 10;
// An element that is made for a call, or in the registers of generated code, which has no more rows than
// these in a tile. Those of fewer rows still are generated with the lanes along the terms where both factors
// lie so.
constexpr double made_for_call_ns = 0.15, made_in_lanes_ns = 0.04, rows_of_tile = 14, fewest_turned = 4;

// An element of an operand that the library packs for each of several products.
constexpr double packed_a_ns = 0.2, packed_b_ns = 0.04;

double filled(double columns, double lanes) { return columns / (std::ceil(columns / lanes) * lanes); }

}  // namespace

ProductCost cost_of_product(const GemmCall& call, double passed, double made) {
    const double m = typical(call.m), n = typical(call.n), k = typical(call.k);
    double products = 1;
    if (call.strides)
        for (const GemmStrides::Batch& batch : call.strides->batches) products *= typical(batch.count);
    const double width = bytes_of(call.dtype) / 4.0, lanes = single_lanes / width,
                 flops_per_ns = single_flops_per_ns / width;
    const bool integers = call.dtype == DType::int32;
    const double flops = 2 * m * n * k * products;
    const bool few = n > 1 && n <= few_columns && k >= terms_in_lanes && m >= most_panel_rows &&
                     !call.transpose_a && products == 1 && !integers;
    const double library = few ? few_by_library
                               : (n <= lanes ? thin_by_library : by_library) * filled(n, lanes) *
                                     (integers ? bytes_by_library : 1);
    // Along the columns of b, or along the rows of a stored the other way, neighbours lie side by side.
    const double in_lanes =
        std::max(call.transpose_b ? 0.0 : filled(n, lanes), call.transpose_a ? filled(m, lanes) : 0.0);
    const double added = k >= terms_in_lanes ? m * n * lanes_added_ns : 0;
    if (std::min(m, n) > rows_of_tile) made = 0;  // copies that both have
    const bool along_terms = in_lanes == 0 && made > 0 && std::min(m, n) < fewest_turned;
    const double turned = products > 1 && std::max(m, n) <= most_turned ? 1 : tasks,
                 turning = in_lanes > 0  ? 0
                           : along_terms ? added
                                         : (turned * n * k * turned_ns + (turned > 1 ? added : 0)) * products;
    // One register holds a row of results, so that the whole sum of many of them stays in registers.
    constexpr double fewest_rows = 8;
    const bool thin = n <= lanes && m >= fewest_rows && !call.transpose_a && !call.transpose_b;
    const bool near = !call.transpose_b &&
                      (products > 1 ? m <= most_panel_rows && !call.transpose_a : std::fmod(n, lanes) == 0) &&
                      k * n * width <= near_elements;
    const double reached = (thin   ? thin_generated
                            : near ? near_generated
                                   : generated) *
                           (integers ? integers_generated : 1);
    const double packing =
        products > 1 ? products * (product_ns + (m * k * packed_a_ns + k * n * packed_b_ns) * width) : 0;
    return {call_ns + packing + passed * passed_ns * width + made * made_for_call_ns * width +
                flops / (flops_per_ns * library),
            turning + made * made_in_lanes_ns * width +
                flops / (flops_per_ns * reached *
                         (along_terms    ? filled(k, lanes)
                          : in_lanes > 0 ? in_lanes
                                         : filled(n, lanes)))};
}

double cost_of_turning(const GemmCall& call, double apart) {
    return apart * turned_ns * std::clamp(std::ceil(typical(call.m) / rows_of_tile), 1.0, tasks);
}

double cost_of_pieces(const GemmCall& call) {
    const double m = typical(call.m), n = typical(call.n), k = typical(call.k);
    const auto slices = [](double length, std::int64_t slice) {
        return slice > 0 ? std::ceil(length / static_cast<double>(slice)) : 1;
    };
    const double of_rows = slices(m, call.slice_rows), of_columns = slices(n, call.slice_columns);
    const double computed = call.symmetric ? (of_rows + 1) / (2 * of_rows) : 1;
    return made_ns * bytes_of(call.dtype) / 4 * computed * k *
           ((call.made_a ? m * of_columns : 0) + (call.made_b ? n * of_rows : 0));
}

}  // namespace bitale
