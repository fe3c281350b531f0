#include "graph/walk/interner.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <tuple>

#include "graph/base/hash.h"

namespace bitale {

namespace {

constexpr std::size_t most_origins = 64, most_rules = 32;

std::uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

std::uint64_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// Long arrays are told apart by their ends; equality compares every byte.
std::uint64_t hash_of(const Array& array) {
    constexpr std::size_t piece = 2048;
    std::uint64_t h =
        mix(static_cast<std::uint64_t>(array.dtype()), static_cast<std::uint64_t>(array.size()));
    for (const std::int64_t length : array.shape()) h = mix(h, static_cast<std::uint64_t>(length));
    const auto* bytes = static_cast<const char*>(array.data());
    const auto count = static_cast<std::size_t>(array.bytes());
    h = mix(h, hash_of(std::string_view(bytes, std::min(count, piece))));
    return count > piece ? mix(h, hash_of(std::string_view(bytes + count - piece, piece))) : h;
}

struct HashAttribute {
    std::uint64_t operator()(bool x) const { return x; }
    std::uint64_t operator()(std::int64_t x) const { return static_cast<std::uint64_t>(x); }
    std::uint64_t operator()(double x) const { return std::bit_cast<std::uint64_t>(x); }
    std::uint64_t operator()(const std::string& x) const { return hash_of(std::string_view(x)); }
    std::uint64_t operator()(DType x) const { return static_cast<std::uint64_t>(x); }
    std::uint64_t operator()(const Int& x) const { return bitale::hash_of(x); }
    std::uint64_t operator()(const std::vector<Int>& x) const {
        std::uint64_t h = x.size();
        for (const Int& i : x) h = mix(h, bitale::hash_of(i));
        return h;
    }
    std::uint64_t operator()(const std::vector<std::int64_t>& x) const {
        std::uint64_t h = x.size();
        for (const std::int64_t i : x) h = mix(h, static_cast<std::uint64_t>(i));
        return h;
    }
    std::uint64_t operator()(const std::shared_ptr<const Array>& x) const { return hash_of(*x); }
    std::uint64_t operator()(const SharedPtr& x) const { return address(x.get()); }
};

// Of one statement the value itself comes before its gradient, and is the one that is kept.
bool before(const Origin& a, const Origin& b) {
    return std::make_tuple(std::string_view(a.where.file), a.where.line, std::string_view(a.what),
                           a.of_gradient) < std::make_tuple(std::string_view(b.where.file), b.where.line,
                                                            std::string_view(b.what), b.of_gradient);
}

bool equal(const Origin& a, const Origin& b) {
    return a.where.line == b.where.line && a.what == b.what &&
           std::string_view(a.where.file) == std::string_view(b.where.file);
}

}  // namespace

std::uint64_t hash_of(const Attribute& x) { return mix(x.index(), std::visit(HashAttribute{}, x)); }

std::uint64_t structure_hash(const Node& node) {
    std::uint64_t h = mix(address(node.op), static_cast<std::uint64_t>(node.type.dtype));
    for (const Int& length : node.type.shape) h = mix(h, hash_of(length));
    for (const NodePtr& input : node.inputs) h = mix(h, address(input.get()));
    for (const auto& [name, value] : node.attributes.entries())
        h = mix(mix(h, hash_of(std::string_view(name))), hash_of(value));
    return h;
}

bool same_structure(const Node& a, const Node& b) {
    return a.op == b.op && a.inputs == b.inputs && a.type == b.type && a.attributes == b.attributes;
}

bool same_expression(const NodePtr& a, const NodePtr& b) {
    constexpr int most_nodes = 64;
    std::vector<std::pair<const Node*, const Node*>> stack{{a.get(), b.get()}};
    for (int looked = 0; !stack.empty(); ++looked) {
        const auto [x, y] = stack.back();
        stack.pop_back();
        if (x == y) continue;
        // An input is only equal to itself.
        if (looked == most_nodes || x->op != y->op || x->op == input_op() || x->type != y->type ||
            x->attributes != y->attributes || x->inputs.size() != y->inputs.size())
            return false;
        for (std::size_t i = 0; i < x->inputs.size(); ++i)
            stack.emplace_back(x->inputs[i].get(), y->inputs[i].get());
    }
    return true;
}

void merge_origins(std::vector<Origin>& into, const std::vector<Origin>& more) {
    if (more.empty()) return;
    into.insert(into.end(), more.begin(), more.end());
    std::sort(into.begin(), into.end(), before);
    into.erase(std::unique(into.begin(), into.end(), equal), into.end());
    if (into.size() > most_origins) into.resize(most_origins);
}

void merge_rules(std::vector<std::string>& into, const std::vector<std::string>& more) {
    for (const std::string& rule : more)
        if (into.size() < most_rules && std::find(into.begin(), into.end(), rule) == into.end())
            into.push_back(rule);
}

NodePtr Interner::intern(const NodePtr& fresh) {
    if (fresh->op == input_op()) return fresh;
    std::vector<std::shared_ptr<Node>>& bucket = by_structure_[structure_hash(*fresh)];
    for (const std::shared_ptr<Node>& known : bucket) {
        if (known == fresh) return known;
        if (!same_structure(*known, *fresh)) continue;
        merge_origins(known->origins, fresh->origins);
        merge_rules(known->rules, fresh->rules);
        if (known->name.empty()) known->name = fresh->name;
        return known;
    }
    bucket.push_back(std::const_pointer_cast<Node>(fresh));
    return bucket.back();
}

void Interner::inherit(const NodePtr& node, const std::vector<Origin>& origins,
                       const std::vector<std::string>& rules) {
    const auto bucket = by_structure_.find(structure_hash(*node));
    if (bucket == by_structure_.end()) return;
    for (const std::shared_ptr<Node>& known : bucket->second) {
        if (known != node) continue;
        merge_origins(known->origins, origins);
        merge_rules(known->rules, rules);
    }
}

}  // namespace bitale
