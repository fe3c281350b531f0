#include "codegen/library/strided.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/library/gemm.h"
#include "codegen/nest/access.h"
#include "codegen/nest/planes.h"
#include "codegen/nest/product.h"

namespace bitale {

namespace {

// A loop, and by how many elements both factors and the result move with it.
struct Axis {
    Int extent, a, b, c;
};

// Where a factor begins in its operand, and its steps along the loops.
struct Linear {
    Int first;
    std::vector<Int> steps;
};

std::optional<Linear> linear(const ScalarNode& read, const std::vector<Loop>& loops,
                             const ShapeOf& shape_of) {
    if (read.at.size() != shape_of(read.operand).size()) return {};
    Linear r;
    const Int offset = offset_of(read, shape_of);
    Int sum = 0;
    for (const Loop& l : loops) {
        const std::optional<Int> step = stride_of(offset, l.variable);
        if (!step) return {};
        r.steps.push_back(*step);
        if (!step->is(0)) sum = sum + *step * l.variable;
    }
    r.first = offset - sum;
    const auto moves = [&](const Int& x) {
        return std::any_of(loops.begin(), loops.end(),
                           [&](const Loop& l) { return depends_on(x, l.variable.symbol_id()); });
    };
    if (moves(r.first) || std::any_of(r.steps.begin(), r.steps.end(), moves)) return {};
    return r;
}

bool reads(const Scalar& s, DType dtype) {
    return s->kind == ScalarNode::Kind::read && s->dtype == dtype && s->guards.empty();
}

// Neighbours that are one axis in memory, for both factors and the result.
std::vector<Axis> joined(std::vector<Axis> axes) {
    for (std::size_t i = axes.size(); i-- > 1;) {
        const Axis inner = axes[i];
        Axis& outer = axes[i - 1];
        const bool one = outer.a == inner.a * inner.extent && outer.b == inner.b * inner.extent &&
                         outer.c == inner.c * inner.extent;
        if (!one) continue;
        outer = {outer.extent * inner.extent, inner.a, inner.b, inner.c};
        axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return axes;
}

// Rows of a matrix do not overlap.
bool apart(const Int& step, const Int& length) { return (step - length).non_negative(); }

// A matrix with elements `row` apart along one axis and `column` along the other: how it is stored, or
// nothing.
struct Stored {
    bool transposed = false;
    Int row;
};
std::optional<Stored> stored(const Int& along_rows, const Int& rows, const Int& along_columns,
                             const Int& columns) {
    if (along_columns.is(1) && apart(along_rows, columns)) return Stored{false, along_rows};
    if (along_rows.is(1) && apart(along_columns, rows)) return Stored{true, along_columns};
    return {};
}

class Matcher {
  public:
    Matcher(Nest nest, const ShapeOf& shape_of) : nest_(std::move(nest)), shape_of_(shape_of) {}

    std::optional<LibraryCall> run() {
        if (!adds_products(nest_) || nest_.accumulator != nest_.dtype || !nest_.guards.empty() ||
            !nest_.lets.empty() || nest_.reduced.empty() || nest_.parallel.size() < 2)
            return {};
        for (const Scalar& factor : nest_.body->arguments)
            if (!reads(factor, nest_.dtype)) return {};
        if (!find_axes()) return {};
        return call();
    }

  private:
    bool find_axes() {
        std::vector<Loop> loops = nest_.parallel;
        loops.insert(loops.end(), nest_.reduced.begin(), nest_.reduced.end());
        for (const Loop& l : loops) {
            if (!l.variable.symbol_id() && !l.extent.is(1)) return false;
            // As far as another loop has come.
            for (const Loop& other : loops)
                if (depends_on(l.extent, other.variable.symbol_id())) return false;
        }
        const std::optional<Linear> a = linear(*nest_.body->arguments[0], loops, shape_of_),
                                    b = linear(*nest_.body->arguments[1], loops, shape_of_);
        if (!a || !b) return false;
        first_a_ = a->first;
        first_b_ = b->first;
        Int step = 1;
        std::vector<Int> result(loops.size(), 0);
        for (std::size_t i = nest_.parallel.size(); i-- > 0;) {
            result[i] = step;
            step = step * nest_.parallel[i].extent;
        }
        for (std::size_t i = 0; i < loops.size(); ++i) {
            if (loops[i].extent.is(1)) continue;
            (i < nest_.parallel.size() ? results_ : sums_)
                .push_back({loops[i].extent, a->steps[i], b->steps[i], result[i]});
        }
        results_ = joined(std::move(results_));
        sums_ = joined(std::move(sums_));
        return !sums_.empty() && results_.size() >= 2;
    }

    // Over the longest axis that a library can sum over.
    std::optional<LibraryCall> call() const {
        std::optional<LibraryCall> best;
        double longest = 0;
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            const double length = typical(sums_[i].extent);
            if (best && length <= longest) continue;
            if (std::optional<LibraryCall> found = over(i)) {
                best = std::move(found);
                longest = length;
            }
        }
        return best;
    }

    std::optional<LibraryCall> over(std::size_t inner) const {
        const Axis& sum = sums_[inner];
        const Axis& columns = results_.back();
        if (!columns.c.is(1)) return {};
        // The factor that moves along the columns is the second one.
        const bool swapped = columns.b.is(0);
        const auto first = [&](const Axis& x) -> const Int& { return swapped ? x.b : x.a; };
        const auto second = [&](const Axis& x) -> const Int& { return swapped ? x.a : x.b; };
        if (!first(columns).is(0) || second(columns).is(0)) return {};
        const std::optional<Stored> b = stored(second(sum), sum.extent, second(columns), columns.extent);
        if (!b) return {};
        const std::size_t others = results_.size() - 1;
        std::optional<Stored> a;
        std::size_t rows = 0;
        for (std::size_t i = 0; i < others; ++i) {
            if (!second(results_[i]).is(0) || first(results_[i]).is(0)) continue;
            if (a && typical(results_[i].extent) <= typical(results_[rows].extent)) continue;
            const std::optional<Stored> found =
                stored(first(results_[i]), results_[i].extent, first(sum), sum.extent);
            if (!found) continue;
            a = found;
            rows = i;
        }
        if (!a) return {};
        GemmCall call;
        call.dtype = nest_.dtype;
        call.m = results_[rows].extent;
        call.n = columns.extent;
        call.k = sum.extent;
        call.transpose_a = a->transposed;
        call.transpose_b = b->transposed;
        GemmStrides strides{swapped ? first_b_ : first_a_,
                            swapped ? first_a_ : first_b_,
                            a->row,
                            b->row,
                            results_[rows].c,
                            {}};
        const auto add = [&](const Axis& axis) {
            strides.batches.push_back({axis.extent, first(axis), second(axis), axis.c});
        };
        for (std::size_t i = 0; i < others; ++i)
            if (i != rows) add(results_[i]);
        for (std::size_t i = 0; i < sums_.size(); ++i)
            if (i != inner) add(sums_[i]);
        call.strides = std::move(strides);
        const int left = nest_.body->arguments[0]->operand.value(),
                  right = nest_.body->arguments[1]->operand.value();
        return LibraryCall{call, {swapped ? right : left, swapped ? left : right}, {}, {}};
    }

    const Nest nest_;
    const ShapeOf& shape_of_;
    Int first_a_, first_b_;
    std::vector<Axis> results_, sums_;
};

}  // namespace

std::optional<LibraryCall> match_strided(const Nest& nest, const ShapeOf& shape_of, const Target& target) {
    if (!has_products_of(nest.dtype, target)) return {};
    return Matcher(with_results_in_planes(nest, shape_of), shape_of).run();
}

}  // namespace bitale
