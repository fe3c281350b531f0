#include "runtime/exec/region_runner.h"

#include "runtime/figures.h"

namespace bitale {

RegionRunner::RegionRunner(Build build, std::function<std::unique_ptr<Launcher>()> launcher,
                           int compiler_runs)
    : build_(std::move(build)),
      compiler_runs_(compiler_runs),
      meters_(*build_.program),
      launcher_(std::move(launcher)),
      states_([this] {
          return std::make_unique<CallState>(build_, launcher_(), meters_, arenas_, last_symbols_);
      }) {}

std::vector<Profile::Row> RegionRunner::profile() const {
    std::vector<Profile::Row> rows;
    if (!build_.profile) return rows;
    const Lengths lengths(*build_.program, last_symbols());
    std::size_t number = 0;
    for (const Region* region : {&build_.program->once, &build_.program->body})
        for (const Step& step : region->steps) {
            const Meters::Meter& m = meters_[number++];
            rows.push_back(row_of(*build_.program, step, static_cast<int>(number), lengths,
                                  m.calls.load(std::memory_order_relaxed),
                                  m.seconds.load(std::memory_order_relaxed)));
        }
    return rows;
}

}  // namespace bitale
