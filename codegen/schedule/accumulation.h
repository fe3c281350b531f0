// Accumulation: the partial results of one reduction inside a task, and the statements that add to them.
#pragma once

#include <functional>
#include <vector>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/member.h"

namespace bitale {

// One of several results that are computed side by side: where its partial result is, and what the variables
// of the loops that were written out are for it.
struct Copy {
    std::vector<Int> at;
    Substitution with{};
};

// Of the iterations of a loop, those that are written out.
struct WrittenOut {
    std::int64_t all_of = 8;     // of a shorter loop of known length all, of others a divisor
    bool of_any_length = false;  // some where the length is not known, too
};

class Accumulation {
  public:
    Accumulation(const Member& member, KernelBuilder& builder, const Shape& results);

    Stmts declare_all() const;
    Stmts clear(const std::vector<Int>& at) const;
    // Loops over `reduced` (all of the nest's, or all but the split one) around the combine of every copy;
    // `vector` wraps the innermost statements in the vector loop when the lanes are results. Several
    // iterations of the last loop are written out. `others` of the same loops and the same tree take the same
    // terms.
    Stmts combine(LoopBuilder& loops, const std::vector<Loop>& reduced, const std::vector<Copy>& copies,
                  const std::function<Stmts(Stmts)>& vector, const WrittenOut& written = {},
                  const std::vector<const Accumulation*>& others = {}) const;
    // The part of one lane: every lanes-th iteration of the last loop, from its own number on, in turn for
    // each of its groups.
    Stmts combine_strided(LoopBuilder& loops, const std::vector<Loop>& reduced, const Copy& copy,
                          const Int& lane, std::int64_t lanes) const;
    // One statement for each point of a short reduction: the partial result stays in a register.
    Stmts combine_point(const Substitution& point, const Copy& copy) const;
    // After the last iteration, before result(): until so many partial results are left.
    Stmts finish(const std::vector<Int>& at, std::int64_t left = 1) const;
    // Of several threads that have a partial result each: combines them, right in lane 0.
    Stmts meet(int lanes) const;
    Scalar result(std::vector<Int> at) const;

    int place() const { return place_; }
    int index_place() const { return index_place_; }  // of positions; -1: none are asked for

  private:
    Stmt step(const Copy& copy) const;
    std::int64_t unrolled_times(const Loop& last, const WrittenOut& written) const;

    const Nest& nest_;
    int lanes_, groups_;
    bool short_text_, out_of_order_ = false, none_yet_ = false;
    DType dtype_, index_dtype_ = DType::int64;
    int place_ = -1, index_place_ = -1;
};

// parts[l] = combine(parts[l], parts[l + w]) for w = half of `count`, and so on until `left` are left.
Stmts combine_parts(int place, const std::vector<Int>& at, std::int64_t count, Combine combine, DType dtype,
                    std::int64_t left = 1);

// The points of a reduction that is short and of known length, in order; empty if it is not.
std::vector<Substitution> points_of(const std::vector<Loop>& reduced);
// Whether the loop's variable occurs in one of them: then iterations cannot simply be written out.
bool mentions(const std::vector<Guard>& guards, const Int& variable);
bool mentions(const std::vector<Let>& lets, const Int& variable);

}  // namespace bitale
