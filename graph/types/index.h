// The one integer algebra: dims, slices, kernel indices, offsets and launch sizes are all an Int.
//
// An Int is a polynomial with integer coefficients over atoms; an atom is a symbol with a range, or floordiv,
// min or max of two Ints. There is no mod atom: mod(x, c) is x - c * floordiv(x, c), so that the polynomial
// arithmetic alone proves that splitting an index and joining it again is the identity. Two Ints are == when
// their canonical forms are equal; unequal forms may still be equal numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bitale {

struct Atom;
using AtomPtr = std::shared_ptr<const Atom>;
class Int;

struct IntRange {
    static constexpr std::int64_t lowest = INT64_MIN / 4, highest = INT64_MAX / 4;  // saturating bounds
    std::int64_t low = lowest, high = highest;                                      // inclusive
};

// The atoms of a term. Shared, because terms are copied far more often than made.
class Atoms {
  public:
    Atoms(std::vector<AtomPtr> list = {})  // NOLINT: lists of atoms are Atoms
        : list_(list.empty() ? nullptr : std::make_shared<const std::vector<AtomPtr>>(std::move(list))) {}

    const AtomPtr* begin() const { return list_ ? list_->data() : nullptr; }
    const AtomPtr* end() const { return begin() + size(); }
    std::size_t size() const { return list_ ? list_->size() : 0; }
    bool empty() const { return !list_; }
    const AtomPtr& front() const { return list_->front(); }
    const AtomPtr& operator[](std::size_t i) const { return (*list_)[i]; }
    bool same_list(const Atoms& other) const { return list_ == other.list_; }

  private:
    std::shared_ptr<const std::vector<AtomPtr>> list_;
};

class Int {
  public:
    struct Term {
        std::int64_t factor;
        Atoms atoms;  // sorted; repeated for powers
    };

    Int(std::int64_t constant = 0) : constant_(constant) {}  // NOLINT: numbers are Ints
    // A fresh symbol: never equal to another one, whatever its name.
    static Int symbol(std::string name, IntRange range = {0, IntRange::highest});

    static Int from(const AtomPtr& atom);  // the Int that is just this atom

    bool is_constant() const { return !terms_; }
    bool is(std::int64_t value) const { return !terms_ && constant_ == value; }
    std::int64_t constant() const;  // throws InternalError unless is_constant()
    std::int64_t constant_term() const { return constant_; }
    const std::vector<Term>& terms() const { return terms_ ? *terms_ : no_terms(); }
    AtomPtr as_atom() const;          // the atom this Int consists of, else null
    std::uint64_t symbol_id() const;  // 0 unless this Int is exactly one symbol

    IntRange range() const;
    bool non_negative() const { return range().low >= 0; }
    // Symbols by their names; "..." for what is left of a very long formula.
    std::string text() const;
    std::strong_ordering operator<=>(const Int& other) const;
    bool operator==(const Int& other) const { return (*this <=> other) == 0; }

    friend Int operator+(const Int& a, const Int& b);
    friend Int operator-(const Int& a, const Int& b);
    friend Int operator*(const Int& a, const Int& b);
    friend Int operator-(const Int& a) { return Int(0) - a; }

  private:
    friend class IntBuilder;
    static const std::vector<Term>& no_terms();
    std::int64_t constant_ = 0;
    // Sorted by atoms, no zero factors; null: none. Shared, because Ints are copied far more often than
    // computed.
    std::shared_ptr<const std::vector<Term>> terms_;
};

Int floordiv(const Int& a, const Int& b);  // toward minus infinity; 0 where b is 0
Int mod(const Int& a, const Int& b);       // sign of b
Int ceildiv(const Int& a, const Int& b);
Int min(const Int& a, const Int& b);
Int max(const Int& a, const Int& b);
// Of any number of them, added in pairs: one by one, a sum of hundreds of symbols would be copied for each.
Int total_of(std::vector<Int> parts);
// The same number, with p for min(p, q) + max(0, p - q), as the lengths of the two parts of an axis are.
Int with_parts_joined(const Int& x);
// Where each of some lengths begins if they lie side by side, and last where all end. The start of one of
// hundreds of symbols would have hundreds of terms: blocks of them are one term each, max(sum, 0), and so is
// the end. Ends of the same lengths are ==, however they were put together.
std::vector<Int> starts_of(const std::vector<Int>& lengths);
// With the terms of those blocks.
Int written_out(const Int& x);
// With the terms of those whose symbols occur in terms of the other sign as well, with which they may cancel.
Int written_out_where_it_cancels(const Int& x);
// The number for some values of the symbols that their ranges allow: where it is negative, no proof that x is
// not need be looked for.
std::int64_t example_of(const Int& x);

struct Atom {
    enum class Kind : std::uint8_t { symbol, floordiv, min, max };
    Kind kind = Kind::symbol;
    std::uint64_t id = 0;               // symbols only, from 1, in order of creation
    std::string name;                   // symbols only
    IntRange range;                     // of a symbol as given, of the others as it follows
    Int a, b;                           // the operands of the others
    std::int64_t example = 0;           // as of example_of()
    std::uint64_t first = 0, last = 0;  // ids of all symbols inside are in [first, last]; no symbols: [0, 0]
    std::uint64_t hash = 0;             // of equal atoms the same; walks over shared parts would take long
};

// Replaces symbols by id; `with` returns null for those that stay.
using Substitution = std::map<std::uint64_t, Int>;
Int substitute(const Int& x, const Substitution& with);
bool depends_on_any(const Int& x, const Substitution& symbols);
// Replaces an atom of any kind wherever it occurs.
Int with_atom(const Int& x, const AtomPtr& atom, const Int& by);
// The number for given values of the symbols; a symbol without a value is an InternalError.
std::int64_t evaluate(const Int& x, const std::map<std::uint64_t, std::int64_t>& values);
std::uint64_t hash_of(const Int& x);
// Every symbol atom inside, once each, in order of id.
std::vector<AtomPtr> symbols_of(const Int& x);
bool depends_on(const Int& x, std::uint64_t symbol_id);

}  // namespace bitale
