// Every rule against the oracle: both sides of random instances must agree as the rule's tag says.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "ops/oracle/wide.h"
#include "ops/registry.h"
#include "ops/rules/rules.h"
#include "ops/shape/join.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"
#include "tests/rules/instantiate.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

std::vector<Rule> all_rules() {
    std::vector<Rule> rules;
    std::set<std::pair<std::string, std::string>> seen;
    for (const RuleSet* set : {&forget_rules(), &canonicalize_rules(), &stabilize_rules(), &decompose_rules(),
                               &specialize_rules(), &separate_rules()})
        for (const Rule& rule : set->rules)
            if (seen.insert({rule.name, rule.pattern.text()}).second) rules.push_back(rule);
    for (const Rule& rule : winner_rules().rules) rules.push_back(rule);
    return rules;
}

// `error`: how far computing in the dtypes may be off, which a sum that cancels has of its summands.
bool near(double a, double b, double error) {
    return std::abs(a - b) <= 1e-6 * (1 + std::max(std::abs(a), std::abs(b))) + 4 * error;
}

// Whether element `now` may stand for element `before` under the tag.
bool allowed(Tag tag, double before, double now, double error) {
    if (std::isnan(before) && std::isnan(now)) return true;
    if (before == now && (std::signbit(before) == std::signbit(now) || tag != Tag::exact)) return true;
    if (tag == Tag::exact) return false;
    if (tag == Tag::stabilizes) {
        if (std::isnan(before)) return true;
        if (std::isinf(before)) return !std::isnan(now);
    }
    if (tag == Tag::skips_zeros && std::isnan(before)) return true;
    return std::isfinite(before) && std::isfinite(now) && near(before, now, error);
}

// What the host computes in double is as far from the wide result as what a device computes.
bool is_folded(const Rule& rule, double before, double now, double error) {
    return rule.name == "constant-fold" && std::abs(before - now) <= 4 * error;
}

// Empty, or where and how the two differ.
std::string difference(const Rule& rule, const WideValue& before, const WideValue& now) {
    const Array a = before.rounded(), b = now.rounded();
    if (a.dtype() != b.dtype() || a.shape() != b.shape())
        return "types differ: " + a.text() + " and " + b.text();
    if (rule.tag == Tag::exact && !is_float(a.dtype()))
        return same(a, b) ? "" : a.text() + " became " + b.text();
    for (std::int64_t i = 0; i < a.size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto error = static_cast<double>(before.error(at) + now.error(at));
        if (!allowed(rule.tag, a.at(i), b.at(i), error) && !is_folded(rule, a.at(i), b.at(i), error))
            return "element " + std::to_string(i) + ": " + text_of(Attribute(a.at(i))) + " became " +
                   text_of(Attribute(b.at(i)));
    }
    return "";
}

// What these replace may be a number by way of infinity, which is not what it should be: exp(1) / exp(1000)
// for one; or of rounding, as log(1 - exp(1e-38)), which is -inf for NaN.
bool may_be_a_wrong_number(const Rule& rule) {
    static const std::set<std::string> names = {"softmax-quotient",
                                                "softmax-product",
                                                "softmax-masked",
                                                "log-softmax-difference",
                                                "sigmoid-quotient",
                                                "sigmoid-product",
                                                "tanh-quotient",
                                                "tanh-expm1",
                                                "logarithm-of-rest",
                                                "log1mexp",
                                                "log-expm1",
                                                "binary-crossentropy",
                                                "logarithm",
                                                "logarithm-of-base-2",
                                                "logarithm-of-base-10",
                                                "log1mexp-of-exp",
                                                "quotient-of-overflow",
                                                "reciprocal-of-overflow",
                                                "power-of-overflow",
                                                "product-of-exponentials",
                                                "mask-constant",
                                                "tanh-ratio",
                                                "tanh-inverse",
                                                "log-sinh"};
    return names.contains(rule.name);
}

// Rules whose function looks further than their pattern says: what they replace, with its leaves.
const std::set<std::string> rules_of_surroundings = {
    "slice-part",          "reshape-round-trip",        "map-by-rows",           "slice-argsort",
    "argsort-of-argsort",  "slice-take-along",          "stack-windows",         "map-then-transpose",
    "view-then-transpose", "scan-then-transpose",       "reduce-then-transpose", "transpose-of-repeated",
    "sum-columns-first",   "slice-transpose-of-sorted", "gather-repeated",       "gather-repeated-of-cast",
    "sum-of-stack",        "product-of-stack",          "max-of-stack",          "min-of-stack"};

using AxisList = std::vector<std::int64_t>;

// Something that is computed from a transpose, whose axes are now and then of length 1.
NodePtr of_transposed(const std::string& rule, fuzz::Instantiator& random,
                      const std::function<NodePtr(Shape)>& leaf) {
    const std::int64_t rank = random.between(2, 4);
    AxisList order(static_cast<std::size_t>(rank));
    Shape from;
    for (std::int64_t d = 0; d < rank; ++d) {
        order[static_cast<std::size_t>(d)] = d;
        from.emplace_back(random.chance(4) ? 1 : random.between(2, 4));
    }
    for (std::size_t d = order.size(); d-- > 1;)
        std::swap(order[d], order[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(d)))]);
    const NodePtr x = make_permute(leaf(from), order, {});
    const Shape& shape = x->type.shape;
    Shape some = shape;
    for (Int& n : some)
        if (random.chance(2)) n = 1;
    const std::int64_t axis = random.between(0, rank - 1);
    const auto of = [&](const char* op, Nodes inputs, Attributes attributes = {}) {
        return make_node(find_op(op), std::move(inputs), std::move(attributes));
    };
    if (rule == "transpose-of-repeated") return make_permute(make_expand(leaf(some), shape, {}), order, {});
    if (rule == "map-then-transpose") {
        const NodePtr other = random.chance(3)   ? make_permute(leaf(from), order, {})
                              : random.chance(3) ? leaf({})
                                                 : make_expand(leaf(some), shape, {});
        const char* const two[] = {"add", "mul", "sub", "maximum"};
        const NodePtr both =
            of(two[random.between(0, 3)], random.chance(2) ? Nodes{x, other} : Nodes{other, x});
        return random.chance(4) ? of("where", {of("lt", {x, other}), other, x}) : both;
    }
    if (rule == "scan-then-transpose")
        return of(random.chance(2) ? "cumsum" : "cummax", {x},
                  {{"axis", axis}, {"exclusive", random.chance(2)}, {"reverse", random.chance(2)}});
    if (rule == "reduce-then-transpose") {
        const char* const ops[] = {"max", "min", "argmax", "supremum"};
        AxisList axes{axis};
        if (axis + 1 < rank && random.chance(3)) axes.push_back(rank - 1);
        return of(ops[random.between(0, 3)], {x}, {{"axes", axes}});
    }
    switch (random.between(0, 3)) {
        case 0: return of("flip", {x}, {{"axis", axis}});
        case 1: {
            Shape part = shape;
            part[static_cast<std::size_t>(axis)] = random.between(1, 3);
            Shape of_part(part.size());
            for (std::size_t d = 0; d < part.size(); ++d)
                of_part[static_cast<std::size_t>(order[d])] = part[d];
            return of("concat", {x, make_permute(leaf(of_part), order, {})}, {{"axis", axis}});
        }
        case 2: {
            AxisList before(order.size()), after = before;
            for (std::size_t d = 0; d < order.size(); ++d)
                before[d] = random.between(0, 2), after[d] = random.between(0, 1);
            return of("pad", {x}, {{"before", before}, {"after", after}, {"value", 0.5}});
        }
        default: return make_slice(x, static_cast<int>(axis), 0, 1, 1, {});
    }
}

NodePtr surroundings(const std::string& rule, fuzz::Instantiator& random, Nodes& leaves) {
    const auto leaf = [&](Shape shape) {
        leaves.push_back(make_input({float32, std::move(shape)}, "x" + std::to_string(leaves.size()), {}));
        return leaves.back();
    };
    const auto map = [&](const NodePtr& a, const NodePtr& b) {
        const char* const two[] = {"add", "mul", "sub", "maximum"};
        const NodePtr both = make_node(find_op(two[random.between(0, 3)]), {a, b});
        return random.chance(2) ? both : make_node(find_op("neg"), {both});
    };
    if (rule.ends_with("-then-transpose") || rule == "transpose-of-repeated")
        return of_transposed(rule, random, leaf);
    if (rule == "sum-columns-first") return fuzz::sum_of_columns(random, leaf);
    if (rule.starts_with("gather-repeated")) {
        const std::int64_t rows = random.between(1, 5), times = random.between(2, 4);
        const auto number = [](std::int64_t x) {
            return make_constant(Array(std::vector<std::int64_t>{x}, {}), {});
        };
        const NodePtr range = make_node(find_op("range"), {number(0)}, {{"length", Int(rows * times)}}),
                      of = make_node(find_op("floordiv"), {range, number(times)});
        const NodePtr places =
            rule == "gather-repeated" ? of : make_node(find_op("cast"), {of}, {{"dtype", int32}});
        return make_node(find_op("gather"), {leaf(random.chance(2) ? Shape{rows} : Shape{rows, 3}), places});
    }
    if (rule.ends_with("-of-stack")) return fuzz::reduced_stack(rule, random, leaf);
    if (rule == "slice-part") {
        Nodes parts;
        const auto axis = random.between(0, 1);
        Int start, all, length;
        const std::int64_t count = random.between(16, 20), taken = random.between(0, count - 1);
        for (std::int64_t k = 0; k < count; ++k) {
            const Int own = random.between(0, 3);
            if (k == taken) start = all, length = own;
            parts.push_back(leaf(axis == 0 ? Shape{own, 2} : Shape{3, own}));
            all = all + own;
        }
        const NodePtr whole = make_node(find_op("concat"), parts, {{"axis", axis}});
        const bool direct = random.chance(3);
        const NodePtr x = direct ? whole : map(whole, random.chance(2) ? whole : leaf(whole->type.shape));
        return make_slice(x, static_cast<int>(axis), start, length, 1, {});
    }
    if (rule == "reshape-round-trip") {
        const Int n = random.between(1, 3), groups = random.between(1, 3);
        const Shape own{n, groups * 2, 2, 3};
        const NodePtr r = make_reshape(leaf(own), {n, groups, 12}, {});
        const NodePtr other =
            random.chance(2) ? leaf({n, groups, 12}) : make_expand(leaf({n, groups, 1}), {n, groups, 12}, {});
        const NodePtr once = map(r, other);
        return make_reshape(random.chance(2) ? once : map(once, r), own, {});
    }
    if (rule == "stack-windows") {
        const std::int64_t axis = random.between(0, 1), at = random.between(0, 2),
                           step = random.between(1, 2), parts = random.between(10, 14),
                           count = random.between(1, 4);
        const bool down = random.chance(2);
        const std::int64_t longest = (parts - 1) * step + count + random.between(0, 2);
        const NodePtr x = leaf(axis == 0 ? Shape{longest, 2} : Shape{3, longest});
        Nodes stacked;
        for (std::int64_t k = 0; k < parts; ++k) {
            const NodePtr slice =
                make_slice(x, static_cast<int>(axis), (down ? parts - 1 - k : k) * step, count, 1, {});
            Shape shape = slice->type.shape;
            shape.insert(shape.begin() + at, 1);
            stacked.push_back(make_reshape(slice, shape, {}));
        }
        return make_node(find_op("concat"), stacked, {{"axis", at}});
    }
    if (rule == "argsort-of-argsort") {
        const auto sorted = [&](const NodePtr& of) {
            const Int count = random.chance(2) ? of->type.shape.back() : min(of->type.shape.back(), 3);
            return make_node(find_op("argsort"), {of},
                             {{"count", count}, {"descending", random.chance(2)}, {"dtype", int64}});
        };
        return sorted(sorted(leaf({2, random.between(3, 40)})));
    }
    if (rule == "slice-argsort" || rule == "slice-take-along" || rule == "slice-transpose-of-sorted") {
        const std::int64_t n = random.between(20, 40), start = random.between(0, 1),
                           count = random.between(0, 2);
        const NodePtr row = leaf({2, n});
        const NodePtr order =
            make_node(find_op("argsort"), {row},
                      {{"count", Int(n)}, {"descending", random.chance(2)}, {"dtype", int32}});
        const NodePtr x = rule == "slice-argsort" ? order
                                                  : make_node(find_op("take_along"), {leaf({2, n}), order},
                                                              {{"permutation", true}});
        if (rule == "slice-transpose-of-sorted") {
            const NodePtr across = make_permute(x, {1, 0}, {});
            return random.chance(3) ? make_slice(across, 1, start, 1, 1, {})
                                    : make_slice(across, 0, start, count, 1, {});
        }
        return make_slice(x, 1, start, count, 1, {});
    }
    const Int a = random.between(1, 3), b = random.between(1, 3), c = random.between(1, 4);
    const Shape wide{a, b, c}, rows{a * b, c};
    const NodePtr x = make_reshape(leaf(rows), wide, {});
    const Op* const op = find_op(random.chance(2) ? "add" : "maximum");
    if (random.chance(3)) return make_node(op, {x, make_reshape(leaf(rows), wide, {})});
    const NodePtr vector = leaf(random.chance(2) ? Shape{c} : Shape{1, c});
    return make_node(op, {x, make_expand(vector, wide, {})});
}

enum class Outcome : std::uint8_t { no_instance, no_match, agrees };

Outcome try_rule(const Rule& rule, unsigned seed) {
    fuzz::Instantiator instantiator(seed);
    NodePtr node;
    Nodes own_leaves;
    try {
        node = rules_of_surroundings.contains(rule.name) ? surroundings(rule.name, instantiator, own_leaves)
                                                         : instantiator.instance(rule.pattern);
    } catch (const std::exception&) {
        return Outcome::no_instance;
    }
    NodePtr made = rule.apply(node);
    if (made && made->type != node->type) made = repeated_to(made, node->type, {});
    if (!made) return Outcome::no_match;
    const bool every_value =
        rule.tag == Tag::exact || (rule.tag == Tag::stabilizes && !may_be_a_wrong_number(rule));
    const fuzz::Values values = every_value ? fuzz::Values::everything : fuzz::Values::no_infinities;
    auto leaves = instantiator.leaf_values(values);
    for (const NodePtr& leaf : own_leaves)
        leaves.emplace(leaf.get(), instantiator.array(leaf->type, values, 0));
    std::vector<WidePtr> results;
    try {
        results = evaluate_wide({node, made}, leaves);
    } catch (const Error&) {
        return Outcome::no_instance;  // a label out of range, a maximum of nothing
    }
    INFO("rule " << rule.name << ", seed " << seed << ": " << describe(*node) << "\n"
                 << debugprint(Expr(node)) << "became\n"
                 << debugprint(Expr(made)));
    for (const auto& [leaf, value] : leaves) UNSCOPED_INFO(leaf->name << " = " << value.text());
    REQUIRE(difference(rule, *results[0], *results[1]) == "");
    return Outcome::agrees;
}

void fuzz_all(int enough, unsigned most_tries, unsigned first_seed) {
    for (const Rule& rule : all_rules()) {
        DYNAMIC_SECTION(rule.name << ": " << rule.pattern.text()) {
            int agreed = 0;
            for (unsigned seed = first_seed; agreed < enough && seed < first_seed + most_tries; ++seed)
                agreed += try_rule(rule, seed) == Outcome::agrees;
            CHECK(agreed == enough);
        }
    }
}

}  // namespace

TEST_CASE("every rule agrees with the oracle") { fuzz_all(60, 20'000, 1); }

TEST_CASE("every rule agrees with the oracle, at length", "[slow]") { fuzz_all(2'000, 1'000'000, 1'000'000); }

TEST_CASE("rules have names of their own") {
    for (const RuleSet* set :
         {&canonicalize_rules(), &specialize_rules(), &separate_rules(), &stabilize_rules()}) {
        std::set<std::string> names;
        for (const Rule& rule : set->rules)
            if (rule.name != "constant-fold") CHECK(names.insert(rule.name).second);
    }
}
