// Every size of a program, compiled to one straight list of integer instructions: evaluated at calls without
// maps.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "graph/types/index.h"

namespace bitale {

class IntTable {
  public:
    // `symbols`: the ids whose values evaluate() gets, in this order.
    explicit IntTable(const std::vector<std::uint64_t>& symbols);

    // The slot that will hold x; equal sub-expressions share theirs. InternalError for a symbol that is not
    // known.
    int add(const Int& x);
    std::size_t slots() const { return code_.size(); }
    // Positions of the symbols that some slot reads.
    std::vector<std::size_t> used_symbols() const;
    // Fills slots() numbers. Division by zero gives 0: such a length belongs to an empty tensor. Numbers
    // beyond 64 bits become the last ones of them.
    void evaluate(const std::int64_t* symbols, std::int64_t* slots) const;

  private:
    enum class Kind : std::uint8_t { constant, symbol, add, multiply, floordiv, min, max };
    struct Instruction {
        Kind kind = Kind::constant;
        int a = 0, b = 0;  // slots, or the symbol's position
        std::int64_t number = 0;
        auto key() const { return std::tuple(kind, a, b, number); }
    };
    int emit(Instruction instruction);
    int atom(const AtomPtr& atom);

    std::map<std::uint64_t, int> position_;
    std::map<std::tuple<Kind, int, int, std::int64_t>, int> known_;
    std::map<AtomPtr, int> atoms_;  // that are no symbols
    std::vector<Instruction> code_;
};

}  // namespace bitale
