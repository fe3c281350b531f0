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

// exp(x), maximum(a, b), where(condition, a, b) and so on: they broadcast and mix dtypes as the operators do.
// elementwise_table.h has a row for each of them.

#define BITALE_UNARY(name, ...) Expr name(const Arg& a);
#define BITALE_BINARY(name, ...) Expr name(const Arg& a, const Arg& b);
#define BITALE_TERNARY(name, ...) Expr name(const Arg& a, const Arg& b, const Arg& c);
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY

// x converted to dtype. Floats become integers by truncation, saturating at the ends of the range; NaN gives
// 0. Integers wrap. Conversion to boolean is x != 0. The gradient is cast back; through integers none flows.
Expr cast(const Expr& x, DType dtype, Where where = Where::current());

// ---- Reductions ----

// The axes of a reduction: one, 1, or several, {0, 2}. Negative axes count from the end; none stands for all.
struct Axes : std::vector<int> {
    Axes() = default;
    template <std::integral Axis>
    requires(!std::same_as<Axis, bool>) Axes(Axis axis)
        : std::vector<int>{static_cast<int>(axis)} {}  // NOLINT
    Axes(std::initializer_list<int> axes) : std::vector<int>(axes) {}
    Axes(std::vector<int> axes) : std::vector<int>(std::move(axes)) {}  // NOLINT
};
struct ReduceOptions {
    bool keepdims = false;  // reduced axes stay, with length 1
};

// The sum over some axes. Sums of integers and booleans are int64 (uint64 for unsigned); floats keep their
// dtype. The sum of nothing is 0. IndexError where there is no such axis.
Expr sum(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// The product over some axes, with the dtypes of sum. The product of nothing is 1. The gradient is right
// where elements are zero.
Expr prod(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// The mean over some axes; float32 for integers and booleans. The mean of nothing is NaN.
Expr mean(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// The maximum or minimum over some axes, of the dtype of x. NaN wins. The gradient goes to the first maximum
// only. ShapeError for an axis of length 0, here if the length is known, else at the call. The larger of two
// expressions is maximum(a, b).
Expr max(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr min(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// log(sum(exp(x))) for x in float32 or float64 (TypeError); never overflows. -inf for no elements, and where
// all elements are -inf.
Expr logsumexp(const Expr& x, const Axes& axes = {}, ReduceOptions options = {},
               Where where = Where::current());
// Whether any element, or each of them, is not 0; boolean. NaN is not 0. Of nothing, any is false and all
// true.
Expr any(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr all(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// The position of the first maximum or minimum, int64, counted in row-major order over the reduced axes. No
// gradient.
Expr argmax(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr argmin(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());

// ---- Scans ----

// A scan gives for each element the sum, or the product, of the elements up to it along an axis; without an
// axis, of the flat tensor. Theano's cumsum and cumprod.

struct ScanOptions {
    bool exclusive = false;  // without the element itself: the first result is that of nothing, 0, 1 or -inf
    bool reverse = false;    // from the end
};

// Cumulative sum or product, with the dtypes of sum and prod: int64 for integers and booleans (uint64 for
// unsigned), floats keep their dtype. Elements are added one after the other, so the results round as those
// of a loop. The gradient of cumprod is right where elements are zero. IndexError where there is no such
// axis.
Expr cumsum(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
            Where where = Where::current());
Expr cumprod(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
             Where where = Where::current());
// log(cumsum(exp(x))) for x in float32 or float64 (TypeError). It never overflows, because the maximum so far
// is subtracted.
Expr logcumsumexp(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
                  Where where = Where::current());

// ---- Order ----

struct SortOptions {
    bool descending = false;
};

// The elements in order along an axis, or of the flat tensor for std::nullopt; any dtype. NaN is greater than
// all numbers: last in ascending order, as in NumPy, first in descending order. -0 equals 0. Equal elements
// keep their order, ascending and descending. Gradients go back to where elements came from. IndexError where
// there is no such axis.
Expr sort(const Expr& x, std::optional<int> axis = -1, SortOptions options = {},
          Where where = Where::current());
// The positions of the elements of sort(x) along the axis, int64. No gradient.
Expr argsort(const Expr& x, std::optional<int> axis = -1, SortOptions options = {},
             Where where = Where::current());

struct TopKOptions {
    bool smallest = false;
};
struct TopK {
    Expr values;
    Expr positions;  // int64, along the axis
};

// The k greatest elements along an axis, in descending order: the first k of sort(x, axis, {.descending =
// true}). The result has the shape of x with length k along the axis. k is known at the call; ShapeError
// unless 0 <= k <= the axis, here if both are known, else at the call.
TopK topk(const Expr& x, const Expr& k, std::optional<int> axis = -1, TopKOptions options = {},
          Where where = Where::current());

// ---- Shapes ----

// The same elements, in row-major order, in another shape. Lengths are integers or integer expressions known
// at the call; one may be -1 and is computed. ShapeError unless the numbers of elements agree, here if they
// are known, else at the call.
Expr reshape(const Expr& x, const std::vector<Expr>& shape, Where where = Where::current());
// Joins the last axes until `rank` axes are left: flatten(x, 2) of [n, c, h, w] is [n, c * h * w]. Theano's
// flatten. ShapeError unless 1 <= rank <= that of x.
Expr flatten(const Expr& x, int rank = 1, Where where = Where::current());
// Axis i of the result is axis axes[i] of x; without axes, all in reverse order. ShapeError unless each axis
// is named once.
Expr transpose(const Expr& x, const std::vector<int>& axes = {}, Where where = Where::current());
// A new axis of length 1 at this position of the result: expand_dims(x, 1) of [n, m] is [n, 1, m].
Expr expand_dims(const Expr& x, int axis, Where where = Where::current());
// x without an axis whose length is known to be 1 (ShapeError).
Expr squeeze(const Expr& x, int axis, Where where = Where::current());
// x repeated along missing leading axes and along axes whose length is known to be 1. ShapeError where the
// lengths do not fit.
Expr broadcast_to(const Expr& x, const std::vector<Expr>& shape, Where where = Where::current());
// A vector [c] as [1, c, 1, 1]: a number for each channel of images [n, c, h, w].
Expr channel(const Expr& x, Where where = Where::current());
// The parts one after the other along an axis, along which alone they may differ in length. TypeError unless
// they have one dtype; ShapeError where other lengths differ.
Expr concatenate(const std::vector<Expr>& parts, int axis = 0, Where where = Where::current());
// x with so many copies of `value` {before, behind} each axis.
Expr pad(const Expr& x, const std::vector<std::pair<int, int>>& widths, double value = 0,
         Where where = Where::current());
// x in reverse order along an axis.
Expr flip(const Expr& x, int axis, Where where = Where::current());
// The integers start, start + 1, ... stop - 1: int64 [stop - start], empty where stop < start. As an index,
// x[range(a, b)] is rows(x, a, b - a).
Expr range(const Expr& start, const Expr& stop, Where where = Where::current());
// Rows start to start + count - 1 along axis 0. A row out of range is an IndexError at the call; nothing is
// clipped. The start may be computed on the device.
Expr rows(const Expr& x, const Expr& start, const Expr& count, Where where = Where::current());
// The rows x[indices] along axis 0, for an integer tensor of any rank: [shape of indices, rest of x]. Each
// index must lie in [0, length), else IndexError at the call; negative ones do not count from the end.
Expr gather(const Expr& x, const Expr& indices, Where where = Where::current());
// A tensor of zeros, or ones, of the shape and dtype of x.
Expr zeros_like(const Expr& x, Where where = Where::current());
Expr ones_like(const Expr& x, Where where = Where::current());
// [shape of labels, classes]: 1 at each label, 0 elsewhere. A label out of range gives zeros only.
Expr one_hot(const Expr& labels, const Expr& classes, DType dtype = float32, Where where = Where::current());

// ---- Linear algebra ----

// Theano's dot: products of vectors and matrices, both float32 or both float64 (TypeError). For higher ranks
// it sums over the last axis of a and the second-last axis of b. Flatten a batch of images [n, c, h, w]
// first: dot(flatten(x, 2), w). ShapeError where the lengths do not fit, here if they are known, else at the
// call.
Expr dot(const Expr& a, const Expr& b, Where where = Where::current());
// NumPy's matmul: [..., m, k] and [..., k, n] -> [..., m, n], both float32 or both float64 (TypeError). There
// is a product for each point of the leading axes, which broadcast where their length is known to be 1. A
// vector a counts as [1, k], a vector b as [k, 1], and that axis is dropped again. ShapeError for scalars and
// where the lengths do not fit, here if they are known, else at the call.
Expr matmul(const Expr& a, const Expr& b, Where where = Where::current());
// Theano's batched_dot: a [batch, m, k] or [batch, k], b [batch, k, n] or [batch, k] -> [batch, m, n],
// without the axes that a or b lacks. Both batches have the same length. Throws as matmul does.
Expr batched_dot(const Expr& a, const Expr& b, Where where = Where::current());

// The eigenvalues and eigenvectors of symmetric matrices a [..., n, n], float32 or float64 (TypeError). The
// lower triangle is read, as by numpy.linalg.eigh and Theano's eigh with UPLO 'L'. Each vector has length 1,
// and the first of its largest components is positive; sizes that differ by less than a thousandth count as
// equal. Vectors of equal eigenvalues are an arbitrary basis of their space. A matrix with NaN or infinities
// gives NaN. The gradient is with respect to what is read: zeros above the diagonal, and below it the sum of
// what both elements contribute; results that depend on the choice of vectors of equal eigenvalues have no
// meaningful gradient. ShapeError unless the matrices are square, here if the lengths are known, else at the
// call; Error at the call if the iterations do not converge. On the devices cpu and reference; for others
// function() throws DeviceError.
struct Eigh {
    Expr values;   // [..., n], ascending
    Expr vectors;  // [..., n, n]: vectors[{..., i}] is the column of values[i]
};
Eigh eigh(const Expr& a, Where where = Where::current());
// ZCA whitening of data x [n, d]: dot(x - mean, matrix) has the variance w / (w + epsilon) along each
// direction of variance w, which is about 1 where w is much larger than epsilon, and is as near to the data
// as that allows. With c = dot(transpose(x - mean), x - mean) / n and its eigenvalues w and vectors v,
//     matrix = dot(v / sqrt(max(w, 0) + epsilon), transpose(v)),
// as in pylearn2, where epsilon is filter_bias. Directions whose max(w, 0) + epsilon is below the rounding of
// the largest w (16 epsilons of the dtype) are dropped: their factor is 0. Everything but float64 is computed
// as float32, and bytes stay bytes in memory. Small variances are lost in the rounding of the largest one;
// where they matter, use cast(x, float64). ShapeError unless x is a matrix, Error unless 0 <= epsilon is
// finite. Runs where eigh does.
struct Zca {
    Expr mean;    // [d]
    Expr matrix;  // [d, d], symmetric
};
Zca zca(const Expr& x, double epsilon, Where where = Where::current());

// ---- Neural networks ----

// The first field of options that hold several numbers. Because of it conv2d(x, w, {1, 1}), which might mean
// the border or the stride, does not compile. Name the fields: {.border_mode = half, .subsample = 2}.
struct WriteNamesOfOptions {
    explicit WriteNamesOfOptions() = default;
};
// A height and a width; one number stands for both.
struct Size2 {
    int h = 1, w = 1;
    constexpr Size2(int both) : h(both), w(both) {}  // NOLINT
    constexpr Size2(int height, int width) : h(height), w(width) {}
};
// What surrounds an image: nothing (valid), kernel - 1 zeros (full), as many as keep the size for odd kernels
// (half), or a number of zeros, or one for the height and one for the width.
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
    Size2 subsample = 1;      // the stride
    Size2 dilation = 1;       // the distance between the elements of a filter in the image
    bool filter_flip = true;  // Theano's default: a true convolution; false: cross-correlation
    int groups = 1;           // of channels and of filters; Theano's num_groups
};

// input [n, c, h, w] and filters [o, c, kh, kw], both float32 or both float64 -> [n, o, oh, ow], where
// oh = (h + 2 * pad - span) / subsample + 1 and span = (kh - 1) * dilation + 1. Theano's conv2d. With groups,
// filters are [o, c / groups, kh, kw]: the first o / groups filters see the first c / groups channels, and so
// on; with c groups the convolution is depthwise. kh and kw must be known when the graph is built. ShapeError
// where a kernel does not fit the padded image, and unless groups >= 1 divides o and c, here if the lengths
// are known, else at the call. TypeError for other dtypes: cast bytes first, the cast costs no buffer.
Expr conv2d(const Expr& input, const Expr& filters, ConvOptions options = {}, Where where = Where::current());

struct PoolOptions {
    WriteNamesOfOptions names = WriteNamesOfOptions();
    std::optional<Size2> stride{};  // default: the window
    Size2 pad = 0;
};

// The maximum over windows of the last two axes, for integers, float32 and float64. Borders that fill no
// whole window are dropped, as with Theano's ignore_border; padding never is the maximum. NaN wins. The
// gradient goes to the first maximum of each window. ShapeError unless at least one window fits and pad <
// window.
Expr max_pool(const Expr& x, Size2 window, PoolOptions options = {}, Where where = Where::current());
// exp(x) / sum(exp(x)) along an axis, and its logarithm, for x in float32 or float64 (TypeError); they never
// overflow. An axis of length 0 gives no elements.
Expr softmax(const Expr& x, int axis = -1, Where where = Where::current());
Expr log_softmax(const Expr& x, int axis = -1, Where where = Where::current());
// The crossentropy of each row, without a mean: [n]. predicted [n, classes] are probabilities, rows of a
// softmax; target is either labels [n] of any integer dtype or distributions [n, classes]. Together with the
// softmax it is differentiated as one op, and never becomes NaN. A label outside [0, classes) is an
// IndexError at the call. Theano's categorical_crossentropy.
Expr categorical_crossentropy(const Expr& predicted, const Expr& target, Where where = Where::current());
// categorical_crossentropy(softmax(logits), target).
Expr softmax_crossentropy(const Expr& logits, const Expr& target, Where where = Where::current());
// -(t * log(p) + (1 - t) * log(1 - p)) for targets t and predictions p, elementwise with broadcasting, where
// 0 * log(0) is 0. After a sigmoid it never becomes NaN. Integer and boolean targets of float32 predictions
// become float32.
Expr binary_crossentropy(const Expr& predicted, const Expr& target, Where where = Where::current());

// ---- Random numbers ----

struct Update;

// A stream of Philox-4x32-10 draws (Salmon et al. 2011). Each draw of the graph has a key of its own, made of
// the seed and the number of the draw; the shared counter tells calls apart. Each call of a function that
// draws from the stream moves the counter on by one, with updates() or without; FunctionOptions::hold_streams
// keeps it where it is. The bits are the same on every device and for any number of threads.
class RandomStream {
  public:
    explicit RandomStream(std::uint64_t seed, Where where = Where::current());
    // Uniform in [low, high), float32, in steps of (high - low) / 2^24. Lengths are known at the call. Error
    // unless low < high.
    Expr uniform(const std::vector<Expr>& shape, double low = 0, double high = 1,
                 Where where = Where::current());
    // Normal, float32. Error for a negative deviation.
    Expr normal(const std::vector<Expr>& shape, double mean = 0, double deviation = 1,
                Where where = Where::current());
    // Moves the counter on by one call: for a function that does not draw from the stream, or in spite of
    // hold_streams.
    std::vector<Update> updates(Where where = Where::current()) const;
    const Shared& counter() const { return counter_; }  // uint64 scalar
    std::uint64_t next_draw() { return draws_++; }
    std::uint64_t seed() const { return seed_; }

  private:
    std::uint64_t seed_;
    std::uint64_t draws_ = 0;
    Shared counter_;
};

// x * mask / keep, where each element of the mask is 1 with probability keep = 1 - rate, else 0. The mask is
// not stored: the gradient computes it again. Error unless 0 <= rate < 1, TypeError unless x is float32 or
// float64.
Expr dropout(const Expr& x, double rate, RandomStream& stream, Where where = Where::current());

// ---- Gradients ----

// The derivatives of a float scalar, d cost / d wrt, each of the shape and dtype of its wrt. GraphError
// unless the cost is a scalar, and where it does not depend on a wrt, which the message names with its line.
// TypeError for an integer wrt.
std::vector<Expr> grad(const Expr& cost, std::initializer_list<Expr> wrt, Where where = Where::current());
std::vector<Expr> grad(const Expr& cost, const std::vector<Expr>& wrt, Where where = Where::current());
Expr grad(const Expr& cost, const Expr& wrt, Where where = Where::current());
// The value of x, through which no gradient flows.
Expr disconnected_grad(const Expr& x, Where where = Where::current());
// The value of x, of any type and shape, as a border for what gradients keep. Of values all of whose ways to
// the cost lead through checkpoints, grad() uses none of the forward pass: it computes them again when the
// backward pass comes to the checkpoint that they lead to, from the checkpoints, inputs and shared variables
// before them. Kept in memory from the forward pass are checkpoints, values behind the last of them, and what
// depends on shared parameters and constants alone. Random numbers and dropout masks are drawn again and are
// the same. With a checkpoint after each sqrt(n) of n layers about 2 sqrt(n) values are alive at a time, for
// one more forward pass. Where no gradient is taken it is x. Source: Chen, Xu, Zhang and Guestrin 2016,
// "Training deep nets with sublinear memory cost"; PyTorch's torch.utils.checkpoint, jax.checkpoint.
Expr checkpoint(const Expr& x, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
