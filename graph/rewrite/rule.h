// Rule: one rewrite as data, and lists of them.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "graph/rewrite/pattern.h"

namespace bitale {

// How far the result may differ; the fuzz test holds every rule to its tag.
enum class Tag : std::uint8_t {
    exact,         // the same bits for every argument (any NaN for a NaN)
    stabilizes,    // the same number where the original is finite, up to the rounding that the rewrite avoids
    reassociates,  // the same real number, rounded elsewhere; the sign of a zero may differ
    skips_zeros,   // reassociates, and leaves out products with zeros: inf * 0 and nan * 0 no longer show
    assumes_finite,  // wrong for inf or NaN; off unless BITALE_FLAGS has assume_finite=on
    defines          // what the op means, in simpler ops; always applied
};
const char* name_of(Tag tag);

// The replacement for a match, or null when the rule does not apply after all. New nodes must be made afresh.
using Replace = std::function<NodePtr(const Match& match)>;
using Condition = std::function<bool(const Match& match)>;

struct Rule {
    std::string name;  // kebab-case; BITALE_FLAGS=disable=name switches it off, and so does its tag's
    Pattern pattern;
    std::variant<Pattern, Replace> replacement;
    Tag tag = Tag::exact;
    Condition guard = nullptr;

    // Why the options keep the rule out, as "it is disabled"; null where it is in force.
    const char* why_not() const;

    // The replacement for the node; null without a match, then `why`, if asked, says what did not fit.
    NodePtr apply(const NodePtr& node, const MatchContext& context = {}, Match* found = nullptr,
                  std::string* why = nullptr) const;
};

// Makes a replacement's shape the wanted one where it differs only by repetition; null if it cannot.
using Adapt = std::function<NodePtr(const NodePtr& replacement, const Type& wanted, Where where)>;

struct RuleSet {
    std::string name;  // of the phase
    std::vector<Rule> rules;
    Adapt adapt = nullptr;
};

RuleSet operator+(RuleSet a, const RuleSet& b);  // keeps the first name

}  // namespace bitale
