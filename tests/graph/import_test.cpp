// import: equal nodes merge and remember all the statements that they stand for.
#include "graph/walk/import.h"

#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"
#include "graph/walk/verify.h"
#include "tests/graph/toy.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

Graph imported(Nodes inputs, Nodes outputs) {
    Graph graph;
    graph.inputs = std::move(inputs);
    graph.outputs = std::move(outputs);
    Interner interner;
    import(graph, interner);
    verify(graph);
    verify_merged(graph);
    return graph;
}

}  // namespace

TEST_CASE("equal structure becomes one node with the sorted list of its origins") {
    const NodePtr x = toy::leaf("x");
    const NodePtr first = toy::node(toy::exp(), {x}, {}, 20), second = toy::node(toy::exp(), {x}, {}, 10);
    const NodePtr sum = toy::node(toy::add(), {first, second}, {}, 30);
    const Graph graph = imported({x}, {sum});
    const NodePtr& add = graph.outputs[0];
    REQUIRE(add->inputs[0] == add->inputs[1]);
    REQUIRE(add->inputs[0]->origins.size() == 2);
    CHECK(add->inputs[0]->origins[0].where.line == 10);
    CHECK(add->inputs[0]->origins[1].where.line == 20);
    CHECK(add->inputs[0]->origins[0].what == "toy_exp");
    CHECK(add->inputs[0]->inputs[0] == x);
    CHECK(first->origins.empty());  // the user's nodes stay what they were
}

TEST_CASE("other attributes, operands or orders are other nodes") {
    const NodePtr x = toy::leaf("x"), y = toy::leaf("y");
    const Nodes outputs = {toy::node(toy::exp(), {x}, {{"axis", std::int64_t{0}}}),
                           toy::node(toy::exp(), {x}, {{"axis", std::int64_t{1}}}),
                           toy::node(toy::sub(), {x, y}), toy::node(toy::sub(), {y, x}),
                           toy::node(toy::exp(), {x}, {{"axis", std::int64_t{0}}})};
    const Graph graph = imported({x, y}, outputs);
    CHECK(topological(graph.outputs).size() == 6);
    CHECK(graph.outputs[0] == graph.outputs[4]);
}

TEST_CASE("leaves merge by identity, shared variables by storage, constants by value") {
    const NodePtr x = toy::leaf("x"), twin = toy::leaf("x");
    const auto state = std::make_shared<SharedState>();
    state->name = "w";
    state->value = Array(float32, {3});
    const NodePtr one = make_constant(Array(1.0F)), again = make_constant(Array(1.0F)),
                  wide = make_constant(Array(1.0));
    const NodePtr zero = make_constant(Array(0.0F)), minus_zero = make_constant(Array(-0.0F));
    const Graph graph =
        imported({x, twin}, {x, twin, make_shared_node(state, {}), make_shared_node(state, {}), one, again,
                             wide, zero, minus_zero});
    CHECK(graph.outputs[0] == x);
    CHECK(graph.outputs[1] == twin);
    CHECK(graph.outputs[2] == graph.outputs[3]);
    CHECK(graph.outputs[4] == graph.outputs[5]);
    CHECK(graph.outputs[4] != graph.outputs[6]);
    CHECK(graph.outputs[7] != graph.outputs[8]);
}

TEST_CASE("names are kept and become origins") {
    const NodePtr x = toy::leaf("x");
    const NodePtr hidden = make_node(toy::exp(), {x}, {}, Where{"user.cpp", 5}, "hidden");
    const Graph graph = imported({x}, {toy::node(toy::exp(), {x}), hidden});
    CHECK(graph.outputs[0] == graph.outputs[1]);
    CHECK(graph.outputs[0]->name == "hidden");
    CHECK(graph.outputs[0]->origins.back().what == "hidden");
}

TEST_CASE("a chain of 100,000 nodes is imported, verified and destroyed") {
    const NodePtr x = toy::leaf("x");
    NodePtr a = x, b = x;
    for (int i = 0; i < 100'000; ++i) {
        a = toy::node(i % 2 ? toy::exp() : toy::log(), {a});
        b = toy::node(i % 2 ? toy::exp() : toy::log(), {b});
    }
    const Graph graph = imported({x}, {a, b});
    CHECK(graph.outputs[0] == graph.outputs[1]);
    CHECK(topological(graph.outputs).size() == 100'001);
}

TEST_CASE("verify finds what must not be") {
    const NodePtr x = toy::leaf("x"), y = toy::leaf("y");
    Graph graph;
    graph.inputs = {x};
    graph.outputs = {toy::node(toy::add(), {x, y})};
    CHECK_THROWS_WITH(verify(graph), ContainsSubstring("no input of the graph"));
    graph.inputs = {x, y, x};
    CHECK_THROWS_WITH(verify(graph), ContainsSubstring("an input twice"));
    graph.inputs = {x, y};
    CHECK_NOTHROW(verify(graph));

    const auto wrong = std::make_shared<Node>(*graph.outputs[0]);
    wrong->type.dtype = int8;
    graph.outputs = {wrong};
    CHECK_THROWS_WITH(verify(graph), ContainsSubstring("another type than its op infers"));
    graph.outputs = {toy::node(toy::soft(), {x})};
    CHECK_THROWS_WITH(verify_primitive(graph), ContainsSubstring("a composite is left"));
    graph.outputs = {toy::node(toy::exp(), {x}), toy::node(toy::exp(), {x})};
    CHECK_THROWS_WITH(verify_merged(graph), ContainsSubstring("two equal nodes"));
}
