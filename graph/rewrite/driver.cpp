#include "graph/rewrite/driver.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/rewrite/work.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

// What new nodes inherit from those that they replace.
struct Provenance {
    Where where;
    std::vector<Origin> origins;
    std::vector<std::string> rules;
};

bool in_force(const Rule& rule) { return !rule.why_not(); }

// Rules that would be in force without math=strict. The others that it concerns need assume_finite=on.
bool held_back(const Rule& rule) {
    const Options& o = options();
    return o.strict_math && (rule.tag == Tag::reassociates || rule.tag == Tag::skips_zeros) &&
           o.enabled(rule.name) && o.enabled(name_of(rule.tag));
}

// Some of the rules by the op that their pattern starts with.
class RuleIndex {
  public:
    explicit RuleIndex(const RuleSet& set, bool (*takes)(const Rule&) = in_force) {
        for (const Rule& rule : set.rules) {
            if (!takes(rule)) continue;
            const PatternNode& top = *rule.pattern;
            const bool of_one_op =
                top.kind == PatternNode::Kind::apply || top.kind == PatternNode::Kind::nested;
            (of_one_op ? by_op_[top.op()] : anywhere_).push_back(&rule);
        }
    }

    // Calls f(rule) until it returns true.
    template <class F>
    bool any(const Node& node, const F& f) const {
        if (const auto at = by_op_.find(node.op); at != by_op_.end())
            for (const Rule* rule : at->second)
                if (may_match(*rule->pattern, node) && f(*rule)) return true;
        return std::any_of(anywhere_.begin(), anywhere_.end(), [&](const Rule* rule) { return f(*rule); });
    }

  private:
    static bool may_be(const PatternNode& pattern, const Node& node) {
        switch (pattern.kind) {
            case PatternNode::Kind::constant:
            case PatternNode::Kind::number: return node.op == constant_op();
            case PatternNode::Kind::apply:
            case PatternNode::Kind::nested: return node.op == pattern.op();
            case PatternNode::Kind::of_kind: return node.op->kind == pattern.op_kind;
            case PatternNode::Kind::any: break;
        }
        return true;
    }

    // A look at the operands' ops, before a match allocates anything.
    static bool may_match(const PatternNode& top, const Node& node) {
        if (top.kind == PatternNode::Kind::nested)
            return std::any_of(node.inputs.begin(), node.inputs.end(),
                               [&](const NodePtr& input) { return input->op == node.op; });
        if (top.operands.size() != node.inputs.size()) return false;
        const bool either = node.op->map && node.op->map->commutative && node.inputs.size() == 2;
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const PatternNode& operand = *top.operands[i];
            if (!may_be(operand, *node.inputs[i]) && !(either && may_be(operand, *node.inputs[1 - i])))
                return false;
        }
        return true;
    }

    std::unordered_map<const Op*, std::vector<const Rule*>> by_op_;
    std::vector<const Rule*> anywhere_;
};

// The nodes that need no work because they are there anyway.
using Exists = std::function<bool(const Node&)>;

// The replacement with the node's type; null if the rule does not apply, its result cannot have that type, or
// it would do again what stays in use. What users of nodes prevent is counted as `refused`.
NodePtr replacement(const Rule& rule, const RuleSet& set, const NodePtr& node, const MatchContext& context,
                    const Exists& exists, Match& match, std::size_t& refused) {
    bool has_other_users = false;
    NodePtr made = rule.apply(node, {context.barriers, context.users, &has_other_users}, &match);
    if (!made && has_other_users) ++refused;
    if (made && made->type != node->type && made->type.dtype == node->type.dtype && set.adapt)
        made = set.adapt(made, node->type, node->where);
    if (!made || made->type != node->type) return nullptr;
    if (!repeats_work(rule.pattern, match, made, *context.users, exists)) return made;
    ++refused;
    return nullptr;
}

// One pass over the graph, operands first.
class Rewriter {
  public:
    Rewriter(const RuleSet& set, const RuleIndex& index, const RuleIndex* held, const RewriteOptions& options,
             std::size_t most_steps)
        : set_(set), index_(index), held_(held), options_(options), most_steps_(most_steps) {}

    Nodes run(const Nodes& roots) {
        for (const NodePtr& node : topological(roots))
            for (const NodePtr& input : node->inputs) ++users_[input.get()];
        for (const NodePtr& root : roots) ++users_[root.get()];
        Nodes results;
        for (const NodePtr& root : roots) results.push_back(normal_form(root));
        return results;
    }

    std::size_t steps() const { return steps_; }
    std::size_t refused() const { return refused_; }
    const std::map<std::string, std::size_t>& fired() const { return fired_; }

  private:
    struct Frame {
        NodePtr current;
        std::shared_ptr<const Provenance> from;  // set: current was made by a rule and is nobody else's
        Nodes replaced;                          // earlier forms of current; they share its normal form
        std::size_t next = 0;
    };

    const NodePtr* known(const NodePtr& node) const {
        const auto at = normal_.find(node.get());
        return at == normal_.end() ? nullptr : &at->second;
    }

    NodePtr normal_form(const NodePtr& root) {
        if (const NodePtr* done = known(root)) return *done;
        stack_.push_back({root, nullptr, {}, 0});
        while (!stack_.empty()) {
            Frame& top = stack_.back();
            if (is_barrier(*top.current)) {
                finish(top.current);
            } else if (top.next < top.current->inputs.size()) {
                const NodePtr input = top.current->inputs[top.next++];
                if (!known(input)) stack_.push_back({input, top.from, {}, 0});
            } else {
                step(top);
            }
        }
        return *known(root);
    }

    bool is_barrier(const Node& node) const {
        return options_.barriers && options_.barriers->contains(&node);
    }

    // All operands are in normal form.
    void step(Frame& frame) {
        NodePtr node = with_normal_operands(frame);
        if (const NodePtr* done = known(node)) {
            frame.replaced.push_back(node);
            return finish(NodePtr(*done));
        }
        const MatchContext context{options_.barriers, &users_};
        // Operands are in normal form, so whatever is known is no work of this rewrite.
        const Exists exists = [&](const Node& other) { return normal_.contains(&other); };
        const bool rewritten = index_.any(*node, [&](const Rule& rule) {
            Match match;
            const NodePtr made = replacement(rule, set_, node, context, exists, match, refused_);
            if (!made) return false;
            BITALE_CHECK(made != node, "rule " + rule.name + " replaces a node by itself");
            count(rule);
            replace(frame, node, made, match, rule);
            return true;
        });
        if (rewritten) return;
        if (held_) note_held_back(node, context, exists);
        frame.replaced.push_back(node);
        finish(node);
    }

    void note_held_back(const NodePtr& node, const MatchContext& context, const Exists& exists) const {
        std::size_t refused = 0;
        held_->any(*node, [&](const Rule& rule) {
            Match match;
            if (!options_.held_back->contains(rule.name) &&
                replacement(rule, set_, node, context, exists, match, refused))
                options_.held_back->insert(rule.name);
            return false;
        });
    }

    NodePtr with_normal_operands(const Frame& frame) {
        Nodes inputs;
        bool changed = false;
        for (const NodePtr& input : frame.current->inputs) {
            inputs.push_back(*known(input));
            changed |= inputs.back() != input;
        }
        NodePtr node = changed ? with_inputs(frame.current, std::move(inputs)) : frame.current;
        if (!changed && !frame.from) return node;
        BITALE_CHECK(node->type == frame.current->type,
                     "normal operands change the type of " + describe(*node));
        if (frame.from) stamp(*node, *frame.from);
        return options_.interner ? options_.interner->intern(node) : node;
    }

    // `fresh` is not shared yet.
    static void stamp(const Node& fresh, const Provenance& from) {
        if (fresh.op == input_op()) return;
        auto& node = const_cast<Node&>(fresh);
        if (node.where.line == 0) node.where = from.where;
        merge_origins(node.origins, from.origins);
        merge_rules(node.rules, from.rules);
    }

    void replace(Frame& frame, const NodePtr& node, const NodePtr& made, const Match& match,
                 const Rule& rule) {
        auto from = std::make_shared<Provenance>();
        from->where = node->where;
        for (const NodePtr& consumed : match.consumed()) {
            merge_origins(from->origins, consumed->origins);
            merge_rules(from->rules, consumed->rules);
        }
        merge_rules(from->rules, {rule.name});
        if (frame.current != node) frame.replaced.push_back(frame.current);
        frame.replaced.push_back(node);
        if (const NodePtr* done = known(made)) {
            if (options_.interner && (*done)->op->kind != OpKind::leaf)
                options_.interner->inherit(*done, from->origins, from->rules);
            return finish(NodePtr(*done));
        }
        if (made->name.empty() && made->op != input_op()) const_cast<Node&>(*made).name = node->name;
        frame.replaced.push_back(std::exchange(frame.current, made));
        frame.from = std::move(from);
        frame.next = 0;
    }

    void count(const Rule& rule) {
        ++fired_[rule.name];
        if (++steps_ <= most_steps_) return;
        const auto most = std::max_element(fired_.begin(), fired_.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        internal_failure(__FILE__, __LINE__, "rewriting ends",
                         "rule " + most->first + " of " + set_.name +
                             " does not come to an end: it was applied " + std::to_string(most->second) +
                             " times");
    }

    void finish(NodePtr result) {
        Frame frame = std::move(stack_.back());
        stack_.pop_back();
        frame.replaced.push_back(frame.current);
        frame.replaced.push_back(result);
        for (NodePtr& earlier : frame.replaced) {
            if (!normal_.emplace(earlier.get(), result).second) continue;
            if (earlier != result)
                if (const auto users = users_.find(earlier.get()); users != users_.end())
                    users_[result.get()] += users->second;
            alive_.push_back(std::move(earlier));
        }
    }

    const RuleSet& set_;
    const RuleIndex& index_;
    const RuleIndex* const held_;
    const RewriteOptions& options_;
    const std::size_t most_steps_;
    std::size_t steps_ = 0, refused_ = 0;
    std::map<std::string, std::size_t> fired_;
    std::vector<Frame> stack_;
    NodeMap normal_;
    Nodes alive_;  // addresses in normal_ must not be used again
    std::unordered_map<const Node*, int> users_;
};

std::string summary(const RuleSet& set, const std::map<std::string, std::size_t>& fired) {
    std::string s = set.name + ":";
    for (const auto& [rule, times] : fired) s += " " + rule + " x" + std::to_string(times);
    return s;
}

}  // namespace

Nodes rewrite(const Nodes& roots, const RuleSet& set, const RewriteOptions& how) {
    const RuleIndex index(set);
    std::optional<RuleIndex> held;
    if (how.held_back && options().strict_math) held.emplace(set, held_back);
    constexpr std::size_t most_steps_per_node = 64, small_graph = 4096;
    const std::size_t most_steps = most_steps_per_node * topological(roots).size() + small_graph;
    // Operands first, one round is enough, except that a node may lose all but one of its users in it.
    constexpr int most_rounds = 16;
    Nodes results = roots;
    for (int round = 0; round < most_rounds; ++round) {
        Rewriter rewriter(set, index, held ? &*held : nullptr, how, most_steps);
        results = rewriter.run(results);
        if (logs(3) && !rewriter.fired().empty()) log(3, summary(set, rewriter.fired()));
        if (rewriter.steps() == 0 || rewriter.refused() == 0) break;
    }
    return results;
}

void verify_normal_form(const Nodes& roots, const RuleSet& set, const RewriteOptions& how) {
    const RuleIndex index(set);
    const Nodes order = topological(roots);
    std::unordered_map<const Node*, int> users;
    for (const NodePtr& node : order)
        for (const NodePtr& input : node->inputs) ++users[input.get()];
    for (const NodePtr& root : roots) ++users[root.get()];
    std::unordered_set<const Node*> there;
    for (const NodePtr& node : order) there.insert(node.get());
    const Exists exists = [&](const Node& node) { return there.contains(&node); };
    std::size_t refused = 0;
    for (const NodePtr& node : order) {
        if (how.barriers && how.barriers->contains(node.get())) continue;
        index.any(*node, [&](const Rule& rule) {
            Match match;
            BITALE_CHECK(
                !replacement(rule, set, node, {how.barriers, &users}, exists, match, refused),
                "after " + set.name + ", rule " + rule.name + " still applies to " + describe(*node));
            return false;
        });
    }
}

}  // namespace bitale
