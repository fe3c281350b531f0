// Everything about a program that depends on the sizes of a call: computed once per set of sizes, then looked
// up.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "codegen/program.h"
#include "runtime/exec/int_table.h"
#include "runtime/exec/launcher.h"
#include "runtime/exec/shares.h"
#include "runtime/exec/signature.h"

namespace bitale {

struct StepSizes {
    std::vector<std::int64_t> sizes, tasks;           // of a kernel
    std::array<std::vector<std::int64_t>, 2> pieces;  // of the kernels that make a product's operands
    std::vector<Shares> shares;                       // of each phase, where its costs are known
    GemmShape gemm;
    ConvShape conv;
    RoutineShape routine;
    std::int64_t copy_bytes = 0;
    bool operator==(const StepSizes&) const = default;
};

struct Frame {
    std::shared_ptr<const Placement> placement;
    std::vector<StepSizes> once, body;
    std::vector<Dims> outputs;
    std::vector<std::int64_t> output_bytes;
    std::uint64_t number = 0;  // frames of other numbers may differ; of all Frames together
};

class Frames {
  public:
    // `threads`: those that tasks are shared out among; 0 on a device that shares them out by itself.
    Frames(std::shared_ptr<const Program> program, const Signature& signature, int threads = 0);

    // The frame for given values of all symbols; valid until the next call. Values that give the same sizes
    // (minibatches but for the last one) have one frame. Throws ShapeError where lengths differ.
    const Frame& find(const std::int64_t* symbols);
    std::int64_t most_bytes() const { return most_bytes_; }  // of any placement so far

  private:
    struct StepSlots {
        std::vector<int> sizes, tasks;
        std::vector<std::vector<int>> work;  // of each phase: tasks and cost of each kind, in turns
        // m, n, k of a product; shapes, then strides of a convolution's tensors; sizes of a routine
        std::vector<int> call;
        int copy = -1;
        std::array<std::vector<int>, 2> pieces;
    };
    std::vector<StepSlots> compile(const Region& region);
    void compile(const KernelStep& step, StepSlots& to);
    void compile(const GemmStep& step, StepSlots& to);
    void compile(const ConvStep& step, StepSlots& to);
    void compile(const CopyStep& step, StepSlots& to);
    void compile(const RoutineStep& step, StepSlots& to);
    template <class Sizes>
    void add(const Sizes& sizes, std::vector<int>& to) {
        for (const Int& size : sizes) to.push_back(table_.add(size));
    }
    std::vector<Shares> shares(const StepSlots& step) const;
    std::vector<StepSizes> evaluate(const Region& region, const std::vector<StepSlots>& slots) const;
    GemmShape gemm_shape(const GemmCall& call, const std::vector<int>& slots) const;
    ConvShape conv_shape(const ConvCall& call, const std::vector<int>& slots) const;
    RoutineShape routine_shape(const RoutineCall& call, const std::vector<int>& slots) const;
    // ShapeError, with the line that makes the result, where that is no number.
    std::int64_t bytes_of_result(std::size_t number, const Dims& dims) const;
    std::unique_ptr<Frame> make(const std::int64_t* symbols);
    bool newest_fits(const std::int64_t* symbols) const;
    void remember(const std::int64_t* symbols);
    std::shared_ptr<const Placement> place(const std::int64_t* symbols);
    std::int64_t slot(int index) const { return slots_[static_cast<std::size_t>(index)]; }

    static constexpr std::size_t most_frames = 16;
    struct Known {
        std::vector<std::int64_t> sizes;  // the numbers in results_
        std::unique_ptr<Frame> frame;
    };
    struct Placed {
        std::vector<std::int64_t> counts;  // elements of each arena buffer
        std::shared_ptr<const Placement> placement;
    };

    std::shared_ptr<const Program> program_;
    std::vector<std::uint64_t> symbol_ids_;
    const int threads_;
    IntTable table_;
    LengthChecks checks_;
    std::vector<std::size_t> used_;  // positions of the symbols that any size depends on
    std::vector<int> results_;       // the slots that a frame is made of
    std::vector<StepSlots> once_, body_;
    std::vector<std::vector<int>> output_shapes_;
    std::vector<int> arena_counts_;
    std::vector<std::int64_t> slots_;  // scratch of the last evaluation
    std::vector<Known> frames_;
    std::size_t newest_ = 0, next_victim_ = 0;
    std::vector<std::int64_t> newest_symbols_;  // what the newest frame was last found for, by used_
    std::vector<Placed> placed_;
    std::size_t next_placed_ = 0;
    std::int64_t most_bytes_ = 0;
};

}  // namespace bitale
