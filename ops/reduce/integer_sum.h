// Sums of small integers that are scaled and shifted on their way to floating point, such as
// sum((cast(x, float32) - 128) / 255). In real numbers that is (sum(x) - n * 128) / 255, whose sum is exact
// in any order and takes whole vectors of bytes at once.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

class IntegerSum {
  public:
    // Of a node of the op `sum`, of so many terms for each result. Nothing where its terms are something
    // else, where they leave their dtype on the way, or where the terms are few and a shift would need
    // float64. `may_look_through` refuses nodes that have to stay as they are.
    static std::optional<IntegerSum> of(
        const Node& sum, const Int& count,
        const std::function<bool(const NodePtr&)>& may_look_through = nullptr);

    // The integers in the places of the terms, of 16 bits at most.
    const NodePtr& integers() const { return integers_; }
    // Nothing but casts of them is summed.
    bool is_plain() const { return steps_.empty(); }
    // Scaled by what only a call tells.
    bool has_variable() const { return has_variable_; }
    // In what the total is scaled and shifted: numbers do so in float64, so that a float32 sum is rounded
    // once, whatever a shift cancels, and has these bits whatever is done with it.
    DType wide() const;
    // The sum, of the total of the integers in the dtype wide().
    NodePtr value(const NodePtr& total) const;

  private:
    struct Step {
        const Op* op;
        NodePtr scalar;  // of rank 0, or null
        bool is_first;   // it stands before the terms
        DType dtype;     // of the result
        std::vector<Origin> origins;
    };

    NodePtr integers_;
    std::vector<Step> steps_;  // the innermost first
    Int count_;
    DType dtype_ = DType::float32;
    bool has_variable_ = false, shift_rounds_ = false, in_float64_ = false;

    bool take_step(const NodePtr& node);
    bool stays_in_range();
};

}  // namespace bitale
