#include "codegen/tune/excerpt.h"

#include <cstddef>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "graph/walk/traverse.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

constexpr std::size_t most_nodes = 48;

template <class F>
void for_each_int(const Attributes& attributes, F&& f) {
    for (const auto& [name, value] : attributes.entries()) {
        if (const Int* x = std::get_if<Int>(&value)) f(*x);
        if (const auto* list = std::get_if<std::vector<Int>>(&value))
            for (const Int& x : *list) f(x);
    }
}

template <class F>
bool all_lengths(const Graph& excerpt, F&& f) {
    for (const NodePtr& node : topological(excerpt.roots()))
        for (const Int& x : node->type.shape)
            if (!x.is_constant() && !f(x)) return false;
    return true;
}

bool is_literal(const NodePtr& node) { return is_constant(node) && node->type.rank() == 0; }

std::string number_of(const Int& x, const Substitution& numbers) { return substitute(x, numbers).text(); }

std::string shape_text(const Shape& shape, const Substitution& numbers) {
    std::string s = "[";
    for (const Int& x : shape) s += (s.size() > 1 ? ", " : "") + number_of(x, numbers);
    return s + "]";
}

std::string attribute_text(const Attribute& value, const Substitution& numbers) {
    if (const Int* x = std::get_if<Int>(&value)) return number_of(*x, numbers);
    if (const auto* list = std::get_if<std::vector<Int>>(&value)) return shape_text(*list, numbers);
    return text_of(value);
}

// A variable in place of a value.
NodePtr stand_in(const NodePtr& value, Maps maps, Graph& graph) {
    Type type = value->type;
    const bool map = maps == Maps::channels_last && value->op->kind != OpKind::leaf && type.rank() == 4;
    if (map) type.shape = {type.shape[0], type.shape[2], type.shape[3], type.shape[1]};
    graph.inputs.push_back(make_input(std::move(type), "", value->where));
    if (!map) return graph.inputs.back();
    return make_node(permute_op(), {graph.inputs.back()}, {{"axes", std::vector<std::int64_t>{0, 3, 1, 2}}},
                     value->where);
}

}  // namespace

Graph excerpt_of(const NodePtr& root, const std::function<bool(const NodePtr&)>& in_memory, Maps maps) {
    Graph graph;
    NodeMap with;
    std::unordered_set<const Node*> seen{root.get()};
    std::vector<NodePtr> queue{root};  // by distance from the root
    for (std::size_t next = 0; next < queue.size(); ++next)
        for (const NodePtr& input : queue[next]->inputs) {
            if (!seen.insert(input.get()).second) continue;
            if (input->op == input_op()) {
                graph.inputs.push_back(input);
            } else if (is_literal(input)) {
                continue;
            } else if (input->op->kind == OpKind::leaf || queue.size() >= most_nodes || in_memory(input)) {
                with.emplace(input.get(), stand_in(input, maps, graph));
            } else {
                queue.push_back(input);
            }
        }
    graph.outputs = replace({root}, with);
    collect_checks(graph);
    return graph;
}

std::set<std::uint64_t> symbols_of(const Graph& excerpt) {
    std::set<std::uint64_t> r;
    const auto add = [&](const Int& x) {
        if (x.is_constant()) return;
        for (const AtomPtr& a : symbols_of(x)) r.insert(a->id);
    };
    for (const NodePtr& node : topological(excerpt.roots())) {
        for (const Int& x : node->type.shape) add(x);
        for_each_int(node->attributes, add);
    }
    return r;
}

bool are_longest(const Graph& excerpt, const Substitution& numbers) {
    return all_lengths(excerpt, [&](const Int& x) { return substitute(x, numbers).is(x.range().high); });
}

std::string text_of_excerpt(const Graph& excerpt, const Substitution& numbers) {
    std::string s;
    std::unordered_map<const Node*, std::size_t> number;
    for (const NodePtr& node : topological(excerpt.roots())) {
        const std::size_t own = number.size();
        number.emplace(node.get(), own);
        s += std::to_string(own) + " " + std::string(node->op->name) + " " +
             std::string(name_of(node->type.dtype)) + shape_text(node->type.shape, numbers);
        if (node->op->kind != OpKind::leaf)
            for (const auto& [name, value] : node->attributes.entries())
                s += " " + name + "=" + attribute_text(value, numbers);
        for (const NodePtr& input : node->inputs) s += " #" + std::to_string(number.at(input.get()));
        s += "\n";
    }
    return s;
}

}  // namespace bitale
