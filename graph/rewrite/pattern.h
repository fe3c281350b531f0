// Pattern: what a rule looks for, and what it puts in its place, as values made from op names.
//
// A pattern is a wildcard, a constant, a number, or an op over patterns. The same wildcard twice stands for
// the same value. Ops whose MapInfo says commutative match their operands in either order. As a template (the
// right side of a rule) a pattern is built instead of matched: captured patterns are what they captured, a
// number takes the dtype of its sibling operands, and an op's attributes are carried over from the match (see
// Template attributes below).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

struct PatternNode;

class Pattern {
  public:
    // A constant all of whose elements equal the number; -0.0 and 0.0 are different numbers, every NaN is
    // NaN.
    Pattern(double number);                                        // NOLINT: numbers are patterns
    Pattern(int number) : Pattern(static_cast<double>(number)) {}  // NOLINT
    static Pattern any(std::string name);
    // Any constant whose elements are all equal.
    static Pattern constant(std::string name);
    static Pattern apply(std::string op, std::vector<Pattern> operands);
    // A node of any op of this kind, whatever its operands.
    static Pattern of_kind(OpKind kind, std::string name);
    // A node of the op with any number of operands, one of which at least is such a node again: with equal
    // attributes and no other user. The match consumes the node and all such operands.
    static Pattern nested(std::string op);

    // Matches only a node with exactly one user: for rewrites that would otherwise compute it twice.
    Pattern once() const;
    // Marks what a rule may compute a second time, operands included, where it has other users. Of all else
    // the driver refuses a rewrite that makes work grow so: see repeats_work.
    Pattern again() const;
    // Pattern: the node has this attribute. Template: sets it.
    Pattern with(const std::string& name, Attribute value) const;
    // Template attributes: those of the matched node. Without it, those of the matched node with the same op;
    // for maps none; for other ops those of the only matched node that has attributes.
    Pattern like(const Pattern& matched) const;

    const PatternNode& operator*() const { return *node_; }
    const PatternNode* get() const { return node_.get(); }
    std::string text() const;  // "log(softmax(x))"

  private:
    explicit Pattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}
    std::shared_ptr<const PatternNode> node_;
};

struct PatternNode {
    enum class Kind : std::uint8_t { any, constant, number, apply, of_kind, nested };
    Kind kind = Kind::any;
    std::string name;  // of the wildcard or the op
    double number = 0;
    OpKind op_kind = OpKind::leaf;
    std::vector<Pattern> operands;
    Attributes attributes;
    bool once = false, again = false;
    std::optional<Pattern> like;

    // The op of an apply or a nested; InternalError for a name that no op has.
    const Op* op() const;

  private:
    // Looked up at first use, by any thread: patterns may be built before the ops register.
    struct KnownOp {
        std::atomic<const Op*> op{nullptr};
        KnownOp() = default;
        KnownOp(const KnownOp&) {}  // NOLINT: a copy looks it up again
        KnownOp& operator=(const KnownOp&) = delete;
    };
    mutable KnownOp known_;
};

// What a pattern stood for in a match.
class Match {
  public:
    const NodePtr& root() const { return root_; }
    // The node that a part of the pattern matched; InternalError for a part that is not in the pattern.
    const NodePtr& operator[](const Pattern& part) const;
    const NodePtr* find(const PatternNode* part) const;
    // The common value of a constant's elements.
    double number(const Pattern& part) const;
    // Matched nodes of ops, root first: what the rewrite makes disappear.
    const Nodes& consumed() const { return consumed_; }
    // Whether a replacement may look at the operands of this node: it is no barrier. Those of the root
    // always.
    bool may_look_through(const NodePtr& node) const;

  private:
    friend class Matcher;
    std::optional<Pattern> pattern_;  // keeps the parts' addresses from being used again
    NodePtr root_;
    const std::unordered_set<const Node*>* barriers_ = nullptr;
    std::vector<std::pair<const PatternNode*, NodePtr>> parts_;
    Nodes consumed_;
};

// What surrounds the nodes that are matched.
struct MatchContext {
    const std::unordered_set<const Node*>* barriers = nullptr;    // opaque: only wildcards match them
    const std::unordered_map<const Node*, int>* users = nullptr;  // counts; a missing node has one user
    bool* has_other_users = nullptr;  // set where a node does not match because of its users
};

// The first match in a fixed order, or nothing; then, if asked, `why` says what did not fit.
std::optional<Match> match(const Pattern& pattern, const NodePtr& node, const MatchContext& context = {},
                           std::string* why = nullptr);
// The template for a match. Throws what make_node throws.
NodePtr build(const Pattern& pattern, const Match& match);

// The value of a constant whose elements are all equal (bit by bit): a rank-0 array; else nothing.
std::optional<Array> uniform_value(const NodePtr& node);
// A rank-0 constant of the dtype; the number must be a value of it.
NodePtr scalar_node(DType dtype, double number, Where where = {});

}  // namespace bitale
