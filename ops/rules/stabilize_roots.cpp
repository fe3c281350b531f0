// Roots of what is never below 0, as norms and deviations are however they are written: the root has an
// infinite derivative at 0, where that of its operand is 0.
#include "ops/nn/root.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/rules/signs.h"

namespace bitale {

using namespace algebra;

namespace {

NodePtr root_of(const Match& m, const Pattern& x, double exponent) {
    const NodePtr& root = m.root();
    if ((root->type.dtype != float32 && root->type.dtype != float64) || m[x]->type != root->type)
        return nullptr;
    return Signs(m, Zeros::least).of(m[x]) == Sign::not_below_zero ? make_root(m[x], exponent, root->where)
                                                                   : nullptr;
}

}  // namespace

std::vector<Rule> stabilize_root_rules() {
    const Pattern x = any("x"), c = constant("c");
    const auto t = Tag::stabilizes;
    return {
        {"root", sqrt(x), [x](const Match& m) { return root_of(m, x, 0.5); }, t},
        {"root-power", pow(x, c),
         [x, c](const Match& m) -> NodePtr {
             const std::optional<Array> exponent = uniform_value(m[c]);
             if (!exponent || !(exponent->at(0) > 0 && exponent->at(0) < 1)) return nullptr;
             return root_of(m, x, exponent->at(0));
         },
         t},
    };
}

}  // namespace bitale
