// Lengths that every valid call makes equal become one length of the graph.
#include "graph/walk/equal_lengths.h"

#include "bitale/bitale.h"
#include "graph/walk/traverse.h"
#include "graph/walk/verify.h"
#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

Graph graph_of(const std::vector<Expr>& inputs, const std::vector<Expr>& outputs) {
    Graph graph;
    for (const Expr& input : inputs) graph.inputs.push_back(input.node());
    for (const Expr& output : outputs) graph.outputs.push_back(output.node());
    return graph;
}

const Shape& shape_of_input(const Graph& graph, std::size_t i) { return graph.inputs[i]->type.shape; }

}  // namespace

TEST_CASE("the factors of a product get one length for their common axis") {
    const Expr x = matrix("x"), y = matrix("y");
    Graph graph = graph_of({x, y}, {dot(x, y)});
    REQUIRE_FALSE(shape_of_input(graph, 0)[1] == shape_of_input(graph, 1)[0]);
    merge_equal_lengths(graph);
    verify(graph);
    CHECK(shape_of_input(graph, 0)[1] == shape_of_input(graph, 1)[0]);
    CHECK_FALSE(shape_of_input(graph, 0)[0] == shape_of_input(graph, 1)[1]);
    CHECK(graph.inputs[0] == x.node());   // the first input's lengths are kept
    CHECK(graph.inputs[1]->name == "y");  // the other one is a new leaf in the name of the old one
    CHECK_FALSE(graph.inputs[1] == y.node());
}

TEST_CASE("a length that must equal a number becomes the number") {
    const Expr x = matrix("x");
    const Shared w = shared(Array(float32, {784, 10}), "w");
    Graph graph = graph_of({x}, {dot(x, w)});
    merge_equal_lengths(graph);
    verify(graph);
    CHECK(shape_of_input(graph, 0)[1].is(784));
    CHECK_FALSE(shape_of_input(graph, 0)[0].is_constant());
}

TEST_CASE("equalities chain, and lengths follow through sums, multiples and updates") {
    SECTION("a chain of operands") {
        std::vector<Expr> inputs;
        for (int i = 0; i < 50; ++i) inputs.push_back(vector("v" + std::to_string(i)));
        std::vector<Expr> sums;
        for (int i = 49; i > 0; --i) sums.push_back(inputs[std::size_t(i)] + inputs[std::size_t(i - 1)]);
        Graph graph = graph_of(inputs, sums);
        merge_equal_lengths(graph);
        verify(graph);
        for (std::size_t i = 0; i < 50; ++i)
            CHECK(shape_of_input(graph, i)[0] == inputs[0].node()->type.shape[0]);
    }
    SECTION("n = m + 1 has a solution that cannot be negative, and m = n - 1 has not") {
        const Expr x = vector("x"), y = vector("y");
        for (const bool turned : {false, true}) {
            Graph graph = turned ? graph_of({y, x}, {concatenate({y, ones({1})}, 0) + x})
                                 : graph_of({x, y}, {x + concatenate({y, ones({1})}, 0)});
            merge_equal_lengths(graph);
            verify(graph);
            CHECK(shape_of_input(graph, turned ? 1 : 0)[0] == y.node()->type.shape[0] + 1);
        }
    }
    SECTION("4 n = 4 m") {
        const Expr x = matrix("x"), y = matrix("y");
        Graph graph = graph_of({x, y}, {reshape(x, {x.length(0), 4}) + reshape(y, {y.length(0), 4})});
        merge_equal_lengths(graph);
        verify(graph);
        CHECK(shape_of_input(graph, 0)[0] == shape_of_input(graph, 1)[0]);
    }
    SECTION("an update keeps the shape of its shared variable") {
        const Expr x = vector("x");
        const Shared total = shared(Array(float32, {7}), "total");
        Graph graph = graph_of({x}, {});
        graph.updates.push_back({total.state(), exp(x).node(), {}});
        merge_equal_lengths(graph);
        verify(graph);
        CHECK(shape_of_input(graph, 0)[0].is(7));
    }
}

TEST_CASE("what no equation settles, or no call can satisfy, stays as it is") {
    SECTION("the value of an integer input is never replaced") {
        const Expr x = vector("x"), n = scalar("n", int64);
        Graph graph = graph_of({n, x}, {rows(x, 0, n) + ones({5})});
        merge_equal_lengths(graph);
        verify(graph);
        CHECK(graph.inputs[0] == n.node());
        CHECK(graph.inputs[1] == x.node());
    }
    SECTION("two numbers for one length") {
        const Expr x = vector("x");
        Graph graph = graph_of({x}, {x + ones({3}), x + ones({4})});
        merge_equal_lengths(graph);
        CHECK(graph.inputs[0] == x.node());
    }
    SECTION("a number that a slice does not leave room for") {
        const Expr x = vector("x");
        Graph graph = graph_of({x}, {x + ones({3}), rows(x, 2, 4)});
        merge_equal_lengths(graph);
        CHECK(graph.inputs[0] == x.node());
    }
    SECTION("a product of two lengths") {
        const Expr x = vector("x"), y = matrix("y");
        Graph graph = graph_of({x, y}, {x + flatten(y)});
        merge_equal_lengths(graph);
        CHECK(graph.inputs[0] == x.node());
    }
}
