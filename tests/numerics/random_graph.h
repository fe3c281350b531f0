// Random graphs over the operations of bitale/ops.h, with values for their inputs. The same seed gives the
// same graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/numerics.h"

namespace bitale::test {

inline constexpr double most_exact = 1 << 20;  // whole numbers stay below it in magnitude
inline constexpr double wraps = 1e18;          // the bound of what takes all values of its dtype
// Of shared variables, after some calls that may each add 1.
inline constexpr double most_of_new_values = 12;

// What a graph computes with.
enum class Arithmetic : std::uint8_t {
    whole,  // whole numbers in every dtype, small enough to be exact in float32: results are equal to the bit
    special,  // NaN, infinities, -0 and extremes of every dtype, through what does not round: equal to the
              // bit
    smooth,   // float32 or float64 through differentiable functions, with gradients: equal within rounding
};

struct RandomGraph {
    std::vector<Expr> inputs;
    std::vector<Array> arguments;
    std::vector<Expr> outputs;
    std::vector<Update> updates;  // of shared variables of its own
};

// Every length is a number.
bool has_known_shape(const Expr& x);

constexpr std::uint64_t first_newer_seed = 1'000'000;
// From here on, graphs have long sums over shared variables that no function updates.
constexpr std::uint64_t first_seed_of_long_sums = 4'000'000;
// From here on, graphs have convolutions in groups of channels too.
constexpr std::uint64_t first_seed_of_groups = 5'000'000;
// From here on, graphs have sums along the rows of a column and a row that are put back.
constexpr std::uint64_t first_seed_of_crossings = 7'000'000;

class GraphGenerator {
  public:
    GraphGenerator(std::uint64_t seed, Arithmetic arithmetic);
    RandomGraph generate(int operations);

    std::string suffix;  // behind the name of every variable
    bool declares_trailing_lengths =
        false;  // of all inputs, all but the leading ones; the draws are the same

  private:
    struct Value {
        Expr x;
        Dims shape;
        double bound = 0;  // of the magnitude
    };

    std::string named(const std::string& name) const { return name + suffix; }

    // ---- leaves
    // The last `known` lengths are declared, of the others some.
    Value make_input(DType dtype, const Dims& shape, double low, double high, std::size_t known = 0);
    Value make_shared(DType dtype, const Dims& shape);
    Expr index_input(DType dtype, const Dims& shape, std::int64_t length);
    DType some_dtype();
    Dims some_shape(int rank);

    // ---- steps: false if the values at hand do not fit
    bool step();
    bool unary();
    bool binary();
    bool select();
    bool convert();
    bool reduce();
    bool move();
    bool slice();
    bool resize();
    bool join();
    bool look_up();
    bool product();
    // Steps that seeds below a million, which are kept with what they once found, do not take
    // (random_graph_newer.cpp).
    bool newer_step();
    bool long_sum();
    bool products();
    bool scan();
    bool put_in_order();
    bool cross();
    bool convolve();
    std::int64_t groups_of(std::int64_t channels);
    bool pool();
    bool normalise();
    bool classify();
    // Of what is there already, once more (random_graph_reread.cpp).
    bool read_again();
    bool residual();
    bool convolve_values();
    bool rows_with_border();

    // Indices, integers, storage and draws (random_graph_more.cpp).
    bool slice_anywhere();
    bool computed_index();
    bool mixed();
    bool integers();
    bool keep_as_half();
    bool draw();
    bool special_binary();
    bool special_unary();
    bool special_step();

    void second_derivatives(const Expr& cost);
    // New values of the shared variables, of their own shapes and dtypes (random_graph_updates.cpp).
    void compute_new_values();
    // Variables whose new values are some of the values, and outputs that read the old ones beside others.
    void replace_by_values();

    const Value& any();
    Value as_images(const Value& v);
    // The value, of at least one row, in another order of its rows, or one of them.
    Value in_other_rows(const Value& v);
    // A value that broadcasts against v, of its dtype if it is typed.
    Value partner(const Value& v);
    bool keep(const Expr& x, const Dims& shape, double bound);
    bool is_whole() const { return arithmetic_ != Arithmetic::smooth; }  // no rounding
    bool is_special() const { return arithmetic_ == Arithmetic::special; }
    Array some_array(DType dtype, const Dims& shape, double low, double high);
    bool floating(const Value& v) const { return v.x.dtype() == float32 || v.x.dtype() == float64; }

    Random random_;
    bool newer_, long_sums_, groups_, crossings_;
    Arithmetic arithmetic_;
    DType real_;
    std::vector<std::int64_t> lengths_;
    std::int64_t most_elements_ = 20000;
    std::optional<RandomStream> stream_;
    std::vector<Value> values_;
    RandomGraph graph_;
    std::vector<Expr> trainable_;
};

}  // namespace bitale::test
