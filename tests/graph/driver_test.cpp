// The driver and the pass runner.
#include "graph/rewrite/driver.h"

#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/rewrite/explain.h"
#include "graph/rewrite/pass.h"
#include "graph/walk/import.h"
#include "graph/walk/traverse.h"
#include "tests/graph/toy.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

using toy::add, toy::exp, toy::log, toy::neg, toy::x, toy::y;

RuleSet signs() {
    return {"signs",
            {{"neg-neg", neg(neg(x)), x}, {"add-neg", add(neg(x).again(), neg(y).again()), neg(add(x, y))}}};
}

NodePtr chain(const NodePtr& from, const Op* op, int length) {
    NodePtr node = from;
    for (int i = 0; i < length; ++i) node = toy::node(op, {node}, {}, static_cast<unsigned>(i) + 10);
    return node;
}

}  // namespace

TEST_CASE("rules are applied until none matches") {
    const NodePtr a = toy::leaf("a"), b = toy::leaf("b");
    const NodePtr sum = toy::node(toy::add(), {chain(a, toy::neg(), 3), chain(b, toy::neg(), 1)});
    const Nodes results = rewrite({toy::node(toy::neg(), {sum})}, signs());
    CHECK(toy::text(results[0]) == "toy_add(a, b)");
    CHECK_NOTHROW(verify_normal_form(results, signs()));
    CHECK_THROWS_WITH(verify_normal_form({sum}, signs()), ContainsSubstring("rule neg-neg still applies"));
}

TEST_CASE("an unchanged graph stays the same nodes") {
    const NodePtr node = toy::node(toy::exp(), {toy::leaf("a")});
    CHECK(rewrite({node}, signs())[0] == node);
}

TEST_CASE("barriers stay and are not looked through") {
    const NodePtr a = toy::leaf("a");
    const NodePtr inner = chain(a, toy::neg(), 2), outer = toy::node(toy::neg(), {inner});
    const std::unordered_set<const Node*> barriers = {inner.get()};
    const Nodes results = rewrite({outer}, signs(), {nullptr, &barriers});
    CHECK(results[0] == outer);
    CHECK(toy::text(rewrite({outer}, signs())[0]) == "toy_neg(a)");
}

TEST_CASE("what is made inherits lines, origins and rules, and merges with what is there") {
    const NodePtr a = toy::leaf("a"), b = toy::leaf("b");
    Graph graph;
    graph.inputs = {a, b};
    const NodePtr there = toy::node(toy::neg(), {toy::node(toy::add(), {a, b}, {}, 3)}, {}, 4);
    const NodePtr made =
        toy::node(toy::add(), {toy::node(toy::neg(), {a}, {}, 5), toy::node(toy::neg(), {b}, {}, 6)}, {}, 7);
    graph.outputs = {there, made};
    Interner interner;
    import(graph, interner);
    graph.set_roots(rewrite(graph.roots(), signs(), {&interner, nullptr}));
    REQUIRE(graph.outputs[0] == graph.outputs[1]);
    std::vector<unsigned> lines;
    for (const Origin& origin : graph.outputs[0]->origins) lines.push_back(origin.where.line);
    CHECK(lines == std::vector<unsigned>{4, 5, 6, 7});
    CHECK(graph.outputs[0]->rules == std::vector<std::string>{"add-neg"});
}

TEST_CASE("a rule that never ends is named") {
    const NodePtr node = toy::node(toy::exp(), {toy::leaf("a")});
    const RuleSet growing{"growing", {{"exp-grows", exp(x), exp(neg(exp(x)))}}};
    CHECK_THROWS_WITH(rewrite({node}, growing),
                      ContainsSubstring("rule exp-grows of growing does not come to an end"));
    const RuleSet circular{"circular", {{"there", exp(x), log(x)}, {"back", log(x), exp(x)}}};
    CHECK_THROWS_WITH(rewrite({node}, circular), ContainsSubstring("does not come to an end"));
}

TEST_CASE("a replacement of another type does not apply, one of fewer axes is repeated") {
    const NodePtr a = toy::leaf("a");
    const RuleSet wrong{"wrong", {{"to-int", neg(x), [](const Match&) {
                                       return make_constant(Array(std::vector<int>{1, 2, 3}));
                                   }}}};
    const NodePtr node = toy::node(toy::neg(), {a});
    CHECK(rewrite({node}, wrong)[0] == node);
    RuleSet scalar{"scalar", {{"to-scalar", neg(x), 5}}};
    CHECK(rewrite({node}, scalar)[0] == node);
    scalar.adapt = [](const NodePtr& made, const Type& wanted, Where) {
        return make_constant(Array(std::vector<float>(3, constant_value(made).item<float>()))
                                 .reshaped(static_dims(wanted.shape)));
    };
    CHECK(constant_value(rewrite({node}, scalar)[0]).to_vector<float>() == std::vector<float>{5, 5, 5});
}

TEST_CASE("rules are switched off by name, and those that assume finite numbers are off") {
    const NodePtr node = chain(toy::leaf("a"), toy::neg(), 2);
    Options off = options();
    off.disabled = {"neg-neg"};
    {
        const ScopedOptions scope(off);
        CHECK(rewrite({node}, signs())[0] == node);
    }
    RuleSet finite{"finite", {{"neg-neg-finite", neg(neg(x)), x, Tag::assumes_finite}}};
    CHECK(rewrite({node}, finite)[0] == node);
    Options assume = options();
    assume.assume_finite = true;
    const ScopedOptions scope(assume);
    CHECK(toy::text(rewrite({node}, finite)[0]) == "a");
}

TEST_CASE("rules are switched off by tag, and math=strict says which ones it holds back") {
    const NodePtr node = chain(toy::leaf("a"), toy::neg(), 2);
    const RuleSet rounds{"rounds", {{"neg-neg", neg(neg(x)), x, Tag::reassociates}}};
    CHECK(toy::text(rewrite({node}, rounds)[0]) == "a");
    std::set<std::string> held_back;
    RewriteOptions how;
    how.held_back = &held_back;
    Options off = options();
    off.disabled = {"reassociates"};
    {
        const ScopedOptions scope(off);
        CHECK(rewrite({node}, rounds, how)[0] == node);
        CHECK_THAT(explain(rounds.rules[0], node), ContainsSubstring("but its tag is disabled"));
    }
    CHECK(held_back.empty());
    Options strict = options();
    strict.strict_math = true;
    const ScopedOptions scope(strict);
    CHECK(rewrite({node}, rounds, how)[0] == node);
    CHECK(held_back == std::set<std::string>{"neg-neg"});
    CHECK_NOTHROW(verify_normal_form({node}, rounds));
    CHECK_THAT(explain(rounds.rules[0], node), ContainsSubstring("but math=strict holds it back"));
    held_back.clear();
    CHECK(toy::text(rewrite({node}, signs(), how)[0]) == "a");
    CHECK(held_back.empty());
}

TEST_CASE("a node that loses its other users is seen again") {
    // log(neg(x)) -> exp(x) only where neg(x) has one user; exp(neg(neg(x))) stops being the other one.
    const Pattern single = neg(x).once();
    const RuleSet set{"once", {{"log-neg", log(single), exp(x)}, {"neg-neg", neg(neg(y)), y}}};
    const NodePtr a = toy::leaf("a"), shared = toy::node(toy::neg(), {a});
    const NodePtr user = toy::node(toy::log(), {shared}), other = toy::node(toy::neg(), {shared});
    const Nodes results = rewrite({user, other}, set);
    CHECK(toy::text(results[0]) == "toy_exp(a)");
    CHECK(toy::text(results[1]) == "a");
    const Nodes kept = rewrite({user, toy::node(toy::exp(), {shared})}, set);
    CHECK(toy::text(kept[0]) == "toy_log(toy_neg(a))");
}

TEST_CASE("what stays in use is not computed again, unless the rule says so") {
    const auto dear = [](const Pattern& a) { return toy::of(toy::dear(), {a}); };
    const Pattern inner = dear(x), tolerated = inner.again();
    const RuleSet refuses{"refuses", {{"log-dear", log(inner), dear(neg(x))}, {"neg-neg", neg(neg(y)), y}}};
    const RuleSet repeats{"repeats", {{"log-dear", log(tolerated), dear(neg(x))}}};
    const RuleSet cheap{"cheap", {{"log-dear", log(inner), neg(x)}}};
    const NodePtr a = toy::leaf("a"), shared = toy::node(toy::dear(), {a});
    const NodePtr user = toy::node(toy::log(), {shared}), other = toy::node(toy::exp(), {shared});

    const Nodes kept = rewrite({user, other}, refuses);
    CHECK(kept[0] == user);
    CHECK_NOTHROW(verify_normal_form(kept, refuses));
    CHECK_THROWS_WITH(verify_normal_form({user}, refuses), ContainsSubstring("rule log-dear still applies"));
    CHECK(toy::text(rewrite({user}, refuses)[0]) == "toy_dear(toy_neg(a))");
    CHECK(toy::text(rewrite({user, other}, repeats)[0]) == "toy_dear(toy_neg(a))");
    // No more work than the logarithm that goes.
    CHECK(toy::text(rewrite({user, other}, cheap)[0]) == "toy_neg(a)");
    // A result of the graph is a user as well.
    CHECK(rewrite({user, shared}, refuses)[0] == user);

    // What lies between is in use through its user: dear(a) stays because exp(log(dear(a))) does.
    const NodePtr between = toy::node(toy::log(), {shared}), top = toy::node(toy::neg(), {between});
    const RuleSet deep{"deep", {{"neg-log-dear", neg(log(inner)), dear(exp(x))}}};
    CHECK(rewrite({top, toy::node(toy::exp(), {between})}, deep)[0] == top);
    CHECK(toy::text(rewrite({top}, deep)[0]) == "toy_dear(toy_exp(a))");
}

TEST_CASE("a refusal is looked at again when users have gone") {
    const auto dear = [](const Pattern& a) { return toy::of(toy::dear(), {a}); };
    const Pattern inner = dear(x);
    const RuleSet set{"set", {{"log-dear", log(inner), dear(neg(x))}, {"exp", exp(y), 1}}, nullptr};
    const NodePtr a = toy::leaf("a", float32, {}), shared = toy::node(toy::dear(), {a});
    const NodePtr sum =
        toy::node(toy::sub(), {toy::node(toy::log(), {shared}), toy::node(toy::exp(), {shared})});
    const Nodes results = rewrite({sum}, set);
    CHECK(toy::text(results[0]) == "toy_sub(toy_dear(toy_neg(a)), float32 [] {1})");
    CHECK_NOTHROW(verify_normal_form(results, set));
}

TEST_CASE("long chains are rewritten in linear time") {
    const NodePtr a = toy::leaf("a");
    CHECK(rewrite({chain(a, toy::neg(), 100'000)}, signs())[0] == a);
    NodePtr sum = toy::node(toy::neg(), {a});
    for (int i = 0; i < 50'000; ++i) sum = toy::node(toy::add(), {sum, toy::node(toy::neg(), {a})});
    Graph graph;
    graph.inputs = {a};
    graph.outputs = {sum};
    Interner interner;
    import(graph, interner);
    const Nodes results = rewrite(graph.roots(), signs(), {&interner, nullptr});
    CHECK(results[0]->op == toy::neg());
    CHECK(topological(results).size() == 50'002);
    CHECK(results[0]->origins.size() <= 64);
}

TEST_CASE("passes are run in order, skipped by name, dumped where something changed, and verified") {
    const NodePtr a = toy::leaf("a");
    Graph graph;
    graph.name = "step";
    graph.inputs = {a};
    graph.outputs = {chain(a, toy::neg(), 2)};
    std::vector<std::string> lines;
    const ScopedLog redirect([&](const std::string& line) { lines.push_back(line); });
    Options loud = options();
    loud.debug = 3;
    loud.disabled = {"skipped"};
    const ScopedOptions scope(loud);
    int ran = 0;
    run_passes(graph, {{"nothing", [&](Graph&) { ++ran; }},
                       {"skipped", [&](Graph&) { ran += 100; }},
                       {"signs", [&](Graph& g) { g.set_roots(rewrite(g.roots(), signs())); }}});
    CHECK(ran == 1);
    CHECK(graph.outputs[0] == a);
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    CHECK_THAT(all, ContainsSubstring("nothing: unchanged") && ContainsSubstring("skipped: disabled") &&
                        ContainsSubstring("signs: neg-neg x1") &&
                        ContainsSubstring("graph of step after signs"));

    const Pass wrong{"wrong", [](Graph& g) { g.outputs[0] = toy::leaf("other"); }};
    CHECK_THROWS_WITH(run_passes(graph, {wrong}), ContainsSubstring("no input of the graph"));
    graph.outputs = {a};
    const Pass retypes{"retypes", [](Graph& g) { g.outputs[0] = make_constant(Array(1)); }};
    CHECK_THROWS_WITH(run_passes(graph, {retypes}), ContainsSubstring("retypes changes the type"));
}

TEST_CASE("a graph prints line by line") {
    const NodePtr a = toy::leaf("a");
    Graph graph;
    graph.inputs = {a};
    graph.outputs = {
        toy::node(toy::soft(), {toy::node(toy::neg(), {a}, {}, 4)}, {{"axis", std::int64_t{0}}}, 5)};
    CHECK(listing(graph) ==
          "%0 = input() : float32 [3] \"a\"  # user.cpp:1\n"
          "%1 = toy_neg(%0) : float32 [3]  # user.cpp:4\n"
          "%2 = toy_soft(%1) {axis: 0} : float32 [3]  # user.cpp:5\n"
          "output %2\n");
}
