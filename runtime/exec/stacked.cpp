#include "runtime/exec/stacked.h"

#include <fmt/format.h>

#include "bitale/error.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

StackedResults::StackedResults(const Program& program, const Frame& first, std::int64_t steps,
                               std::int64_t limit)
    : program_(program), first_(first), steps_(steps) {
    for (std::size_t i = 0; i < first.outputs.size(); ++i) {
        Dims dims = first.outputs[i];
        dims.insert(dims.begin(), steps);
        stacked_.push_back(pooled_array(program.outputs[i].dtype, std::move(dims), limit));
    }
    for (Array& a : stacked_) to_.push_back(static_cast<char*>(a.mutable_data()));
}

void StackedResults::check(const Frame& frame) const {
    if (frame.outputs != first_.outputs)
        throw ShapeError(
            fmt::format("{}: the results of this step have another shape than those of the first and "
                        "cannot be stacked; call the function for it by itself",
                        program_.name.empty() ? "loop" : program_.name));
}

void StackedResults::add(const std::function<void(std::size_t i, char* to, std::int64_t bytes)>& fill,
                         std::int64_t steps) {
    for (std::size_t i = 0; i < to_.size(); ++i) fill(i, to_[i], first_.output_bytes[i] * steps);
    advance(steps);
}

void StackedResults::advance(std::int64_t steps) {
    for (std::size_t i = 0; i < to_.size(); ++i) to_[i] += first_.output_bytes[i] * steps;
    done_ += steps;
}

std::vector<Array> StackedResults::take() {
    if (done_ < steps_)
        for (Array& a : stacked_) a = a.rows(0, done_);
    return std::move(stacked_);
}

}  // namespace bitale
