// Operations beside the operators: casts, reductions, shapes, linear algebra, neural networks, random numbers
// and gradients. Elementwise functions are declared from the rows of elementwise_table.h.
//
// An operation throws its errors where it is written if the lengths in question are known, otherwise at the
// call. An IndexError for an axis is always thrown where the operation is written. Negative axes count from
// the end.
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

// exp(x), maximum(a, b), where(condition, a, b) and so on. They broadcast, mix dtypes and throw as the
// operators do (expr.h). elementwise_table.h has a row for each, with what it computes.

#define BITALE_UNARY(name, ...) Expr name(const Arg& a);
#define BITALE_BINARY(name, ...) Expr name(const Arg& a, const Arg& b);
#define BITALE_TERNARY(name, ...) Expr name(const Arg& a, const Arg& b, const Arg& c);
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY

// x converted to a dtype. Floats become integers by truncation and saturate at the ends of the range; NaN
// gives 0. Integers wrap. As a boolean it is x != 0. The gradient is cast back; none flows through integers.
Expr cast(const Expr& x, DType dtype, Where where = Where::current());

// ---- Reductions ----

// The axes of a reduction: one, as 1, or several, as {0, 2}. None stands for all.
struct Axes : std::vector<int> {
    Axes() = default;
    template <std::integral Axis>
    requires(!std::same_as<Axis, bool>) Axes(Axis axis)
        : std::vector<int>{static_cast<int>(axis)} {}  // NOLINT
    Axes(std::initializer_list<int> axes) : std::vector<int>(axes) {}
    Axes(std::vector<int> axes) : std::vector<int>(std::move(axes)) {}  // NOLINT
};
struct ReduceOptions {
    bool keepdims = false;  // reduced axes remain, with length 1
};

// The sum over some axes: [n, m] -> [n] for axis 1. Integers and booleans give int64 (unsigned ones uint64),
// floats keep their dtype. The sum of nothing is 0. Throws IndexError if there is no such axis, and for an
// axis that is named twice; so do all reductions.
Expr sum(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// The product over some axes, with the dtypes of sum. The product of nothing is 1. The gradient is right
// where elements are 0.
Expr prod(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// The mean over some axes, float32 for integers and booleans. The mean of nothing is NaN.
Expr mean(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// The mean of the squared distances from the mean over some axes, and its root; float32 for integers and
// booleans, computed in float64 for integers of 32 and 64 bits. Of n elements the sum is divided by n - ddof,
// as NumPy and Theano do it: 1 for the unbiased estimate. The mean is subtracted first, so that no digits of
// large squares cancel. Of nothing NaN. The gradient of standard_deviation is 0 where it is 0.
// Throws as sum does, and Error for a negative ddof. Theano's var and std.
struct VarianceOptions {
    bool keepdims = false;
    int ddof = 0;
};
Expr variance(const Expr& x, const Axes& axes = {}, VarianceOptions options = {},
              Where where = Where::current());
Expr standard_deviation(const Expr& x, const Axes& axes = {}, VarianceOptions options = {},
                        Where where = Where::current());
// The maximum or minimum over some axes, in the dtype of x. NaN wins. The gradient goes to the first maximum
// only. Throws ShapeError if there is nothing to choose from. The larger of two expressions is maximum(a, b).
Expr max(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr min(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// log(sum(exp(x))) without overflow, for float32 and float64 (TypeError). It is -inf for no elements, and if
// all elements are -inf.
Expr logsumexp(const Expr& x, const Axes& axes = {}, ReduceOptions options = {},
               Where where = Where::current());
// Whether any element, or each of them, is not 0; boolean. NaN is not 0. Of nothing, any is false and all is
// true.
Expr any(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr all(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// The position of the first maximum or minimum, int64, counted in row-major order over the reduced axes. No
// gradient. Throws as max does.
Expr argmax(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Expr argmin(const Expr& x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());

// ---- Scans ----

// A scan gives for each element the sum or product of the elements up to it along an axis. Without an axis, x
// is flattened first. Theano's cumsum and cumprod.

struct ScanOptions {
    bool exclusive = false;  // without the element itself: the first result is 0, 1 or -inf
    bool reverse = false;    // from the end of the axis
};

// The cumulative sum or product, of the shape of x, with the dtypes of sum and prod. Elements are added one
// after another, so results round as those of a loop. The gradient of cumprod is right where elements are 0.
// Throws IndexError if there is no such axis.
Expr cumsum(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
            Where where = Where::current());
Expr cumprod(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
             Where where = Where::current());
// log(cumsum(exp(x))) without overflow, because the maximum so far is subtracted; for float32 and float64
// (TypeError).
Expr logcumsumexp(const Expr& x, std::optional<int> axis = {}, ScanOptions options = {},
                  Where where = Where::current());

// ---- Order ----

struct SortOptions {
    bool descending = false;
};

// The elements sorted along an axis, or of the flattened tensor for std::nullopt; any dtype. NaN counts as
// greater than all numbers: last in ascending order, as in NumPy, first in descending order. -0 equals 0.
// Equal elements keep their order, ascending and descending. The gradient of an element goes back to its
// place in x. Throws IndexError if there is no such axis.
Expr sort(const Expr& x, std::optional<int> axis = -1, SortOptions options = {},
          Where where = Where::current());
// The positions in x of the elements of sort(x), along the axis; int64. No gradient.
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
// true}). The result has the shape of x, with length k along the axis. k is an integer, or an integer
// expression known at the call. Throws ShapeError unless 0 <= k <= the length of the axis.
TopK topk(const Expr& x, const Expr& k, std::optional<int> axis = -1, TopKOptions options = {},
          Where where = Where::current());

// ---- Shapes ----

// The same elements, in row-major order, in another shape. Lengths are integers, or integer expressions known
// at the call; one of them may be -1, and is computed. Throws ShapeError unless the numbers of elements
// agree.
Expr reshape(const Expr& x, const std::vector<Expr>& shape, Where where = Where::current());
// Joins the last axes so that `rank` axes remain: flatten(x, 2) of [n, c, h, w] is [n, c * h * w]. Theano's
// flatten. Throws ShapeError unless 1 <= rank <= the rank of x.
Expr flatten(const Expr& x, int rank = 1, Where where = Where::current());
// Axis i of the result is axis axes[i] of x. Without axes, all are reversed. Throws ShapeError unless each
// axis is named exactly once.
Expr transpose(const Expr& x, const std::vector<int>& axes = {}, Where where = Where::current());
// x with a new axis of length 1 at this position of the result: expand_dims(x, 1) of [n, m] is [n, 1, m].
// Throws IndexError if there is no such position.
Expr expand_dims(const Expr& x, int axis, Where where = Where::current());
// x without an axis of length 1. Throws ShapeError unless the length is known to be 1.
Expr squeeze(const Expr& x, int axis, Where where = Where::current());
// x repeated to a shape, along missing leading axes and along axes whose length is known to be 1. Throws
// ShapeError if other lengths differ.
Expr broadcast_to(const Expr& x, const std::vector<Expr>& shape, Where where = Where::current());
// A vector [c] as [1, c, 1, 1]: one number for each channel of images [n, c, h, w], as in conv2d(x, w) +
// channel(b). Throws ShapeError unless x is a vector.
Expr channel(const Expr& x, Where where = Where::current());
// The parts joined along an axis; all their other lengths must be equal. Throws TypeError unless they have
// one dtype, ShapeError if there are none or other lengths differ, IndexError if there is no such axis.
Expr concatenate(const std::vector<Expr>& parts, int axis = 0, Where where = Where::current());
// The parts side by side along a new axis: n parts [a, b] -> [n, a, b] for axis 0. Throws as concatenate
// does. Theano's stack.
Expr stack(const std::vector<Expr>& parts, int axis = 0, Where where = Where::current());
// x with the elements along an axis moved by so many places, towards higher positions if `shift` is positive;
// those beyond the end come first. Throws IndexError if there is no such axis. Theano's roll.
Expr roll(const Expr& x, std::int64_t shift, int axis, Where where = Where::current());
// Each element along an axis so many times, one after the other: [a, b] -> [a * count, b] for axis 0. Throws
// ShapeError for a negative count, IndexError if there is no such axis. Theano's repeat.
Expr repeat(const Expr& x, std::int64_t count, int axis, Where where = Where::current());
// x with copies of `value` around it: widths[i] are the numbers of copies {before, behind} axis i. Throws
// ShapeError unless there is a pair for each axis, and for negative numbers.
Expr pad(const Expr& x, const std::vector<std::pair<int, int>>& widths, double value = 0,
         Where where = Where::current());
// x in reverse order along an axis. Throws IndexError if there is no such axis.
Expr flip(const Expr& x, int axis, Where where = Where::current());
// The integers start, start + 1, ... stop - 1: int64 [stop - start], empty if stop < start. Both are
// integers, or integer expressions known at the call. As an index, x[range(a, b)] is rows(x, a, b - a).
Expr range(const Expr& start, const Expr& stop, Where where = Where::current());
// Rows start to start + count - 1 along axis 0: [count, rest of x]. `count` is known at the call; `start` may
// be computed on the device. A row out of range is an IndexError at the call; nothing is clipped.
Expr rows(const Expr& x, const Expr& start, const Expr& count, Where where = Where::current());
// The rows x[indices] along axis 0, for an integer tensor of any rank: [shape of indices, rest of x]. Each
// index must lie in [0, length of axis 0); otherwise the call throws IndexError. Negative indices do not
// count from the end.
Expr gather(const Expr& x, const Expr& indices, Where where = Where::current());
// The element at a position along an axis, for each of the positions: result[i, j] = x[i, positions[i, j]]
// for the last axis of matrices, as after argsort, argmax with keepdims, or a choice of each row. Positions
// are integers (TypeError) of the rank of x, with its lengths along all other axes (ShapeError), each in [0,
// length of the axis); otherwise the call throws IndexError. NumPy's take_along_axis, PyTorch's gather.
Expr take_along_axis(const Expr& x, const Expr& positions, int axis = -1, Where where = Where::current());
// x with y where x[at] reads: set_subtensor(x, {i, Slice{0, 3}}, y) is x after x[i, 0:3] = y in NumPy. y
// takes the dtype of x and broadcasts to the shape of x[at]. Of several equal indices in a list, the last
// one's row stays. As the new value of a shared variable x the part alone is written, also where the call
// reads x before or after it, unless y reads other parts of x or a value reads both x and the new x. Strides,
// boxes with two starts that a call gives, and lists of rows of bfloat16 take up to a pass over x. Throws
// TypeError where x + y would have another dtype than x, ShapeError if y does not broadcast, and what x[at]
// throws. Theano's set_subtensor(x[at], y).
Expr set_subtensor(const Expr& x, const Index& at, const Expr& y, Where where = Where::current());
// x with y added where x[at] reads. Of a list with equal indices all are added, to each other first, and 0 to
// the other rows: -0 becomes 0 there, or stays where a call writes the part alone. Otherwise as
// set_subtensor. Theano's inc_subtensor(x[at], y).
Expr inc_subtensor(const Expr& x, const Index& at, const Expr& y, Where where = Where::current());
// Zeros, or ones, of the shape and dtype of x.
Expr zeros_like(const Expr& x, Where where = Where::current());
Expr ones_like(const Expr& x, Where where = Where::current());
// [rows, columns], columns = rows where absent: 1 on a diagonal, 0 elsewhere. k counts diagonals from the
// main one upwards. The lengths are integers, or integer expressions known at the call. Throws ShapeError for
// negative ones. Theano's eye.
Expr eye(const Expr& rows, std::optional<Expr> columns = {}, std::int64_t k = 0, DType dtype = float32,
         Where where = Where::current());
// Matrices [..., n, m] with 0 above the k-th diagonal, or below it. Throws ShapeError for vectors and
// scalars. Theano's tril and triu.
Expr tril(const Expr& x, std::int64_t k = 0, Where where = Where::current());
Expr triu(const Expr& x, std::int64_t k = 0, Where where = Where::current());
// The diagonals of square matrices, [..., n, n] -> [..., n], and their sums, [..., n, n] -> [...] with the
// dtype of sum. Elements off the diagonal have no effect. Throws ShapeError unless the matrices are square.
// Theano's diagonal and nlinalg.trace.
Expr diagonal(const Expr& x, Where where = Where::current());
Expr trace(const Expr& x, Where where = Where::current());
// [shape of labels, classes]: 1 at each label, 0 elsewhere. Labels are integers (TypeError). A label outside
// [0, classes) gives zeros only.
Expr one_hot(const Expr& labels, const Expr& classes, DType dtype = float32, Where where = Where::current());

// ---- Linear algebra ----

// Products of vectors and matrices, both float32, both float64, or both of integers and booleans (TypeError):
// [m, k] and [k, n] -> [m, n]. Products of integers have the dtype of their sum: int64, or uint64 if both are
// unsigned. For higher ranks it sums over the last axis of a and the second-last axis of b. Flatten images
// [n, c, h, w] first: dot(flatten(x, 2), w). Throws ShapeError if the lengths do not fit. Theano's dot, whose
// integers keep their dtype.
Expr dot(const Expr& a, const Expr& b, Where where = Where::current());
// [..., m, k] and [..., k, n] -> [..., m, n], with the dtypes of dot (TypeError): a product for each
// index of the leading axes, which broadcast if their length is known to be 1. A vector a counts as [1, k]
// and a vector b as [k, 1], and that axis is dropped from the result. Throws ShapeError for scalars, and if
// the lengths do not fit. NumPy's matmul.
Expr matmul(const Expr& a, const Expr& b, Where where = Where::current());
// a [batch, m, k] or [batch, k] and b [batch, k, n] or [batch, k] -> [batch, m, n], without the axes that a
// or b lacks. Both have the same batch length. Throws as matmul does. Theano's batched_dot.
Expr batched_dot(const Expr& a, const Expr& b, Where where = Where::current());

// The eigenvalues and eigenvectors of symmetric matrices a [..., n, n], float32 or float64 (TypeError). Only
// the lower triangle is read, as by numpy.linalg.eigh and Theano's eigh with UPLO 'L'. Each vector has length
// 1, and the first of its largest components is positive; components whose sizes differ by less than a
// thousandth count as equally large. The vectors of equal eigenvalues are an arbitrary basis of their space.
// A matrix with NaN or infinities gives NaN.
//
// The gradient is with respect to the elements that are read: it is 0 above the diagonal, and below it the
// sum of what both elements contribute. Results that depend on the choice of vectors of equal eigenvalues
// have no meaningful gradient. Throws ShapeError unless the matrices are square, and Error at the call if the
// iterations do not converge. Runs on cpu and reference; function() throws DeviceError for other devices.
struct Eigh {
    Expr values;   // [..., n], ascending
    Expr vectors;  // [..., n, n]: of one matrix, vectors[{colon, i}] is the column of values[i]
};
Eigh eigh(const Expr& a, Where where = Where::current());
// ZCA whitening of data x [n, d]: dot(x - mean, matrix) has the variance w / (w + epsilon) along each
// direction of variance w, which is about 1 if w is much larger than epsilon, and is as close to the data as
// that allows. With c = dot(transpose(x - mean), x - mean) / n, its eigenvalues w and its eigenvectors v,
//     matrix = dot(v / sqrt(max(w, 0) + epsilon), transpose(v)),
// as in pylearn2, whose filter_bias is epsilon. Directions in which max(w, 0) + epsilon is below the rounding
// of the largest w (16 epsilons of the dtype) are dropped: their factor is 0. Everything but float64 is
// computed in float32, and bytes stay bytes in memory. Small variances are lost in the rounding of the
// largest one; use cast(x, float64) if they matter. Throws ShapeError unless x is a matrix, and Error unless
// epsilon is finite and at least 0. Runs on the devices of eigh.
struct Zca {
    Expr mean;    // [d]
    Expr matrix;  // [d, d], symmetric
};
Zca zca(const Expr& x, double epsilon, Where where = Where::current());

// ---- Neural networks ----

// The first field of options that hold several numbers. It makes conv2d(x, w, {1, 1}), which might mean the
// border or the stride, an error of the compiler. Name the fields: {.border_mode = half, .subsample = 2}.
struct WriteNamesOfOptions {
    explicit WriteNamesOfOptions() = default;
};
// A height and a width. One number stands for both.
struct Size2 {
    int h = 1, w = 1;
    constexpr Size2(int both) : h(both), w(both) {}  // NOLINT
    constexpr Size2(int height, int width) : h(height), w(width) {}
};
// What surrounds an image: nothing (valid), span - 1 zeros on each side (full), as many zeros as keep the
// size for odd filters (half), or a number of zeros, given once or as height and width.
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
    Size2 dilation = 1;       // the distance in the image between neighbours in the filter
    bool filter_flip = true;  // Theano's default: a true convolution; false: cross-correlation
    int groups = 1;           // of channels and of filters; Theano's num_groups
};

// The convolution of input [n, c, h, w] with filters [o, c, kh, kw], both float32 or both float64 -> [n, o,
// oh, ow], where oh = (h + 2 * pad - span) / subsample + 1 and span = (kh - 1) * dilation + 1. Theano's
// conv2d, which flips the filters. With groups, filters are [o, c / groups, kh, kw]: the first o / groups
// filters see the first c / groups channels, and so on; with c groups the convolution is depthwise. kh and kw
// must be known when the graph is built. Add a bias [o] as channel(b). Throws ShapeError if a filter does not
// fit the padded image, and unless groups >= 1 divides o and c; TypeError for other dtypes: cast bytes first,
// the cast takes no memory.
Expr conv2d(const Expr& input, const Expr& filters, ConvOptions options = {}, Where where = Where::current());

struct PoolOptions {
    WriteNamesOfOptions names = WriteNamesOfOptions();
    std::optional<Size2> stride{};  // empty: the window
    Size2 pad = 0;
};

// The maximum over windows of the last two axes, for integers, float32 and float64 (TypeError): [..., h, w]
// -> [..., oh, ow], where oh = (h + 2 * pad - window) / stride + 1. Borders that fill no whole window are
// dropped, as by Theano's ignore_border. Padding is never the maximum. NaN wins. The gradient goes to the
// first maximum of each window. Throws ShapeError unless at least one window fits and pad < window.
Expr max_pool(const Expr& x, Size2 window, PoolOptions options = {}, Where where = Where::current());
struct AveragePoolOptions {
    WriteNamesOfOptions names = WriteNamesOfOptions();
    std::optional<Size2> stride{};  // empty: the window
    Size2 pad = 0;
    bool count_padding = false;  // zeros around the image count as elements
};

// The mean over windows of the last two axes, with the shapes of max_pool: float32 for integers and booleans.
// By default over what lies in the image, Theano's average_exc_pad; with count_padding its average_inc_pad,
// and PyTorch's default. Throws ShapeError as max_pool does.
Expr average_pool(const Expr& x, Size2 window, AveragePoolOptions options = {},
                  Where where = Where::current());
// x * sigmoid(x) (Elfwing, Uchibe and Doya 2018), and x times the chance that a standard normal number is
// below x (Hendrycks and Gimpel 2016), without the approximation by tanh. Of integers float32.
Expr silu(const Expr& x, Where where = Where::current());
Expr gelu(const Expr& x, Where where = Where::current());
// exp(x) / sum(exp(x)) along an axis, and its logarithm, without overflow, for float32 and float64
// (TypeError). An axis of length 0 gives no elements. Throws IndexError if there is no such axis.
Expr softmax(const Expr& x, int axis = -1, Where where = Where::current());
Expr log_softmax(const Expr& x, int axis = -1, Where where = Where::current());
// The crossentropy of each row, [n], without a mean. predicted [n, classes] are probabilities, such as the
// rows of a softmax; target is either labels [n] of any integer dtype, or distributions [n, classes]. With a
// softmax it is differentiated as one operation, and never becomes NaN. A label outside [0, classes) is an
// IndexError at the call. Throws TypeError and ShapeError if predicted and target do not fit. Theano's
// categorical_crossentropy.
Expr categorical_crossentropy(const Expr& predicted, const Expr& target, Where where = Where::current());
// categorical_crossentropy(softmax(logits), target). PyTorch's cross_entropy without its mean.
Expr softmax_crossentropy(const Expr& logits, const Expr& target, Where where = Where::current());
// -(t * log(p) + (1 - t) * log(1 - p)) for targets t and predictions p, element by element with broadcasting;
// 0 * log(0) is 0. After a sigmoid it never becomes NaN. Integer and boolean targets of float32 predictions
// become float32. Throws as the operators do. Theano's binary_crossentropy.
Expr binary_crossentropy(const Expr& predicted, const Expr& target, Where where = Where::current());

// ---- Random numbers ----

class Updates;

// A stream of random numbers by Philox-4x32-10 (Salmon et al. 2011). Each draw in a graph has a key of its
// own, made of the seed and the number of the draw; a shared counter distinguishes calls. Each call of a
// function that draws from the stream increments the counter, with or without updates();
// FunctionOptions::hold_streams prevents it. The bits are the same on every device and for any number of
// threads. A copy of a stream draws what the stream draws: give each layer a reference, or another seed.
class RandomStream {
  public:
    explicit RandomStream(std::uint64_t seed, Where where = Where::current());
    // Uniform in [low, high), float32, in steps of (high - low) / 2^24. Lengths are integers, or integer
    // expressions known at the call. Throws Error unless low < high, and high - low is finite in float32.
    Expr uniform(const std::vector<Expr>& shape, double low = 0, double high = 1,
                 Where where = Where::current());
    // Normal, float32. Throws Error for a negative deviation, and where one of them is not finite in float32.
    Expr normal(const std::vector<Expr>& shape, double mean = 0, double deviation = 1,
                Where where = Where::current());
    // The update that increments the counter: for a function that does not draw from the stream, or in spite
    // of hold_streams.
    Updates updates(Where where = Where::current()) const;
    const Shared& counter() const { return counter_; }  // uint64 scalar
    std::uint64_t next_draw() { return draws_++; }
    std::uint64_t seed() const { return seed_; }

  private:
    std::uint64_t seed_;
    std::uint64_t draws_ = 0;
    Shared counter_;
};

// x * mask / keep, where each element of the mask is 1 with probability keep = 1 - rate, otherwise 0. The
// mask is not stored: the gradient computes it again. Throws Error unless 0 <= rate < 1, and TypeError unless
// x is float32 or float64. Srivastava et al. 2014, scaled while training, as in PyTorch and Keras.
Expr dropout(const Expr& x, double rate, RandomStream& stream, Where where = Where::current());

// ---- Gradients ----

// The derivatives of a float scalar, d cost / d wrt, each of the shape and dtype of its wrt. Derivatives by
// values of a half type are computed in float32 and rounded once. Throws GraphError unless the cost is a
// scalar, and if it does not depend on a wrt, which the message names with its line; TypeError for an integer
// wrt. Theano's grad.
std::vector<Expr> grad(const Expr& cost, std::initializer_list<Expr> wrt, Where where = Where::current());
std::vector<Expr> grad(const Expr& cost, const std::vector<Expr>& wrt, Where where = Where::current());
Expr grad(const Expr& cost, const Expr& wrt, Where where = Where::current());
// The value of x, through which no gradient flows. Theano's disconnected_grad.
Expr disconnected_grad(const Expr& x, Where where = Where::current());
// The value of x, of any dtype and shape, as a border for what gradients keep in memory. If all paths of a
// value to the cost lead through checkpoints, grad() does not use that value of the forward pass: when the
// backward pass reaches the checkpoint behind it, the value is computed again from the checkpoints, inputs
// and shared variables before it. What stays in memory from the forward pass is the checkpoints, the values
// behind the last of them, and what depends only on shared parameters and constants. Random numbers and
// dropout masks are drawn again and are the same. With a checkpoint after each sqrt(n) of n layers, about 2
// sqrt(n) values are in memory at a time, at the price of one more forward pass. If no gradient is taken, it
// is x. Chen, Xu, Zhang and Guestrin 2016, "Training deep nets with sublinear memory cost"; PyTorch's
// torch.utils.checkpoint, jax.checkpoint.
Expr checkpoint(const Expr& x, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
