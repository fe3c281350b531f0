// Parameters that are stored as float16 and bfloat16: they are read as float32, their gradients and what
// optimizers remember are float32, and a new value is rounded once.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"
#include "tests/support/tested_device.h"
#include "tests/training/shorthands.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

const std::vector<std::string> tested_devices{tested_device(), "emulator", "reference"};
const std::vector<DType> half_types{float16, bfloat16};

// From one number of a type to the next, at most, as a part of it.
double spacing(DType dtype) { return dtype == float16 ? 0x1p-10 : 0x1p-7; }

double rounded_as(DType dtype, double x) { return Array(static_cast<float>(x)).as(dtype).item<double>(); }

struct HalfOptimizer {
    const char* name;
    std::function<Updates(const Grads&)> updates;
    std::function<double(Cell&, double g, int t)> step;  // the new value, before it is rounded
};

double adam_change(Cell& c, double g, int t) {
    c.a = 0.9 * c.a + 0.1 * g;
    c.b = 0.999 * c.b + 0.001 * g * g;
    return rate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * c.a / (std::sqrt(c.b) + 1e-8);
}

const std::vector<HalfOptimizer>& half_optimizers() {
    static const std::vector<HalfOptimizer> list{
        {"sgd", [](const Grads& g) { return sgd(g, rate); },
         [](Cell& c, double g, int) { return c.p - rate * g; }},
        {"momentum", [](const Grads& g) { return momentum(g, rate, {.momentum = 0.8, .weight_decay = 0.1}); },
         [](Cell& c, double g, int) {
             c.a = 0.8 * c.a - rate * (g + 0.1 * c.p);
             return c.p + c.a;
         }},
        {"nesterov", [](const Grads& g) { return nesterov(g, rate, {.momentum = 0.8}); },
         [](Cell& c, double g, int) {
             c.a = 0.8 * c.a - rate * g;
             return c.p + 0.8 * c.a - rate * g;
         }},
        {"adagrad", [](const Grads& g) { return adagrad(g, rate, {.initial = 0.1}); },
         [](Cell& c, double g, int t) {
             c.a = (t == 1 ? 0.1 : c.a) + g * g;
             return c.p - rate * g / (std::sqrt(c.a) + 1e-10);
         }},
        {"rmsprop", [](const Grads& g) { return rmsprop(g, rate, {.momentum = 0.5, .centered = true}); },
         [](Cell& c, double g, int) {
             c.a = 0.99 * c.a + 0.01 * g * g;
             c.b = 0.99 * c.b + 0.01 * g;
             c.c = 0.5 * c.c + g / (std::sqrt(std::max(0.0, c.a - c.b * c.b)) + 1e-8);
             return c.p - rate * c.c;
         }},
        {"adadelta", [](const Grads& g) { return adadelta(g, rate); },
         [](Cell& c, double g, int) {
             c.a = 0.95 * c.a + 0.05 * g * g;
             const double step = g * std::sqrt(c.b + 1e-6) / std::sqrt(c.a + 1e-6);
             c.b = 0.95 * c.b + 0.05 * step * step;
             return c.p - rate * step;
         }},
        {"adam", [](const Grads& g) { return adam(g, rate); },
         [](Cell& c, double g, int t) { return c.p - adam_change(c, g, t); }},
        {"adamw", [](const Grads& g) { return adamw(g, rate, {.weight_decay = 0.1}); },
         [](Cell& c, double g, int t) { return c.p - rate * 0.1 * c.p - adam_change(c, g, t); }},
    };
    return list;
}

}  // namespace

TEST_CASE("optimizers of half parameters compute in float32 and round the new value once") {
    for (const std::string& device : tested_devices) {
        struct Run {
            const HalfOptimizer* optimizer;
            Shared w;
            std::vector<Cell> cells;
        };
        Random random(3);
        std::vector<Run> runs;
        Updates updates;
        // The gradient of w is x, whatever w is: the state of each step is known, and only w is rounded.
        const Expr x = input(float32, {2, 3}, "x");
        for (const DType dtype : half_types)
            for (const HalfOptimizer& optimizer : half_optimizers()) {
                const Shared w = shared(random_array(float32, {2, 3}, random, -1, 1).as(dtype), "w");
                const Updates own = optimizer.updates(gradients(sum(cast(w, float32) * x), {w}));
                for (const Update& u : own)
                    if (u.target.state() != w.state() && u.target.name() != "adam.t" &&
                        u.target.name() != "adamw.t")
                        CHECK(u.target.dtype() == float32);
                updates += own;
                Run run{&optimizer, w, {}};
                for (const double p : numbers_of(w.get_value())) run.cells.push_back({.p = p});
                runs.push_back(std::move(run));
            }
        Function f = function({x}, {}, {.updates = updates, .device = device});
        for (int t = 1; t <= 5; ++t) {
            const Array at = random_array(float32, {2, 3}, random, -2, 2);
            f(at);
            for (Run& run : runs) {
                INFO(device << ", " << run.optimizer->name << ", " << name_of(run.w.dtype()) << ", step "
                            << t);
                const std::vector<double> got = numbers_of(run.w.get_value());
                for (std::size_t k = 0; k < got.size(); ++k) {
                    Cell& c = run.cells[k];
                    const double exact = run.optimizer->step(c, at.at(static_cast<std::int64_t>(k)), t);
                    // Half a spacing by the rounding, and what float32 is off before it.
                    CHECK(std::abs(got[k] - exact) <= 0.5 * spacing(run.w.dtype()) * std::abs(exact) + 2e-5);
                    c.p = got[k];
                }
            }
        }
    }
}

TEST_CASE("gradients of half parameters are float32, and small ones are not zero") {
    for (const std::string& device : tested_devices)
        for (const DType dtype : half_types) {
            INFO(device << ", " << name_of(dtype));
            const Shared w = shared(Array(std::vector<float>{1, -2, 0.5}).as(dtype), "w"),
                         v = shared(Array(std::vector<float>{1, -2, 0.5}).as(dtype), "v");
            const Expr x = input(float32, {3}, "x"), read = cast(w, float32);
            // Three readers, whose gradients no half type holds.
            const Expr loss = sum(read * x) + sum(cast(w, float32) * 1e-9) + sum(sqr(read)) * 0.5;
            const Grads g = gradients(loss, {w});
            CHECK(g[w].dtype() == float32);
            CHECK(grad(loss, Expr(w)).dtype() == dtype);
            Function f = function(
                {x},
                {g[w], grad(loss, Expr(w)), global_norm(g), (g + l2_penalty({w}, 2))[w],
                 (g + l1_penalty({w}, 3))[w], clip_by_value(g, 0.25)[w], scale(g, 0.5)[w],
                 g.map([](const Shared&, const Expr& e) { return e * 2; })[w]},
                {.updates = adam(gradients(sum(cast(v, float32) * 1e-4), {v}), 0.25), .device = device});
            const Array at(std::vector<float>{0.1F, 1.7F, -3e-4F});
            const Results r = f(at);
            double squares = 0;
            for (std::int64_t k = 0; k < 3; ++k) {
                const double p = w.get_value().at(k), exact = at.at(k) + 1e-9 + p;
                squares += exact * exact;
                CHECK(r[0].at(k) == Approx(exact).epsilon(1e-6));
                CHECK(r[1].at(k) == rounded_as(dtype, r[0].at(k)));
                CHECK(r[3].at(k) == Approx(exact + 2 * p).epsilon(1e-6));
                CHECK(r[4].at(k) == Approx(exact + (p > 0 ? 3 : -3)).epsilon(1e-6));
                CHECK(r[5].at(k) == Approx(std::min(0.25, std::max(-0.25, exact))).epsilon(1e-6));
                CHECK(r[6].at(k) == Approx(exact / 2).epsilon(1e-6));
                CHECK(r[7].at(k) == Approx(exact * 2).epsilon(1e-6));
                // The square of 1e-4 is zero in float16.
                CHECK(v.get_value().at(k) == Approx(std::vector<double>{1, -2, 0.5}[k] - 0.25).epsilon(0.01));
            }
            CHECK(double(r[2]) == Approx(std::sqrt(squares)).epsilon(1e-6));
        }
}

TEST_CASE("gradients flow through everything that takes half types") {
    // Small integers: every half type, and every order of a sum, has them.
    const Array values = {{3.F, -1.F, 2.F}, {0.F, 4.F, -2.F}};
    using Reading = std::function<Expr(const Expr&)>;
    const std::vector<std::pair<const char*, Reading>> readings{
        {"reshape",
         [](const Expr& h) {
             return reshape(h, {3, 2});
         }},
        {"transpose", [](const Expr& h) { return transpose(h); }},
        {"flip", [](const Expr& h) { return flip(h, 1); }},
        {"slice",
         [](const Expr& h) {
             return h[{colon, Slice{1, {}, 1}}];
         }},
        {"rows", [](const Expr& h) { return rows(h, 1, 1); }},
        {"gather",
         [](const Expr& h) {
             return h[constant({1, 0, 1})];
         }},
        {"concatenate",
         [](const Expr& h) {
             return concatenate({h, h}, 1);
         }},
        {"pad",
         [](const Expr& h) {
             return pad(h, {{1, 0}, {0, 2}});
         }},
        {"broadcast_to",
         [](const Expr& h) {
             return broadcast_to(h, {4, 2, 3});
         }},
        {"sort", [](const Expr& h) { return sort(h); }},
        {"topk", [](const Expr& h) { return topk(h, 2).values; }},
        {"sum", [](const Expr& h) { return sum(h, 0); }},
        {"prod", [](const Expr& h) { return prod(h, 1); }},
        {"mean", [](const Expr& h) { return mean(h, 0); }},
        {"max", [](const Expr& h) { return max(h, 1); }},
        {"min", [](const Expr& h) { return min(h, 0); }},
        {"cumsum", [](const Expr& h) { return cumsum(h, 1); }},
        {"cumprod", [](const Expr& h) { return cumprod(h, 1); }},
        {"checkpoint", [](const Expr& h) { return checkpoint(h); }},
    };
    for (const std::string& device : tested_devices)
        for (const DType dtype : half_types) {
            std::vector<Expr> outputs;
            const Shared stored = shared(values.as(dtype), "stored"), wide = shared(values, "wide");
            for (const auto& [name, read] : readings) {
                const Expr a = cast(read(stored), float32), b = read(wide);
                outputs.push_back(gradients(sum(sqr(a) * 0.5 + a), {stored})[0]);
                outputs.push_back(gradients(sum(sqr(b) * 0.5 + b), {wide})[0]);
            }
            // A cost of a half type.
            outputs.push_back(gradients(sum(Expr(stored)), {stored})[0]);
            outputs.push_back(gradients(sum(Expr(wide)), {wide})[0]);
            Function f = function({}, outputs, {.device = device});
            const Results r = f();
            for (std::size_t k = 0; k + 1 < outputs.size(); k += 2) {
                INFO(device << ", " << name_of(dtype) << ", "
                            << (k / 2 < readings.size() ? readings[k / 2].first : "cost"));
                CHECK(r[k].dtype() == float32);
                CHECK(difference(r[k], r[k + 1], {.absolute = 1e-6}) == "");
            }
        }
}

TEST_CASE("gradients of half parameters that a program gives have their dtype or float32") {
    const Shared w = shared(zeros({3}, float16), "w");
    const Expr half_one = input(float16, {3}, "half one"), one = input(float32, {3}, "one"),
               wide = input(float64, {3}, "wide");
    CHECK(Grads({w}, {half_one})[w].dtype() == float32);
    CHECK(Grads({w}, {one})[w].dtype() == float32);
    CHECK_THROWS_AS((Grads({w}, {wide})), TypeError);
    CHECK_THROWS_WITH((Grads({w}, {wide})),
                      ContainsSubstring("the gradient of \"w\" (float16 [3]) at half_parameters_test.cpp") &&
                          ContainsSubstring("float64 [3]") &&
                          ContainsSubstring("; write cast(wide, float32)"));
}

TEST_CASE("gradients of several calls add up in float32") {
    for (const std::string& device : tested_devices)
        for (const DType dtype : half_types) {
            INFO(device << ", " << name_of(dtype));
            const Shared w = shared(ones({2}, dtype), "w");
            const Expr x = scalar("x");
            const GradSum total(gradients(sum(cast(w, float32)) * x, {w}));
            Function add = function({x}, {}, {.updates = total.add(), .device = device}),
                     apply = function({}, {total.mean()[w]},
                                      {.updates = sgd(total.mean(), 1) + total.clear(), .device = device});
            // A half type would stay at 2048, or at 256.
            for (int k = 0; k < 3; ++k) add(Array(k == 0 ? 4096.F : 1.F));
            CHECK(apply()[0].at(1) == Approx(4098.0 / 3).epsilon(1e-6));
            CHECK(w.get_value().at(0) == rounded_as(dtype, 1 - 4098.F / 3));
        }
}

TEST_CASE("rows of half tables that are not looked up stay as they are") {
    for (const std::string& device : tested_devices)
        for (const DType dtype : half_types) {
            INFO(device << ", " << name_of(dtype));
            std::vector<Shared> tables;
            Updates updates;
            const Expr i = ivector("i");
            for (const int k : {0, 1, 2}) {
                const Shared table = shared(full_of({600, 4}, 1.5, dtype), "table");
                const Grads g = gradients(sum(sqr(cast(Expr(table)[i], float32))), {table});
                updates += k == 0   ? adam(g, 0.1, {.lazy_rows = true})
                           : k == 1 ? sgd(g, 0.1, {.lazy_rows = true})
                                    : momentum(g, 0.1, {.lazy_rows = true});
                tables.push_back(table);
            }
            Function f = function({i}, {}, {.updates = updates, .device = device});
            f(Array(std::vector<std::int32_t>{3, 599, 3}));
            f(Array(std::vector<std::int32_t>{7}));
            for (const Shared& table : tables) {
                const Array now = table.get_value();
                int wrong = 0;
                for (std::int64_t row = 0; row < 600; ++row)
                    for (std::int64_t c = 0; c < 4; ++c)
                        wrong += (now.at(row * 4 + c) != 1.5) != (row == 3 || row == 7 || row == 599);
                CHECK(wrong == 0);
            }
        }
}

TEST_CASE("training of half parameters goes on from a checkpoint with the same bits") {
    struct Training {
        Training(const std::string& device, DType dtype) {
            const Shared w = params.add("w", glorot_uniform({4, 3}, 1).as(dtype)),
                         b = params.add("b", zeros({3}, dtype));
            const Expr x = constant(uniform_values({6, 4}, -1, 1, 2)),
                       y = constant(Array(std::vector<int>{0, 1, 2, 0, 1, 2}));
            const Expr loss = mean(softmax_crossentropy(dot(x, cast(w, float32)) + cast(b, float32), y));
            updates = adamw(clip_by_global_norm(gradients(loss, params), 1), 0.01);
            step = function({}, loss, {.updates = updates, .device = device});
        }
        Parameters params;
        Updates updates;
        Function step;
    };
    const TemporaryFolder folder;
    for (const std::string& device : tested_devices)
        for (const DType dtype : half_types)
            for (const std::string ending : {".npz", ".safetensors"}) {
                INFO(device << ", " << name_of(dtype) << ", " << ending);
                const std::string path = folder / ("half" + ending);
                Training whole(device, dtype), first(device, dtype), second(device, dtype);
                for (int k = 0; k < 6; ++k) whole.step();
                for (int k = 0; k < 3; ++k) first.step();
                save_checkpoint(path, {first.params, first.updates});
                load_checkpoint(path, {second.params, second.updates});
                double last = 0;
                for (int k = 0; k < 3; ++k) last = second.step();
                CHECK(std::isfinite(last));
                for (std::size_t k = 0; k < whole.updates.size(); ++k)
                    CHECK(same(whole.updates[k].target.get_value(), second.updates[k].target.get_value()));
                // A checkpoint of another dtype names both.
                Training other(device, float32);
                CHECK_THROWS_WITH((load_checkpoint(path, {other.params}, {.strict = false})),
                                  ContainsSubstring("another dtype: \"w\" is float32 [4, 3]") &&
                                      ContainsSubstring(std::string(name_of(dtype)) + " [4, 3] in the file"));
            }
}

TEST_CASE("half parameters train in parts of a batch") {
    for (const std::string& device : {std::string(tested_device()), std::string("emulator")})
        for (const DType dtype : half_types) {
            INFO(device << ", " << name_of(dtype));
            std::vector<Array> results;
            for (const std::int64_t part : {0, 7}) {
                const Shared w = shared(glorot_uniform({5, 3}, 1).as(dtype), "w");
                const Expr x = input(float32, {-1, 5}, "x");
                const Expr loss = mean(sqr(tanh(dot(x, cast(w, float32)))));
                Function step = function(
                    {x}, loss, {.updates = momentum(loss, {w}, 0.5), .device = device, .micro_batch = part});
                for (int k = 0; k < 3; ++k) step(uniform_values({40, 5}, -1, 1, 4));
                results.push_back(w.get_value().as(float32));
            }
            CHECK(difference(results[1], results[0], {.absolute = spacing(dtype)}) == "");
        }
}
