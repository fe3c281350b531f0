#include "ops/oracle/wide_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace bitale {

namespace {

// NaN is behind infinity in ascending order.
bool is_less(long double a, long double b) { return std::isnan(a) ? false : std::isnan(b) || a < b; }

// Which places of a sorted row are certain: all keys before one are below all keys behind, whatever they are
// off by, and the same holds for its neighbour.
std::vector<bool> certain_places(const std::vector<long double>& values,
                                 const std::vector<long double>& errors) {
    const std::size_t n = values.size();
    std::vector<long double> lowest(n + 1, wide_infinity);  // of those from a place on
    const auto value = [&](std::size_t i) { return std::isnan(values[i]) ? wide_infinity : values[i]; };
    for (std::size_t i = n; i-- > 0;)
        lowest[i] = std::min(lowest[i + 1], std::isfinite(errors[i]) ? value(i) - errors[i] : -wide_infinity);
    std::vector<bool> apart(n + 1, true), certain(n);
    long double highest = -wide_infinity;
    for (std::size_t i = 1; i < n; ++i) {
        highest = std::max(highest, value(i - 1) + errors[i - 1]);
        apart[i] = highest < lowest[i];
    }
    for (std::size_t i = 0; i < n; ++i) certain[i] = apart[i] && apart[i + 1];
    return certain;
}

}  // namespace

WideValue wide_order(const WideValue& keys, std::int64_t count, bool descending, DType dtype) {
    WideValue r;
    r.dtype = dtype;
    r.shape = keys.shape;
    r.shape.back() = count;
    const auto n = static_cast<std::size_t>(keys.shape.back());
    const std::size_t rows = n == 0 ? 0 : keys.values.size() / n;
    std::vector<std::size_t> order(n);
    std::vector<long double> values(n), errors(n);
    for (std::size_t row = 0; row < rows; ++row) {
        const long double* key = keys.values.data() + row * n;
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return descending ? is_less(key[b], key[a]) : is_less(key[a], key[b]);
        });
        for (std::int64_t i = 0; i < count; ++i)
            r.values.push_back(static_cast<long double>(order[static_cast<std::size_t>(i)]));
        if (keys.errors.empty()) continue;
        // In ascending order either way.
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t from = order[descending ? n - 1 - i : i];
            values[i] = key[from];
            errors[i] = keys.errors[row * n + from];
        }
        const bool exact = std::all_of(errors.begin(), errors.end(), [](long double e) { return e == 0; });
        const std::vector<bool> certain = exact ? std::vector<bool>(n, true) : certain_places(values, errors);
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
            r.errors.push_back(certain[descending ? n - 1 - i : i] ? 0 : wide_infinity);
    }
    return r;
}

}  // namespace bitale
