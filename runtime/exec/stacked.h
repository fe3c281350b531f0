// Results of a loop, one step above the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/program.h"
#include "runtime/exec/frame.h"

namespace bitale {

// Copies of the results of steps, [steps, ...]; at least one step. ShapeError where their shapes differ.
std::vector<Array> stacked(const std::vector<std::vector<Array>>& steps);

class StackedResults {
  public:
    // Room for the results of so many steps, all of the shapes that the first one has.
    StackedResults(const Program& program, const Frame& first, std::int64_t steps, std::int64_t limit = 0);
    // The same for results of these types; `name`: of the function.
    StackedResults(std::string name, const std::vector<DType>& dtypes, std::vector<Dims> shapes,
                   std::int64_t steps, std::int64_t limit);

    // Before a step: throws ShapeError if its results have other shapes.
    void check(const Frame& frame) const { check(frame.outputs); }
    void check(const std::vector<Dims>& shapes) const;
    // After it, or after several: `fill` writes result `i` of these steps to its place.
    void add(const std::function<void(std::size_t i, char* to, std::int64_t bytes)>& fill,
             std::int64_t steps = 1);

    // Where result `i` of the next step goes, for those who write it there by themselves, and after that.
    void* next(std::size_t i) const { return to_[i]; }
    void advance(std::int64_t steps = 1);

    std::int64_t done() const { return done_; }
    std::vector<Array> take();  // of the steps that were done

  private:
    std::string name_;
    std::vector<Dims> shapes_;         // of the results of a step
    std::vector<std::int64_t> bytes_;  // likewise
    std::int64_t steps_, done_ = 0;
    std::vector<Array> stacked_;
    std::vector<char*> to_;
};

}  // namespace bitale
