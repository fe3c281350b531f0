#include "runtime/exec/shares.h"

#include <algorithm>
#include <cstddef>

namespace bitale {

namespace {

// In picoseconds. A region costs a quarter of a microsecond, the lines that move between the caches as much
// again; taking a range costs some ten nanoseconds.
constexpr double least_shared = 3e6, least_range = 1e6;
// The ranges of a thread: at first a quarter of what is left, so that few are taken, and the last ones small,
// so that all are ready at the same time.
constexpr double part_of_rest = 0.25;
// A range has no more of the tasks of a kind than one in so many, however far off an estimate may be.
constexpr std::int64_t parts_of_kind = 8;

struct Costed {
    TaskRange range;
    double cost = 0;
};

// Walks the tasks in order.
class Cursor {
  public:
    explicit Cursor(std::span<const TaskCost> costs) : costs_(costs) { skip(); }

    bool at_end() const { return at_ == costs_.size(); }
    double next_cost() const {
        return static_cast<double>(std::max<std::int64_t>(1, costs_[at_].picoseconds));
    }
    // At least one task, and then as many as come closest to the wanted cost.
    Costed take(double wanted) {
        Costed taken{{task_, task_}, 0};
        while (!at_end()) {
            const double one = next_cost();
            const std::int64_t left = costs_[at_].tasks - inside_;
            const double fitting = std::max(0.0, (wanted - taken.cost) / one + 0.5);
            std::int64_t count =
                fitting < static_cast<double>(left) ? static_cast<std::int64_t>(fitting) : left;
            if (task_ == taken.range.first) count = std::max<std::int64_t>(1, count);
            const bool is_large = one * static_cast<double>(costs_[at_].tasks) >= least_range;
            if (is_large && task_ > taken.range.first) break;
            if (is_large) count = std::min(count, (costs_[at_].tasks + parts_of_kind - 1) / parts_of_kind);
            if (count == 0) break;
            task_ += count;
            inside_ += count;
            taken.cost += static_cast<double>(count) * one;
            skip();
            if (is_large) break;
        }
        taken.range.last = task_;
        return taken;
    }

  private:
    void skip() {
        while (at_ < costs_.size() && inside_ >= costs_[at_].tasks) {
            ++at_;
            inside_ = 0;
        }
    }

    std::span<const TaskCost> costs_;
    std::size_t at_ = 0;
    std::int64_t inside_ = 0, task_ = 0;
};

// From the begin of a phase to its end.
double span_of(std::span<const TaskCost> costs, int cores) {
    constexpr std::int64_t one_by_one = 4096;  // of the tasks of a kind: they fill what others leave
    std::vector<TaskCost> kinds(costs.begin(), costs.end());
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const TaskCost& a, const TaskCost& b) { return a.picoseconds > b.picoseconds; });
    std::vector<double> busy(static_cast<std::size_t>(cores));
    for (const TaskCost& kind : kinds) {
        const auto cost = static_cast<double>(std::max<std::int64_t>(1, kind.picoseconds));
        const std::int64_t each = std::max<std::int64_t>(0, kind.tasks - one_by_one) / cores;
        for (double& b : busy) b += static_cast<double>(each) * cost;
        for (std::int64_t rest = kind.tasks - each * cores; rest > 0; --rest)
            *std::min_element(busy.begin(), busy.end()) += cost;
    }
    return *std::max_element(busy.begin(), busy.end());
}

}  // namespace

double total_of(std::span<const TaskCost> costs) {
    double total = 0;
    for (const TaskCost& c : costs)
        total += static_cast<double>(c.tasks) * static_cast<double>(std::max<std::int64_t>(1, c.picoseconds));
    return total;
}

Shares share_out(std::span<const TaskCost> costs, int threads) {
    Shares shares;
    const double total = total_of(costs);
    if (threads < 2 || total < least_shared) return shares;
    Cursor cursor(costs);
    double before = 0;  // cost of what is given out
    std::vector<Costed> own;
    for (int t = 0; t < threads; ++t) {
        shares.begins.push_back(static_cast<std::uint32_t>(shares.ranges.size()));
        const double end = total * (t + 1) / threads;
        own.clear();
        // A task that lies across the border goes to the side with the larger part of it.
        while (!cursor.at_end() && (t + 1 == threads || cursor.next_cost() / 2 <= end - before)) {
            own.push_back(cursor.take(std::max(least_range, (end - before) * part_of_rest)));
            before += own.back().cost;
        }
        std::stable_sort(own.begin(), own.end(),
                         [](const Costed& a, const Costed& b) { return a.cost > b.cost; });
        for (const Costed& c : own) shares.ranges.push_back(c.range);
    }
    shares.begins.push_back(static_cast<std::uint32_t>(shares.ranges.size()));
    if (shares.ranges.size() < 2) return {};
    return shares;
}

double predicted_efficiency(std::span<const std::vector<TaskCost>> phases, int cores) {
    double work = 0, time = 0;
    for (const std::vector<TaskCost>& phase : phases) {
        work += total_of(phase);
        time += span_of(phase, cores);
    }
    return time > 0 ? work / (static_cast<double>(cores) * time) : 1;
}

}  // namespace bitale
