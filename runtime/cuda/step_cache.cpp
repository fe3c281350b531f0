#include "runtime/cuda/step_cache.h"

#include <algorithm>
#include <utility>

namespace bitale::cuda {

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
