// What is cheaper among primitives, before and after.
#include "tests/rules/text.h"

#include "tests/support/catch.h"

using namespace bitale;

namespace {

const Expr image = input(float32, Dims{-1, 4, 8, 8}, "image"), bias = vector("bias");

}  // namespace

TEST_CASE("idioms") {
    const Expr x = vector("x");
    CHECK(optimized(maximum(x, 0)) == "relu(x)");
    CHECK(stabilized(maximum(x, 0)) == "maximum(x, 0)");  // the gradient at 0 is another one
}

TEST_CASE("relu and the bias of a channel move behind max_pool") {
    CHECK(optimized(max_pool(relu(image), {2, 2})) == "relu(max_pool(image))");
    const Expr four = input(float32, Dims{4}, "four");
    CHECK(optimized(max_pool(relu(image + channel(four)), {2, 2})) ==
          "relu(add(max_pool(image), expand(reshape(four))))");
    CHECK(optimized(max_pool(image - 3, {2, 2})) == "sub(max_pool(image), 3)");
    const Expr places = input(float32, Dims{8, 8}, "places");
    CHECK(optimized(max_pool(image + places, {2, 2})) == "max_pool(add(image, expand(places)))");
}

TEST_CASE("the mask of relu is applied to the winners only") {
    const Expr cost = sum(max_pool(relu(image), {2, 2}) * 3);
    const std::string text = optimized(grad(cost, image));
    CHECK_THAT(text, ContainsSubstring("unpool(where(gt(max_pool(image), 0), 3, 0), pool_winner(image))"));
}

TEST_CASE("a sum over whole planes does not unpool") {
    const Expr four = input(float32, Dims{4}, "four");
    const Expr cost =
        sum(max_pool(relu(image + channel(four)), {2, 2}) * image[{colon, colon, Slice{0, 4}, Slice{0, 4}}]);
    CHECK_THAT(optimized(grad(cost, four)), !ContainsSubstring("unpool"));
}

TEST_CASE("the gradient of filters can be a sum over the windows of the pooling behind them") {
    const Expr w = input(float32, Dims{6, 4, 3, 3}, "w"), six = input(float32, Dims{6}, "six");
    const Expr cost = sum(max_pool(relu(conv2d(image, w) + channel(six)), {2, 2}));
    const Graph graph = optimized_graph({grad(cost, w)});
    CHECK_THAT(text_of(graph.outputs[0]), ContainsSubstring("conv_grad_w(image, unpool(where(gt("));
    const Nodes sparse = rewrite(graph.roots(), winner_rules());
    CHECK_THAT(text_of(sparse[0]), ContainsSubstring("conv_grad_w_winners(image, where(gt("));
    CHECK_THAT(text_of(sparse[0]), !ContainsSubstring("unpool"));
    CHECK(sparse[0]->rules.back() == "conv-grad-w-unpool");
    const Nodes dense = rewrite(graph.roots(), winner_rules([](const Match&) { return false; }));
    CHECK(dense[0] == graph.outputs[0]);
    CHECK_THAT(optimized(grad(cost, six)), !ContainsSubstring("unpool"));
}

TEST_CASE("only leaves, maps, views and reductions are left") {
    const Expr z = matrix("z"), y = vector("y", int32);
    const Expr cost = mean(categorical_crossentropy(softmax(z), y));
    for (const Expr& e : {cost, grad(cost, z)})
        for (const NodePtr& node : topological(optimized_graph({e}).outputs))
            CHECK(node->op->kind != OpKind::composite);
}

TEST_CASE("stops of gradients go once gradients are taken") {
    const Expr z = matrix("z");
    CHECK(optimized(log(disconnected_grad(exp(z)))) == "z");
    CHECK(stabilized(tanh(disconnected_grad(exp(z)))) == "tanh(disconnected_grad(exp(z)))");
}

TEST_CASE("checks are collected before anything is rewritten away") {
    const Expr z = matrix("z"), y = vector("y", int32);
    const Graph graph = optimized_graph({mean(categorical_crossentropy(softmax(z), y))});
    REQUIRE(graph.checks.size() == 1);
    CHECK(graph.checks[0].value->name == "y");
}

TEST_CASE("origins survive all phases") {
    const Expr z = matrix("z");
    const Graph graph = optimized_graph({sum(log(softmax(z)))});
    for (const NodePtr& node : topological(graph.outputs))
        if (node->op->kind != OpKind::leaf) CHECK_FALSE(node->origins.empty());
}

TEST_CASE("the gradient of dropout behind a relu reads its result") {
    RandomStream stream(3);
    const Expr z = input(float32, Dims{8, 6}, "z"), w = input(float32, Dims{6, 6}, "w");
    const auto draws = [](const Expr& cost, const Expr& of) {
        int count = 0;
        for (const NodePtr& node : topological(optimized_graph({cost, grad(cost, of)}).outputs))
            count += node->op->name == "ge";
        return count;
    };
    const Expr h = dropout(relu(z), 0.5, stream);
    const Expr cost = sum(sqr(dot(h, w)));
    CHECK(draws(cost, z) == 1);
    const std::string text = optimized(grad(cost, z));
    CHECK_THAT(text, ContainsSubstring("where(gt(where(ge("));
    CHECK_THAT(text, !ContainsSubstring("where(gt(z, 0)"));
    // Two layers, one behind the other; without a relu there is nothing to read.
    const Expr deep = sum(sqr(dropout(relu(dot(h, w)), 0.25, stream)));
    CHECK_THAT(optimized(grad(deep, z)), !ContainsSubstring("gt(z, 0)"));
    CHECK_THAT(optimized(grad(deep, z)), !ContainsSubstring("gt(dot("));
    CHECK_THAT(optimized(grad(sum(sqr(dropout(tanh(z), 0.5, stream))), z)), !ContainsSubstring("gt("));
}

TEST_CASE("what is reduced of a stack is computed of its parts") {
    const Expr a = matrix("a"), b = matrix("b"), c = matrix("c"), small = matrix("n", int32);
    std::vector<Expr> many, integers{small, small + 1, small};
    std::string largest = "a", sum_of_exp = "exp(a)";
    for (int k = 0; k < 17; ++k) {
        many.push_back(k % 2 == 0 ? a : b);
        if (k == 0) continue;
        largest = "maximum(" + largest + (k % 2 == 0 ? ", a)" : ", b)");
        sum_of_exp = "add(" + sum_of_exp + (k % 2 == 0 ? ", exp(a))" : ", exp(b))");
    }
    CHECK(optimized(max(stack(many, 0), {0})) == largest);
    CHECK(optimized(sum(exp(stack(many, 1)), {1})) == sum_of_exp);
    CHECK(optimized(max(stack(integers, 2), {2})) == "maximum(maximum(n, add(n, 1)), n)");
    CHECK(optimized(sum(stack({small, small}, 0))) == "sum(add(cast(n), cast(n)))");
    // Kernels write few floats out.
    CHECK_THAT(optimized(max(stack({a, b, c}, 0), {0})), ContainsSubstring("concat"));
    CHECK(optimized(sum(stack({small, small}, 0), {0})) == "add(cast(n), cast(n))");  // int64
    CHECK(optimized(cast(sum(stack({small, small + 1}, 0), {0}), int16)) == "add(cast(n), add(cast(n), 1))");
    CHECK(optimized(sum(stack({a, b}, 0), {1})) == "sum(concat(reshape(a), reshape(b)))");
    CHECK(optimized(sum(concatenate({a, b}, 0), {0})) == "sum(concat(a, b))");
    const Expr half = matrix("h", float16);
    CHECK(optimized(sum(stack({half, half}, 0), {0})) == "reshape(sum(concat(reshape(h), reshape(h))))");
}

TEST_CASE("a sum over rows and few columns sums each column first where both axes stay apart") {
    const auto rows = [](std::int64_t n, std::int64_t columns) { return input(float32, {n, columns}, "x"); };
    const auto columns = [](std::int64_t n) { return input(float32, Dims{n}, "b"); };
    const std::string apart = "sum(sum(sqr(sub(x, expand(b)))))", whole = "sum(sqr(sub(x, expand(b))))";
    CHECK(optimized(sum(sqr(rows(-1, 10) - columns(10)))) == apart);
    CHECK(optimized(sum(sqr(rows(600, 31) - columns(31)))) == apart);
    CHECK(optimized(sum(sqr(rows(-1, 16) - columns(16)))) == whole);
    CHECK(optimized(sum(sqr(rows(-1, 32) - columns(32)))) == whole);
    CHECK(optimized(sum(sqr(rows(60, 10) - columns(10)))) == whole);  // too few
    CHECK(optimized(sum(sqr(rows(-1, 10)))) == "sum(sqr(x))");        // one axis in memory
    const Expr three = input(float32, {-1, 8, 9, 3}, "x");
    CHECK(optimized(sum(sqr(three - columns(3)), {1, 2, 3})) ==  // few pixels
          "sum(sqr(sub(reshape(x), expand(reshape(repeated copy(b))))))");
    CHECK(optimized(sum(sqr(rows(-1, 10) - input(float32, {-1, 1}, "b")))) == apart);
    const Expr images = input(float32, {-1, 80, 90, 3}, "x");
    CHECK(optimized(sum(sqr(images - columns(3)), {1, 2, 3})) ==  // joined
          "sum(sqr(sub(reshape(x), expand(reshape(repeated copy(b))))))");
    const Expr each = input(float32, {-1, 1, 1, 3}, "b");  // of each image
    CHECK(optimized(sum(sqr(images - each), {1, 2, 3})) == apart);
    CHECK(optimized(sum(sqr(images - columns(3)), {1, 3})) == whole);
    CHECK(optimized(sum(rows(-1, 20)[{colon, Slice{0, 10}}])) == "sum(sum(slice(x)))");
    const Expr x = input(float32, {600, 1, 700, 3}, "x"), w = input(float32, {500, 1, 3}, "w");
    CHECK(optimized(sum(x * w, {2, 3})) == "sum(mul(expand(x), expand(w)))");  // a product of matrices
    const Expr half = input(float16, {-1, 20}, "x");
    CHECK(optimized(sum(half[{colon, Slice{0, 10}}])) == "sum(slice(x))");  // is rounded once
    const Expr places = input(int32, Dims{-1}, "i");
    CHECK(optimized(sum(rows(-1, 10)[places] * columns(10))) == "sum(mul(gather(x, i), expand(b)))");
    CHECK(optimized(max(rows(-1, 10) - columns(10))) == "max(sub(x, expand(b)))");
}
