// What a call must bring: inputs by name and type, where symbols get their values, which lengths must agree.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/program.h"
#include "graph/ir/graph.h"
#include "runtime/exec/told_lengths.h"

namespace bitale {

struct InputInfo {
    std::string name;
    Where where;
    Type type;
};

struct Signature {
    std::string function;
    std::vector<InputInfo> inputs;
    std::vector<SizeSource> sources;  // one per symbol
    std::vector<LengthCheck> checks;
    ToldLengths fixed;  // lengths that checks name and a version has as numbers
};

// Of a graph before rewriting, so that no check is lost with a node that a rewrite removes. Throws ShapeError
// for lengths that can never be equal.
Signature signature_of(const Graph& graph);

// The ids of its symbols, in the order of its sources.
std::vector<std::uint64_t> symbols_of(const Signature& signature);

// Whether the value may be an Array that nothing was assigned to.
bool is_like_default(const Array& value);
// "; the value is an empty Array, as Array() ...", the end of an error.
std::string default_text(const std::string& subject);

// Checks the arguments of calls. Holds the scalars, converted to the inputs' dtypes, and scratch: not for two
// calls at once.
class Arguments {
  public:
    explicit Arguments(Signature signature);

    const Signature& signature() const { return signature_; }
    std::size_t symbols() const { return signature_.sources.size(); }
    std::vector<std::uint64_t> symbol_ids() const;

    // Dtypes, ranks, known lengths. Throws TypeError, ShapeError. `values` gets one number per symbol, `data`
    // the bytes of each argument, which stay valid while the arguments and this object do.
    void bind(std::span<const Array> arguments, std::int64_t* values, const void** data);
    // Another value for a scalar input, as bind would store it; the symbol's value too where it has one.
    void set_scalar(std::size_t input, std::int64_t value, std::int64_t* values);

  private:
    struct Cell {
        alignas(64) unsigned char bytes[128] = {};  // a scalar, and the tail that kernels may read past it
    };
    struct Axis {
        std::int64_t known = -1;  // a length, or
        int symbol = -1;          // the symbol it gives a value to, or must agree with, or
                                  // neither: an expression of others, which the length was compared with
        bool first = false;
    };
    // `cure`: how errors end instead of with their own cure, where it is not empty.
    void bind_each(std::span<const Array> arguments, std::int64_t* values, const void** data,
                   const std::string& cure);
    void take_scalar(std::size_t input, const Array& value, const std::string& cure);
    void check_shape(std::size_t input, const Array& value, const std::string& cure) const;
    std::string complaint(std::size_t input, const Array& value) const;
    // A cure where a call with two of the arguments exchanged would be accepted; else empty.
    std::string exchanged(std::span<const Array> arguments) const;

    Signature signature_;
    std::vector<std::vector<Axis>> axes_;
    std::vector<int> scalar_symbol_;  // of an integer scalar input: its symbol's position, or -1
    std::vector<Cell> cells_;
};

// Checks `checks` for given values of the symbols; throws ShapeError or IndexError with the numbers.
class LengthChecks {
  public:
    // `symbols`: those of the table, in its order; errors show their numbers by the names that `of` has for
    // them.
    LengthChecks(const std::vector<LengthCheck>& checks, const std::vector<std::uint64_t>& symbols,
                 const Signature& of, class IntTable& table);
    void verify(const std::int64_t* symbols, const std::int64_t* slots) const;

  private:
    struct Pair {
        int a = 0, b = 0;
        std::string message;
        bool is_index = false;
    };
    std::vector<Pair> pairs_;
    std::vector<std::string> names_;  // of the symbols; empty: none
    ToldLengths fixed_;
};

}  // namespace bitale
