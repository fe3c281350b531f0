#include "runtime/exec/stacked.h"

#include <fmt/format.h>

#include <cstring>

#include "bitale/error.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

std::vector<Array> stacked(const std::vector<std::vector<Array>>& steps) {
    std::vector<Array> all;
    for (std::size_t k = 0; k < steps[0].size(); ++k) {
        Dims dims(1, static_cast<std::int64_t>(steps.size()));
        const Dims& one = steps[0][k].shape();
        dims.insert(dims.end(), one.begin(), one.end());
        Array& stack = all.emplace_back(pooled_array(steps[0][k].dtype(), std::move(dims)));
        char* to = static_cast<char*>(stack.mutable_data());
        for (const std::vector<Array>& step : steps) {
            if (step[k].shape() != one)
                throw ShapeError("the results of a loop's steps have different shapes and cannot be stacked");
            std::memcpy(to, step[k].data(), static_cast<std::size_t>(step[k].bytes()));
            to += step[k].bytes();
        }
    }
    return all;
}

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
