// Expr, Shared and the operators: how a program writes a graph.
//
// Every function takes the caller's line as a defaulted last argument. An overloaded operator cannot have
// one, so the implicit conversion of its operands to Arg or Index records the line.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bitale/array.h"
#include "bitale/error.h"

#pragma GCC visibility push(default)

namespace bitale {

struct Node;
struct SharedState;
class Expr;
class Index;

// A handle of a shared variable: a value that stays on the device between calls. Copies of the handle name
// the same variable. A handle that was made without a value, or moved from, is empty: every use of it throws
// GraphError.
class Shared {
  public:
    Shared() = default;
    explicit Shared(std::shared_ptr<SharedState> state) : state_(std::move(state)) {}
    // A copy of the current value. Waits for the current step of a call or loop that writes the variable.
    Array get_value(Where where = Where::current()) const;
    // Replaces the value. Dtype and shape are fixed when the variable is made: throws TypeError or ShapeError
    // for others. Waits as get_value() does.
    void set_value(const Array& value, Where where = Where::current()) const;
    const std::string& name(Where where = Where::current()) const;
    DType dtype(Where where = Where::current()) const;
    Dims shape(Where where = Where::current()) const;
    Expr operator[](const Index& at) const;
    const std::shared_ptr<SharedState>& state() const { return state_; }

  private:
    std::shared_ptr<SharedState> state_;
};

// A new shared variable with a copy of the value. It has the value's dtype and shape for good.
Shared shared(const Array& value, std::string name = {}, Where where = Where::current());

// A handle of a node in a symbolic graph. Dtype, shape and the line that made it are known at once.
class Expr {
  public:
    Expr() = default;  // empty, like one that was moved from: every use of it throws GraphError
    Expr(const Shared& s, Where where = Where::current());  // NOLINT
    template <Number T>
    Expr(T literal, Where where = Where::current())
        : Expr(Array(literal), true, where) {}  // NOLINT: a weak literal
    Expr(const Array& constant, Where where = Where::current()) : Expr(constant, false, where) {}  // NOLINT
    explicit Expr(std::shared_ptr<const Node> node, bool weak = false)
        : node_(std::move(node)), weak_(weak) {}

    Expr operator[](const Index& at) const;
    DType dtype(Where where = Where::current()) const;
    int rank(Where where = Where::current()) const;
    // The length of an axis as an int64 scalar. Negative axes count from the end. Throws IndexError if there
    // is no such axis.
    Expr length(int axis, Where where = Where::current()) const;
    // "[x.0, 28, 28]": x.0 is the unknown length of axis 0 of x.
    std::string shape_text(Where where = Where::current()) const;
    Where where() const;
    // The same value under a name that messages, reports and pictures show.
    Expr named(const std::string& name, Where where = Where::current()) const;
    explicit operator bool() const = delete;  // `if (x < y)` on symbols is always a mistake

    const std::shared_ptr<const Node>& node() const;  // throws GraphError if empty
    bool is_null() const { return !node_; }
    // Whether this is a number of the program, which takes the dtype of what it meets: x / 128.0 stays
    // float32.
    bool is_weak() const { return weak_; }

  private:
    Expr(const Array& constant, bool weak, Where where);
    std::shared_ptr<const Node> node_;
    bool weak_ = false;
};

// An operand of an overloaded operator or an elementwise function. It records the caller's line.
struct Arg {
    Arg(const Expr& e, Where w = Where::current()) : expr(e), where(w) {}       // NOLINT
    Arg(const Shared& s, Where w = Where::current()) : expr(s, w), where(w) {}  // NOLINT
    template <Number T>
    Arg(T literal, Where w = Where::current()) : expr(literal, w), where(w) {}               // NOLINT
    Arg(const Array& constant, Where w = Where::current()) : expr(constant, w), where(w) {}  // NOLINT
    Expr expr;
    Where where;
};

// Elementwise operators. Operands broadcast along missing leading axes, and along axes whose length is known
// to be 1. Dtypes mix as the table in docs/guide.md says. Throws TypeError for an integer with float64, for
// uint64 with a signed integer (comparisons of these are exact), for a half type, and for an unsigned integer
// minus a number; write a cast. Throws ShapeError if the lengths can never be equal; lengths that may be
// equal are checked at the call.
Expr operator+(const Arg& a, const Arg& b);
Expr operator-(const Arg& a, const Arg& b);
Expr operator*(const Arg& a, const Arg& b);
Expr operator/(const Arg& a, const Arg& b);  // true division; two integers give float32
Expr operator%(const Arg& a, const Arg& b);  // has the sign of b; x % 0 is 0 for integers
Expr operator<(const Arg& a, const Arg& b);
Expr operator<=(const Arg& a, const Arg& b);
Expr operator>(const Arg& a, const Arg& b);
Expr operator>=(const Arg& a, const Arg& b);
Expr operator-(const Arg& a);
bool operator==(const Arg&,
                const Arg&) = delete;  // eq(a, b) compares elements, same(a, b) handles
bool operator!=(const Arg&, const Arg&) = delete;
// Whether two handles name the same node.
inline bool same(const Expr& a, const Expr& b) { return a.node() == b.node(); }

// A whole axis in an index.
struct Colon {};
inline constexpr Colon colon{};
// NumPy's slice start:stop:step, clipped to the axis. A missing bound is the end of the axis. Bounds may be
// integer expressions that are known at the call, such as inputs and lengths; a start of that kind behind the
// last element is an IndexError. The step is a number.
struct Slice {
    std::optional<Expr> start{}, stop{};
    std::int64_t step = 1;
};

// What stands in x[...]: an index for one axis or, in braces, for several. A number drops the axis, a Slice
// or colon keeps it, and an integer tensor takes elements of its axis, in whose place its own axes stand.
// Negative numbers and bounds count from the end. An integer expression used as an index must lie in
// [0, length); otherwise the call throws IndexError. Two integer tensors, or a number that slices keep apart
// from a tensor behind the first axis, throw IndexError: NumPy's axes would be in another order.
class Index {
  public:
    struct Item {
        Item(Expr e) : expr(std::move(e)), kind(Kind::expr) {}                               // NOLINT
        Item(const Shared& s, Where w = Where::current()) : expr(s, w), kind(Kind::expr) {}  // NOLINT
        Item(Slice s) : slice(std::move(s)), kind(Kind::slice) {}                            // NOLINT
        Item(Colon) : kind(Kind::whole) {}                                                   // NOLINT
        template <Number T>
        Item(T i) : expr(as_written(i)), kind(Kind::expr) {}  // NOLINT
        enum class Kind : std::uint8_t { expr, slice, whole };
        Expr expr;
        Slice slice;
        Kind kind;

      private:
        // A float is refused, as an expression of that type is.
        template <Number T>
        static auto as_written(T i) {
            if constexpr (std::is_floating_point_v<T>)
                return static_cast<double>(i);
            else
                return static_cast<std::int64_t>(i);
        }
    };
    Index(Expr e, Where w = Where::current()) : where(w), items(list_of({Item(std::move(e))})) {}  // NOLINT
    Index(const Shared& s, Where w = Where::current())
        : where(w), items(list_of({Item(Expr(s, w))})) {}                                           // NOLINT
    Index(Slice s, Where w = Where::current()) : where(w), items(list_of({Item(std::move(s))})) {}  // NOLINT
    Index(Colon c, Where w = Where::current()) : where(w), items(list_of({Item(c)})) {}             // NOLINT
    template <Number T>
    Index(T i, Where w = Where::current()) : where(w), items(list_of({Item(i)})) {}  // NOLINT
    Index(std::initializer_list<Item> list, Where w = Where::current()) : where(w), items(list_of(list)) {}
    Where where;
    std::vector<Item> items;

  private:
    static std::vector<Item> list_of(std::initializer_list<Item> items);
};

// An input of a rank. Its lengths are unknown until a call, and each is a symbol of its own. Throws
// ShapeError for a rank below 0 or above 64.
Expr input_of_rank(DType dtype, std::int64_t rank, std::string name, Where where = Where::current());
template <std::integral Rank>
Expr input(DType dtype, Rank rank, std::string name, Where where = Where::current()) {
    return input_of_rank(dtype, static_cast<std::int64_t>(rank), std::move(name), where);
}
// An input of a shape, in which -1 stands for an unknown length: input(float32, {-1, 784}, "x"). With braces
// it is a shape, without them a rank: input(float32, {8}, "x") is a vector of 8 elements. Throws ShapeError
// for any other negative length.
Expr input(DType dtype, const Dims& shape, std::string name, Where where = Where::current());
// Inputs of rank 0, 1, 2, 3 and 4 whose lengths are unknown.
Expr scalar(std::string name, DType dtype = float32, Where where = Where::current());
Expr vector(std::string name, DType dtype = float32, Where where = Where::current());
Expr matrix(std::string name, DType dtype = float32, Where where = Where::current());
Expr tensor3(std::string name, DType dtype = float32, Where where = Where::current());
Expr tensor4(std::string name, DType dtype = float32, Where where = Where::current());
// Integer inputs: int32 for the names with i, int64 for those with l.
Expr iscalar(std::string name, Where where = Where::current());
Expr ivector(std::string name, Where where = Where::current());
Expr imatrix(std::string name, Where where = Where::current());
Expr lscalar(std::string name, Where where = Where::current());
Expr lvector(std::string name, Where where = Where::current());
// A value as an expression. Arrays and numbers convert to expressions implicitly. A number that converts so
// takes the dtype of what it meets; constant() keeps the dtype of its value.
Expr constant(const Array& value, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
