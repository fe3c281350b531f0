#include "runtime/cuda/step_cache.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace bitale::cuda {

std::int64_t most_steps_of_turn(std::size_t nodes_of_step) {
    constexpr std::int64_t most_nodes = 160, most_steps = 8;
    const auto nodes = static_cast<std::int64_t>(std::max<std::size_t>(nodes_of_step, 1));
    return std::clamp<std::int64_t>(most_nodes / nodes, 1, most_steps);
}

std::int64_t CapturedStep::result_bytes() const {
    return std::accumulate(output_bytes.begin(), output_bytes.end(), std::int64_t{0});
}

std::size_t CapturedStep::nodes() const {
    if (call) return call->nodes();
    const std::unique_ptr<LaunchGraph>& ended = step ? step : loop;
    return ended ? ended->nodes() - (result_bytes() > small_results ? 2 : 1) : 0;
}

CapturedStep& StepCache::find(const Frame& frame, const std::vector<void*>& pointers) {
    ++clock_;
    for (const std::unique_ptr<CapturedStep>& s : steps_)
        if (s->pointers == pointers && s->output_bytes == frame.output_bytes && s->sizes == frame.body) {
            s->last_use = clock_;
            return *s;
        }
    auto made = std::make_unique<CapturedStep>();
    made->sizes = frame.body;
    made->output_bytes = frame.output_bytes;
    made->pointers = pointers;
    made->last_use = clock_;
    if (steps_.size() < most_steps) return *steps_.emplace_back(std::move(made));
    std::unique_ptr<CapturedStep>& oldest = *std::min_element(
        steps_.begin(), steps_.end(), [](const auto& a, const auto& b) { return a->last_use < b->last_use; });
    oldest = std::move(made);
    return *oldest;
}

}  // namespace bitale::cuda
