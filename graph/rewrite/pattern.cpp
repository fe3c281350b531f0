#include "graph/rewrite/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "graph/walk/interner.h"

namespace bitale {

Pattern::Pattern(double number) {
    auto node = std::make_shared<PatternNode>();
    node->kind = PatternNode::Kind::number;
    node->number = number;
    node_ = std::move(node);
}

namespace {

std::shared_ptr<PatternNode> named(PatternNode::Kind kind, std::string name) {
    auto node = std::make_shared<PatternNode>();
    node->kind = kind;
    node->name = std::move(name);
    return node;
}

}  // namespace

Pattern Pattern::any(std::string name) { return Pattern(named(PatternNode::Kind::any, std::move(name))); }
Pattern Pattern::constant(std::string name) {
    return Pattern(named(PatternNode::Kind::constant, std::move(name)));
}

Pattern Pattern::apply(std::string op, std::vector<Pattern> operands) {
    auto node = named(PatternNode::Kind::apply, std::move(op));
    node->operands = std::move(operands);
    return Pattern(std::move(node));
}

Pattern Pattern::of_kind(OpKind kind, std::string name) {
    auto node = named(PatternNode::Kind::of_kind, std::move(name));
    node->op_kind = kind;
    return Pattern(std::move(node));
}

Pattern Pattern::nested(std::string op) { return Pattern(named(PatternNode::Kind::nested, std::move(op))); }

Pattern Pattern::once() const {
    auto node = std::make_shared<PatternNode>(*node_);
    node->once = true;
    return Pattern(std::move(node));
}

Pattern Pattern::again() const {
    auto node = std::make_shared<PatternNode>(*node_);
    node->again = true;
    return Pattern(std::move(node));
}

Pattern Pattern::with(const std::string& name, Attribute value) const {
    auto node = std::make_shared<PatternNode>(*node_);
    node->attributes.set(name, std::move(value));
    return Pattern(std::move(node));
}

Pattern Pattern::like(const Pattern& matched) const {
    auto node = std::make_shared<PatternNode>(*node_);
    node->like = matched;
    return Pattern(std::move(node));
}

std::string Pattern::text() const {
    switch (node_->kind) {
        case PatternNode::Kind::any:
        case PatternNode::Kind::constant:
        case PatternNode::Kind::of_kind: return node_->name;
        case PatternNode::Kind::number: return text_of(Attribute(node_->number));
        case PatternNode::Kind::nested: return node_->name + "(.., " + node_->name + "(..), ..)";
        case PatternNode::Kind::apply: break;
    }
    std::string s = node_->name + "(";
    for (std::size_t i = 0; i < node_->operands.size(); ++i) s += (i ? ", " : "") + node_->operands[i].text();
    return s + ")";
}

const Op* PatternNode::op() const {
    const Op* op = known_.op.load(std::memory_order_acquire);
    if (op) return op;
    op = find_op(name);
    BITALE_CHECK(op, "a pattern names the op \"" + name + "\", which does not exist");
    known_.op.store(op, std::memory_order_release);
    return op;
}

const NodePtr* Match::find(const PatternNode* part) const {
    for (const auto& [known, node] : parts_)
        if (known == part) return &node;
    return nullptr;
}

const NodePtr& Match::operator[](const Pattern& part) const {
    const NodePtr* node = find(part.get());
    BITALE_CHECK(node, "a rule asks for " + part.text() + ", which is not in its pattern");
    return *node;
}

bool Match::may_look_through(const NodePtr& node) const {
    return !barriers_ || !barriers_->contains(node.get());
}

double Match::number(const Pattern& part) const { return uniform_value((*this)[part]).value().at(0); }

std::optional<Array> uniform_value(const NodePtr& node) {
    if (!is_constant(node)) return std::nullopt;
    const Array& value = constant_value(node);
    if (value.size() == 0) return std::nullopt;
    const auto* bytes = static_cast<const char*>(value.data());
    const auto width = static_cast<std::size_t>(bytes_of(value.dtype()));
    for (std::int64_t i = 1; i < value.size(); ++i)
        if (std::memcmp(bytes, bytes + static_cast<std::size_t>(i) * width, width) != 0) return std::nullopt;
    Array scalar(value.dtype(), {});
    std::memcpy(scalar.mutable_data(), bytes, width);
    return scalar;
}

NodePtr scalar_node(DType dtype, double number, Where where) {
    return make_constant(Array(number).as(dtype), where);
}

namespace {

bool equal_numbers(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

}  // namespace

// Backtracks over the operand orders of commutative ops; patterns are small.
class Matcher {
  public:
    Matcher(const MatchContext& context, std::string* why) : context_(context), why_(why) {}

    bool run(const Pattern& pattern, const NodePtr& node) {
        match_.root_ = node;
        match_.barriers_ = context_.barriers;
        return solve({{pattern.get(), node, true}});
    }
    Match take(const Pattern& pattern) {
        match_.pattern_ = pattern;
        return std::move(match_);
    }

  private:
    struct Goal {
        const PatternNode* pattern;
        NodePtr node;
        bool root;
    };

    bool fail(const Goal& goal, const std::string& reason) {
        if (why_) *why_ = reason + ": " + describe(*goal.node);
        return false;
    }

    bool solve(std::vector<Goal> goals) {
        while (!goals.empty()) {
            const Goal goal = goals.back();
            goals.pop_back();
            const PatternNode& pattern = *goal.pattern;
            if (const NodePtr* bound = match_.find(&pattern)) {
                if (!same_expression(*bound, goal.node))
                    return fail(goal, "not the same value as the other " + pattern.name);
                continue;
            }
            if (!fits(goal)) return false;
            match_.parts_.emplace_back(&pattern, goal.node);
            if (pattern.kind == PatternNode::Kind::of_kind) match_.consumed_.push_back(goal.node);
            if (pattern.kind == PatternNode::Kind::nested) {
                match_.consumed_.push_back(goal.node);
                for (const NodePtr& input : goal.node->inputs)
                    if (is_nested(*goal.node, *input)) match_.consumed_.push_back(input);
            }
            if (pattern.kind != PatternNode::Kind::apply) continue;
            match_.consumed_.push_back(goal.node);
            const Nodes& inputs = goal.node->inputs;
            if (goal.node->op->map && goal.node->op->map->commutative && inputs.size() == 2) {
                const Match before = match_;
                std::vector<Goal> straight = goals;
                straight.push_back({pattern.operands[1].get(), inputs[1], false});
                straight.push_back({pattern.operands[0].get(), inputs[0], false});
                if (solve(std::move(straight))) return true;
                match_ = before;
                goals.push_back({pattern.operands[1].get(), inputs[0], false});
                goals.push_back({pattern.operands[0].get(), inputs[1], false});
                continue;
            }
            for (std::size_t i = inputs.size(); i-- > 0;)
                goals.push_back({pattern.operands[i].get(), inputs[i], false});
        }
        return true;
    }

    bool has_other_users(const Node& node) const {
        if (!context_.users) return false;
        const auto users = context_.users->find(&node);
        if (users == context_.users->end() || users->second <= 1) return false;
        if (context_.has_other_users) *context_.has_other_users = true;
        return true;
    }

    bool is_nested(const Node& node, const Node& input) const {
        return input.op == node.op && input.attributes == node.attributes &&
               !(context_.barriers && context_.barriers->contains(&input)) && !has_other_users(input);
    }

    // The node itself, without its operands.
    bool fits(const Goal& goal) {
        const PatternNode& pattern = *goal.pattern;
        const Node& node = *goal.node;
        if (pattern.once && has_other_users(node))
            return fail(goal, std::to_string(context_.users->at(&node)) + " users instead of one");
        switch (pattern.kind) {
            case PatternNode::Kind::any: return true;
            case PatternNode::Kind::constant:
                return uniform_value(goal.node) || fail(goal, "expected a constant of equal elements, found");
            case PatternNode::Kind::number: {
                const std::optional<Array> value = uniform_value(goal.node);
                return (value && equal_numbers(value->at(0), pattern.number)) ||
                       fail(goal, "expected the constant " + text_of(Attribute(pattern.number)) + ", found");
            }
            case PatternNode::Kind::of_kind:
                if (node.op->kind != pattern.op_kind)
                    return fail(goal, "an op of another kind than " + pattern.name);
                break;
            case PatternNode::Kind::nested:
                if (node.op != pattern.op()) return fail(goal, "expected " + pattern.name + ", found");
                if (std::none_of(node.inputs.begin(), node.inputs.end(),
                                 [&](const NodePtr& input) { return is_nested(node, *input); }))
                    return fail(goal, "no operand is such a node without other users");
                break;
            case PatternNode::Kind::apply:
                if (node.op != pattern.op()) return fail(goal, "expected " + pattern.name + ", found");
                if (node.inputs.size() != pattern.operands.size())
                    return fail(goal, "another number of operands");
                for (const auto& [name, value] : pattern.attributes.entries()) {
                    const Attribute* mine = node.attributes.find(name);
                    if (!mine || *mine != value)
                        return fail(goal, "attribute " + name + " is not " + text_of(value));
                }
        }
        if (!goal.root && context_.barriers && context_.barriers->contains(&node))
            return fail(goal, "a barrier");
        return true;
    }

    const MatchContext& context_;
    std::string* why_;
    Match match_;
};

std::optional<Match> match(const Pattern& pattern, const NodePtr& node, const MatchContext& context,
                           std::string* why) {
    Matcher matcher(context, why);
    if (!matcher.run(pattern, node)) return std::nullopt;
    return matcher.take(pattern);
}

namespace {

Attributes carried(const PatternNode& pattern, const Match& match) {
    Attributes attributes;
    const Op* op = pattern.op();
    if (pattern.like) {
        attributes = match[*pattern.like]->attributes;
    } else {
        const Node* from = nullptr;
        for (const NodePtr& node : match.consumed())
            if (!from && node->op == op) from = node.get();
        if (!from && op->kind != OpKind::map) {
            for (const NodePtr& node : match.consumed()) {
                if (node->attributes.entries().empty()) continue;
                BITALE_CHECK(!from, "attributes of " + pattern.name +
                                        " could come from two matched nodes: say like(...)");
                from = node.get();
            }
        }
        if (from) attributes = from->attributes;
    }
    for (const auto& [name, value] : pattern.attributes.entries()) attributes.set(name, value);
    return attributes;
}

// Numbers are built last: they take the dtype of the last sibling (the first operand of where is its
// condition), or of the root.
NodePtr build(const PatternNode& pattern, const Match& match, const NodePtr& sibling) {
    if (const NodePtr* captured = match.find(&pattern)) return *captured;
    const Where where = match.root()->where;
    if (pattern.kind == PatternNode::Kind::number)
        return scalar_node((sibling ? sibling : match.root())->type.dtype, pattern.number, where);
    BITALE_CHECK(pattern.kind == PatternNode::Kind::apply,
                 "a template uses " + pattern.name + ", which nothing matched");
    Nodes operands(pattern.operands.size());
    NodePtr typed;
    for (const bool numbers : {false, true})
        for (std::size_t i = 0; i < operands.size(); ++i) {
            if (((*pattern.operands[i]).kind == PatternNode::Kind::number) != numbers) continue;
            operands[i] = build(*pattern.operands[i], match, typed);
            if (!numbers) typed = operands[i];
        }
    return make_node(pattern.op(), std::move(operands), carried(pattern, match), where);
}

}  // namespace

NodePtr build(const Pattern& pattern, const Match& match) { return build(*pattern, match, nullptr); }

}  // namespace bitale
