// Results of the parts of a loop that reports on the way.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "bitale/error.h"
#include "bitale/function.h"

namespace bitale {

// One above the other, as if there had been one loop.
class Joined {
  public:
    explicit Joined(std::int64_t steps) : steps_(steps) {}
    void add(const Results& part, std::int64_t done) {
        for (std::size_t k = 0; k < part.size(); ++k) {
            Dims shape = part[k].shape();
            shape[0] = steps_;
            if (done_ == 0)
                values_.emplace_back(part[k].dtype(), shape);
            else if (values_[k].shape() != shape)
                throw ShapeError(fmt::format("output {} of the loop is {} in step {}, and was {} before", k,
                                             text_of(part[k].shape()), done_, text_of(values_[k].shape())));
            const std::int64_t row = steps_ ? values_[k].bytes() / steps_ : 0;
            if (part[k].bytes() > 0)
                std::memcpy(static_cast<char*>(values_[k].mutable_data()) + done_ * row, part[k].data(),
                            static_cast<std::size_t>(part[k].bytes()));
        }
        done_ += done;
    }
    std::int64_t done() const { return done_; }
    Results take() {
        if (done_ < steps_)
            for (Array& value : values_) value = value.rows(0, done_);
        return Results(std::move(values_));
    }

  private:
    std::int64_t steps_, done_ = 0;
    std::vector<Array> values_;
};

}  // namespace bitale
