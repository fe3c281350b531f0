// Roots of what is never below 0, as norms and deviations are however they are written: the root has an
// infinite derivative at 0, where that of its operand is 0.
#include "ops/elementwise/elementwise.h"
#include "ops/nn/logsumexp.h"
#include "ops/nn/root.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

namespace {

enum class Sign : std::uint8_t { any, not_below_zero, above_zero };

class Signs {
  public:
    explicit Signs(const Match& match) : match_(match) {}

    // Of expressions without exponentials: these have no zeros, and rules of their own.
    Sign of(const NodePtr& x) {
        constexpr int most = 256;
        if (++visited_ > most) return Sign::any;
        if (const std::optional<Array> value = uniform_value(x))
            return value->at(0) > 0 ? Sign::above_zero : value->at(0) == 0 ? Sign::not_below_zero : Sign::any;
        const Op* op = x->op;
        if (op->name == "length") return Sign::above_zero;
        if (!match_.may_look_through(x)) return Sign::any;
        if (op == sqr_op() || op == abs_op() || op == relu_op() || op == norm_op() || op == root_op())
            return Sign::not_below_zero;
        const Nodes& in = x->inputs;
        if (op == cast_op()) return in[0]->type.dtype == boolean ? Sign::not_below_zero : of(in[0]);
        if (op == maximum_op()) return std::max(of(in[0]), of(in[1]));
        if (op == add_op()) return sum_of(of(in[0]), of(in[1]));
        if (op == mul_op() || op == div_op()) return std::min(of(in[0]), of(in[1]));
        if (op == where_op()) return std::min(of(in[1]), of(in[2]));
        if (op == pow_op()) return of(in[0]);
        if (op == sum_op() || op == mean_op() || op == max_op() || op == min_op() ||
            is_named(x, {"reshape", "permute", "expand", "slice", "flip", "gather"}))
            return std::min(of(in[0]), Sign::not_below_zero);
        return Sign::any;
    }

  private:
    static Sign sum_of(Sign a, Sign b) {
        if (a == Sign::any || b == Sign::any) return Sign::any;
        return std::max(a, b);
    }

    const Match& match_;
    int visited_ = 0;
};

NodePtr root_of(const Match& m, const Pattern& x, double exponent) {
    const NodePtr& root = m.root();
    if ((root->type.dtype != float32 && root->type.dtype != float64) || m[x]->type != root->type)
        return nullptr;
    return Signs(m).of(m[x]) == Sign::not_below_zero ? make_root(m[x], exponent, root->where) : nullptr;
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
