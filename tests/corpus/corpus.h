// The corpus: whole graphs, as users write them, by which changes of the compiler are judged. Their plans are
// compared between commits (scripts/replay), some with files (tests/corpus/decisions), and the bits of their
// results with a list (tests/corpus/checksums.txt). Written with the public headers alone: older libraries
// compile it too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitale/bitale.h"

namespace bitale::corpus {

// Plans are made for the lengths of the real thing, which take memory and minutes to run; results are
// computed for small ones.
enum class Purpose : std::uint8_t { plan, run };

struct Range {
    double low = -1, high = 1;
};
// The same numbers on every machine and from every standard library: a pure function of its arguments.
Array numbers(DType dtype, const Dims& shape, Range range, std::uint64_t seed);

// A length of an input: known when the graph is built, or a symbol until the call.
struct Length {
    Length(std::int64_t length, bool is_known = true) : value(length), known(is_known) {}  // NOLINT
    std::int64_t value;
    bool known;
};
inline Length unknown(std::int64_t value) { return {value, false}; }

struct Argument {
    DType dtype = DType::float32;
    Dims shape;
    Range range;
    std::uint64_t seed = 0;
    Array value() const { return numbers(dtype, shape, range, seed); }
};

struct Graph {
    std::string name;
    std::string form_of;  // another graph that computes the same from the same arguments, or empty
    std::vector<Input> inputs;
    std::vector<Argument> arguments;  // of the inputs
    std::vector<Expr> outputs;
    std::vector<std::string> output_names;
    Updates updates;
};

// What the text of a graph is written with. The n-th input and the n-th variable have the same numbers in
// every graph.
class Builder {
  public:
    Builder(std::string name, Purpose purpose) : purpose_(purpose) { graph_.name = std::move(name); }

    std::int64_t size(std::int64_t real, std::int64_t small) const {
        return purpose_ == Purpose::plan ? real : small;
    }
    Expr input(DType dtype, const std::vector<Length>& shape, const std::string& name, Range range = {});
    Expr floats(const std::vector<Length>& shape, const std::string& name, Range range = {}) {
        return input(float32, shape, name, range);
    }
    Expr bytes(const std::vector<Length>& shape, const std::string& name) {
        return input(uint8, shape, name, {0, 255});
    }
    // int32 in [0, classes).
    Expr labels(const Length& count, std::int64_t classes, const std::string& name) {
        return input(int32, {count}, name, {0, static_cast<double>(classes - 1)});
    }
    // An integer scalar: the number of a minibatch, a position.
    Expr number(std::int64_t value, const std::string& name);
    // A shared variable; of a plan it is all zeros.
    Shared variable(const Dims& shape, const std::string& name, Range range = {}, DType dtype = float32);
    // Of a layer with so many inputs: small enough that deep networks neither die out nor explode.
    Shared weights(const Dims& shape, const std::string& name);

    void output(const Expr& y, const std::string& name);
    void update(const Updates& updates) { graph_.updates = graph_.updates + updates; }
    void form_of(std::string name) { graph_.form_of = std::move(name); }
    // All parameters that variable() made with weights() or bias(), in order.
    const std::vector<Shared>& parameters() const { return parameters_; }
    Shared bias(std::int64_t length, const std::string& name);

    Graph graph() && { return std::move(graph_); }

  private:
    const Purpose purpose_;
    Graph graph_;
    std::uint64_t variables_ = 0;
    std::vector<Shared> parameters_;
};

const std::vector<std::string>& names();  // in alphabetical order
// Throws std::invalid_argument for a name that there is not.
Graph make(const std::string& name, Purpose purpose);

using Writer = void (*)(Builder& b);
struct Registered {
    Registered(const char* name, Writer writer);
};

}  // namespace bitale::corpus

// GRAPH(name) { what it consists of, written with the Builder b }. Begins in the first column and ends there
// with its brace: scripts/replay takes out what an older library does not compile.
#define GRAPH(name)                                                                    \
    static void write_##name(bitale::corpus::Builder& b);                              \
    static const bitale::corpus::Registered registered_##name(#name, &(write_##name)); \
    static void write_##name(bitale::corpus::Builder& b)
