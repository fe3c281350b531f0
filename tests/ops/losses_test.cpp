// Crossentropies: values by hand, equal losses for labels and one-hot targets, saturation, gradients, labels
// out of range, messages.
#include "ops/nn/losses.h"

#include <cmath>

#include "ops/nn/pick.h"
#include "ops/rules/phases.h"
#include "tests/ops/arrays.h"
#include "tests/support/error_of.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Array probabilities() { return Array(std::vector<double>{0.5, 0.25, 0.25, 0.1, 0.2, 0.7}, {2, 3}); }
Array logits() { return Array(std::vector<double>{1, -2, 0.5, 3, 0.25, -1}, {2, 3}); }
Array distributions() { return Array(std::vector<double>{0.2, 0.3, 0.5, 1, 0, 0}, {2, 3}); }

// The value as stabilize and decompose leave it.
Array optimized(const Expr& y, const Expr& x, const Array& value) {
    Graph graph;
    graph.inputs = {x.node()};
    graph.outputs = {y.node()};
    optimize(graph);
    return evaluated(wrap(graph.outputs[0]), {wrap(graph.inputs[0])}, {value});
}

}  // namespace

TEST_CASE("labels of every integer dtype choose a probability") {
    for (const DType dtype : {int8, int16, int32, int64, uint8, uint16, uint32, uint64}) {
        const Expr p = input(float64, 2, "p"), y = input(dtype, 1, "y");
        const Array labels = Array(std::vector<int>{1, 2}).as(dtype);
        const Array loss = evaluated(categorical_crossentropy(p, y), {p, y}, {probabilities(), labels});
        CHECK(loss.shape() == Dims{2});
        CHECK(loss.at(0) == Approx(-std::log(0.25)));
        CHECK(loss.at(1) == Approx(-std::log(0.7)));
        require_decomposes(categorical_crossentropy(p, y), {p, y}, {probabilities(), labels});
        require_decomposes(softmax_crossentropy(p, y), {p, y}, {logits(), labels});
        for (const bool symbolic : {false, true}) {
            require_gradient([](const std::vector<Expr>& v) { return categorical_crossentropy(v[0], v[1]); },
                             {probabilities(), labels}, symbolic);
            require_gradient([](const std::vector<Expr>& v) { return softmax_crossentropy(v[0], v[1]); },
                             {logits(), labels}, symbolic);
        }
        const Array picked =
            require_nest_matches(make_node(pick_op(), {p.node(), y.node()}), {logits(), labels});
        CHECK(picked.to_vector<double>() == std::vector<double>{-2, -1});
        const NodePtr g = make_input({float64, {2}}, "g", {});
        const NodePtr spread = make_node(unpick_op(), {g, y.node()}, {{"extent", Int(3)}});
        const Array r = require_nest_matches(spread, {Array(std::vector<double>{4, 5}), labels});
        CHECK(r.to_vector<double>() == std::vector<double>{0, 4, 0, 0, 0, 5});
    }
    const Expr p = input(float64, 2, "p"), y = ivector("y");
    require_nest_matches(make_node(pick_op(), {p.node(), y.node()}),
                         {Array(std::vector<double>{7, 8}, {2, 1}), Array(std::vector<int>{0, 0})});
}

TEST_CASE("distributions as targets") {
    const Expr x = input(float64, 2, "x"), t = input(float64, 2, "t");
    const Array loss = evaluated(categorical_crossentropy(x, t), {x, t}, {probabilities(), distributions()});
    CHECK(loss.at(0) == Approx(-(0.2 * std::log(0.5) + 0.8 * std::log(0.25))));
    CHECK(loss.at(1) == Approx(-std::log(0.1)));
    require_decomposes(categorical_crossentropy(x, t), {x, t}, {probabilities(), distributions()});
    require_decomposes(softmax_crossentropy(x, t), {x, t}, {logits(), distributions()});
    const Array targets(std::vector<double>{0.2, 0.3, 0.5, 0.6, 0.3, 0.2}, {2, 3});  // sums need not be 1
    for (const bool symbolic : {false, true}) {
        require_gradient([](const std::vector<Expr>& v) { return categorical_crossentropy(v[0], v[1]); },
                         {probabilities(), targets}, symbolic);
        require_gradient([](const std::vector<Expr>& v) { return softmax_crossentropy(v[0], v[1]); },
                         {logits(), targets}, symbolic);
    }
}

TEST_CASE("one-hot and integer targets give the same losses and gradients, saturated too") {
    // Logits from mild to hopeless: softmax is exactly 0 and 1 there, its logarithm -infinity.
    for (const double scale : {1.0, 50.0, 1e3, 1e6, 1e30}) {
        const Array z = Array(
            std::vector<double>{1 * scale, -2 * scale, 0.5 * scale, 3 * scale, 0.25 * scale, -1 * scale},
            {2, 3});
        for (const bool right : {true, false}) {
            const Array labels(std::vector<int>{right ? 0 : 1, right ? 0 : 2});
            std::vector<double> ones(6, 0.0);
            for (std::size_t i = 0; i < 2; ++i)
                ones[3 * i + static_cast<std::size_t>(labels.at(static_cast<int>(i)))] = 1;
            const Expr x = input(float64, {2, 3}, "x");
            const auto of = [&](const Expr& target) {
                return sum(categorical_crossentropy(softmax(x), target));
            };
            const Expr integer = of(constant(labels)), dense = of(constant(Array(ones, {2, 3})));
            const Array a = optimized(integer, x, z), b = optimized(dense, x, z);
            CHECK(std::isfinite(a.at(0)));
            CHECK(a.at(0) == b.at(0));
            const double expected = right ? 0 : (3 + 4) * scale;
            if (scale >= 50) CHECK(a.at(0) == Approx(expected).margin(1e-9));
            const Array ga = evaluated(grad(integer, x), {x}, {z}), gb = evaluated(grad(dense, x), {x}, {z});
            for (std::int64_t i = 0; i < 6; ++i) {
                CHECK(std::isfinite(ga.at(i)));
                CHECK(ga.at(i) == gb.at(i));
            }
            if (right && scale >= 1e6)
                for (std::int64_t i = 0; i < 6; ++i) CHECK(ga.at(i) == 0);
        }
    }
}

TEST_CASE("zero targets do not meet the logarithm of zero") {
    const Expr p = input(float64, {1, 3}, "p");
    const Expr t = constant(Array(std::vector<double>{1, 0, 0}, {1, 3}));
    const Array saturated(std::vector<double>{1, 0, 0}, {1, 3});
    const Expr loss = sum(categorical_crossentropy(p, t));
    CHECK(evaluated(loss, {p}, {saturated}).at(0) == 0);
    CHECK(evaluated(wrap(loss.node()), {p}, {saturated}).at(0) == 0);
    CHECK(evaluated(grad(loss, p), {p}, {saturated}).to_vector<double>() == std::vector<double>{-1, 0, 0});
}

TEST_CASE("binary crossentropy") {
    const Expr p = input(float64, 1, "p"), t = input(float64, 1, "t");
    const Array predicted(std::vector<double>{0.1, 0.6, 0.99}), targets(std::vector<double>{0.25, 1, 0});
    const Array loss = evaluated(binary_crossentropy(p, t), {p, t}, {predicted, targets});
    CHECK(loss.at(0) == Approx(-(0.25 * std::log(0.1) + 0.75 * std::log(0.9))));
    CHECK(loss.at(1) == Approx(-std::log(0.6)));
    CHECK(loss.at(2) == Approx(-std::log(0.01)));
    require_decomposes(binary_crossentropy(p, t), {p, t}, {predicted, targets});
    const Array mild(std::vector<double>{0.25, 0.75, 0.5});
    for (const bool symbolic : {false, true})
        require_gradient([](const std::vector<Expr>& v) { return binary_crossentropy(v[0], v[1]); },
                         {predicted, mild}, symbolic);
    // A scalar target stands for all.
    require_gradient([](const std::vector<Expr>& v) { return binary_crossentropy(v[0], v[1]); },
                     {predicted, Array(0.25)});
    // Saturated and right: 0, not NaN; and so is the gradient's other half.
    const Array certain(std::vector<double>{0, 1, 1}), same_targets(std::vector<double>{0, 1, 1});
    CHECK(evaluated(sum(binary_crossentropy(p, t)), {p, t}, {certain, same_targets}).at(0) == 0);
    const Array g = evaluated(grad(sum(binary_crossentropy(p, t)), p), {p, t}, {certain, same_targets});
    CHECK(g.to_vector<double>() == std::vector<double>{1, -1, -1});
    // Bytes as targets.
    const Expr q = vector("q"), bytes = input(uint8, 1, "b");
    CHECK(binary_crossentropy(q, bytes).dtype() == float32);
    CHECK(binary_crossentropy(q, 1).dtype() == float32);
}

TEST_CASE("a label out of range is an error, for a gradient alone too") {
    const Expr x = input(float64, {2, 3}, "x"), y = ivector("y");
    const Expr loss = sum(categorical_crossentropy(softmax(x), y));
    for (const int wrong : {-1, 3}) {
        const std::vector<Array> values{logits(), Array(std::vector<int>{0, wrong})};
        for (const Expr& e : {loss, grad(loss, x)}) {
            const std::string message = message_of<IndexError>(
                [&] {
                    evaluated(e, {x, y}, values);
                },
                loss.where());
            CHECK_THAT(message,
                       ContainsSubstring(
                           e.node() == loss.node()
                               ? "a label of categorical_crossentropy in \"y\" is out of range, 0 to 2: "
                               : "a label of a crossentropy in \"y\" is out of range, 0 to 2: "));
            CHECK_THAT(message, ContainsSubstring(std::to_string(wrong)));
        }
    }
}

TEST_CASE("messages name the crossentropy that was written, and what to cast") {
    const Expr x = matrix("x"), y = ivector("y"), v = vector("v"), t = matrix("t", int32);
    const auto refused = [&](const Expr& scores, const Expr& target) {
        return error_of([&] { softmax_crossentropy(scores, target); });
    };
    CHECK_THAT(refused(x, v),
               ContainsSubstring("softmax_crossentropy: a target of rank 1 holds integer labels, not "
                                 "\"v\" (float32 [v.0])") &&
                   Catch::Matchers::EndsWith("; write cast(v, int32)"));
    CHECK_THAT(refused(x, v + 1), Catch::Matchers::EndsWith("; write cast(v + 1, int32)"));
    CHECK_THAT(refused(x, exp(v)), Catch::Matchers::EndsWith("; write cast(..., int32)"));
    CHECK_THAT(refused(cast(x, int32), y),
               ContainsSubstring("softmax_crossentropy takes float32 or float64") &&
                   Catch::Matchers::EndsWith("; write cast(x, float32)"));
    const std::string columns =
        "softmax_crossentropy takes integer labels as a vector [n], or a distribution in float32";
    CHECK_THAT(refused(x, t),
               ContainsSubstring(columns) &&
                   Catch::Matchers::EndsWith("; write t[{colon, 0}] for the labels, cast(t, float32) "
                                             "for the distribution"));
    CHECK_THAT(
        refused(x, input(int32, {-1, 1}, "t")),
        ContainsSubstring(columns) && Catch::Matchers::EndsWith("; write t[{colon, 0}] for the labels"));
    CHECK_THAT(refused(x, input(int32, {-1, 3}, "t")),
               ContainsSubstring("softmax_crossentropy takes predictions and") &&
                   Catch::Matchers::EndsWith("; write cast(t, float32), or give integer labels of rank 1"));
    CHECK_THAT(
        refused(input(float32, {5, 4}, "x"), input(float32, {5, 3}, "t")),
        ContainsSubstring("predictions and a target distribution of one shape, [n, classes], not \"x\""));
    CHECK_THAT(refused(v, y),
               ContainsSubstring("softmax_crossentropy takes [n, classes] and integer labels"));
    const Expr loss = softmax_crossentropy(x, y);
    CHECK_THAT(loss.node()->op->equalities(*loss.node())[0].what,
               ContainsSubstring("softmax_crossentropy of \"x\""));
    CHECK_THAT(message_of<IndexError>(
                   [&] {
                       evaluated(loss, {x, y}, {Array(float32, {2, 3}), Array(std::vector<int>{0, 3})});
                   },
                   loss.where()),
               ContainsSubstring(
                   "a label of softmax_crossentropy in \"y\" is out of range, 0 to 2: 3 at element 1"));
    CHECK_THAT(describe(*loss.node()), ContainsSubstring("softmax_crossentropy (float32 [x.0])"));
    CHECK_THAT(describe(*softmax_crossentropy(x, matrix("d")).node()),
               ContainsSubstring("softmax_crossentropy (float32 [x.0])"));
    CHECK_THAT(describe(*categorical_crossentropy(x, y).node()),
               ContainsSubstring("categorical_crossentropy ("));
    // Other operations.
    const Expr h = input(float16, {3}, "h"), n = lscalar("n");
    CHECK_THAT(error_of([&] { binary_crossentropy(cast(v, float64), vector("q")); }),
               Catch::Matchers::EndsWith("; write cast(q, float64)"));
    CHECK_THAT(error_of([&] { dot(y + 1, v); }), Catch::Matchers::EndsWith("; write cast(y + 1, float32)"));
    CHECK_THAT(error_of([&] { (void)gather(x, v * 2); }),
               Catch::Matchers::EndsWith("; write cast(v * 2, int64)"));
    CHECK_THAT(error_of([&] { exp(v) + cast(n, float64) + bitwise_and(v, v); }),
               Catch::Matchers::EndsWith("; write cast(v, int32)"));
}

TEST_CASE("targets of the wrong kind") {
    const Expr p = matrix("p");
    const std::string floats = message_of<TypeError>([&] { categorical_crossentropy(p, vector("y")); });
    CHECK_THAT(floats, ContainsSubstring("holds integer labels, not \"y\" (float32"));
    CHECK_THAT(message_of<TypeError>([&] { categorical_crossentropy(p, imatrix("t")); }),
               ContainsSubstring("takes integer labels as a vector"));
    CHECK_THAT(message_of<ShapeError>([&] { categorical_crossentropy(p, tensor3("t")); }),
               ContainsSubstring("[n, classes] and integer labels [n]"));
    CHECK_THAT(message_of<ShapeError>([&] {
                   softmax_crossentropy(input(float32, {4, 3}, "p"), input(int32, Dims{5}, "y"));
               }),
               ContainsSubstring("int32 [5]"));
    CHECK_THAT(message_of<TypeError>([&] { binary_crossentropy(input(float64, 1, "p"), vector("t")); }),
               ContainsSubstring("of one dtype"));
    const Expr loss = categorical_crossentropy(p, ivector("y"));
    REQUIRE(loss.node()->op->equalities(*loss.node()).size() == 1);
    CHECK_THAT(loss.node()->op->equalities(*loss.node())[0].what, ContainsSubstring("the number of labels"));
}
