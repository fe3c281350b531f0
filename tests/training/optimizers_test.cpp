// Optimizers, gradients as values and schedules on each device, beside loops in float64 that are written from
// the formulas.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"
#include "tests/training/shorthands.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

const std::vector<std::string> devices{"cpu", "emulator", "reference"};

FunctionOptions on(const std::string& device, Updates updates = {}) {
    FunctionOptions o;
    o.updates = std::move(updates);
    // The suite judges another device where BITALE_TEST_DEVICE names one.
    o.device = device == "cpu" ? tested_device() : device;
    return o;
}

struct Optimizer {
    const char* name;
    std::function<Updates(const Grads&)> updates;
    std::function<void(Cell&, double g, int t)> step;
};

double corrected(int t, double beta1 = 0.9, double beta2 = 0.999) {
    return rate * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
}

void adam_step(Cell& c, double g, int t) {
    c.a = 0.9 * c.a + 0.1 * g;
    c.b = 0.999 * c.b + 0.001 * g * g;
    c.p -= corrected(t) * c.a / (std::sqrt(c.b) + 1e-8);
}

const std::vector<Optimizer>& optimizers() {
    static const std::vector<Optimizer> list{
        {"sgd", [](const Grads& g) { return sgd(g, rate); }, [](Cell& c, double g, int) { c.p -= rate * g; }},
        {"momentum", [](const Grads& g) { return momentum(g, rate, {.momentum = 0.8, .weight_decay = 0.1}); },
         [](Cell& c, double g, int) {
             c.a = 0.8 * c.a - rate * (g + 0.1 * c.p);
             c.p += c.a;
         }},
        {"nesterov", [](const Grads& g) { return nesterov(g, rate, {.momentum = 0.8, .weight_decay = 0.1}); },
         [](Cell& c, double g, int) {
             // PyTorch's form: the velocity without the rate.
             g += 0.1 * c.p;
             c.a = 0.8 * c.a + g;
             c.p -= rate * (g + 0.8 * c.a);
         }},
        {"adagrad", [](const Grads& g) { return adagrad(g, rate); },
         [](Cell& c, double g, int) {
             c.a += g * g;
             c.p -= rate * g / (std::sqrt(c.a) + 1e-10);
         }},
        {"adagrad from 0.5",
         [](const Grads& g) { return adagrad(g, rate, {.epsilon = 1e-3, .initial = 0.5}); },
         [](Cell& c, double g, int t) {
             if (t == 1) c.a = 0.5;
             c.a += g * g;
             c.p -= rate * g / (std::sqrt(c.a) + 1e-3);
         }},
        {"rmsprop", [](const Grads& g) { return rmsprop(g, rate); },
         [](Cell& c, double g, int) {
             c.a = 0.99 * c.a + 0.01 * g * g;
             c.p -= rate * g / (std::sqrt(c.a) + 1e-8);
         }},
        {"rmsprop with momentum, centered",
         [](const Grads& g) {
             return rmsprop(g, rate, {.rho = 0.9, .epsilon = 1e-3, .momentum = 0.5, .centered = true});
         },
         [](Cell& c, double g, int) {
             c.a = 0.9 * c.a + 0.1 * g * g;
             c.b = 0.9 * c.b + 0.1 * g;
             c.c = 0.5 * c.c + g / (std::sqrt(std::max(0.0, c.a - c.b * c.b)) + 1e-3);
             c.p -= rate * c.c;
         }},
        {"adadelta", [](const Grads& g) { return adadelta(g, rate); },
         [](Cell& c, double g, int) {
             c.a = 0.95 * c.a + 0.05 * g * g;
             const double step = g * std::sqrt(c.b + 1e-6) / std::sqrt(c.a + 1e-6);
             c.b = 0.95 * c.b + 0.05 * step * step;
             c.p -= rate * step;
         }},
        {"adam", [](const Grads& g) { return adam(g, rate); }, adam_step},
        {"adamw", [](const Grads& g) { return adamw(g, rate, {.weight_decay = 0.1}); },
         [](Cell& c, double g, int t) {
             c.p -= rate * 0.1 * c.p;
             adam_step(c, g, t);
         }},
        {"adamw of matrices",
         [](const Grads& g) { return adamw(g, rate, {.weight_decay = 0.1, .decay_vectors = false}); },
         [](Cell& c, double g, int t) {
             if (c.of_matrix) c.p -= rate * 0.1 * c.p;
             adam_step(c, g, t);
         }},
    };
    return list;
}

}  // namespace

TEST_CASE("every optimizer follows its formula on every device") {
    for (const std::string& device : devices) {
        // All in one function: w [3, 5] with the gradient w * x, and b [4] with 2 * b - x.
        struct Run {
            const Optimizer* optimizer;
            Shared w, b;
            std::vector<Cell> cells;
        };
        Random random(3);
        std::vector<Run> runs;
        Updates updates;
        const Expr x = scalar("x", float64);
        for (const DType dtype : {float32, float64})
            for (const Optimizer& optimizer : optimizers()) {
                const Shared w = shared(random_array(dtype, {3, 5}, random, -1, 1), "w"),
                             b = shared(random_array(dtype, {4}, random, -1, 1), "b");
                const Expr factor = cast(x, dtype),
                           loss = sum(w * w) * factor * 0.5 + sum(b * b - b * factor);
                updates += optimizer.updates(gradients(loss, {w, b}));
                Run run{&optimizer, w, b, {}};
                for (const double p : numbers_of(w.get_value()))
                    run.cells.push_back({.p = p, .of_matrix = true});
                for (const double p : numbers_of(b.get_value())) run.cells.push_back({.p = p});
                runs.push_back(std::move(run));
            }
        Function f = function({x}, {}, on(device, updates));
        for (int t = 1; t <= 8; ++t) {
            const double at = std::cos(t) + 0.5;
            f(Array(at));
            for (Run& run : runs)
                for (Cell& c : run.cells) run.optimizer->step(c, c.of_matrix ? c.p * at : 2 * c.p - at, t);
        }
        for (const Run& run : runs) {
            INFO(device << ", " << run.optimizer->name << ", " << name_of(run.w.dtype()));
            std::vector<double> got = numbers_of(run.w.get_value());
            const std::vector<double> more = numbers_of(run.b.get_value());
            got.insert(got.end(), more.begin(), more.end());
            const double tolerance = run.w.dtype() == float64 ? 1e-11 : 1e-4;
            for (std::size_t k = 0; k < got.size(); ++k)
                CHECK(got[k] == Approx(run.cells[k].p).epsilon(tolerance).margin(tolerance));
        }
    }
}

TEST_CASE("gradients are clipped, scaled and added as their formulas say") {
    Random random(5);
    const std::vector<Dims> shapes{{3, 5}, {}, {0}, {1}, {2000}};
    for (const std::string& device : devices)
        for (const DType dtype : {float32, float64}) {
            std::vector<Shared> params;
            std::vector<Expr> targets, inputs;
            std::vector<Array> arguments;
            std::vector<std::vector<double>> p, g;
            for (const Dims& shape : shapes) {
                const std::string name = "p" + std::to_string(params.size());
                params.push_back(shared(random_array(dtype, shape, random, -1, 1), name));
                arguments.push_back(random_array(dtype, shape, random, -1, 1));
                inputs.push_back(input(dtype, shape, "g" + name));
                p.push_back(numbers_of(params.back().get_value()));
                g.push_back(numbers_of(arguments.back()));
            }
            Expr loss = constant(Array(0.0).as(dtype));
            for (std::size_t k = 0; k < params.size(); ++k) loss = loss + sum(params[k] * inputs[k]);
            const Expr factor = scalar("factor");
            const Grads grads = gradients(loss, params);
            const std::vector<Shared> some{params[0], params[4]};
            double all = 0;
            std::vector<double> norms;
            for (const auto& list : g) {
                double squares = 0;
                for (const double v : list) squares += v * v;
                norms.push_back(std::sqrt(squares));
                all += squares;
            }
            all = std::sqrt(all);
            using Rule = std::function<double(double p, double g, std::size_t k)>;
            const std::vector<std::pair<Grads, Rule>> cases{
                {clip_by_value(grads, 0.25),
                 [](double, double v, std::size_t) { return std::min(0.25, std::max(-0.25, v)); }},
                {clip_by_norm(grads, 0.9),
                 [&](double, double v, std::size_t k) { return norms[k] > 0.9 ? v * 0.9 / norms[k] : v; }},
                {clip_by_global_norm(grads, 2), [&](double, double v, std::size_t) { return v * 2 / all; }},
                {clip_by_global_norm(grads, 1e4), [](double, double v, std::size_t) { return v; }},
                {scale(grads, 0.3), [](double, double v, std::size_t) { return v * 0.3; }},
                {scale(grads, factor), [](double, double v, std::size_t) { return v * 0.75; }},
                {grads + l2_penalty(some, 0.1),
                 [](double x, double v, std::size_t k) { return k == 0 || k == 4 ? v + 0.1 * x : v; }},
                {l1_penalty(params, 0.2) + grads,
                 [](double x, double v, std::size_t) {
                     return v + (x > 0 ? 0.2 : x < 0 ? -0.2 : 0);
                 }},
                {clip_by_value(grads + scale(grads, -0.5), 0.1),
                 [](double, double v, std::size_t) { return std::min(0.1, std::max(-0.1, v * 0.5)); }},
                {grads.map([](const Shared& parameter, const Expr& v) { return v * parameter; }),
                 [](double x, double v, std::size_t) { return x * v; }},
            };
            std::vector<Expr> outputs{global_norm(grads)};
            for (const auto& [made, rule] : cases)
                for (std::size_t k = 0; k < made.size(); ++k) outputs.push_back(made[k]);
            std::vector<Input> list(inputs.begin(), inputs.end());
            list.emplace_back(factor);
            arguments.emplace_back(0.75F);
            Function f = function(list, outputs, on(device));
            const Results results = f.call(arguments);
            const double tolerance = dtype == float64 ? 1e-12 : 2e-6;
            CHECK(double(results[0]) == Approx(all).epsilon(tolerance));
            for (std::size_t c = 0; c < cases.size(); ++c)
                for (std::size_t k = 0; k < shapes.size(); ++k) {
                    INFO(fmt::format("{}, {}, case {}, parameter {}", device, name_of(dtype), c, k));
                    const Array& got = results[1 + c * shapes.size() + k];
                    CHECK(got.shape() == shapes[k]);
                    Array wanted(float64, shapes[k]);
                    for (std::size_t i = 0; i < g[k].size(); ++i)
                        static_cast<double*>(wanted.mutable_data())[i] = cases[c].second(p[k][i], g[k][i], k);
                    CHECK(difference(got.as(float64), wanted, {.of_largest = tolerance}) == "");
                }
        }
}

TEST_CASE("what is not a number stays so in clipped gradients, and zeros stay zeros") {
    for (const std::string& device : devices) {
        INFO(device);
        const Shared w = shared(zeros({3}), "w");
        const Expr x = input(float32, {3}, "x");
        const Grads g = gradients(sum(w * x), {w});
        Function f = function(
            {x}, {clip_by_value(g, 1)[0], clip_by_norm(g, 1)[0], clip_by_global_norm(g, 1)[0]}, on(device));
        const float nan = std::numeric_limits<float>::quiet_NaN();
        const Results bad = f(Array(std::vector<float>{nan, 3, 0})), none = f(zeros({3}));
        CHECK(std::isnan(bad[0].at(0)));
        CHECK(bad[0].at(1) == 1);
        for (const std::size_t k : {1, 2}) CHECK(std::isnan(bad[k].at(0)));
        for (const std::size_t k : {0, 1, 2}) CHECK(same(none[k], zeros({3})));
        const float inf = std::numeric_limits<float>::infinity();
        for (const std::vector<float>& large : {std::vector<float>{inf, 1, 0}, {1e30F, 1e30F, 0}}) {
            const Results clipped = f(Array(large));
            CHECK(clipped[0].at(0) == 1);
            for (const std::size_t k : {1, 2})
                for (const std::int64_t i : {0, 1, 2}) CHECK(std::isnan(clipped[k].at(i)));
        }
    }
}

TEST_CASE("a limit that no float is above clips nothing") {
    for (const std::string& device : devices)
        for (const DType dtype : {float32, float64})
            for (const double limit : {std::numeric_limits<double>::infinity(), 1e39}) {
                if (dtype == float64 && limit == 1e39) continue;
                const Shared w = shared(zeros({3}, dtype), "w");
                const Expr x = input(dtype, {3}, "x");
                const Grads g = gradients(sum(w * x), {w});
                Function f = function(
                    {x},
                    {clip_by_value(g, limit)[0], clip_by_norm(g, limit)[0], clip_by_global_norm(g, limit)[0]},
                    on(device));
                const Array values = Array(std::vector<float>{1e30F, -2, 0}).as(dtype);
                const Results got = f(values);
                for (const std::size_t k : {0, 1, 2}) CHECK(same(got[k], values));
            }
}

TEST_CASE("gradients of several calls add up to those of one") {
    for (const std::string& device : devices) {
        INFO(device);
        const Shared w = shared(Array(std::vector<float>{1, -2, 0.5}), "w"), b = shared(Array(2.0), "b");
        const Expr x = scalar("x"), loss = sum(w * w) * x + cast(x, float64) * b;
        const GradSum total(gradients(loss, {w, b}));
        Function add = function({x}, {}, on(device, total.add())),
                 apply = function({}, {}, on(device, sgd(total.mean(), 0.1) + total.clear())),
                 sums = function({}, {total.sum()[w], total.mean()[b]}, on(device));
        std::vector<double> expected{1, -2, 0.5};
        double bias = 2;
        CHECK(double(sums()[1]) == 0);  // nothing was added yet, and nothing is divided by
        apply();
        CHECK(b.get_value().item<double>() == 2);
        for (int round = 0; round < 3; ++round) {
            double all = 0;
            for (int micro = 0; micro < 4; ++micro) {
                add(Array(static_cast<float>(micro + round)));
                all += micro + round;
            }
            CHECK(total.count().get_value().item<std::int64_t>() == 4);
            CHECK(sums()[0].at(0) == Approx(2 * expected[0] * all));
            CHECK(double(sums()[1]) == Approx(all / 4));
            apply();
            for (double& p : expected) p -= 0.1 * 2 * p * all / 4;
            bias -= 0.1 * all / 4;
            for (std::int64_t k = 0; k < 3; ++k)
                CHECK(w.get_value().at(k) == Approx(expected[static_cast<std::size_t>(k)]).epsilon(1e-5));
            CHECK(b.get_value().item<double>() == Approx(bias));
            CHECK(total.count().get_value().item<std::int64_t>() == 0);
        }
    }
}

TEST_CASE("rows that are not looked up stay as they are, whatever was made of the gradients") {
    const std::vector<std::function<Grads(const Grads&, const Shared&)>> made{
        [](const Grads& g, const Shared&) { return clip_by_value(g, 0.5); },
        [](const Grads& g, const Shared&) { return scale(g, 0.5) + g; },
        [](const Grads& g, const Shared& p) { return g + l2_penalty({p}, 0.1); },
        [](const Grads& g, const Shared&) { return clip_by_norm(g, 0.5); },
        [](const Grads& g, const Shared&) { return clip_by_global_norm(g, 0.5); },
    };
    for (const std::string& device : devices) {
        std::vector<Shared> tables;
        Updates updates;
        const Expr i = ivector("i");
        for (std::size_t k = 0; k < made.size(); ++k) {
            const Shared table = shared(ones({1500, 4}), "table");
            updates += adamw(made[k](gradients(sum(sqr(table[i])), {table}), table), 0.1,
                             {.lazy_rows = true, .name = "adamw" + std::to_string(k)});
            tables.push_back(table);
        }
        for (std::size_t k = 0; k < 3; ++k) {
            const Shared table = shared(ones({1500, 4}), "table");
            const Grads g = gradients(sum(sqr(table[i])), {table});
            updates += k == 0   ? nesterov(g, 0.1, {.lazy_rows = true})
                       : k == 1 ? rmsprop(g, 0.1, {.momentum = 0.5, .centered = true, .lazy_rows = true})
                                : adagrad(g, 0.1, {.lazy_rows = true});
            tables.push_back(table);
        }
        Function f = function({i}, {}, on(device, updates));
        f(Array(std::vector<std::int32_t>{3, 1499, 3}));
        f(Array(std::vector<std::int32_t>{7}));
        for (std::size_t k = 0; k < tables.size(); ++k) {
            INFO(device << ", table " << k);
            const Array now = tables[k].get_value();
            int wrong = 0;
            for (std::int64_t row = 0; row < 1500; ++row) {
                const bool changed = row == 3 || row == 7 || row == 1499;
                for (std::int64_t c = 0; c < 4; ++c) wrong += (now.at(row * 4 + c) != 1) != changed;
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("schedules follow their formulas") {
    constexpr std::int64_t steps = 60;
    using Formula = std::function<double(double)>;
    const double pi = std::numbers::pi;
    for (const std::string& device : devices) {
        const Expr i = lscalar("i");
        const auto cosine = [&](double t, double from, double to, double last) {
            const double part = std::min(1.0, std::max(0.0, (t - from) / (to - from)));
            return last + (0.3 - last) * (1 + std::cos(pi * part)) / 2;
        };
        const std::vector<std::pair<Expr, Formula>> cases{
            {step_decay(i, 0.3, 0.5, 7), [](double t) { return 0.3 * std::pow(0.5, std::floor(t / 7)); }},
            {piecewise_constant(i, {5, 6, 40}, {1, 0.1, 3, 0.25}),
             [](double t) {
                 return t < 5 ? 1 : t < 6 ? 0.1 : t < 40 ? 3 : 0.25;
             }},
            {piecewise_constant(i, {}, {0.7}), [](double) { return 0.7; }},
            {exponential_decay(i, 0.3, 0.97), [](double t) { return 0.3 * std::pow(0.97, t); }},
            {exponential_decay(i, 0.3, 0.5, 10), [](double t) { return 0.3 * std::pow(0.5, t / 10); }},
            {cosine_decay(i, 0.3, 50), [&](double t) { return cosine(t, 0, 50, 0); }},
            {cosine_decay(i, 0.3, 50, {.last = 0.01}), [&](double t) { return cosine(t, 0, 50, 0.01); }},
            {cosine_decay(i, 0.3, 50, {.warm_up = 10, .last = 0.01}),
             [&](double t) { return t < 10 ? 0.3 * (t + 1) / 10 : cosine(t, 10, 50, 0.01); }},
            {cosine_decay(i, 0.3, 1), [](double t) { return t < 1 ? 0.3 : 0; }},
            {warm_up(i, 0.3, 20), [](double t) { return 0.3 * std::min(1.0, (t + 1) / 20); }},
            {warm_up(i, step_decay(i, 1, 0.5, 10), 4),
             [](double t) { return std::pow(0.5, std::floor(t / 10)) * std::min(1.0, (t + 1) / 4); }},
            {step_decay(cast(i, int32), 0.3, 0.5, 7),
             [](double t) { return 0.3 * std::pow(0.5, std::floor(t / 7)); }},
            {step_decay(cast(i, uint8), 0.3, 0.5, 300), [](double) { return 0.3; }},
        };
        std::vector<Expr> outputs;
        for (const auto& [rates, formula] : cases) {
            CHECK(rates.dtype() == float64);
            CHECK(rates.rank() == 0);
            outputs.push_back(rates);
        }
        Function f = function({i}, outputs, on(device));
        const Results results = f.loop(0, steps);
        for (std::size_t c = 0; c < cases.size(); ++c)
            for (std::int64_t t = 0; t < steps; ++t) {
                INFO(device << ", schedule " << c << ", step " << t);
                CHECK(results[c].at(t) ==
                      Approx(cases[c].second(static_cast<double>(t))).epsilon(1e-12).margin(1e-15));
            }
    }
}

TEST_CASE("a counter of steps moves on with each call whose updates read it, and with no other") {
    for (const std::string& device : devices) {
        INFO(device);
        const StepCounter step;
        const Shared w = shared(Array(0.0), "w"), v = shared(Array(0.0), "v");
        const Expr rates = step_decay(step, 1, 0.5, 2);
        const Expr loss = Expr(w) + v;
        Function train = function({}, {rates}, on(device, sgd(loss, {w, v}, rates))),
                 look = function({}, {rates, step.count()}, on(device)),
                 set = function({}, {},
                                on(device, sgd(loss, {v}, rates) + Updates{{step.counter(), Expr(7L)}}));
        double expected = 0;
        for (int t = 0; t < 5; ++t) {
            CHECK(step.counter().get_value().item<std::int64_t>() == t);
            look();
            CHECK(double(train()) == std::pow(0.5, t / 2));
            expected -= std::pow(0.5, t / 2);
            CHECK(w.get_value().item<double>() == expected);
        }
        const Expr i = lscalar("i");
        Function steps = function({i}, {rates}, [&] {
            FunctionOptions o = on(device, sgd(loss + cast(i, float64), {w}, rates));
            o.on_unused_input = OnUnused::ignore;
            return o;
        }());
        const Results looped = steps.loop(0, 3);
        for (int t = 0; t < 3; ++t) CHECK(looped[0].at(t) == std::pow(0.5, (t + 5) / 2));
        CHECK(step.counter().get_value().item<std::int64_t>() == 8);
        set();
        CHECK(step.counter().get_value().item<std::int64_t>() == 7);
    }
}

TEST_CASE("rates and factors that no optimizer can have are refused") {
    const Shared w = shared(zeros({3}), "w");
    const Expr loss = sum(sqr(w));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double rate : {-0.1, nan, std::numeric_limits<double>::infinity()})
        CHECK_THAT(
            error_of([&] { sgd(loss, {w}, rate); }),
            ContainsSubstring("optimizers_test.cpp:") && ContainsSubstring("sgd: the learning rate is"));
    CHECK_THAT(error_of([&] { adam(loss, {w}, -0.001); }), ContainsSubstring("adam(-value, ...)"));
    for (const double factor : {-0.1, 1.0, 1.5, nan}) {
        CHECK_THAT(error_of([&] { momentum(loss, {w}, 0.1, {.momentum = factor}); }),
                   ContainsSubstring("momentum: momentum is"));
        CHECK_THAT(error_of([&] { adam(loss, {w}, 0.1, {.beta1 = factor}); }),
                   ContainsSubstring("adam: beta1 is"));
        CHECK_THAT(error_of([&] { adamw(loss, {w}, 0.1, {.beta2 = factor}); }),
                   ContainsSubstring("adamw: beta2 is"));
        CHECK_THAT(error_of([&] { rmsprop(loss, {w}, 0.1, {.rho = factor}); }),
                   ContainsSubstring("rmsprop: rho is"));
        CHECK_THAT(error_of([&] { rmsprop(loss, {w}, 0.1, {.momentum = factor}); }),
                   ContainsSubstring("rmsprop: momentum is"));
        CHECK_THAT(error_of([&] { adadelta(loss, {w}, 0.1, {.rho = factor}); }),
                   ContainsSubstring("adadelta: rho is"));
    }
    for (const double x : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
        const auto refused = [&](const char* words, const auto& make) {
            CHECK_THAT(error_of(make), ContainsSubstring("optimizers_test.cpp:") &&
                                           ContainsSubstring(words) &&
                                           ContainsSubstring("it is a number from 0 on"));
        };
        refused("adam: epsilon is", [&] { adam(loss, {w}, 0.1, {.epsilon = x}); });
        refused("adamw: epsilon is", [&] { adamw(loss, {w}, 0.1, {.epsilon = x}); });
        refused("adamw: weight_decay is", [&] { adamw(loss, {w}, 0.1, {.weight_decay = x}); });
        refused("nesterov: weight_decay is", [&] { nesterov(loss, {w}, 0.1, {.weight_decay = x}); });
        refused("momentum: weight_decay is", [&] { momentum(loss, {w}, 0.1, {.weight_decay = x}); });
        refused("adagrad: initial is", [&] { adagrad(loss, {w}, 0.1, {.initial = x}); });
        refused("adagrad: epsilon is", [&] { adagrad(loss, {w}, 0.1, {.epsilon = x}); });
        refused("rmsprop: epsilon is", [&] { rmsprop(loss, {w}, 0.1, {.epsilon = x}); });
        refused("adadelta: epsilon is", [&] { adadelta(loss, {w}, 0.1, {.epsilon = x}); });
        refused("l2_penalty: the strength is", [&] { l2_penalty({w}, x); });
        refused("l1_penalty: the strength is", [&] { l1_penalty({w}, x); });
    }
    CHECK_THAT(error_of([&] { adam(loss, std::vector<Shared>{}); }),
               ContainsSubstring("optimizers_test.cpp:") &&
                   ContainsSubstring("adam: there is no parameter to train"));
    CHECK_THAT(error_of([&] { sgd(loss, Parameters(), 0.1); }),
               ContainsSubstring("sgd: there is no parameter to train"));
    CHECK(error_of([&] { sgd(loss, {w}, 0); }) == "");
    const Shared rate = shared(Array(-0.1F), "rate");  // known only when a step runs
    CHECK(error_of([&] { sgd(loss, {w}, rate); }) == "");
}
