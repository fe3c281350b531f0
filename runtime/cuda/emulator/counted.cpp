#include "runtime/cuda/emulator/counted.h"

#include <algorithm>
#include <string>

#include "runtime/cuda/emulator/blocks.h"
#include "runtime/cuda/emulator/stream.h"

namespace bitale::cuda {

std::vector<LaunchCounts> emulated_counts(KernelFunction kernel) {
    drain_streams();
    const auto& emulated = *reinterpret_cast<const EmulatedKernel*>(kernel);
    std::vector<LaunchCounts> all;
    for (CountedLaunches& launches : counted_launches(emulated)) {
        LaunchCounts& counts = all.emplace_back(std::move(launches.counts));
        std::sort(launches.places.begin(), launches.places.end(),
                  [](const CountedPlace& a, const CountedPlace& b) { return a.code < b.code; });
        std::vector<const void*> code;
        for (const CountedPlace& place : launches.places) code.push_back(place.code);
        const std::vector<std::string> statements = emulated.module->statements(code);
        for (std::size_t p = 0; p < code.size(); ++p) {
            const AccessCounts& own = launches.places[p].counts;
            const auto known =
                std::find_if(counts.accesses.begin(), counts.accesses.end(), [&](const AccessCounts& a) {
                    return a.where == statements[p] && a.memory == own.memory && a.store == own.store;
                });
            if (known != counts.accesses.end()) {
                known->add(own);
                continue;
            }
            counts.accesses.push_back(own);
            counts.accesses.back().where = statements[p];
        }
    }
    return all;
}

}  // namespace bitale::cuda
