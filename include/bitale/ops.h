// What can be computed beside the operators: casts, reductions, shapes, linear algebra, neural-network ops,
// random numbers and gradients. Elementwise functions are declared from the rows of elementwise_table.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "bitale/expr.h"

#pragma GCC visibility push(default)

namespace bitale {

// ---- Elementwise ----

// exp(x), maximum(a, b), where(condition, a, b) and so on: they broadcast and promote as the operators do.
// elementwise_table.h has a row for each of them.
#define BITALE_UNARY(name, ...) Expr name(const Arg& a);
#define BITALE_BINARY(name, ...) Expr name(const Arg& a, const Arg& b);
#define BITALE_TERNARY(name, ...) Expr name(const Arg& a, const Arg& b, const Arg& c);
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY
// x converted to dtype: float to integer truncates and saturates, NaN gives 0; integers wrap; to boolean is
// != 0.
Expr cast(const Expr& x, DType dtype, Where where = Where::current());

// ---- Reductions ----

// One axis, 1, or several, {0, 2}; negative axes count from the end; empty: all axes.
struct Axes : std::vector<int> {
    Axes() = default;
    template <std::integral Axis>
    requires(!std::same_as<Axis, bool>) Axes(Axis axis)
        : std::vector<int>{static_cast<int>(axis)} {}  // NOLINT
    Axes(std::initializer_list<int> axes) : std::vector<int>(axes) {}
    Axes(std::vector<int> axes) : std::vector<int>(std::move(axes)) {}  // NOLINT
};
struct ReduceOptions {
    bool keepdims = false;
};
// Sums of integers are int64 (uint64 for unsigned); floats keep their dtype. Empty: 0, 1 for prod.
Expr sum(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr prod(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// Of integers: float32.
Expr mean(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// NaN wins. An empty axis is a ShapeError when known, else at the call. Gradient: to the first maximum only.
Expr max(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr min(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// log(sum(exp(x))) for x in float32 or float64 (TypeError); never overflows. Of nothing, and where all are
// -inf: -inf.
Expr logsumexp(const Expr& x, const Axes& axes = {}, ReduceOptions options = {},
               Where where = Where::current());
Expr any(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr all(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// int64 index of the first maximum, counted in row-major order over the reduced axes.
Expr argmax(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr argmin(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());

// ---- Scans ----

// Of each element what the elements up to it make along an axis; without an axis, of the flat tensor.
// Theano's cumsum and cumprod.
struct ScanOptions {
    bool exclusive = false;  // without the element itself: the first result is that of nothing, 0, 1 or -inf
    bool reverse = false;    // from the end
};
// The dtypes of sum and prod: integers and booleans add up in int64 (uint64 for unsigned), floats keep their
// dtype. One element after the other, so that they round as a loop does. The gradient of cumprod is right
// where elements are zero. IndexError where there is no such axis.
Expr cumsum(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
            Where where = Where::current());
Expr cumprod(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
             Where where = Where::current());
// log(cumsum(exp(x))) for x in float32 or float64 (TypeError); never overflows, as the maximum so far is
// subtracted.
Expr logcumsumexp(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
                  Where where = Where::current());

// ---- Order ----

// Along an axis, or of the flat tensor for std::nullopt; of any dtype. NaN is greater than all numbers: last
// in ascending order, as NumPy has it, and first in descending order; -0 equals 0. Equal elements stay as
// they come, in either order. Gradients go back to where elements came from. IndexError where there is no
// such axis.
struct SortOptions {
    bool descending = false;
};
Expr sort(const Expr& x, std::optional<int> axis = -1, SortOptions options = {},
          Where where = Where::current());
// int64 positions along the axis: those of the elements of sort(x). No gradient.
Expr argsort(const Expr& x, std::optional<int> axis = -1, SortOptions options = {},
             Where where = Where::current());
struct TopKOptions {
    bool smallest = false;
};
struct TopK {
    Expr values;
    Expr positions;  // int64, along the axis
};
// The first k elements of sort(x, axis, {.descending = true}), the greatest ones, in order: the shape of x
// with k instead of the axis. k is a length known at the call; ShapeError unless 0 <= k <= the axis, then or
// at the call.
TopK topk(const Expr& x, const Expr& k, std::optional<int> axis = -1, TopKOptions options = {},
          Where where = Where::current());

// ---- Shapes ----

// Lengths are integer expressions known at the call; one may be -1.
Expr reshape(const Expr& x, const std::vector<Expr>& shape, Where where = Where::current());
// Joins the last axes, so that `rank` are left: flatten(x, 2) of [n, c, h, w] is [n, c * h * w]. Theano's
// flatten.
Expr flatten(const Expr& x, int rank = 1, Where where = Where::current());
// Axis i of the result is axis axes[i] of x; without axes, all in reverse order.
Expr transpose(const Expr& x, const std::vector<int>& axes = {}, Where where = Where::current());
Expr expand_dims(const Expr& x, int axis, Where where = Where::current());
Expr squeeze(const Expr& x, int axis, Where where = Where::current());
Expr broadcast_to(const Expr& x, const std::vector<Expr>& shape, Where where = Where::current());
Expr channel(const Expr& x, Where where = Where::current());  // [c] -> [1, c, 1, 1]
Expr concatenate(const std::vector<Expr>& parts, int axis = 0, Where where = Where::current());
Expr pad(const Expr& x, const std::vector<std::pair<int, int>>& widths, double value = 0,
         Where where = Where::current());
Expr flip(const Expr& x, int axis, Where where = Where::current());
// int64 [stop - start], empty where stop < start; as an index, x[range(a, b)] is rows(x, a, b - a).
Expr range(const Expr& start, const Expr& stop, Where where = Where::current());
// x[start : start + count] along axis 0; out of range is an error, never clipped.
Expr rows(const Expr& x, const Expr& start, const Expr& count, Where where = Where::current());
// x[indices] along axis 0 for an integer tensor of any rank: [indices..., rest of x]. Each index lies in
// [0, length), else IndexError at the call: computed ones do not count from the end.
Expr gather(const Expr& x, const Expr& indices, Where where = Where::current());
Expr zeros_like(const Expr& x, Where where = Where::current());
Expr ones_like(const Expr& x, Where where = Where::current());
// [labels..., classes]: 1 at each label, 0 elsewhere; a label out of range gives zeros only.
Expr one_hot(const Expr& labels, const Expr& classes, DType dtype = float32, Where where = Where::current());

// ---- Linear algebra ----

// Theano's dot: vectors and matrices of one float dtype; of higher rank, over a's last and b's second-last
// axis. A batch of images [n, c, h, w] wants flatten(x, 2) first.
Expr dot(const Expr& a, const Expr& b, Where where = Where::current());
// NumPy's matmul: [..., m, k] and [..., k, n] of one float dtype -> [..., m, n], a product for each point of
// the leading axes, which broadcast where their length is known to be 1. A vector a counts as [1, k], a
// vector b as [k, 1], and that axis is dropped again. TypeError for other dtypes; ShapeError for scalars and
// where the lengths do not fit, then or at the call.
Expr matmul(const Expr& a, const Expr& b, Where where = Where::current());
// Theano's batched_dot: a [batch, m, k] or [batch, k], b [batch, k, n] or [batch, k] -> [batch, m, n],
// without the axes that a or b lacks. Errors as of matmul; the batches need the same length.
Expr batched_dot(const Expr& a, const Expr& b, Where where = Where::current());

// The eigenvalues and eigenvectors of symmetric matrices a [..., n, n], float32 or float64 (TypeError), of
// which the lower triangle is read; numpy.linalg.eigh and Theano's eigh with UPLO 'L'. Each vector has the
// length 1, and its first component of the largest size is positive; sizes that differ by less than a
// thousandth count as equal. Vectors of equal eigenvalues are any of their plane. A matrix with NaN or
// infinities gives NaN. The gradient is that of what is read: zeros above the diagonal, and below it what
// both elements contribute; what depends on vectors of equal eigenvalues has none that means anything.
// ShapeError unless the matrices are square, then or at the call; Error at the call should the iterations not
// converge. On the devices cpu and reference; for others function() throws DeviceError.
struct Eigh {
    Expr values;   // [..., n], ascending
    Expr vectors;  // [..., n, n]: vectors[{..., i}] is the column of values[i]
};
Eigh eigh(const Expr& a, Where where = Where::current());
// Whitening of data x [n, d] (ZCA): dot(x - mean, matrix) has the covariance w / (w + epsilon) along each
// direction of variance w, so about the identity where w is much larger than epsilon, and lies as near to the
// data as that allows. With c = dot(transpose(x - mean), x - mean) / n and its eigenvalues w and vectors v,
//     matrix = dot(v / sqrt(max(w, 0) + epsilon), transpose(v)),
// as in pylearn2, where epsilon is filter_bias. Directions whose max(w, 0) + epsilon is less than rounding
// makes of the largest w (16 epsilons of the dtype) are dropped: their factor is 0. x is float64, or anything
// else as float32: bytes stay bytes in memory. Variances are known to the digits of the largest one: where
// small ones beside it matter, cast(x, float64) knows more. ShapeError unless x is a matrix, Error unless
// 0 <= epsilon is finite. Runs where eigh does.
struct Zca {
    Expr mean;    // [d]
    Expr matrix;  // [d, d], symmetric
};
Zca zca(const Expr& x, double epsilon, Where where = Where::current());

// ---- Neural networks ----

// The first field of options of which several are numbers: conv2d(x, w, {1, 1}) does not compile, whether it
// was meant as the border or as the stride. Name the fields: {.border_mode = half, .subsample = 2}.
struct WriteNamesOfOptions {
    explicit WriteNamesOfOptions() = default;
};
struct Size2 {
    int h = 1, w = 1;
    constexpr Size2(int both) : h(both), w(both) {}  // NOLINT
    constexpr Size2(int height, int width) : h(height), w(width) {}
};
struct Border {
    enum class Kind : std::uint8_t { valid, full, half, pad } kind = Kind::valid;
    int h = 0, w = 0;
    constexpr Border(Kind k) : kind(k) {}                              // NOLINT
    constexpr Border(int both) : kind(Kind::pad), h(both), w(both) {}  // NOLINT
    constexpr Border(int height, int width) : kind(Kind::pad), h(height), w(width) {}
};
inline constexpr Border valid{Border::Kind::valid}, full{Border::Kind::full}, half{Border::Kind::half};
struct ConvOptions {
    WriteNamesOfOptions names = WriteNamesOfOptions();
    Border border_mode = valid;
    Size2 subsample = 1;
    Size2 dilation = 1;
    bool filter_flip = true;  // Theano's default: a true convolution; false: cross-correlation
    int groups = 1;  // of channels and of filters, each with its own part of the sum; Theano's num_groups
};
// input [n, c, h, w] and filters [o, c, kh, kw], both float32 or both float64 -> [n, o, oh, ow], where
// oh = (h + 2 * pad - span) / subsample + 1 and span = (kh - 1) * dilation + 1. Theano's conv2d. With groups,
// filters are [o, c / groups, kh, kw], and the first o / groups of them meet the first c / groups channels,
// and so on; with c groups the convolution is depthwise. ShapeError unless groups >= 1 divides o and fits c,
// then or at the call. Padding counts as zeros. kh and kw are known when the graph is built; a kernel that
// does not fit is a ShapeError, then or at the call. TypeError for other dtypes: cast bytes first, the cast
// costs no buffer.
Expr conv2d(const Expr& input, const Expr& filters, ConvOptions options = {}, Where where = Where::current());
struct PoolOptions {
    WriteNamesOfOptions names = WriteNamesOfOptions();
    std::optional<Size2> stride{};  // default: the window
    Size2 pad = 0;
};
// Maximum over windows of the last two axes of integers, float32 or float64; borders that fill no whole
// window are dropped (ignore_border), the padding takes no part. NaN wins. Gradient: to the first maximum of
// each window. ShapeError unless at least one window fits and pad < window.
Expr max_pool(const Expr& x, Size2 window, PoolOptions options = {}, Where where = Where::current());
// exp(x) / sum(exp(x)) along an axis, and its logarithm, for x in float32 or float64 (TypeError); never
// overflow. Along an axis without elements there are no results either.
Expr softmax(const Expr& x, int axis = -1, Where where = Where::current());
Expr log_softmax(const Expr& x, int axis = -1, Where where = Where::current());
// Per row, no mean. predicted [n, classes] are probabilities (rows of softmax); target either integer labels
// [n] of any integer dtype or a distribution [n, classes]. Never NaN after a softmax: differentiated as one
// op. A label outside [0, classes) is an IndexError at the call. Theano's categorical_crossentropy.
Expr categorical_crossentropy(const Expr& predicted, const Expr& target, Where where = Where::current());
// The same from logits.
Expr softmax_crossentropy(const Expr& logits, const Expr& target, Where where = Where::current());
// -(t * log(p) + (1 - t) * log(1 - p)), elementwise with broadcasting, where 0 * log(0) is 0. Of a sigmoid:
// never NaN. Integer and boolean targets of float32 predictions become float32.
Expr binary_crossentropy(const Expr& predicted, const Expr& target, Where where = Where::current());

// ---- Random numbers ----

// A stream of Philox-4x32-10 draws. Each draw of the graph has a key of its own, made of the seed and the
// draw's number; the shared counter tells the calls apart. A function that draws from the stream moves the
// counter on by one with each call, whether it is given updates() or not; FunctionOptions::hold_streams keeps
// it. The same bits on every device and for every split of the work.
struct Update;
class RandomStream {
  public:
    explicit RandomStream(std::uint64_t seed, Where where = Where::current());
    // float32 in [low, high), in steps of (high - low) / 2^24. Lengths are known at the call. Throws Error
    // unless low < high.
    Expr uniform(const std::vector<Expr>& shape, double low = 0, double high = 1,
                 Where where = Where::current());
    // float32. Throws Error for a negative deviation.
    Expr normal(const std::vector<Expr>& shape, double mean = 0, double deviation = 1,
                Where where = Where::current());
    // The counter advances by one call: for a function that is to move a stream on without drawing from it,
    // or in spite of hold_streams.
    std::vector<Update> updates(Where where = Where::current()) const;
    const Shared& counter() const { return counter_; }  // uint64 scalar
    std::uint64_t next_draw() { return draws_++; }
    std::uint64_t seed() const { return seed_; }

  private:
    std::uint64_t seed_;
    std::uint64_t draws_ = 0;
    Shared counter_;
};
// x * mask / keep with a Bernoulli mask of probability keep = 1 - rate; the mask is recomputed in the
// gradient. Throws Error unless 0 <= rate < 1, TypeError unless x is float32 or float64.
Expr dropout(const Expr& x, double rate, RandomStream& stream, Where where = Where::current());

// ---- Gradients ----

// d cost / d wrt. cost must be a float scalar. Throws GraphError for a cost that is no scalar and for a wrt
// that the cost does not depend on (naming it and its line). Integer wrt: TypeError.
std::vector<Expr> grad(const Expr& cost, std::initializer_list<Expr> wrt, Where where = Where::current());
std::vector<Expr> grad(const Expr& cost, const std::vector<Expr>& wrt, Where where = Where::current());
Expr grad(const Expr& cost, const Expr& wrt, Where where = Where::current());
// The value of x, through which no gradient flows.
Expr disconnected_grad(const Expr& x, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
