// The rules, by phase and by topic. A phase's set contains what brings its own products to canonical form.
#pragma once

#include "graph/rewrite/rule.h"

namespace bitale {

// Phases, in order. Each set leaves a normal form: none of its rules applies any more.
const RuleSet& forget_rules();        // gradients have been taken: what only they needed goes
const RuleSet& canonicalize_rules();  // one spelling for each computation
const RuleSet& stabilize_rules();     // no avoidable overflow or cancellation; needs composites whole
const RuleSet& decompose_rules();     // no composites
const RuleSet& specialize_rules();    // what is cheaper among primitives
const RuleSet& separate_rules();      // what is faster in two steps, which other sets put into one

// Topics.
std::vector<Rule> neutral_rules();  // x + 0, x * 1
std::vector<Rule> sign_rules();     // --x, x + -y
std::vector<Rule> factor_rules();   // constants that meet, powers, quotients
std::vector<Rule> logic_rules();    // where, not, idempotent ops
std::vector<Rule> cast_rules();
std::vector<Rule> view_rules();        // reshape, permute, expand, slice
std::vector<Rule> part_rules();        // a slice of a concatenation is one of its parts
std::vector<Rule> place_rules();       // gradients of neighbouring slices meet
std::vector<Rule> sorted_rules();      // the first elements in order
std::vector<Rule> round_trip_rules();  // maps between two reshapes, there and back
std::vector<Rule> repeat_rules();      // a map of repeated values is the repeated map
std::vector<Rule> reduce_rules();
std::vector<Rule> constant_rules();  // what is known now
std::vector<Rule> stabilize_elementwise_rules();
std::vector<Rule> stabilize_softmax_rules();
std::vector<Rule> stabilize_root_rules();
std::vector<Rule> stabilize_crossentropy_rules();
std::vector<Rule> stabilize_logarithm_rules();
std::vector<Rule> stabilize_overflow_rules();
std::vector<Rule> filter_rules();       // convolutions with filters that are known
std::vector<Rule> lookup_rules();       // gradients of lookups in one table meet
std::vector<Rule> idiom_rules();        // maximum(x, 0) is relu(x): same value, another gradient
std::vector<Rule> whole_power_rules();  // x^3 and x^4 as products, x^-1 as a quotient
std::vector<Rule> power_rules();        // products for powers with small constant exponents
std::vector<Rule> pooling_rules();      // max_pool next to its convolution
std::vector<Rule> order_rules();        // transposes come last
std::vector<Rule> stack_rules();        // reductions over the parts of a stack
std::vector<Rule> column_rules();       // sums over a short last axis: each column by itself first

// No phase of its own: the gradient of filters behind max-pooling as a sum over windows, where `worth_it`
// says so of the gradient over all places. Code generation knows where that is faster.
RuleSet winner_rules(Condition worth_it = nullptr, Condition many_zeros = nullptr);

// Gives a replacement the shape it replaces: repeats it along axes of length 1 or missing ones; lengths that
// are equal at every valid call, though not by their form, stay checked by the expand that this makes.
NodePtr repeated_to(const NodePtr& replacement, const Type& wanted, Where where);

}  // namespace bitale
