// What tests of functions share: devices, limits, arguments and results.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "tests/support/emulator.h"

namespace bitale::test {

inline std::vector<std::string> all_devices() {
    std::vector<std::string> all = cpu_and_emulator();
    all.insert(all.end(), {"reference", "reference=wide"});
    return all;
}

inline ScopedOptions with_limit(std::int64_t bytes) {
    Options chosen = options();
    chosen.memory_limit = bytes;
    return ScopedOptions(chosen);
}

// first, first + 1, ...
inline Array numbered(std::int64_t count, float first = 0) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), first);
    return Array(values);
}

inline std::vector<Array> list_of(const Results& results) {
    std::vector<Array> list;
    for (std::size_t k = 0; k < results.size(); ++k) list.push_back(results[k]);
    return list;
}

}  // namespace bitale::test
