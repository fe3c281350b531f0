// What plans of the corpus may take at most: launches, distinct kernels, bytes of their text, bytes of the
// arena, and allocations while planning, which count work where times would depend on the machine.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <sstream>

#include "graph/base/options.h"
#include "tests/corpus/kept.h"
#include "tests/corpus/plans.h"
#include "tests/support/catch.h"

namespace {
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* p = std::malloc(bytes ? bytes : 1)) return p;
    throw std::bad_alloc();
}
}  // namespace

#include "tests/support/replaced_new.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

constexpr const char* header =
    "# graph, target: nodes; at most so many launches, kernels, bytes of text, bytes of the arena, thousands "
    "of\n"
    "# allocations while planning (twice those that were counted)\n";

struct Budget {
    std::int64_t nodes = 0, launches = 0, kernels = 0, text = 0, arena = 0, allocations = 0;
    std::string problem{};  // why there is no plan: a known defect
};

constexpr const char* not_planned = "not planned: ";

// Two digits, rounded up: a line more does not pass a budget.
std::int64_t rounded_up(std::int64_t x) {
    std::int64_t unit = 1;
    while (x / unit >= 100) unit *= 10;
    return (x + unit - 1) / unit * unit;
}

Budget measured(const std::string& name, const Target& target) {
    const corpus::Graph graph = make(name, Purpose::plan);
    const std::int64_t before = allocations.load();
    Plan plan;
    try {
        plan = plan_of(graph, target);
    } catch (const std::exception& e) {
        const std::string what = e.what();
        return {.problem = what.substr(0, what.find(" ["))};  // without the line of the library
    }
    const std::int64_t taken = allocations.load() - before;
    return {plan.nodes,      plan.launches,    static_cast<std::int64_t>(plan.kernels.size()),
            plan.text_bytes, plan.arena_bytes, taken / 1000};
}

std::map<std::string, Budget> budgets() {
    std::map<std::string, Budget> all;
    std::istringstream file(kept("budgets.txt"));
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        const std::size_t colon = line.find(": ");
        Budget b;
        const std::string rest = line.substr(colon + 2);
        if (rest.starts_with(not_planned))
            b.problem = rest.substr(std::string(not_planned).size());
        else
            std::istringstream(rest) >> b.nodes >> b.launches >> b.kernels >> b.text >> b.arena >>
                b.allocations;
        all[line.substr(0, colon)] = b;
    }
    return all;
}

}  // namespace

TEST_CASE("plans of the corpus stay within their budgets") {
    const std::map<std::string, Budget> kept_budgets = budgets();
    plan_of(make(names().front(), Purpose::plan), targets().front().second);  // what is made once is made
    std::string text = header;
    for (const std::string& name : names())
        for (const auto& [target, description] : targets()) {
            const std::string key = name + " " + target;
            const Budget now = measured(name, description);
            text += now.problem.empty()
                        ? fmt::format("{}: {} {} {} {} {} {}\n", key, now.nodes, now.launches, now.kernels,
                                      rounded_up(now.text), now.arena, 2 * now.allocations + 1)
                        : fmt::format("{}: {}{}\n", key, not_planned, now.problem);
            if (updates_files()) continue;
            INFO(key << ": " << how_to_update);
            REQUIRE(kept_budgets.contains(key));
            const Budget& most = kept_budgets.at(key);
            CHECK(now.problem == most.problem);
            CHECK(now.launches <= most.launches);
            CHECK(now.kernels <= most.kernels);
            CHECK(now.text <= most.text);
            CHECK(now.arena <= most.arena);
            if (!Options{}.verifies()) CHECK(now.allocations <= most.allocations);  // verifying takes its own
        }
    if (updates_files()) keep("budgets.txt", text);
}
