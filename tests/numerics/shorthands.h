// What several files of this folder say in few words: every dtype, options of threads and of the library,
// functions on the tested device, all results of calls.
#pragma once

#include <cstddef>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "tests/support/tested_device.h"

namespace bitale::test {

inline const std::vector<DType> all_dtypes = {boolean, int8,   int16,   int32,    int64,   uint8,  uint16,
                                              uint32,  uint64, float16, bfloat16, float32, float64};

// A loss whose weights differ, so that no element of a gradient can stand in for another.
inline Expr weighted(const Expr& y) { return sum(y * cos(y)); }

inline Options with(int threads) {
    Options chosen = options();
    chosen.threads = threads;
    return chosen;
}

inline Options with(bool library, int threads) {
    Options chosen = with(threads);
    if (!library) chosen.disabled.insert("onednn");
    return chosen;
}

inline FunctionOptions here(const Updates& updates = {}) {
    FunctionOptions o;
    o.updates = updates;
    o.device = tested_device();
    return o;
}

// Of one call after another.
inline std::vector<Array> results_of(Function f, const std::vector<Array>& arguments, int calls = 1) {
    std::vector<Array> all;
    for (int i = 0; i < calls; ++i) {
        const Results r = f.call(arguments);
        for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
    }
    return all;
}

}  // namespace bitale::test
