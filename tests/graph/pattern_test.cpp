// Patterns: what matches, what does not and why, and what templates build.
#include "graph/rewrite/pattern.h"

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "graph/rewrite/explain.h"
#include "tests/graph/toy.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

using toy::add, toy::log, toy::log_soft, toy::neg, toy::soft, toy::sub, toy::x, toy::y;

const Pattern c = Pattern::constant("c");

NodePtr number(double value, DType dtype = float32, Dims shape = {}) {
    Array array(float64, shape);
    for (std::int64_t i = 0; i < array.size(); ++i) static_cast<double*>(array.mutable_data())[i] = value;
    return make_constant(array.as(dtype));
}

}  // namespace

TEST_CASE("wildcards capture, ops must be the same") {
    const NodePtr a = toy::leaf("a"), b = toy::leaf("b");
    const NodePtr node = toy::node(toy::sub(), {toy::node(toy::neg(), {a}), b});
    const auto found = match(sub(neg(x), y), node);
    REQUIRE(found);
    CHECK((*found)[x] == a);
    CHECK((*found)[y] == b);
    CHECK(found->consumed().size() == 2);
    CHECK_FALSE(match(sub(y, neg(x)), node));
    CHECK_THROWS(static_cast<void>((*found)[c]));
}

TEST_CASE("commutative ops match in either order, with backtracking") {
    const NodePtr a = toy::leaf("a"), b = toy::leaf("b");
    const NodePtr n = toy::node(toy::neg(), {b});
    CHECK(match(add(neg(y), x), toy::node(toy::add(), {a, n})));
    CHECK(match(add(neg(y), x), toy::node(toy::add(), {n, a})));
    // (x + y) - (x + neg(y)): the first choice for the left sum is wrong when its operands are swapped.
    const NodePtr left = toy::node(toy::add(), {b, a}), right = toy::node(toy::add(), {n, a});
    const auto found = match(sub(add(x, y), add(x, neg(y))), toy::node(toy::sub(), {left, right}));
    REQUIRE(found);
    CHECK((*found)[x] == a);
    CHECK((*found)[y] == b);
}

TEST_CASE("the same wildcard twice is the same value") {
    const NodePtr a = toy::leaf("a"), b = toy::leaf("b");
    CHECK(match(sub(x, x), toy::node(toy::sub(), {a, a})));
    CHECK_FALSE(match(sub(x, x), toy::node(toy::sub(), {a, b})));
    CHECK(match(sub(x, x), toy::node(toy::sub(), {number(2), number(2)})));
}

TEST_CASE("numbers match constants of equal elements, bit by bit") {
    const NodePtr a = toy::leaf("a");
    const auto plus = [&](const NodePtr& constant) { return toy::node(toy::add(), {a, constant}); };
    CHECK(match(add(x, 0), plus(number(0))));
    CHECK(match(add(x, 0), plus(number(0, float32, {3}))));
    CHECK(match(add(x, 0), plus(number(0, int8))));
    CHECK_FALSE(match(add(x, 0), plus(number(-0.0))));
    CHECK(match(add(x, -0.0), plus(number(-0.0))));
    CHECK_FALSE(match(add(x, 0), plus(number(1))));
    CHECK_FALSE(match(add(x, 0), plus(a)));
    const NodePtr mixed = make_constant(Array(std::vector<float>{0, 1}));
    CHECK_FALSE(match(add(x, c), plus(mixed)));
    CHECK(match(add(x, c), plus(number(7, float32, {3})))->number(c) == 7);
    CHECK(match(add(x, std::numeric_limits<double>::quiet_NaN()), plus(number(std::nan("")))));
}

TEST_CASE("attributes can be demanded, and are carried over") {
    const NodePtr a = toy::leaf("a");
    const NodePtr node = toy::node(toy::log(), {toy::node(toy::soft(), {a}, {{"axis", std::int64_t{1}}})});
    const auto found = match(log(soft(x)), node);
    REQUIRE(found);
    const NodePtr made = build(log_soft(x), *found);
    CHECK(made->op == toy::log_soft());
    CHECK(made->attributes.get<std::int64_t>("axis") == 1);
    CHECK(made->where.line == node->where.line);
    CHECK(build(neg(x), *found)->attributes.entries().empty());
    CHECK(match(log(soft(x).with("axis", std::int64_t{1})), node));
    CHECK_FALSE(match(log(soft(x).with("axis", std::int64_t{0})), node));
    CHECK(build(neg(x).with("kind", true), *found)->attributes.get<bool>("kind"));
}

TEST_CASE("numbers in templates take the dtype of their siblings") {
    const NodePtr a = toy::leaf("a", float64);
    const auto found = match(neg(x), toy::node(toy::neg(), {a}));
    REQUIRE(found);
    const NodePtr made = build(add(2, x), *found);
    CHECK(made->inputs[0]->type.dtype == float64);
    CHECK(constant_value(made->inputs[0]).item<double>() == 2);
    CHECK(made->inputs[1] == a);
    CHECK(build(Pattern(3), *found)->type.dtype == float64);
}

TEST_CASE("a barrier is opaque and once means one user") {
    const NodePtr a = toy::leaf("a");
    const NodePtr inner = toy::node(toy::soft(), {a}), node = toy::node(toy::log(), {inner});
    const std::unordered_set<const Node*> barriers = {inner.get()};
    std::string why;
    CHECK_FALSE(match(log(soft(x)), node, {&barriers, nullptr}, &why));
    CHECK_THAT(why, ContainsSubstring("a barrier"));
    CHECK(match(log(x), node, {&barriers, nullptr}));
    const std::unordered_map<const Node*, int> users = {{inner.get(), 2}};
    CHECK_FALSE(match(log(soft(x).once()), node, {nullptr, &users}, &why));
    CHECK_THAT(why, ContainsSubstring("2 users instead of one"));
    CHECK(match(log(soft(x)), node, {nullptr, &users}));
}

TEST_CASE("a nest of one op: as many operands as there are, some of them the same op for this one alone") {
    const Attributes first = {{"axis", std::int64_t{0}}}, second = {{"axis", std::int64_t{1}}};
    const Pattern nest = Pattern::nested(toy::many()->name);
    const NodePtr a = toy::leaf("a"), b = toy::leaf("b");
    const NodePtr inner = toy::node(toy::many(), {a, b}, first);
    const NodePtr other = toy::node(toy::many(), {b}, second);
    const NodePtr node = toy::node(toy::many(), {b, inner, other}, first);
    const std::optional<Match> found = match(nest, node);
    REQUIRE(found);
    CHECK(found->consumed() == Nodes{node, inner});
    CHECK(nest.text() == "toy_many(.., toy_many(..), ..)");
    std::string why;
    CHECK_FALSE(match(nest, inner, {}, &why));
    CHECK_THAT(why, ContainsSubstring("no operand is such a node without other users"));
    CHECK_FALSE(match(nest, toy::node(toy::exp(), {inner}), {}, &why));
    CHECK_THAT(why, ContainsSubstring("expected toy_many, found"));
    CHECK_FALSE(match(nest, toy::node(toy::many(), {a, other}, first)));
    const std::unordered_set<const Node*> barriers = {inner.get()};
    CHECK_FALSE(match(nest, node, {&barriers, nullptr}));
    const std::unordered_map<const Node*, int> users = {{inner.get(), 2}};
    bool has_other_users = false;
    CHECK_FALSE(match(nest, node, {nullptr, &users, &has_other_users}));
    CHECK(has_other_users);
}

TEST_CASE("a miss is explained") {
    const NodePtr a = toy::leaf("a");
    const Rule rule{"log-soft", log(soft(x)), log_soft(x), Tag::stabilizes,
                    [](const Match& m) { return m.root()->where.line != 99; }};
    const NodePtr hit = toy::node(toy::log(), {toy::node(toy::soft(), {a})});
    CHECK_THAT(explain(rule, hit), ContainsSubstring("rule log-soft (toy_log(toy_soft(x))) applies"));
    const NodePtr miss = toy::node(toy::log(), {toy::node(toy::exp(), {a}, {}, 7)});
    CHECK_THAT(explain(rule, miss),
               ContainsSubstring("expected toy_soft, found: toy_exp (float32 [3]) at user.cpp:7"));
    const NodePtr refused = toy::node(toy::log(), {toy::node(toy::soft(), {a})}, {}, 99);
    CHECK_THAT(explain(rule, refused), ContainsSubstring("the guard refuses"));
    CHECK_THAT(explain(rule, Nodes{hit, miss}), ContainsSubstring("applies") && ContainsSubstring("misses"));
}

TEST_CASE("a pattern that names no op is a bug") {
    CHECK_THROWS_WITH(match(Pattern::apply("no_such_op", {x}), toy::leaf("a")),
                      ContainsSubstring("no_such_op"));
}

TEST_CASE("threads may match by one pattern") {
    const Pattern pattern = add(neg(x), y);
    const NodePtr a = toy::leaf("a");
    const NodePtr node = toy::node(toy::add(), {toy::node(toy::neg(), {a}), a});
    std::atomic<int> found{0}, ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            ++ready;
            while (ready < 4) std::this_thread::yield();
            if (match(pattern, node)) ++found;
        });
    for (std::thread& t : threads) t.join();
    CHECK(found == 4);
}
