#include "codegen/group/together.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "codegen/nest/compose.h"
#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/short_rows.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

constexpr std::size_t most_sums = 4, most_maps = 16, most_reads = 512;

// Whether all reads of the operand are of the element at these indices.
bool reads_at(const Nest& nest, int operand, const std::vector<Int>& at) {
    bool own = nest.lets.empty() && nest.guards.empty();
    for_each_read(nest, [&](const ScalarNode& s) {
        if (s.operand.value() == operand) own = own && s.guards.empty() && s.at == at;
    });
    return own;
}

std::vector<Int> points_of(const Nest& nest) {
    std::vector<Int> at = variables_of(nest.parallel);
    for (const Loop& l : nest.reduced) at.push_back(l.variable);
    return at;
}

bool is_fold(const Value& value) {
    switch (value.nest.combine) {
        case Combine::sum:
        case Combine::prod:
        case Combine::max:
        case Combine::min: return value.nest.body && !value.by_library;
        default: return false;
    }
}

bool same_trees(const ReductionTree& a, const ReductionTree& b) {
    return a.lanes == b.lanes && a.groups == b.groups && a.split == b.split && a.by_rows == b.by_rows;
}

// May be computed where it is read.
bool is_open_map(const Value& value) {
    const bool in_memory =
        value.storage == Value::Storage::stored || value.required || value.packed || value.by_library;
    return value.nest.body && value.nest.combine == Combine::none && !in_memory;
}

// The reads of a nest that is composed of all such maps. Each path to a value may read it elsewhere, so a
// chain in which each value is read several times has exponentially many.
std::size_t composed_reads(const Values& values, int number, std::map<int, std::size_t>& known) {
    const auto at = known.find(number);
    if (at != known.end()) return at->second;
    std::size_t reads = 0;
    for_each_read(values.list[static_cast<std::size_t>(number)].nest, [&](const ScalarNode& s) {
        if (reads > most_reads) return;
        const int v = s.operand.value();
        const bool open = is_open_map(values.list[static_cast<std::size_t>(v)]);
        reads += open ? std::max<std::size_t>(composed_reads(values, v, known), 1) : 1;
    });
    return known[number] = reads;
}

// The reduction with all that may be computed where it is read, but for one value.
Nest composed_but_for(const Values& values, int number, int stored) {
    return simplify(compose(values.list[static_cast<std::size_t>(number)].nest, [&](int v) {
        const Value& operand = values.list[static_cast<std::size_t>(v)];
        return v != stored && is_open_map(operand) ? &operand.nest : nullptr;
    }));
}

// Nothing where one loop in lanes, of terms or of results, is not the schedule of the reduction, or adds
// terms in another order than if the value were stored, as it is on other devices.
std::optional<ReductionTree> tree_in_one_loop(const Values& values, int number, int value) {
    const Nest nest = composed_but_for(values, number, -1), other = composed_but_for(values, number, value);
    if (!nest.lets.empty() || !nest.guards.empty() || nest.reduced.empty()) return {};
    const bool of_data = is_of_data(values, number);
    const ReductionTree tree = tree_of(in_rows(exact_sum(nest), of_data), values.shapes());
    // The lanes of several short rows meet at once, which sums of one loop do not.
    if (tree.split || tree.by_rows || is_short_row(nest, tree) ||
        (tree.lanes == 1 && vector_loop(nest, values.shapes()) < 0) ||
        !same_trees(tree, tree_of(in_rows(exact_sum(other), of_data), values.shapes())))
        return {};
    return tree;
}

bool share_loops(const Values& values, const std::vector<int>& reductions, int value) {
    std::optional<ReductionTree> all;
    for (const int number : reductions) {
        const std::optional<ReductionTree> tree = tree_in_one_loop(values, number, value);
        const std::size_t rank = values.list[static_cast<std::size_t>(number)].nest.parallel.size(),
                          of_first =
                              values.list[static_cast<std::size_t>(reductions[0])].nest.parallel.size();
        if (!tree || rank != of_first || (all && !same_trees(*all, *tree))) return false;
        all = tree;
    }
    return true;
}

// Whether one of the values is computed from another one of them.
bool depend_on_each_other(const Values& values, const std::vector<int>& sums) {
    std::vector<int> stack = sums;
    std::set<int> seen;
    while (!stack.empty()) {
        const int v = stack.back();
        stack.pop_back();
        for (const NodePtr& input : values.list[static_cast<std::size_t>(v)].node->inputs) {
            const int operand = values.number.at(input.get());
            if (std::binary_search(sums.begin(), sums.end(), operand)) return true;
            if (operand > sums.front() && seen.insert(operand).second) stack.push_back(operand);
        }
    }
    return false;
}

}  // namespace

std::vector<int> summed_together(const Values& values, int value) {
    const Shape& shape = values.list[static_cast<std::size_t>(value)].shape;
    std::vector<int> maps{value}, sums;
    for (std::size_t next = 0; next < maps.size(); ++next)
        for (const int number : values.list[static_cast<std::size_t>(maps[next])].users) {
            const Value& user = values.list[static_cast<std::size_t>(number)];
            const bool is_map = user.nest.combine == Combine::none;
            const bool is_inlined =
                user.storage == Value::Storage::inlined && !user.required && user.shape == shape;
            if (!user.nest.body || user.by_library ||
                !reads_at(user.nest, maps[next], points_of(user.nest)) ||
                !(is_map ? is_inlined : is_fold(user)))
                return {};
            std::vector<int>& list = is_map ? maps : sums;
            if (std::find(list.begin(), list.end(), number) == list.end()) list.push_back(number);
            if (maps.size() > most_maps || sums.size() > most_sums) return {};
        }
    std::sort(sums.begin(), sums.end());
    std::map<int, std::size_t> known;
    const bool is_small = std::all_of(
        sums.begin(), sums.end(), [&](int sum) { return composed_reads(values, sum, known) <= most_reads; });
    if (sums.size() < 2 || !is_small || depend_on_each_other(values, sums) ||
        !share_loops(values, sums, value))
        return {};
    return sums;
}

}  // namespace bitale
