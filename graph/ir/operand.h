// What a read of a nest takes its element from. The stage of compilation decides: the nest of an op reads
// inputs of its node, nests of codegen/group and codegen/library read values of the function, schedules send
// these reads to staged copies, and statements of a kernel read its places. A number that is taken for one of
// another kind is an internal error.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "graph/base/check.h"

namespace bitale {

class Operand {
  public:
    enum class Kind : std::uint8_t { input, value, copy, place };

    Operand() = default;
    static Operand of_input(int number) { return {Kind::input, number}; }
    static Operand of_value(int number) { return {Kind::value, number}; }
    static Operand of_copy(int number) { return {Kind::copy, number}; }
    static Operand of_place(int number) { return {Kind::place, number}; }

    int input() const { return as(Kind::input); }
    int value() const { return as(Kind::value); }
    int copy() const { return as(Kind::copy); }
    int place() const { return as(Kind::place); }

    bool is_value() const { return kind_ == Kind::value; }
    bool is_copy() const { return kind_ == Kind::copy; }
    bool is_place() const { return kind_ == Kind::place; }

    int number() const { return number_; }  // for what is alike at every stage: equality, text
    auto operator<=>(const Operand&) const = default;

  private:
    Operand(Kind kind, int number) : kind_(kind), number_(number) {}
    int as(Kind kind) const {
        BITALE_CHECK(kind_ == kind, "a read of operand " + std::to_string(number_) + " of another stage");
        return number_;
    }

    Kind kind_ = Kind::input;
    int number_ = 0;
};

}  // namespace bitale
