// Axes that everything walks as one, behind an axis that is reduced or scanned, are one.
#include "tests/rules/text.h"

#include "tests/support/catch.h"

using namespace bitale;

namespace {

const Expr track = input(float32, Dims{40, 5, 3}, "x"), like_track = input(float32, Dims{40, 5, 3}, "y"),
           scales = input(float32, Dims{3}, "v"), weights = input(float32, Dims{40}, "w"),
           place = input(float32, Dims{5, 3}, "p");

// How often each op of that name has a result of so many axes.
int count(const Graph& graph, const std::string& op, int rank) {
    int n = 0;
    for (const NodePtr& node : topological(graph.roots()))
        n += node->op->name == op && node->type.rank() == rank;
    return n;
}

}  // namespace

TEST_CASE("two axes behind a reduced one are one axis") {
    CHECK(optimized(max(track, {0})) == "reshape(max(reshape(x)))");
    CHECK(optimized(exp(max(track, {0}))) == "reshape(exp(max(reshape(x))))");
    CHECK(optimized(sum(sqr(track - like_track), {0})) == "reshape(sum(sqr(sub(reshape(x), reshape(y)))))");
    CHECK(optimized(argmax(track, {0})) == "reshape(argmax(reshape(x)))");
    CHECK(optimized(cumsum(track, 0)) == "reshape(cumsum(reshape(x)))");
    CHECK(optimized(max(flip(track, 0), {0})) == "reshape(max(flip(reshape(x))))");
    CHECK(optimized(max(track[Slice{3, 30}], {0})) == "reshape(max(slice(reshape(x))))");
    // What is repeated along both, or along none of them.
    CHECK(optimized(max(track * place, {0})) == "reshape(max(mul(reshape(x), expand(reshape(p)))))");
    CHECK(optimized(max(track * reshape(weights, {40, 1, 1}), {0})) ==
          "reshape(max(mul(reshape(x), expand(reshape(w)))))");
    // Softmax over time: all of it.
    const Graph all = optimized_graph({softmax(track, 0)});
    CHECK(count(all, "exp", 2) == 1);
    CHECK(count(all, "exp", 3) == 0);
    CHECK(count(all, "max", 1) + count(all, "supremum", 1) == 1);
    // Three axes behind the reduced one.
    CHECK(optimized_graph({max(input(float32, Dims{9, 4, 5, 3}, "z"), {0})})
              .outputs[0]
              ->inputs[0]
              ->type.rank() == 2);
    CHECK(optimized(max(tensor3("u"), {0})) == "reshape(max(reshape(u)))");
}

TEST_CASE("axes that something walks by itself stay apart") {
    CHECK(optimized(max(track * scales, {0})) == "max(mul(x, expand(v)))");
    CHECK(optimized(cumsum(max(track, {0}), 0)) == "cumsum(reshape(max(reshape(x))))");
    CHECK(optimized(max(track[{colon, Slice{1, 4}}], {0})) == "max(slice(x))");
    // What a reduction gives has both forms.
    CHECK(optimized(sum(exp(max(track, {0})), {1})) == "sum(exp(reshape(max(reshape(x)))))");
    CHECK(optimized(sum(exp(max(track, {0})), {0, 1})) == "sum(exp(max(reshape(x))))");
    CHECK(optimized(max(transpose(track, {0, 2, 1}), {0})) == "permute(reshape(max(reshape(x))))");
    CHECK(optimized(max(track, {1})) == "max(x)");
    CHECK(optimized(max(cumsum(track, 1), {0})) == "max(cumsum(x))");
    // Long axes are long enough.
    CHECK(optimized(max(input(float32, Dims{9, 4, 80}, "z"), {0})) == "max(z)");
    // An op that takes its operand as it is; another reader of the leaf is no reason.
    CHECK(count(optimized_graph({sort(sqr(track), 1), max(sqr(track), {0})}), "max", 1) == 0);
    CHECK(count(optimized_graph({sort(track, 1), max(track, {0})}), "max", 1) == 1);
}
