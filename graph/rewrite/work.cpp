#include "graph/rewrite/work.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

namespace {

using NodeSet = std::unordered_set<const Node*>;

double estimated(const Int& length) {
    constexpr std::int64_t usual = 64;
    std::map<std::uint64_t, std::int64_t> values;
    for (const AtomPtr& symbol : symbols_of(length))
        values[symbol->id] = std::clamp(usual, symbol->range.low, symbol->range.high);
    return static_cast<double>(std::max<std::int64_t>(evaluate(length, values), 0));
}

double elements_of(const Shape& shape) {
    double count = 1;
    for (const Int& length : shape) count *= estimated(length);
    return count;
}

// One evaluation of a body, in which equal parts are one.
double cost_of(const Scalar& body) {
    std::unordered_set<const ScalarNode*> seen;
    std::vector<const ScalarNode*> stack{body.get()};
    double cost = 0;
    while (!stack.empty()) {
        const ScalarNode* scalar = stack.back();
        stack.pop_back();
        if (!scalar || !seen.insert(scalar).second) continue;
        if (scalar->op && scalar->op->map) cost += scalar->op->map->cost;
        stack.push_back(scalar->otherwise.get());
        for (const Scalar& argument : scalar->arguments) stack.push_back(argument.get());
    }
    return cost;
}

// Sets of loops over results, as bits.
using LoopSet = std::uint64_t;

// For each axis of an operand, on which of the loops over results the index along it depends.
using AxisLoops = std::vector<LoopSet>;

LoopSet loops_in(const Int& index, const std::vector<Loop>& loops, const AxisLoops& of_loops) {
    LoopSet found = 0;
    for (std::size_t i = 0; i < loops.size(); ++i)
        if (const std::uint64_t id = loops[i].variable.symbol_id(); id && depends_on(index, id))
            found |= of_loops[i];
    return found;
}

// What a body reads of each operand.
template <class F>
void for_each_read(const Scalar& body, const F& f) {
    std::unordered_set<const ScalarNode*> seen;
    std::vector<const ScalarNode*> stack{body.get()};
    while (!stack.empty()) {
        const ScalarNode* scalar = stack.back();
        stack.pop_back();
        if (!scalar || !seen.insert(scalar).second) continue;
        if (scalar->kind == ScalarNode::Kind::read) f(*scalar);
        stack.push_back(scalar->otherwise.get());
        for (const Scalar& argument : scalar->arguments) stack.push_back(argument.get());
    }
}

double work_of_reduction(const Node& node) {
    const Nest nest = node.op->nest(node);
    double points = 1;
    for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
        for (const Loop& loop : *loops) points *= estimated(loop.extent);
    return points * (1 + cost_of(nest.body));
}

// The sum over what lies between the root and what is there anyway.
double work_above(const NodePtr& root, const std::function<bool(const Node&)>& exists) {
    NodeSet seen;
    Nodes stack{root};
    double work = 0;
    while (!stack.empty()) {
        const NodePtr node = stack.back();
        stack.pop_back();
        if (exists(*node) || !seen.insert(node.get()).second) continue;
        work += work_of(node);
        stack.insert(stack.end(), node->inputs.begin(), node->inputs.end());
    }
    return work;
}

// The matched nodes of parts that may be computed again, with all that these consist of.
void collect_repeatable(const PatternNode& pattern, const Match& match, bool inside, NodeSet& found) {
    inside |= pattern.again;
    if (inside)
        if (const NodePtr* node = match.find(&pattern)) found.insert(node->get());
    for (const Pattern& operand : pattern.operands) collect_repeatable(*operand, match, inside, found);
}

}  // namespace

double work_of(const NodePtr& node) {
    const bool folds =
        !node->inputs.empty() && std::all_of(node->inputs.begin(), node->inputs.end(), is_constant);
    if (folds) return 0;
    switch (node->op->kind) {
        case OpKind::leaf:
        case OpKind::view: return 0;
        case OpKind::map: return elements_of(node->type.shape) * (node->op->map ? node->op->map->cost : 1);
        case OpKind::reduce: return node->op->nest ? work_of_reduction(*node) : 0;
        case OpKind::opaque: {  // more than any rule could save
            constexpr double least = 1e12;
            return least + elements_of(node->type.shape);
        }
        case OpKind::composite: break;
    }
    if (!node->op->decompose) return 0;
    NodeSet operands;
    for (const NodePtr& input : node->inputs) operands.insert(input.get());
    return work_above(node->op->decompose(node), [&](const Node& n) { return operands.contains(&n); });
}

double loads_per_point(const NodePtr& reduction) {
    const Nest nest = reduction->op->nest(*reduction);
    constexpr double most_results = 8;
    constexpr std::size_t most_nodes = 64, most_loops = 64;
    if (nest.parallel.size() > most_loops) return 1;
    AxisLoops own;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) own.push_back(LoopSet{1} << i);
    std::vector<std::pair<const Node*, AxisLoops>> stack;
    std::set<std::pair<const Node*, AxisLoops>> seen;
    const auto read = [&](const Node& reader, const Nest& by, const AxisLoops& of_loops) {
        for_each_read(by.body, [&](const ScalarNode& s) {
            AxisLoops axes;
            for (const Int& index : s.at) axes.push_back(loops_in(index, by.parallel, of_loops));
            stack.emplace_back(reader.inputs[static_cast<std::size_t>(s.operand.input())].get(),
                               std::move(axes));
        });
    };
    read(*reduction, nest, own);
    double loads = 0;
    while (!stack.empty()) {
        const auto [operand, axes] = stack.back();
        stack.pop_back();
        if (!seen.emplace(operand, axes).second) continue;
        if (seen.size() > most_nodes) return 1;
        if (operand->op->kind == OpKind::map) {
            for (const NodePtr& input : operand->inputs)
                stack.emplace_back(input.get(), input->type.rank() > 0 ? axes : AxisLoops());
            continue;
        }
        if (operand->op->kind == OpKind::view) {
            const Nest view = operand->op->nest(*operand);
            if (view.lets.empty()) {
                read(*operand, view, axes);
                continue;
            }
        }
        if (operand->type.rank() == 0) continue;
        LoopSet varies = 0;
        for (const LoopSet loops : axes) varies |= loops;
        double alike = 1;
        for (std::size_t i = 0; i < nest.parallel.size(); ++i)
            if (!(varies >> i & 1)) alike *= std::max(1.0, estimated(nest.parallel[i].extent));
        loads += 1 / std::min(alike, most_results);
    }
    return loads;
}

bool repeats_work(const Pattern& pattern, const Match& match, const NodePtr& made,
                  const std::unordered_map<const Node*, int>& users,
                  const std::function<bool(const Node&)>& exists) {
    // A matched node goes where all of its users do.
    Nodes gone{match.root()};
    NodeSet staying(match.consumed().size());
    for (const NodePtr& node : match.consumed()) staying.insert(node.get());
    staying.erase(match.root().get());
    const auto goes = [&](const NodePtr& node) {
        int uses = 0;
        for (const NodePtr& user : gone)
            uses += static_cast<int>(std::count(user->inputs.begin(), user->inputs.end(), node));
        const auto all = users.find(node.get());
        return all == users.end() || all->second <= uses;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (const NodePtr& node : match.consumed()) {
            if (!staying.contains(node.get()) || !goes(node)) continue;
            staying.erase(node.get());
            gone.push_back(node);
            changed = true;
        }
    }
    if (staying.empty()) return false;
    NodeSet repeatable;
    collect_repeatable(*pattern, match, false, repeatable);
    if (std::all_of(staying.begin(), staying.end(),
                    [&](const Node* node) { return repeatable.contains(node); }))
        return false;
    double before = 0;
    for (const NodePtr& node : gone) before += work_of(node);
    return work_above(made, exists) > before;
}

}  // namespace bitale
