// Estimates of what tasks cost: there for every task of a kernel, and in proportion to what they do.
#include "codegen/kernel/work.h"

#include <map>

#include "bitale/ops.h"
#include "runtime/exec/shares.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/nets.h"

using namespace bitale;
using namespace bitale::test;

namespace {

using Symbols = std::map<std::uint64_t, std::int64_t>;

Symbols all_symbols(const Program& program, std::int64_t value) {
    Symbols symbols;
    for (const SizeSource& source : program.size_sources) symbols[source.symbol] = value;
    return symbols;
}

// Microseconds of the whole body, with this number for every symbol.
double estimate(const Function& f, std::int64_t value = 1) {
    const Program& program = *f.state().program;
    const Symbols symbols = all_symbols(program, value);
    double sum = 0;
    for (const Step& step : program.body.steps)
        if (const auto* kernel = std::get_if<KernelStep>(&step.operation))
            for (const std::vector<TaskWork>& phase : kernel->work)
                for (const TaskWork& w : phase)
                    sum += 1e-6 * static_cast<double>(evaluate(w.tasks, symbols)) *
                           static_cast<double>(evaluate(w.picoseconds, symbols));
    return sum;
}

double estimate_of(const Expr& y, const std::vector<Input>& inputs, std::int64_t n = 1) {
    return estimate(function(inputs, y, {.device = "null", .specialise = false}), n);
}

}  // namespace

TEST_CASE("every task of every phase has an estimate", "[core][runtime][work]") {
    for (const std::string& name : net_names()) {
        const Net net = make_net(name);
        for (const Function* f : {&net.step, &net.evaluation}) {
            const Program& program = *f->state().program;
            for (const std::int64_t i : {0, 3, 468, 10000}) {
                const Symbols symbols = all_symbols(program, i);
                for (const Region* region : {&program.once, &program.body})
                    for (const Step& step : region->steps) {
                        INFO(name << ": " << step.title);
                        const auto* kernel = std::get_if<KernelStep>(&step.operation);
                        if (!kernel) continue;
                        REQUIRE(kernel->work.size() == kernel->tasks.size());
                        for (std::size_t phase = 0; phase < kernel->work.size(); ++phase) {
                            std::int64_t tasks = 0;
                            for (const TaskWork& w : kernel->work[phase]) {
                                tasks += evaluate(w.tasks, symbols);
                                REQUIRE(evaluate(w.picoseconds, symbols) > 0);
                            }
                            REQUIRE(tasks == evaluate(kernel->tasks[phase], symbols));
                        }
                    }
            }
        }
    }
}

TEST_CASE("estimates grow with the work", "[core][runtime][work]") {
    const Expr x = vector("x"), m = matrix("m");
    const double sum_of_two = estimate_of(x + x, {x}, 1 << 16),
                 sum_of_more = estimate_of(x + x, {x}, 1 << 20);
    CHECK(sum_of_more / sum_of_two == Approx(16).epsilon(0.1));
    CHECK(estimate_of(exp(x), {x}, 1 << 16) > 3 * sum_of_two);
    // Some ten gigabytes to some hundred a second.
    CHECK(sum_of_two > 1);
    CHECK(sum_of_two < 40);
    const double row_sums = estimate_of(sum(m, {1}), {m}, 256), all = estimate_of(sum(m), {m}, 256);
    CHECK(row_sums > 0.2 * all);
    CHECK(row_sums < 5 * all);
}

TEST_CASE("what is too little for two threads is not shared out", "[core][runtime][work]") {
    const auto shares = [](const Expr& y, const Expr& x, std::int64_t n) {
        const Function f = function({x}, y, {.device = "null"});
        const Program& program = *f.state().program;
        const Symbols symbols = all_symbols(program, n);
        REQUIRE(program.body.steps.size() == 1);
        std::vector<TaskCost> costs;
        for (const TaskWork& w : std::get<KernelStep>(program.body.steps[0].operation).work.at(0))
            costs.push_back({evaluate(w.tasks, symbols), evaluate(w.picoseconds, symbols)});
        return share_out(costs, 2);
    };
    const Expr x = vector("x");
    CHECK(shares(x + 1, x, 4096).ranges.empty());
    CHECK(shares(tanh(x), x, 2048).ranges.empty());
    CHECK(!shares(x + 1, x, 1 << 20).ranges.empty());
    CHECK(!shares(tanh(x), x, 1 << 16).ranges.empty());
}
