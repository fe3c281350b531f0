// Optimizers that change only the rows that a step looks up, beside loops in float64.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr double rate = 0.05;
enum class Optimizer : std::uint8_t { sgd, momentum, adam, adadelta };
const std::vector<Optimizer> all_optimizers{Optimizer::sgd, Optimizer::momentum, Optimizer::adam,
                                            Optimizer::adadelta};

Updates updates_of(Optimizer optimizer, const Expr& loss, const std::vector<Shared>& params) {
    switch (optimizer) {
        case Optimizer::sgd: return sgd(loss, params, rate, {.lazy_rows = true});
        case Optimizer::momentum:
            return momentum(loss, params, rate, {.momentum = 0.8, .weight_decay = 0.1, .lazy_rows = true});
        case Optimizer::adam: return adam(loss, params, rate, {.lazy_rows = true});
        default: return adadelta(loss, params, rate, {.lazy_rows = true});
    }
}

// One number of a table and its state.
struct Cell {
    double p = 0, a = 0, b = 0;  // a, b: velocity; m and v; squares of gradients and of steps
};

void step_of(Optimizer optimizer, Cell& c, double g, int t) {
    switch (optimizer) {
        case Optimizer::sgd: c.p -= rate * g; break;
        case Optimizer::momentum:
            c.a = 0.8 * c.a - rate * (g + 0.1 * c.p);
            c.p += c.a;
            break;
        case Optimizer::adam: {
            c.a = 0.9 * c.a + 0.1 * g;
            c.b = 0.999 * c.b + 0.001 * g * g;
            const double scale = std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
            c.p -= rate * scale * c.a / (std::sqrt(c.b) + 1e-8);
            break;
        }
        case Optimizer::adadelta: {
            c.a = 0.95 * c.a + 0.05 * g * g;
            const double step = g * std::sqrt(c.b + 1e-6) / std::sqrt(c.a + 1e-6);
            c.b = 0.95 * c.b + 0.05 * step * step;
            c.p -= rate * step;
            break;
        }
    }
}

Array indices_of(Dims shape, std::int64_t rows, Random& random) {
    return random_array(int32, std::move(shape), random, 0, static_cast<double>(rows) - 1);
}

// Lookups of `count` rows, twice where `again`: the loss is the sum of weights * table[rows].
void check(Optimizer optimizer, DType dtype, std::int64_t rows, std::int64_t width, Dims count, bool again) {
    INFO(fmt::format("optimizer {}, {} {} x {}, {} lookups{}", static_cast<int>(optimizer), name_of(dtype),
                     rows, width, Array(int32, count).size(), again ? ", twice" : ""));
    Random random(6);
    Shared table = shared(random_array(dtype, {rows, width}, random, -1, 1), "table");
    Dims weighed = count;
    weighed.push_back(width);
    const Expr i = input(int32, static_cast<int>(count.size()), "i"), j = ivector("j"),
               w = input(dtype, static_cast<int>(weighed.size()), "w");
    Expr loss = sum(table[i] * w);
    if (again) loss = loss + 2 * sum(table[j]);
    std::vector<Input> inputs{i, w};
    if (again) inputs.emplace_back(j);
    Function f = function(inputs, {loss}, here(updates_of(optimizer, loss, {table})));

    std::vector<Cell> cells(static_cast<std::size_t>(rows * width));
    const Array start = table.get_value().as(float64);
    for (std::size_t k = 0; k < cells.size(); ++k) cells[k].p = start.view<double>()[k];
    for (int t = 1; t <= 3; ++t) {
        // Other rows at each step, so that what rows remember is not moved on while nobody looks them up.
        const Array first = indices_of(count, rows, random), second = indices_of({2}, rows, random),
                    weights = random_array(dtype, weighed, random, -1, 1);
        std::vector<Array> arguments{first, weights};
        if (again) arguments.push_back(second);
        f.call(arguments);
        std::vector<double> gradient(cells.size(), 0);
        std::set<std::int64_t> reached;
        const Array wide = weights.as(float64);
        const std::vector<std::int64_t> at = first.to_vector<std::int64_t>();
        for (std::size_t k = 0; k < at.size(); ++k) {
            reached.insert(at[k]);
            for (std::int64_t c = 0; c < width; ++c)
                gradient[static_cast<std::size_t>(at[k] * width + c)] +=
                    wide.view<double>()[k * static_cast<std::size_t>(width) + static_cast<std::size_t>(c)];
        }
        if (again)
            for (const std::int64_t row : second.to_vector<std::int64_t>()) {
                reached.insert(row);
                for (std::int64_t c = 0; c < width; ++c)
                    gradient[static_cast<std::size_t>(row * width + c)] += 2;
            }
        for (const std::int64_t row : reached)
            for (std::int64_t c = 0; c < width; ++c) {
                const auto k = static_cast<std::size_t>(row * width + c);
                step_of(optimizer, cells[k], gradient[k], t);
            }
    }
    Array wanted(float64, {rows, width});
    for (std::size_t k = 0; k < cells.size(); ++k)
        static_cast<double*>(wanted.mutable_data())[k] = cells[k].p;
    CHECK(difference(table.get_value().as(float64), wanted, {.of_largest = dtype == float64 ? 1e-9 : 2e-5}) ==
          "");
}

}  // namespace

TEST_CASE("optimizers with lazy rows change the rows that are looked up") {
    for (const Optimizer optimizer : all_optimizers) {
        check(optimizer, float32, 3000, 16, {64}, false);  // sorted, row by row
        check(optimizer, float32, 3000, 5, {8, 9}, true);  // two lookups, indices of two axes
        check(optimizer, float64, 1000, 33, {40}, true);
        check(optimizer, float32, 7, 3, {4}, false);  // few rows: each looks at all indices
        check(optimizer, float32, 2000, 1, {1}, false);
        check(optimizer, float32, 2000, 4, {0}, false);
    }
}

TEST_CASE("rows that are not looked up keep their bits, whatever the rate") {
    for (const Optimizer optimizer : all_optimizers) {
        Shared table = shared(ones({2000, 8}), "table");
        const Expr i = ivector("i"), r = scalar("r");
        const Expr loss = sum(sqr(table[i]));
        Updates updates = updates_of(optimizer, loss, {table});
        if (optimizer == Optimizer::sgd) updates = sgd(loss, {table}, r, {.lazy_rows = true});
        if (optimizer == Optimizer::adam) updates = adam(loss, {table}, r, {.lazy_rows = true});
        Function f = function({i, Input(r, Array(1.0F))}, {loss}, [&] {
            FunctionOptions o = here(updates);
            o.on_unused_input = OnUnused::ignore;
            return o;
        }());
        const float infinity = std::numeric_limits<float>::infinity();
        f(Array(std::vector<std::int32_t>{3, 1999}), Array(infinity));
        f(Array(std::vector<std::int32_t>{4, 4}), Array(0.5F));
        const Array now = table.get_value();
        for (std::int64_t row = 0; row < 2000; ++row) {
            const bool changed = row == 3 || row == 4 || row == 1999;
            bool kept = true;
            for (std::int64_t c = 0; c < 8; ++c)
                kept = kept && now.view<float>()[static_cast<std::size_t>(row * 8 + c)] == 1;
            if (kept == changed) {
                INFO("row " << row << " of optimizer " << static_cast<int>(optimizer));
                CHECK(kept != changed);
            }
        }
    }
}

TEST_CASE("a row that a scalar chooses is a lookup") {
    for (const Optimizer optimizer : all_optimizers)
        for (const std::int64_t rows : {20000, 9}) {
            INFO("optimizer " << static_cast<int>(optimizer) << ", " << rows << " rows");
            Random random(12);
            const Array start = random_array(float32, {rows, 6}, random, -1, 1);
            Shared table = shared(start, "table"), wide = shared(start, "wide");
            const Expr k = iscalar("k"), i = ivector("i"), w = vector("w");
            // table[k] and table[{k}] are the same lookup; so are both of them and a vector of indices.
            const Expr loss = sum(sqr(table[k]) * w) + sum(table[i]) + sum(sqr(table[k])),
                       looked_up = sum(sqr(wide[reshape(k, {1})]) * w) + sum(wide[i]) +
                                   sum(sqr(wide[reshape(k, {1})]));
            Function f = function({k, i, w}, {loss}, here(updates_of(optimizer, loss, {table})));
            Function g = function({k, i, w}, {looked_up}, here(updates_of(optimizer, looked_up, {wide})));
            for (const int row : {7, 8, 7}) {
                const Array weights = random_array(float32, {6}, random, -1, 1);
                const Array others(std::vector<std::int32_t>{row - 5, 1});
                f(Array(row), others, weights);
                g(Array(row), others, weights);
            }
            CHECK(difference(table.get_value(), wide.get_value(), {.of_largest = 1e-6}) == "");
            for (std::int64_t row = 0; row < rows; ++row) {
                const bool changed = row == 1 || row == 2 || row == 3 || row == 7 || row == 8;
                const bool kept =
                    difference(table.get_value().rows(row, row + 1), start.rows(row, row + 1)) == "";
                if (kept == changed) {
                    INFO("row " << row);
                    CHECK(kept != changed);
                }
            }
            if (rows < 100) continue;
            Function on_cpu = function(
                {k, w}, {sum(sqr(table[k]) * w)},
                {.updates = updates_of(optimizer, sum(sqr(table[k]) * w), {table}), .device = "cpu"});
            CHECK(on_cpu.report(Detail::complete).find("rows of the first axis that have keys") !=
                  std::string::npos);
            CHECK_THROWS_AS(on_cpu(Array(20000), Array(float32, {6})), IndexError);
            const Expr by_list = sum(sqr(wide[reshape(k, {1})]) * w);
            Function list_on_cpu = function(
                {k, w}, {by_list}, {.updates = updates_of(optimizer, by_list, {wide}), .device = "cpu"});
            CHECK(list_on_cpu.report(Detail::complete).find("rows of the first axis that have keys") !=
                  std::string::npos);
        }
}

TEST_CASE("parameters that are not only looked up change as a whole") {
    Shared table = shared(ones({50, 4}), "table"), w = shared(ones({4, 2}), "w");
    const Expr i = ivector("i");
    const Expr loss = sum(sqr(dot(table[i], w))) + sum(table);
    Function f = function({i}, {loss}, here(sgd(loss, {table, w}, 0.01, {.lazy_rows = true})));
    Shared table2 = shared(ones({50, 4}), "table"), w2 = shared(ones({4, 2}), "w");
    const Expr loss2 = sum(sqr(dot(table2[i], w2))) + sum(table2);
    Function g = function({i}, {loss2}, here(sgd(loss2, {table2, w2}, 0.01)));
    const Array rows(std::vector<std::int32_t>{1, 2, 3, 1});
    f(rows);
    g(rows);
    CHECK(difference(table.get_value(), table2.get_value()) == "");
    CHECK(difference(w.get_value(), w2.get_value()) == "");
    CHECK(table.get_value().view<float>()[40 * 4] != 1);
}

TEST_CASE("a step with lazy rows visits the rows that have keys") {
    for (const Optimizer optimizer : all_optimizers) {
        Shared table = shared(zeros({100000, 8}), "table");
        const Expr i = ivector("i"), j = ivector("j");
        const Expr loss = sum(table[i]) + 3 * sum(table[j]);
        Function f =
            function({i, j}, {loss}, {.updates = updates_of(optimizer, loss, {table}), .device = "cpu"});
        INFO(f.report(Detail::complete));
        CHECK(f.report(Detail::complete).find("rows of the first axis that have keys, one at a time") !=
              std::string::npos);
    }
}

// `step(table, w)` looks rows up that a product multiplies: the new table takes the old one's place behind
// the gradient of w, which reads the old rows.
TEST_CASE("rows of a large table are replaced in place where others are trained with them") {
    const Tolerance rounding{.absolute = 1e-5, .relative = 1e-4};
    const Expr ids = ivector("ids");
    Random random(7);
    const Array rows = random_array(int32, {64}, random, 0, 4999),
                few = random_array(int32, {3}, random, 0, 9);
    for (const Optimizer optimizer : all_optimizers) {
        std::vector<Shared> tables, weights;
        std::vector<Array> losses;
        for (const char* device : {tested_device(), "reference"}) {
            tables.push_back(shared(uniform_values({5000, 16}, -1, 1, 3), "table"));
            weights.push_back(shared(uniform_values({16, 4}, -1, 1, 4), "w"));
            const Expr loss = mean(sqr(dot(tables.back()[ids], weights.back()) - 1));
            Function f = function(
                {ids}, {loss},
                {.updates = updates_of(optimizer, loss, {tables.back(), weights.back()}), .device = device});
            for (const Array& now : {rows, few, rows}) losses.push_back(f(now));
            INFO(f.report(Detail::complete));
            if (device == std::string("cpu"))
                CHECK(f.report().find("new value of a shared variable") == std::string::npos);
        }
        for (std::size_t k = 0; k < 3; ++k) CHECK(difference(losses[k], losses[k + 3], rounding) == "");
        CHECK(difference(tables[0].get_value(), tables[1].get_value(), rounding) == "");
        CHECK(difference(weights[0].get_value(), weights[1].get_value(), rounding) == "");
    }
}
