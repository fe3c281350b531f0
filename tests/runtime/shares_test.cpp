// Sharing out tasks: every task once, equal costs, large ranges before small ones, nothing for too little
// work.
#include "runtime/exec/shares.h"

#include <algorithm>
#include <random>

#include "tests/support/catch.h"

using namespace bitale;

namespace {

// What each task costs.
std::vector<double> spread(const std::vector<TaskCost>& costs) {
    std::vector<double> r;
    for (const TaskCost& c : costs)
        r.insert(r.end(), static_cast<std::size_t>(c.tasks),
                 static_cast<double>(std::max<std::int64_t>(1, c.picoseconds)));
    return r;
}

double cost_of(const std::vector<double>& tasks, const TaskRange& r) {
    double sum = 0;
    for (std::int64_t i = r.first; i < r.last; ++i) sum += tasks[static_cast<std::size_t>(i)];
    return sum;
}

// Of each thread; fails unless every task is in exactly one range.
std::vector<double> costs_by_thread(const std::vector<TaskCost>& costs, const Shares& shares) {
    const std::vector<double> tasks = spread(costs);
    std::vector<int> seen(tasks.size());
    std::vector<double> r;
    REQUIRE(shares.begins.front() == 0);
    REQUIRE(shares.begins.back() == shares.ranges.size());
    for (std::size_t t = 0; t + 1 < shares.begins.size(); ++t) {
        double sum = 0, before = 1e300;
        REQUIRE(shares.begins[t] <= shares.begins[t + 1]);
        for (std::uint32_t k = shares.begins[t]; k < shares.begins[t + 1]; ++k) {
            const TaskRange range = shares.ranges[k];
            REQUIRE(range.first < range.last);
            for (std::int64_t i = range.first; i < range.last; ++i) ++seen.at(static_cast<std::size_t>(i));
            const double cost = cost_of(tasks, range);
            REQUIRE(cost <= before * 1.000001);
            before = cost;
            sum += cost;
        }
        r.push_back(sum);
    }
    REQUIRE(std::all_of(seen.begin(), seen.end(), [](int s) { return s == 1; }));
    return r;
}

constexpr std::int64_t us = 1'000'000;

}  // namespace

TEST_CASE("what takes less than waking up others stays with one thread", "[core][runtime][shares]") {
    REQUIRE(share_out(std::vector<TaskCost>{{1000, us / 1000}}, 2).ranges.empty());
    REQUIRE(share_out(std::vector<TaskCost>{{1, 500 * us}}, 2).ranges.empty());
    REQUIRE(share_out(std::vector<TaskCost>{{100, 500 * us}}, 1).ranges.empty());
    REQUIRE(share_out(std::vector<TaskCost>{}, 2).ranges.empty());
    REQUIRE(share_out(std::vector<TaskCost>{{0, us}, {0, 0}}, 2).ranges.empty());
    REQUIRE(!share_out(std::vector<TaskCost>{{1000, us / 10}}, 2).ranges.empty());
}

TEST_CASE("threads get equal costs, in few ranges whose last ones are small", "[core][runtime][shares]") {
    for (const int threads : {2, 3, 8}) {
        const std::vector<TaskCost> costs = {{100, us}, {1, 3}, {5000, us / 50}, {1, 7}, {20, 5 * us}};
        const Shares shares = share_out(costs, threads);
        REQUIRE(shares.begins.size() == static_cast<std::size_t>(threads) + 1);
        const std::vector<double> by_thread = costs_by_thread(costs, shares);
        const double share = 300.0 * us / threads;
        for (const double cost : by_thread) CHECK(std::abs(cost - share) <= 5.5 * us);
        CHECK(shares.ranges.size() <= static_cast<std::size_t>(25 * threads));
        const std::vector<double> tasks = spread(costs);
        for (std::size_t t = 0; t + 1 < shares.begins.size(); ++t)
            CHECK(cost_of(tasks, shares.ranges[shares.begins[t + 1] - 1]) <= 6.0 * us);
    }
}

TEST_CASE("a few long tasks go to different threads", "[core][runtime][shares]") {
    const std::vector<TaskCost> costs = {{2, 100 * us}, {50, 1000}};
    const std::vector<double> two = costs_by_thread(costs, share_out(costs, 2));
    CHECK(std::abs(two[0] - two[1]) < us);
    const std::vector<TaskCost> three = {{3, 100 * us}};
    const std::vector<double> many = costs_by_thread(three, share_out(three, 4));
    CHECK(*std::max_element(many.begin(), many.end()) == 100.0 * us);
}

TEST_CASE("any costs are shared out completely", "[core][runtime][shares]") {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        std::vector<TaskCost> costs;
        for (unsigned s = random() % 12 + 1; s > 0; --s)
            costs.push_back({static_cast<std::int64_t>(random() % (random() % 2 ? 3 : 3000)),
                             static_cast<std::int64_t>(random() % (random() % 2 ? 100 : 50 * us))});
        const int threads = static_cast<int>(random() % 9) + 1;
        const Shares shares = share_out(costs, threads);
        if (!shares.ranges.empty()) costs_by_thread(costs, shares);
    }
}

TEST_CASE("predicted efficiency is the part of all cores' time that is work", "[core][runtime][shares]") {
    const auto efficiency = [](std::vector<std::vector<TaskCost>> phases, int cores) {
        return predicted_efficiency(phases, cores);
    };
    CHECK(efficiency({{{32, 1000}}}, 16) == Approx(1));
    CHECK(efficiency({{{33, 1000}}}, 16) == Approx(33.0 / 48));
    CHECK(efficiency({{{1, 1000}}}, 64) == Approx(1.0 / 64));
    CHECK(efficiency({{{100000, 7}}}, 3) == Approx(1).epsilon(1e-3));
    // Small tasks fill what a large one leaves.
    CHECK(efficiency({{{1, 1000}, {100, 10}}}, 2) == Approx(1));
    // Nobody begins with a phase before the last one is done.
    CHECK(efficiency({{{1, 1000}}, {{2, 1000}}}, 2) == Approx(0.75));
    CHECK(efficiency({}, 16) == Approx(1));
    CHECK(efficiency({{{0, 1000}}}, 16) == Approx(1));
}

TEST_CASE("a kind of tasks is in several ranges, whatever the others are said to cost",
          "[core][runtime][shares]") {
    // As if the second kind took nothing: who has it takes from the other thread's ranges.
    const std::vector<TaskCost> costs = {{1000, us / 5}, {1000, 2 * us}};
    for (const TaskRange& r : share_out(costs, 2).ranges) CHECK(r.last - r.first <= 125);
}
