// Initial values and optimizers: moments, determinism, every update against a plain loop of the published
// formula.
#include "bitale/train.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "graph/ir/shared.h"
#include "tests/support/gradient_check.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// All updates read the old values, then all are written.
void step(const Updates& updates) {
    std::vector<Expr> values;
    for (const Update& u : updates) values.push_back(u.value);
    const std::vector<Array> fresh = evaluated(values, {}, {});
    for (std::size_t i = 0; i < updates.size(); ++i) {
        REQUIRE(fresh[i].dtype() == updates[i].target.dtype());
        updates[i].target.state()->value = fresh[i];
    }
}

std::vector<double> value_of(const Shared& s) { return s.state()->value.to_vector<double>(); }

// The names of what is updated, in order.
std::vector<std::string> names_of(const Updates& updates) {
    std::vector<std::string> r;
    for (const Update& u : updates) r.push_back(u.target.name());
    return r;
}

// A problem with two parameters whose gradients are known: w * w * [1, 2, 3] / 2 + 4 b.
struct Problem {
    Shared w = shared(Array(std::vector<float>{1, -2, 0.5}), "w"), b = shared(Array(2.0f), "b");
    Expr loss = sum(Expr(w) * w * constant(Array(std::vector<float>{0.5, 1, 1.5}))) + Expr(b) * 4;

    static std::vector<double> gradient(const std::vector<double>& x) {
        return {x[0], 2 * x[1], 3 * x[2], 4};
    }
    std::vector<double> parameters() const {
        std::vector<double> r = value_of(w);
        r.push_back(value_of(b)[0]);
        return r;
    }
};

// Runs the optimizer beside rule(x, g, state, t), which changes one number and its state.
struct State {
    double a = 0, b = 0;
};
template <class F>
void require_steps(const Problem& problem, const Updates& updates, F&& rule) {
    std::vector<double> x = problem.parameters();
    std::vector<State> states(x.size());
    for (int t = 1; t <= 20; ++t) {
        const std::vector<double> g = Problem::gradient(x);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = rule(x[i], g[i], states[i], t);
        step(updates);
        const std::vector<double> now = problem.parameters();
        for (std::size_t i = 0; i < x.size(); ++i) {
            INFO("step " << t << ", parameter " << i);
            REQUIRE(now[i] == Approx(x[i]).epsilon(2e-5).margin(1e-6));
        }
    }
}

}  // namespace

TEST_CASE("constant initial values") {
    CHECK(zeros({2, 3}).dtype() == float32);
    CHECK(zeros({2}, uint8).to_vector<int>() == std::vector<int>{0, 0});
    CHECK(ones({2}, int64).to_vector<int>() == std::vector<int>{1, 1});
    CHECK(full_of({2}, 2.5).to_vector<double>() == std::vector<double>{2.5, 2.5});
    CHECK(full_of({}, 7, float64).item<double>() == 7);
}

TEST_CASE("glorot and he scale with the fans") {
    const auto deviation_of = [](const Array& x) {
        double squares = 0;
        for (const double v : x.to_vector<double>()) squares += v * v;
        return std::sqrt(squares / static_cast<double>(x.size()));
    };
    const Array matrix = glorot_uniform({300, 100}, 1);
    const double limit = std::sqrt(6.0 / 400);
    for (const double v : matrix.to_vector<double>()) REQUIRE(std::fabs(v) <= limit);
    CHECK(deviation_of(matrix) == Approx(limit / std::sqrt(3.0)).epsilon(0.02));
    // [out, in, kh, kw]: 9 taps for each of 20 inputs, and for each of 40 outputs.
    CHECK(deviation_of(glorot_uniform({40, 20, 3, 3}, 1)) == Approx(std::sqrt(2.0 / (9 * 60))).epsilon(0.03));
    CHECK(deviation_of(he_normal({200, 100}, 1)) == Approx(std::sqrt(2.0 / 200)).epsilon(0.02));
    CHECK(deviation_of(he_normal({40, 20, 3, 3}, 1)) == Approx(std::sqrt(2.0 / 180)).epsilon(0.03));
    CHECK(same(matrix, glorot_uniform({300, 100}, 1)));
    CHECK_FALSE(same(matrix, glorot_uniform({300, 100}, 2)));
    const Array range = uniform_values({1000}, -2, 6, 3);
    for (const double v : range.to_vector<double>()) REQUIRE((v >= -2 && v < 6));
    // Rounding to float32 does not reach the end.
    const Array narrow = uniform_values({200000}, 1000, 1001, 3);
    for (const double v : narrow.to_vector<double>()) REQUIRE((v >= 1000 && v < 1001));
    CHECK(uniform_values({3}, 2, 2, 1).to_vector<float>() == std::vector<float>{2, 2, 2});
    CHECK_THROWS_AS(uniform_values({2}, 0, 1e300, 1), Error);
    CHECK_THROWS_AS(uniform_values({2}, 0, std::numeric_limits<double>::infinity(), 1), Error);
    CHECK_THROWS_AS(glorot_uniform({3}, 1), ShapeError);
    CHECK_THROWS_AS(he_normal({3, 3, 3}, 1), ShapeError);
}

TEST_CASE("permutations hold every number once and treat them alike") {
    const std::vector<std::int64_t> order = permutation(1000, 1).to_vector<std::int64_t>();
    CHECK(std::set<std::int64_t>(order.begin(), order.end()).size() == 1000);
    CHECK(*std::max_element(order.begin(), order.end()) == 999);
    CHECK(permutation(1000, 1).to_vector<std::int64_t>() == order);
    CHECK(permutation(1000, 2).to_vector<std::int64_t>() != order);
    std::map<std::vector<std::int64_t>, int> seen;
    for (std::uint64_t seed = 0; seed < 6000; ++seed) ++seen[permutation(3, seed).to_vector<std::int64_t>()];
    CHECK(seen.size() == 6);
    for (const auto& [which, times] : seen) CHECK(times == Approx(1000).margin(150));
    CHECK(permutation(0, 1).shape() == Dims{0});
    CHECK(permutation(1, 1).to_vector<int>() == std::vector<int>{0});
    CHECK_THROWS_AS(permutation(-1, 1), ShapeError);
    for (const std::int64_t count : {INT64_MAX, INT64_MAX / 8, std::int64_t{1} << 60})
        CHECK_THROWS_AS(permutation(count, 1), ShapeError);
    CHECK_THROWS_AS(permutation(std::int64_t{1} << 56, 1), OutOfMemory);
}

TEST_CASE("initial values that are more than can be counted, or than there is memory, are refused") {
    constexpr std::int64_t huge = std::int64_t{1} << 62;
    const std::vector<std::function<Array(const Dims&)>> kinds = {
        [](const Dims& shape) { return zeros(shape); },
        [](const Dims& shape) { return ones(shape, uint8); },
        [](const Dims& shape) { return full_of(shape, 2.5); },
        [](const Dims& shape) { return uniform_values(shape, 0, 1, 1); },
        [](const Dims& shape) { return glorot_uniform(shape, 1); },
        [](const Dims& shape) { return he_normal(shape, 1); },
    };
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        INFO("kind " << i);
        for (const Dims& shape :
             {Dims{huge, 8}, Dims{huge, huge}, Dims{1, 2, huge, huge}, Dims{INT64_MAX, 1}})
            CHECK_THROWS_AS(kinds[i](shape), ShapeError);
        CHECK_THROWS_AS(kinds[i]({std::int64_t{1} << 40, 1 << 16}), OutOfMemory);
    }
}

TEST_CASE("sgd") {
    Problem problem;
    const Updates updates = sgd(problem.loss, {problem.w, problem.b}, 0.1);
    CHECK(names_of(updates) == std::vector<std::string>{"w", "b"});
    require_steps(problem, updates, [](double x, double g, State&, int) { return x - 0.1 * g; });
}

TEST_CASE("the rate may be an expression of any float dtype") {
    Problem problem;
    const Expr rate = scalar("rate", float64);
    const Updates updates = sgd(problem.loss, {problem.w}, rate);
    CHECK(updates[0].value.dtype() == float32);
    const Array w = evaluated(updates[0].value, {rate}, {Array(0.5)});
    CHECK(w.to_vector<double>() == std::vector<double>{0.5, 0, -0.25});
}

TEST_CASE("momentum with weight decay") {
    Problem problem;
    const Updates updates =
        momentum(problem.loss, {problem.w, problem.b}, 0.05, {.momentum = 0.8, .weight_decay = 0.01});
    CHECK(names_of(updates) == std::vector<std::string>{"w.velocity", "w", "b.velocity", "b"});
    require_steps(problem, updates, [](double x, double g, State& s, int) {
        s.a = 0.8 * s.a - 0.05 * (g + 0.01 * x);
        return x + s.a;
    });
}

TEST_CASE("adam") {
    Problem problem;
    const Updates updates = adam(problem.loss, {problem.w, problem.b}, 0.01);
    CHECK(names_of(updates) == std::vector<std::string>{"adam.t", "w.m", "w.v", "w", "b.m", "b.v", "b"});
    require_steps(problem, updates, [](double x, double g, State& s, int t) {
        s.a = 0.9 * s.a + 0.1 * g;
        s.b = 0.999 * s.b + 0.001 * g * g;
        const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
        return x - rate * s.a / (std::sqrt(s.b) + 1e-8);
    });
    CHECK(updates[0].target.state()->value.item<double>() == 20);
}

TEST_CASE("adam counts exactly, and is as exact as its parameters") {
    const Shared w = shared(Array(std::vector<double>{1, -2, 0.5}), "w");
    const Expr factor = constant(Array(std::vector<double>{0.5, 1, 1.5}));
    // A rate that float32 would round.
    const Updates updates = adam(sum(Expr(w) * w * factor), {w}, constant(Array(0.0123456789)));
    CHECK(updates[0].target.dtype() == int64);
    std::vector<double> x = value_of(w), m(3, 0), v(3, 0);
    for (int t = 1; t <= 50; ++t) {
        step(updates);
        for (std::size_t i = 0; i < 3; ++i) {
            const double g = 2 * x[i] * std::vector<double>{0.5, 1, 1.5}[i];
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            const double rate = 0.0123456789 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
            x[i] -= rate * m[i] / (std::sqrt(v[i]) + 1e-8);
            REQUIRE(value_of(w)[i] == Approx(x[i]).epsilon(1e-11));
        }
    }
    // Beyond 2^24 float32 would not count any more.
    updates[0].target.state()->value = Array(std::int64_t{1} << 40);
    step(updates);
    CHECK(updates[0].target.state()->value.item<std::int64_t>() == (std::int64_t{1} << 40) + 1);
}

TEST_CASE("parameters of an optimizer are distinct") {
    const Shared a = shared(Array(1.0f), "w"), b = shared(Array(2.0f), "w"), c = shared(Array(3.0f)),
                 d = shared(Array(4.0f));
    const Expr loss = Expr(a) * b + Expr(c) * d;
    CHECK_THAT(
        message_of<GraphError>([&] {
            momentum(loss, {a, b}, 0.1);
        }),
        ContainsSubstring("two parameters have the name \"w\"") && ContainsSubstring("train_test.cpp:"));
    CHECK_THAT(message_of<GraphError>([&] { sgd(loss, {a, a}, 0.1); }), ContainsSubstring("listed twice"));
    CHECK(sgd(loss, {c, d}, 0.1).size() == 2);  // without names nothing can be mistaken
    CHECK_THROWS_AS(sgd(loss, {a, Shared()}, 0.1), GraphError);
}

TEST_CASE("adadelta") {
    Problem problem;
    const Updates updates = adadelta(problem.loss, {problem.w, problem.b});
    CHECK(names_of(updates) ==
          std::vector<std::string>{"w.gradients", "w.steps", "w", "b.gradients", "b.steps", "b"});
    require_steps(problem, updates, [](double x, double g, State& s, int) {
        s.a = 0.95 * s.a + 0.05 * g * g;
        const double d = g * std::sqrt(s.b + 1e-6) / std::sqrt(s.a + 1e-6);
        s.b = 0.95 * s.b + 0.05 * d * d;
        return x - d;
    });
}

TEST_CASE("float64 parameters keep float64 state") {
    const Shared w = shared(Array(std::vector<double>{1, 2}), "w");
    for (const Updates& updates :
         {adam(sum(Expr(w) * w), {w}), adadelta(sum(Expr(w) * w), {w}), momentum(sum(Expr(w) * w), {w}, 0.1)})
        for (const Update& u : updates) {
            CHECK(u.value.dtype() == u.target.dtype());
            if (u.target.name() != "adam.t") CHECK(u.target.dtype() == float64);
        }
}

TEST_CASE("optimizers reject what cannot be optimized") {
    Problem problem;
    const std::string message =
        message_of<ShapeError>([&] { sgd(problem.loss, {problem.w}, vector("rate")); });
    CHECK_THAT(message, ContainsSubstring("sgd: the learning rate is a scalar, not \"rate\" (float32 ["));
    CHECK_THAT(message_of<TypeError>([&] { adam(problem.loss, {problem.w}, iscalar("rate")); }),
               ContainsSubstring("is a float, not \"rate\" (int32"));
    const Shared other = shared(Array(1.0f), "other"), bytes = shared(Array(std::uint8_t{1}), "bytes");
    CHECK_THAT(message_of<GraphError>([&] { sgd(problem.loss, {other}, 0.1); }), ContainsSubstring("other"));
    CHECK_THAT(message_of<TypeError>([&] { sgd(problem.loss + Expr(bytes), {bytes}, 0.1); }),
               ContainsSubstring("bytes"));
    CHECK_THROWS_AS(sgd(vector("loss"), {problem.w}, 0.1), GraphError);
}

TEST_CASE("optimizers take gradients as well as a loss, and name their state alike") {
    Problem problem;
    const Shared &w = problem.w, &b = problem.b;
    const Grads g = gradients(problem.loss, {w, b});
    CHECK(g.size() == 2);
    CHECK(g.parameter(1).name() == "b");
    CHECK(same(g[0], g[w]));
    const Expr rate = scalar("rate");
    using Names = std::vector<std::string>;
    CHECK(names_of(sgd(gradients(problem.loss, {w, b}), 0.1)) == Names{"w", "b"});
    CHECK(names_of(sgd(gradients(problem.loss, {w}), rate, {.lazy_rows = true})) == Names{"w"});
    CHECK(names_of(momentum(g, 0.1)) == names_of(momentum(problem.loss, {w, b}, 0.1)));
    CHECK(names_of(nesterov(g, 0.1)) == Names{"w.velocity", "w", "b.velocity", "b"});
    CHECK(names_of(nesterov(problem.loss, {w}, 0.1, {.momentum = 0.5})) == Names{"w.velocity", "w"});
    CHECK(names_of(adagrad(g)) == Names{"w.squares", "w", "b.squares", "b"});
    CHECK(names_of(adagrad(problem.loss, {w})) == Names{"w.squares", "w"});
    CHECK(names_of(rmsprop(g)) == Names{"w.squares", "w", "b.squares", "b"});
    CHECK(names_of(rmsprop(problem.loss, {w}, 0.1, {.momentum = 0.5, .centered = true})) ==
          Names{"w.squares", "w.average", "w.velocity", "w"});
    CHECK(names_of(adadelta(g)) == names_of(adadelta(problem.loss, {w, b})));
    CHECK(names_of(adam(g)) == Names{"adam.t", "w.m", "w.v", "w", "b.m", "b.v", "b"});
    CHECK(names_of(adamw(g, rate)) == Names{"adamw.t", "w.m", "w.v", "w", "b.m", "b.v", "b"});
    CHECK(names_of(adamw(problem.loss, {w}, rate, {.name = "second"})) ==
          Names{"second.t", "w.m", "w.v", "w"});
    const std::vector<Shared> params{w, b};
    CHECK(sgd(problem.loss, params, 0.1).size() == 2);
    Parameters list;
    list.add(w);
    list.add(b);
    CHECK(names_of(sgd(problem.loss, list, 0.1)) == Names{"w", "b"});
    CHECK(names_of(adam(gradients(problem.loss, list))).size() == 7);
    CHECK(names_of(GradSum(g).add()) == Names{"w.sum", "b.sum", "w.count"});
}

TEST_CASE("gradients that do not fit are refused with their parameter") {
    Problem problem;
    const Shared &w = problem.w, &b = problem.b, other = shared(Array(1.0f), "other"),
                 twin = shared(Array(1.0f), "w");
    const Grads g = gradients(problem.loss, {w, b});
    CHECK_THAT(message_of<GraphError>([&] {
                   Grads({w, b}, {Expr(w)});
               }),
               ContainsSubstring("1 gradients for 2 parameters"));
    CHECK_THAT(message_of<TypeError>([&] { Grads({w}, {cast(w, float64)}); }),
               ContainsSubstring("the gradient of \"w\" (float32 [3])") &&
                   ContainsSubstring("; write cast(w, float32)"));
    CHECK_THAT(message_of<ShapeError>([&] { Grads({w}, {Expr(b)}); }),
               ContainsSubstring("a gradient has the shape of its parameter"));
    CHECK_THAT(message_of<ShapeError>([&] { g.map([&](const Shared&, const Expr&) { return Expr(w); }); }),
               ContainsSubstring("the gradient of \"b\""));
    CHECK_THAT(message_of<GraphError>([&] { Grads({w}, {Expr()}); }), ContainsSubstring("is empty"));
    CHECK_THAT(message_of<GraphError>([&] {
                   gradients(problem.loss, {w, w});
               }),
               ContainsSubstring("listed twice"));
    CHECK_THAT(message_of<GraphError>([&] { l2_penalty({w}, 1) + l2_penalty({twin}, 1); }),
               ContainsSubstring("two parameters have the name \"w\""));
    CHECK_THROWS_AS(g[other], GraphError);
    CHECK_THROWS_AS(g[2], IndexError);
    CHECK_THROWS_AS(g.parameter(2), IndexError);
    for (const double limit : {0.0, -1.0, std::nan("")}) {
        CHECK_THAT(message_of<Error>([&] { clip_by_value(g, limit); }), ContainsSubstring("above 0"));
        CHECK_THROWS_AS(clip_by_norm(g, limit), Error);
        CHECK_THROWS_AS(clip_by_global_norm(g, limit), Error);
    }
    CHECK_THAT(message_of<TypeError>([&] { scale(g, iscalar("k")); }),
               ContainsSubstring("the factor of gradients is a float"));
    CHECK_THROWS_AS(scale(g, vector("k")), ShapeError);
    CHECK_THAT(message_of<TypeError>([&] { l1_penalty({shared(Array(1), "count")}, 1); }),
               ContainsSubstring("parameters are floats"));
    CHECK_THAT(message_of<TypeError>([&] { adamw(g, iscalar("rate")); }),
               ContainsSubstring("adamw: the learning rate is a float") &&
                   ContainsSubstring("cast(rate, float32), or a schedule of a step counter"));
    CHECK_THROWS_WITH(uniform_values({3}, 1, 0, 1),
                      ContainsSubstring("uniform_values: there is no number from 1 to 0"));
}

TEST_CASE("schedules refuse what is out of their ranges") {
    const Expr i = lscalar("i");
    CHECK_THAT(message_of<Error>([&] { step_decay(i, 1, 0.5, 0); }), ContainsSubstring("step_decay"));
    CHECK_THAT(message_of<Error>([&] { step_decay(i, 1, 0, 1); }),
               ContainsSubstring("the factor must be above 0, but is 0"));
    CHECK_THAT(message_of<Error>([&] { exponential_decay(i, 1, -1); }), ContainsSubstring("above 0"));
    CHECK_THAT(message_of<Error>([&] { exponential_decay(i, 1, 1, -3); }), ContainsSubstring("-3"));
    CHECK_THAT(message_of<Error>([&] {
                   piecewise_constant(i, {1, 2}, {1, 2});
               }),
               ContainsSubstring("one value more than boundaries, but there are 2 values"));
    CHECK_THAT(message_of<Error>([&] {
                   piecewise_constant(i, {2, 2}, {1, 2, 3});
               }),
               ContainsSubstring("boundaries must ascend"));
    CHECK_THAT(message_of<Error>([&] { cosine_decay(i, 1, 0); }),
               ContainsSubstring("steps must be at least 1, but is 0"));
    for (const std::int64_t warm : {-1, 10})
        CHECK_THAT(message_of<Error>([&] { cosine_decay(i, 1, 10, {.warm_up = warm}); }),
                   ContainsSubstring("the warm-up is part of the 10 steps"));
    CHECK_THAT(message_of<Error>([&] { warm_up(i, 1.0, 0); }),
               ContainsSubstring("steps must be at least 1, but is 0"));
    CHECK_THAT(message_of<TypeError>([&] { warm_up(i, i, 3); }), ContainsSubstring("is a float"));
    CHECK_THAT(message_of<TypeError>([&] { cosine_decay(scalar("x"), 1, 10); }),
               ContainsSubstring("the step is an integer") && ContainsSubstring("StepCounter"));
    CHECK_THAT(message_of<ShapeError>([&] { cosine_decay(lvector("x"), 1, 10); }),
               ContainsSubstring("the step is a scalar"));
}
