#include "codegen/group/group.h"

#include <algorithm>
#include <map>
#include <variant>

#include "codegen/group/again.h"
#include "codegen/group/ends.h"
#include "codegen/group/in_step.h"
#include "codegen/group/levels.h"
#include "codegen/group/once.h"
#include "codegen/group/scores.h"
#include "codegen/library/made.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/positions.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/nest/runs.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/byte_columns.h"
#include "codegen/schedule/changed_part.h"
#include "codegen/schedule/chooser.h"
#include "graph/base/check.h"

namespace bitale {

namespace {

constexpr std::size_t most_members = 48;

class Grouper {
  public:
    // Values whose groups end with them: what reads these is in others.
    Grouper(const Values& values, const Graph& graph, const Target& target, const std::set<int>& ends)
        : values_(values), graph_(graph), target_(target), ends_(ends), behind_(behind_waits(values)) {}

    Grouping run() {
        const std::size_t n = values_.list.size();
        result_.nests.resize(n);
        result_.trees.resize(n);
        result_.group_of.assign(n, -1);
        for (std::size_t i = 0; i < n; ++i) {
            const Value& value = values_.list[i];
            if (value.storage == Value::Storage::staged)
                result_.nests[i] = composed_nest(values_, static_cast<int>(i));
            if (value.storage == Value::Storage::stored) place(static_cast<int>(i));
        }
        for (std::size_t c = 0; c < graph_.checks.size(); ++c) place_check(static_cast<int>(c));
        mark_once(values_, graph_, result_);
        join_positions();
        set_levels(values_, graph_, behind_, alone_, result_);
        return std::move(result_);
    }

  private:
    void place(int number) {
        const Value& value = values_.list[number];
        Group own;
        own.values = {number};
        std::set<int> read;  // stored values
        const std::set<int> before = groups_before(values_, result_, number);
        own.needs = before;
        if (value.by_library) {
            own.by_library = true;
            own.may_fail = std::holds_alternative<RoutineCall>(value.by_library->call);
            const std::vector<int> operands = read_by_call(values_, number);
            read = {operands.begin(), operands.end()};
            std::erase_if(read, [&](int v) { return result_.group_of[v] < 0; });
        } else {
            result_.nests[number] =
                in_rows(exact_sum(composed_nest(values_, number)), is_of_data(values_, number));
            const Nest full = fully_composed_nest(values_, number);
            for_each_read(full, [&](const ScalarNode& s) {
                if (result_.group_of[s.operand.value()] >= 0) read.insert(s.operand.value());
            });
            const ReductionTree tree = result_.trees[number] = order_of(result_.nests[number]);
            // Chunks of a row one after another are as fast as beside each other where nothing waits for
            // them.
            own.split =
                tree.split && (target_.threads_hide_waits || !has_many_rows(result_.nests[number], tree));
            own.tiled = chooser_of(target_).is_tiled(full, tree) && !reads_short_rows(result_.nests[number]);
            own.tiled = own.tiled || is_prefix_of_columns(full) ||
                        (is_order(full.combine) && full.parallel.size() == 1);
            own.statements = count_statements(full);
            if (!full.parallel.empty()) own.extent = full.parallel[0].extent;
            if (std::vector<int> into = before.empty() ? joined(own, number, full, read) : std::vector<int>();
                !into.empty()) {
                for (std::size_t i = 1; i < into.size(); ++i) merge(into[i], into[0]);
                Group& group = result_.groups[into[0]];
                group.values.push_back(number);
                group.statements += own.statements;
                for (const int v : read)
                    if (result_.group_of[v] != into[0]) group.needs.insert(result_.group_of[v]);
                result_.group_of[number] = into[0];
                for (const int v : read) readers_[v].push_back(number);
                return;
            }
        }
        for (const int v : read) {
            own.needs.insert(result_.group_of[v]);
            readers_[v].push_back(number);
        }
        result_.group_of[number] = static_cast<int>(result_.groups.size());
        result_.groups.push_back(std::move(own));
    }

    // Sums of integers are the same in every order.
    ReductionTree order_of(const Nest& nest) const {
        if (target_.tasks_have_threads()) return tree_of_threads(nest, values_.shapes());
        bool staged = false;
        for_each_read(nest, [&](const ScalarNode& s) {
            staged = staged || values_.list[s.operand.value()].storage == Value::Storage::staged;
        });
        if (target_.has_vectors() && !staged)
            if (const auto columns = order_of_byte_columns(nest, values_.shapes())) return *columns;
        return tree_of(nest, values_.shapes());
    }

    // The groups that the value joins, as one; empty: it begins one of its own.
    std::vector<int> joined(const Group& own, int number, const Nest& full, const std::set<int>& read) {
        if (changes_large_part(number, full)) return alone_.insert(number), std::vector<int>{};
        std::vector<int> into = joined_with(own, number, full, read);
        for (const int g : into)
            if (alone_.contains(result_.groups[g].values[0])) return {};
        return into;
    }

    // The new value of a variable that differs from the old one in one part, which a kernel sets by itself.
    bool changes_large_part(int number, const Nest& full) const {
        constexpr double large = 1 << 18;  // bytes
        const auto update = std::find_if(
            graph_.updates.begin(), graph_.updates.end(),
            [&](const SharedUpdate& u) { return u.value.get() == values_.list[number].node.get(); });
        return update != graph_.updates.end() && typical_bytes(values_.list[number]) >= large &&
               changed_part(full, [&](const ScalarNode& s) {
                   return shared_of(values_.list[s.operand.value()].node) == update->target;
               }).has_value();
    }

    std::vector<int> joined_with(const Group& own, int number, const Nest& full, const std::set<int>& read) {
        std::vector<int> into;
        if (values_.list[number].together >= 0) into = same_elements_of(own, full);
        if (into.empty()) into = epilogue_of(number, full, read);
        if (into.empty()) into = joinable(own, full, read);
        if (into.empty())
            into = own.split ? same_chunks(own, number, result_.trees[number]) : sibling(own, full, read);
        if (into.empty()) into = same_elements_of(own, full);
        return into;
    }

    // What a gradient computes again, and what follows, is in groups of its own.
    bool in_time(int value, int group) const {
        return behind_.empty() || behind_[value] == behind_[result_.groups[group].values[0]];
    }

    // The group of a library's product that the value is a map of, point by point, by itself or by way of
    // others in that group; what else it reads does not wait for the product. Empty if there is none.
    std::vector<int> epilogue_of(int number, const Nest& full, const std::set<int>& read) {
        if (!target_.library_in_tasks || full.combine != Combine::none || full.parallel.size() != 2 ||
            !full.guards.empty() || !full.lets.empty())
            return {};
        std::set<int> candidates;
        for (const int v : read) candidates.insert(result_.group_of[v]);
        for (const int g : candidates) {
            const Group& group = result_.groups[g];
            if (!group.by_library || group.values.size() >= most_members || !in_time(number, g)) continue;
            const Value& product = values_.list[group.values[0]];
            const GemmCall* const call = std::get_if<GemmCall>(&product.by_library->call);
            // Several products, or one that others are added to, are complete at the end of the call alone.
            if (!call || (call->strides && !call->strides->batches.empty())) continue;
            bool fits = product.nest.parallel.size() == 2;
            for (std::size_t d = 0; d < 2 && fits; ++d)
                fits = product.nest.parallel[d].extent == full.parallel[d].extent;
            for_each_read(full, [&](const ScalarNode& s) {
                if (result_.group_of[s.operand.value()] != g) return;
                fits = fits && !is_saved(values_.list[s.operand.value()]);
                for (std::size_t d = 0; d < s.at.size(); ++d)
                    fits = fits && s.at.size() == 2 && s.at[d] == full.parallel[d].variable;
            });
            for (const int other : candidates) fits = fits && (other == g || !depends(other, g));
            if (fits) return {g};
        }
        return {};
    }

    // A convolution of few channels: its input fits into a block's shared memory a row at a time, and pooling
    // and what else follows stays in the same task.
    bool reads_short_rows(const Nest& nest) const {
        constexpr std::int64_t most_bytes = 16 << 10;
        bool short_rows = false;
        for_each_read(nest, [&](const ScalarNode& s) {
            const Value& value = values_.list[s.operand.value()];
            if (value.storage != Value::Storage::staged || value.shape.size() < 3) return;
            const Int row = count_of(Shape(value.shape.begin() + 1, value.shape.end()));
            short_rows = short_rows || row.range().high * bytes_of(value.node->type.dtype) <= most_bytes;
        });
        return short_rows;
    }

    // The groups of producers that the value can join, latest first: all of them become one. Empty if there
    // is none.
    std::vector<int> joinable(const Group& own, const Nest& full, const std::set<int>& read) {
        if (own.split || own.tiled) return {};
        std::set<int> candidates;
        for (const int v : read) candidates.insert(result_.group_of[v]);
        std::vector<int> joined;
        int statements = own.statements;
        std::size_t members = 1;
        const std::vector<int> latest_first(candidates.rbegin(), candidates.rend());
        for (const int candidate : latest_first) {
            const Group& group = result_.groups[candidate];
            statements += group.statements;
            members += group.values.size();
            if (statements > target_.max_statements || members > most_members) break;
            const bool independent = std::none_of(joined.begin(), joined.end(), [&](int other) {
                return depends(other, candidate) || depends(candidate, other);
            });
            if (independent && same_rows(own, full, candidate) && tasks_agree(full, candidate) &&
                parts_agree(own, full, candidate) && scores_.pays(own, full, candidate))
                joined.push_back(candidate);
        }
        // A producer that stays outside must not depend on what is joined: that would be a cycle.
        std::erase_if(joined, [&](int g) {
            return std::any_of(candidates.begin(), candidates.end(), [&](int other) {
                return std::find(joined.begin(), joined.end(), other) == joined.end() && depends(other, g);
            });
        });
        return joined;
    }

    // A task of a matrix product has several rows, whose vectors share what it loads of the other factor;
    // that of a convolution has one.
    bool tasks_agree(const Nest& full, int number) const {
        if (!target_.has_vectors()) return true;
        const auto shares = [](const Nest& nest) {
            constexpr double least_work = 1 << 14;
            return is_matrix_product(nest) && typical_count(nest.reduced) * typical_count(nest.parallel) >=
                                                  least_work * typical(nest.parallel[0].extent);
        };
        const bool own_shares = shares(full), own_deep = is_deep(full);
        if (!own_shares && !own_deep) return true;
        for (const int v : result_.groups[number].values) {
            const Nest nest = fully_composed_nest(values_, v);
            if ((own_shares && is_deep(nest)) || (own_deep && shares(nest))) return false;
        }
        return true;
    }

    // Rows that are too few for many tasks are cut along the second axis (schedule/cut.h), where all of a
    // group walk it in step; what else is much work has tasks of its own, if what it reads stays in caches.
    bool parts_agree(const Group& own, const Nest& full, int number) const {
        constexpr double most_bytes = 8 << 20;
        if (!has_few_rows(own, full, number)) return true;
        std::set<int> read;
        for_each_read(full, [&](const ScalarNode& s) {
            if (result_.group_of[s.operand.value()] == number) read.insert(s.operand.value());
        });
        double bytes = 0;
        for (const int v : read) bytes += typical_bytes(values_.list[v]);
        if (bytes > most_bytes) return true;
        std::vector<int> members = result_.groups[number].values;
        std::vector<Nest> nests;
        for (const int v : members) nests.push_back(fully_composed_nest(values_, v));
        members.push_back(own.values[0]);
        nests.push_back(full);
        for (std::size_t d = 1; d < full.parallel.size(); ++d)
            if (!axes_in_step(members, nests, {own.values[0], static_cast<int>(d)}).empty()) return true;
        return false;
    }

    // Few tasks of much work, of lengths that can be cut. That of a convolution stays whole, with the copies
    // of what it reads. Where tasks have threads, a row has many as it is.
    bool has_few_rows(const Group& own, const Nest& full, int number) const {
        if (target_.tasks_have_threads()) return false;
        constexpr double few_tasks = 16, rows_of_product = 4, much_work = 1 << 20, much_of_product = 1 << 22;
        const bool product = is_matrix_product(full);
        const auto known = [](const Loop& l) { return l.extent.is_constant(); };
        if (full.parallel.empty() || std::none_of(full.parallel.begin() + 1, full.parallel.end(), known))
            return false;
        if (typical(own.extent) >= few_tasks * (product ? rows_of_product : 1) || is_deep(full)) return false;
        double work = iterations(full);
        if (product) return work >= much_of_product;
        for (const int v : result_.groups[number].values) {
            const Nest& nest = result_.nests[v];
            if (is_deep(nest)) return false;
            work += iterations(nest);
        }
        return work >= much_work;
    }

    static bool is_deep(const Nest& nest) { return nest.reduced.size() > 1; }

    // A group that reads the same large operands: a reduction of them, as the winners of pooling are, is best
    // made while they are at hand, and not once more when the backward pass asks for it.
    std::vector<int> sibling(const Group& own, const Nest& full, const std::set<int>& read) {
        if (own.split || own.tiled || full.combine == Combine::none || read.empty()) return {};
        const Value& value = values_.list[own.values[0]];
        for (const int v : read)
            if (typical_bytes(values_.list[v]) < 2 * typical_bytes(value)) return {};
        for (const int reader : readers_[*read.begin()]) {
            const int g = result_.group_of[reader];
            const Group& group = result_.groups[g];
            const bool all = std::all_of(read.begin(), read.end(), [&](int v) {
                return std::any_of(readers_[v].begin(), readers_[v].end(),
                                   [&](int r) { return result_.group_of[r] == g; });
            });
            if (all && group.values.size() < most_members && same_rows(own, full, g) &&
                !has_few_rows(own, full, g) && group.statements + own.statements <= target_.max_statements)
                return {g};
        }
        return {};
    }

    // Whether one loop may compute both: a maximum and its position in vectors, or sums that share a value.
    bool are_computed_together(int v, int w) const {
        if (values_.list[v].together >= 0 && values_.list[v].together == values_.list[w].together)
            return true;
        const Combine combine = result_.nests[v].combine;
        return combine != Combine::none && result_.nests[w].combine == position_or_best(combine) &&
               same_elements(fully_composed_nest(values_, v), fully_composed_nest(values_, w));
    }

    // What both read is then read, and what they share computed, once.
    std::vector<int> same_elements_of(const Group& own, const Nest& full) {
        if (!target_.has_vectors() || own.split || own.tiled || full.combine == Combine::none) return {};
        const int number = own.values[0];
        if (values_.list[number].together < 0 && position_or_best(full.combine) == Combine::none) return {};
        for (int g = static_cast<int>(result_.groups.size()) - 1; g >= 0; --g) {
            const Group& group = result_.groups[g];
            const bool same = std::any_of(group.values.begin(), group.values.end(),
                                          [&](int v) { return are_computed_together(v, number); });
            if (same && group.values.size() < most_members && same_rows(own, full, g) &&
                group.statements + own.statements <= target_.max_statements)
                return {g};
        }
        return {};
    }

    // Reductions of the same chunks that need copies of the same values: a task then makes them once for all,
    // as for a convolution's gradient and that of its bias. With threads, the partial results of all their
    // lanes would have to be beside the copies.
    std::vector<int> same_chunks(const Group& own, int number, const ReductionTree& tree) {
        if (target_.tasks_have_threads()) return {};
        const auto copied = [&](int v) {
            std::set<int> operands;
            for_each_read(result_.nests[v],
                          [&](const ScalarNode& s) { add_copied(s.operand.value(), operands); });
            return operands;
        };
        const std::set<int> wanted = copied(number);
        if (wanted.empty()) return {};
        const Nest& nest = result_.nests[number];
        for (int g = static_cast<int>(result_.groups.size()) - 1; g >= 0; --g) {
            const Group& group = result_.groups[g];
            if (!group.split || group.values.size() >= most_members || !in_time(number, g) ||
                group.statements + own.statements > target_.max_statements)
                continue;
            const int other = group.values[0];
            const ReductionTree& chunks = result_.trees[other];
            const std::set<int> theirs = copied(other);
            const bool agree = chunks.by_rows == tree.by_rows && chunks.chunk == tree.chunk &&
                               result_.nests[other].reduced[0].extent == nest.reduced[0].extent;
            const bool share =
                std::any_of(wanted.begin(), wanted.end(), [&](int v) { return theirs.contains(v); });
            if (agree && share && !depends_on_group(number, g)) return {g};
        }
        return {};
    }

    // Staged values that a copy of this one would be, or would be made of.
    void add_copied(int v, std::set<int>& copied) const {
        if (values_.list[v].storage != Value::Storage::staged || !copied.insert(v).second) return;
        for_each_read(result_.nests[v], [&](const ScalarNode& s) { add_copied(s.operand.value(), copied); });
    }

    bool depends_on_group(int number, int g) {
        bool any = false;
        for_each_read(fully_composed_nest(values_, number), [&](const ScalarNode& s) {
            const int from = result_.group_of[s.operand.value()];
            any = any || (from >= 0 && (from == g || depends(from, g)));
        });
        return any;
    }

    static double typical_bytes(const Value& value) {
        return bytes_of(value.node->type.dtype) * count_of(value);
    }

    bool same_rows(const Group& own, const Nest& full, int number) const {
        const Group& group = result_.groups[number];
        if (group.by_library || group.split || group.tiled || !(group.extent == own.extent) ||
            !in_time(own.values[0], number))
            return false;
        const bool scalars = values_.list[group.values[0]].nest.parallel.empty();
        if (scalars != full.parallel.empty()) return false;
        bool rows = true;
        for_each_read(full, [&](const ScalarNode& s) {
            if (result_.group_of[s.operand.value()] != number || full.parallel.empty()) return;
            rows = rows && !s.at.empty() && s.at[0] == full.parallel[0].variable &&
                   !is_saved(values_.list[s.operand.value()]) && !ends_.contains(s.operand.value());
        });
        return rows;
    }

    void merge(int from, int into) {
        Group& a = result_.groups[into];
        Group& b = result_.groups[from];
        for (const int v : b.values) result_.group_of[v] = into;
        a.values.insert(a.values.end(), b.values.begin(), b.values.end());
        std::sort(a.values.begin(), a.values.end());
        a.needs.insert(b.needs.begin(), b.needs.end());
        a.statements += b.statements;
        b = Group{};
        for (Group& group : result_.groups)
            if (group.needs.erase(from)) group.needs.insert(into);
    }

    bool depends(int group, int on) const { return bitale::depends(result_, group, on); }

    void place_check(int number) {
        Group group;
        group.checks = {number};
        group.may_fail = true;
        group.statements = 8;
        const int value = values_.number.at(graph_.checks[number].value.get());
        if (!graph_.checks[number].value->type.shape.empty())
            group.extent = graph_.checks[number].value->type.shape[0];
        const auto need = [&](int v) {
            if (result_.group_of[v] >= 0) group.needs.insert(result_.group_of[v]);
        };
        need(value);
        if (values_.list[value].storage == Value::Storage::inlined ||
            values_.list[value].storage == Value::Storage::staged)
            for_each_read(fully_composed_nest(values_, value),
                          [&](const ScalarNode& s) { need(s.operand.value()); });
        result_.groups.push_back(std::move(group));
    }

    // Members that one loop computes follow one another, behind all that they read. Plans that depend on what
    // is read before what is written find the order here.
    void join_positions() {
        if (!target_.has_vectors()) return;
        for (Group& group : result_.groups) {
            if (group.split || group.by_library) continue;
            for (auto v = group.values.begin(); v != group.values.end(); ++v) {
                const auto other = std::find_if(v + 1, group.values.end(),
                                                [&](int w) { return are_computed_together(*v, w); });
                if (other == group.values.end()) continue;
                const std::set<int> needed = read_by(*other, v, other);
                if (needed.contains(*v)) continue;
                v = std::stable_partition(v, other, [&](int w) { return needed.contains(w); });
                std::rotate(v + 1, other, other + 1);
            }
        }
    }

    // Those of some members that another one reads, or that these read: also through values of which the task
    // makes copies.
    std::set<int> read_by(int number, std::vector<int>::const_iterator begin,
                          std::vector<int>::const_iterator end) const {
        std::set<int> found;
        std::vector<int> open{number};
        while (!open.empty()) {
            const int reader = open.back();
            open.pop_back();
            for_each_read(fully_composed_nest(values_, reader), [&](const ScalarNode& s) {
                const int v = s.operand.value();
                if (std::find(begin, end, v) != end && found.insert(v).second) open.push_back(v);
            });
        }
        return found;
    }

    const Values& values_;
    const Graph& graph_;
    const Target& target_;
    const std::set<int>& ends_;
    const std::vector<bool> behind_;
    std::set<int> alone_;  // values that change a large part of a variable
    Grouping result_;
    std::map<int, std::vector<int>> readers_;  // values that read a stored one
    FusionScores scores_{values_, graph_, target_, result_};
};

}  // namespace

bool depends(const Grouping& grouping, int group, int on) {
    std::vector<int> stack{group};
    std::set<int> seen;
    while (!stack.empty()) {
        const int g = stack.back();
        stack.pop_back();
        if (g == on) return true;
        for (const int need : grouping.groups[static_cast<std::size_t>(g)].needs)
            if (seen.insert(need).second) stack.push_back(need);
    }
    return false;
}

Grouping form_groups(const Values& values, const Graph& graph, const Target& target) {
    return ended_early(values, graph,
                       [&](const std::set<int>& ends) { return Grouper(values, graph, target, ends).run(); });
}

}  // namespace bitale
