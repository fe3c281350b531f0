#include "codegen/group/levels.h"

#include <algorithm>
#include <map>

#include "codegen/group/again.h"
#include "codegen/library/made.h"
#include "codegen/nest/runs.h"
#include "codegen/nest/walk.h"
#include "graph/base/check.h"
#include "graph/ir/shared.h"

namespace bitale {

namespace {

class Leveller {
  public:
    Leveller(const Values& values, const Graph& graph, const std::vector<bool>& behind,
             const std::set<int>& parts, Grouping& grouping)
        : values_(values),
          graph_(graph),
          behind_(behind),
          parts_(parts),
          grouping_(grouping),
          groups_(grouping.groups) {}

    void run() {
        find_readers();
        for (const SharedUpdate& update : graph_.updates) {
            const int g = group_of_new(update);
            if (g < 0) continue;
            groups_[g].commits = true;
            const bool part = parts_.contains(values_.number.at(update.value.get()));
            const bool early = part && may_come_before_its_readers(update);
            if (early || !values_.waits.empty())
                for (const int reader : readers_[update.target.get()]) wait(g, reader);
            if (early)
                for (const int check : checks()) wait(g, check);
            if (part || !sums_runs_in(g)) continue;
            replaced_.insert(update.target.get());
            if (is_large(update)) replace_behind_readers(g, update);
        }
        assign();
    }

  private:
    int group_of_new(const SharedUpdate& update) const {
        return grouping_.group_of[values_.number.at(update.value.get())];
    }

    // The groups that read the old value of each variable.
    void find_readers() {
        for (std::size_t v = 0; v < values_.list.size(); ++v) {
            const int group = grouping_.group_of[v];
            if (group < 0) continue;
            for_each_value_read(values_, static_cast<int>(v), [&](int operand) {
                if (const SharedPtr shared = shared_of(values_.list[operand].node))
                    readers_[shared.get()].insert(group);
            });
        }
    }

    std::vector<int> checks() const {
        std::vector<int> list;
        for (std::size_t g = 0; g < groups_.size(); ++g)
            if (groups_[g].may_fail) list.push_back(static_cast<int>(g));
        return list;
    }

    // Whether no check and no reader of the old value needs the new one.
    bool may_come_before_its_readers(const SharedUpdate& update) {
        const int g = group_of_new(update);
        std::set<int> before = readers_[update.target.get()];
        for (const int check : checks()) before.insert(check);
        return std::none_of(before.begin(), before.end(),
                            [&](int other) { return other != g && depends(grouping_, other, g); });
    }

    // A launch more takes less time than a copy of the table.
    static bool is_large(const SharedUpdate& update) {
        constexpr double worth_a_level = 1 << 16;
        const Type& type = update.value->type;
        return typical(count_of(type.shape)) * bytes_of(type.dtype) >= worth_a_level;
    }

    // Rows of a table are replaced in place behind the updates of other variables that read the old rows,
    // where an order allows it. These are themselves behind all checks.
    void replace_behind_readers(int g, const SharedUpdate& update) {
        for (const int reader : readers_[update.target.get()]) {
            if (reader == g || !commits(reader)) continue;
            wait(g, reader);
            if (!groups_[g].needs.contains(reader)) continue;
            for (const int check : checks()) wait(reader, check);
        }
    }

    bool commits(int g) const {
        return std::any_of(graph_.updates.begin(), graph_.updates.end(),
                           [&](const SharedUpdate& update) { return group_of_new(update) == g; });
    }

    void wait(int group, int on) {
        if (group != on && !depends(grouping_, on, group)) groups_[group].needs.insert(on);
    }

    bool sums_runs_in(int g) const {
        const std::vector<int>& members = groups_[g].values;
        return std::any_of(members.begin(), members.end(),
                           [&](int v) { return sums_runs(grouping_.nests[v]); });
    }

    // Whether the group reads the old value of a variable of which the last level replaces rows in place.
    bool reads_replaced(int g) const {
        return std::any_of(replaced_.begin(), replaced_.end(), [&](const SharedState* table) {
            const auto at = readers_.find(table);
            return at != readers_.end() && at->second.contains(g);
        });
    }

    bool saves(const Group& group) const {
        return std::any_of(group.values.begin(), group.values.end(),
                           [&](int v) { return is_saved(values_.list[v]); });
    }

    // Groups that run once have levels of their own, all before those of a call.
    bool in_one_part(int g, int need) const { return groups_[g].once == groups_[need].once; }

    void assign() {
        const std::vector<int> order = topological_order();
        int depth = 0, last_check = 0;
        for (const int g : order) {
            groups_[g].level = 1;
            for (const int need : groups_[g].needs)
                if (in_one_part(g, need))
                    groups_[g].level = std::max(groups_[g].level, groups_[need].level + 1);
            depth = std::max(depth, groups_[g].level);
            if (groups_[g].may_fail) last_check = std::max(last_check, groups_[g].level);
        }
        // Nothing is written before every check has run.
        const bool any_commit =
            std::any_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.commits; });
        if (any_commit && last_check) depth = std::max(depth, last_check + 1);
        std::vector<int> latest(groups_.size(), depth);
        const std::vector<int> users_first(order.rbegin(), order.rend());
        for (const int g : users_first) {
            Group& group = groups_[g];
            const int earliest = group.level;
            const bool early = group.may_fail || saves(group) || runs_early(values_, group, behind_);
            if (!early) group.level = latest[g];
            if (group.level == depth && !group.commits && reads_replaced(g))
                group.level = std::max(earliest, depth - 1);
            for (const int need : group.needs)
                if (in_one_part(g, need)) latest[need] = std::min(latest[need], group.level - 1);
        }
        for (Group& group : groups_) {
            const bool merged = group.values.empty() && group.checks.empty();
            if (merged) group.level = 0;
            BITALE_CHECK(merged || group.level > 0, "a group is in no level of its plan");
        }
        grouping_.levels = depth;
    }

    std::vector<int> topological_order() const {
        std::vector<int> order, state(groups_.size(), 0);
        for (std::size_t root = 0; root < groups_.size(); ++root) {
            std::vector<std::pair<int, std::set<int>::const_iterator>> stack;
            const auto push = [&](int g) {
                if (state[g]) return;
                state[g] = 1;
                stack.emplace_back(g, groups_[g].needs.begin());
            };
            push(static_cast<int>(root));
            while (!stack.empty()) {
                auto& [g, next] = stack.back();
                if (next != groups_[g].needs.end()) {
                    push(*next++);
                } else {
                    order.push_back(g);
                    stack.pop_back();
                }
            }
        }
        return order;
    }

    const Values& values_;
    const Graph& graph_;
    const std::vector<bool>& behind_;
    const std::set<int>& parts_;
    Grouping& grouping_;
    std::vector<Group>& groups_;
    std::map<const SharedState*, std::set<int>> readers_;  // groups that read the old value
    std::set<const SharedState*> replaced_;                // by rows, in the last level
};

}  // namespace

void set_levels(const Values& values, const Graph& graph, const std::vector<bool>& behind,
                const std::set<int>& parts, Grouping& grouping) {
    Leveller(values, graph, behind, parts, grouping).run();
}

}  // namespace bitale
