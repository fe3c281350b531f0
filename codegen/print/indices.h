// Indices: the text of index expressions. What the host knows is folded into parameters; the rest is
// arithmetic on variables, on a GPU in 32 bits wherever the ranges prove that it fits: 64-bit multiplication
// and division cost several times as much there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/nest.h"
#include "graph/types/index.h"

namespace bitale {

class Indices {
  public:
    // Makes a constant of the enclosing scope for a text that may be needed again; returns its name.
    using Remember = std::function<std::string(const std::string& type, const std::string& text)>;

    // `narrow`: for a GPU. Quotients are then computed once and kept by `remember`. So are those with
    // branches on a CPU: compilers make no vectors of a loop that has them.
    Indices(bool narrow, Remember remember) : narrow_(narrow), remember_(std::move(remember)) {}

    // From now on the symbol stands as `name`; the variable's type is type_of(symbol).
    void bind(const Int& symbol, const std::string& name);
    // A symbol read from memory. Offsets mention it; lengths that depend on it stay the host's, so that one
    // launch has one set of lengths.
    void bind_scalar(const Int& symbol, const std::string& name);
    // From now on the text has this name for that multiple of the symbol's.
    void hide(const Int& symbol, std::int64_t factor, const std::string& name) {
        hidden_[{text(symbol), factor}] = name;
    }
    // From now on a name is other than 0 where the guards, of choices that have others too, hold: `name`
    // makes it of their condition. Nothing where that is one comparison.
    void settle(const std::vector<Guard>& guards, const std::function<std::string(std::string)>& name);
    void show_again() { hidden_.clear(), settled_.clear(); }
    void forget() { names_.clear(), scalars_.clear(); }

    // "i32" where every value of the variable, one step beyond its end included, fits; else "i64".
    const char* type_of(const Int& variable) const;
    // An expression of type_of_text(x), in parentheses where it is more than one word.
    std::string text(const Int& x);
    // That they hold; "true" where that is proved.
    std::string condition(const std::vector<Guard>& guards);
    const char* type_of_text(const Int& x) const { return fits(x) ? "i32" : "i64"; }

    // The parameters used so far, and the type to declare each with.
    const std::vector<Int>& sizes() const { return sizes_; }
    const char* type_of_size(std::size_t size) const;

  private:
    bool fits(const Int& x) const;
    bool fits(const Atom& atom) const;
    bool host_only(const Atom& atom) const;
    std::string text(const Int& x, bool wide);
    std::string factors(const Int::Term& term, Int& factor, bool wide);
    std::string atom(const Atom& atom);
    std::string size(const Int& x);

    bool narrow_;
    Remember remember_;
    std::map<std::uint64_t, std::string> names_, scalars_;
    std::map<std::pair<std::string, std::int64_t>, std::string> hidden_;
    std::vector<std::pair<std::vector<Guard>, std::string>> settled_;
    std::vector<Int> sizes_;
    std::map<Int, std::size_t> number_of_size_;
};

}  // namespace bitale
