// LoopBuilder: loops with lets and guards placed as far out as their variables allow. Those of a reduction
// leave out terms and never a result: none is placed around what the first loops have inside of them, where
// partial results are cleared and stored.
#pragma once

#include <functional>
#include <set>

#include "codegen/kernel/ir.h"

namespace bitale {

class LoopBuilder {
  public:
    // with_lets = false: a pass over the results that does not evaluate the body.
    explicit LoopBuilder(const Nest& nest, bool with_lets = true);

    // Nested loops, the last one bound as `innermost`, around the body. Lets and guards whose variables are
    // all bound are emitted before going deeper. `also` counts as unbound until the body binds it itself.
    Stmts nest(const std::vector<Loop>& loops, const std::function<Stmts(LoopBuilder&)>& body,
               Binding innermost = Binding::serial, const Int& also = 0);
    // One loop over all points, strided over the threads of a block; the loop variables are functions of it,
    // which `substituted` puts in place.
    Stmts threads(const std::vector<Loop>& loops, const std::function<Stmts(LoopBuilder&)>& body);

    // The statements under the lets and guards that are still pending.
    Stmts guarded(Stmts body, const Substitution& here = {});
    // The statements with the variables of `threads` loops (and of `more`) replaced.
    Stmts substituted(const Stmts& body, const Substitution& more = {}) const;

  private:
    Stmts around(const std::vector<Loop>& loops, std::size_t depth,
                 const std::function<Stmts(LoopBuilder&)>& body, Binding innermost);
    Stmts inside(const std::function<Stmts(LoopBuilder&)>& body);
    // Wraps what `inner` makes in the pending lets and guards that need no unbound variable.
    Stmts release(const std::function<Stmts()>& inner, bool all, const Substitution& here);

    std::vector<Let> lets_;      // pending
    std::vector<Guard> guards_;  // pending
    std::vector<Guard> later_;   // of results: pending inside of the first loops
    std::set<std::uint64_t> unbound_;
    Substitution replaced_;
};

// The variable is used by more than indices of elements: by a guard, a let, or, where that counts, as a
// number.
bool restricted(const Nest& nest, const Int& variable, bool numbers = true);
Stmts substitute(const Stmts& body, const Substitution& with);
// Whether something is stored in the place, at whatever depth, only where a guard holds.
bool stores_under_guards(const Stmts& body, int place);
Scalar lowest_of(DType dtype);  // -inf or the smallest integer
Scalar highest_of(DType dtype);

}  // namespace bitale
