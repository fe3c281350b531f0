#include "runtime/exec/stacked.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "bitale/error.h"
#include "graph/base/text.h"
#include "graph/ir/array_bytes.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

namespace {

std::string unlike_steps(const std::string& function, std::size_t output, const Dims& now,
                         const Dims& first) {
    return fmt::format(
        "loop{}: output {} has the shape {} in this step and {} in the first, and results of one loop are "
        "stacked; end the loop before this step, and call the function for it by itself",
        function.empty() ? "" : " of function " + in_quotes(function), output, text_of(now), text_of(first));
}

}  // namespace

std::vector<Array> stacked(const std::vector<std::vector<Array>>& steps) {
    std::vector<Array> all;
    for (std::size_t k = 0; k < steps[0].size(); ++k) {
        Dims dims(1, static_cast<std::int64_t>(steps.size()));
        const Dims& one = steps[0][k].shape();
        dims.insert(dims.end(), one.begin(), one.end());
        Array& stack = all.emplace_back(pooled_array(steps[0][k].dtype(), std::move(dims)));
        char* to = static_cast<char*>(stack.mutable_data());
        for (const std::vector<Array>& step : steps) {
            if (step[k].shape() != one) throw ShapeError(unlike_steps("", k, step[k].shape(), one));
            std::memcpy(to, step[k].data(), static_cast<std::size_t>(step[k].bytes()));
            to += step[k].bytes();
        }
    }
    return all;
}

namespace {

std::vector<DType> output_dtypes(const Program& program) {
    std::vector<DType> dtypes;
    for (const Type& output : program.outputs) dtypes.push_back(output.dtype);
    return dtypes;
}

}  // namespace

StackedResults::StackedResults(const Program& program, const Frame& first, std::int64_t steps,
                               std::int64_t limit)
    : StackedResults(program.name, output_dtypes(program), first.outputs, steps, limit) {}

StackedResults::StackedResults(std::string name, const std::vector<DType>& dtypes, std::vector<Dims> shapes,
                               std::int64_t steps, std::int64_t limit)
    : name_(std::move(name)), shapes_(std::move(shapes)), steps_(steps) {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
        bytes_.push_back(bytes_of(dtypes[i], shapes_[i]));
        Dims dims = shapes_[i];
        dims.insert(dims.begin(), steps);
        stacked_.push_back(pooled_array(dtypes[i], std::move(dims), limit));
    }
    for (Array& a : stacked_) to_.push_back(static_cast<char*>(a.mutable_data()));
}

void StackedResults::check(const std::vector<Dims>& shapes) const {
    for (std::size_t i = 0; i < shapes_.size(); ++i)
        if (shapes[i] != shapes_[i]) throw ShapeError(unlike_steps(name_, i, shapes[i], shapes_[i]));
}

void StackedResults::add(const std::function<void(std::size_t i, char* to, std::int64_t bytes)>& fill,
                         std::int64_t steps) {
    for (std::size_t i = 0; i < to_.size(); ++i) fill(i, to_[i], bytes_[i] * steps);
    advance(steps);
}

void StackedResults::advance(std::int64_t steps) {
    for (std::size_t i = 0; i < to_.size(); ++i) to_[i] += bytes_[i] * steps;
    done_ += steps;
}

std::vector<Array> StackedResults::take() {
    if (done_ < steps_)
        for (Array& a : stacked_) a = a.rows(0, done_);
    return std::move(stacked_);
}

}  // namespace bitale
