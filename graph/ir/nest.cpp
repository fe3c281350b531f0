#include "graph/ir/nest.h"

#include <algorithm>

#include "graph/base/numbers.h"

namespace bitale {

Loop make_loop(const std::string& name, const Int& extent) {
    if (extent.is(1)) return {0, extent};
    // A loop that may run never keeps its variable, even if the only value that it can take is 0.
    const std::int64_t high = extent.range().high;
    return {Int::symbol(name, {0, high >= IntRange::highest ? IntRange::highest
                                                            : std::max<std::int64_t>(high - 1, 1)}),
            extent};
}

namespace {

std::shared_ptr<ScalarNode> fresh(ScalarNode::Kind kind, DType dtype) {
    auto s = std::make_shared<ScalarNode>();
    s->kind = kind;
    s->dtype = dtype;
    return s;
}

}  // namespace

Scalar scalar_constant(DType dtype, double number) {
    auto s = fresh(ScalarNode::Kind::constant, dtype);
    s->number = number;
    s->integer = is_float(dtype) ? 0 : static_cast<std::int64_t>(number);
    return s;
}

Scalar scalar_integer(DType dtype, std::int64_t integer) {
    auto s = fresh(ScalarNode::Kind::constant, dtype);
    s->number = static_cast<double>(integer);
    s->integer = integer;
    return s;
}

Scalar scalar_index(DType dtype, Int index) {
    auto s = fresh(ScalarNode::Kind::index, dtype);
    s->index = std::move(index);
    return s;
}

Scalar scalar_read(DType dtype, Operand operand, std::vector<Int> at, std::vector<Guard> guards,
                   Scalar otherwise) {
    BITALE_CHECK(guards.empty() || otherwise, "a guarded read needs a value for outside");
    auto s = fresh(ScalarNode::Kind::read, dtype);
    s->operand = operand;
    s->at = std::move(at);
    s->guards = std::move(guards);
    s->otherwise = std::move(otherwise);
    return s;
}

Scalar scalar_read(DType dtype, int input, std::vector<Int> at, std::vector<Guard> guards, Scalar otherwise) {
    return scalar_read(dtype, Operand::of_input(input), std::move(at), std::move(guards),
                       std::move(otherwise));
}

Scalar scalar_apply(const Op* op, DType dtype, std::vector<Scalar> arguments) {
    auto s = fresh(ScalarNode::Kind::apply, dtype);
    s->op = op;
    s->arguments = std::move(arguments);
    return s;
}

Scalar scalar_apply(Opcode opcode, DType dtype, std::vector<Scalar> arguments) {
    return scalar_apply(op_of(opcode), dtype, std::move(arguments));
}

bool applies(const ScalarNode& s, Opcode opcode) {
    return s.kind == ScalarNode::Kind::apply && opcode_of(*s.op) == opcode;
}

Scalar scalar_cast(DType dtype, Scalar x) {
    if (x->dtype == dtype) return x;
    auto s = fresh(ScalarNode::Kind::cast, dtype);
    s->arguments = {std::move(x)};
    return s;
}

Scalar scalar_select(std::vector<Guard> guards, Scalar value, Scalar otherwise) {
    if (guards.empty()) return value;
    auto s = fresh(ScalarNode::Kind::select, value->dtype);
    s->guards = std::move(guards);
    s->arguments = {std::move(value)};
    s->otherwise = std::move(otherwise);
    return s;
}

const Op* affine_pair() {
    static const Op* op = [] {
        auto* pair = new Op;  // as the records of all ops
        pair->name = "pair";
        pair->kind = OpKind::map;
        pair->arity = 2;
        pair->map = std::make_shared<const MapInfo>(MapInfo{.text = "", .cost = 2});
        return pair;
    }();
    return op;
}

Nest nest_of(const Node& node) {
    if (node.op->nest) return node.op->nest(node);
    BITALE_CHECK(node.op->kind == OpKind::map, "no nest for " + node.op->name);
    Nest nest;
    nest.dtype = node.type.dtype;
    std::vector<Int> at;
    for (std::size_t i = 0; i < node.type.shape.size(); ++i) {
        nest.parallel.push_back(make_loop("i" + std::to_string(i), node.type.shape[i]));
        at.push_back(nest.parallel.back().variable);
    }
    std::vector<Scalar> arguments;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const Type& type = node.inputs[k]->type;
        arguments.push_back(
            scalar_read(type.dtype, static_cast<int>(k), type.rank() == 0 ? std::vector<Int>{} : at));
    }
    nest.body = node.op->name == "cast" ? scalar_cast(node.type.dtype, arguments[0])
                                        : scalar_apply(node.op, node.type.dtype, std::move(arguments));
    return nest;
}

namespace {

class Substituter {
  public:
    explicit Substituter(const Substitution& with) : with_(with) {}

    Scalar operator()(const Scalar& s) {
        if (!s) return s;
        if (const auto at = done_.find(s.get()); at != done_.end()) return at->second;
        const Scalar otherwise = (*this)(s->otherwise);
        bool changed = otherwise != s->otherwise || depends_on_any(s->index, with_);
        std::vector<Scalar> arguments;
        arguments.reserve(s->arguments.size());
        for (const Scalar& a : s->arguments) {
            arguments.push_back((*this)(a));
            changed = changed || arguments.back() != a;
        }
        for (const Int& x : s->at) changed = changed || depends_on_any(x, with_);
        for (const Guard& g : s->guards)
            for (const Int* x : {&g.value, &g.low, &g.high}) changed = changed || depends_on_any(*x, with_);
        if (!changed) return done_[s.get()] = s;
        auto r = std::make_shared<ScalarNode>(*s);
        r->index = substitute(s->index, with_);
        for (Int& x : r->at) x = substitute(x, with_);
        for (Guard& g : r->guards) g = guard(g);
        r->otherwise = otherwise;
        r->arguments = std::move(arguments);
        return done_[s.get()] = r;
    }
    Guard guard(const Guard& g) const {
        return {substitute(g.value, with_), substitute(g.low, with_), substitute(g.high, with_)};
    }

  private:
    const Substitution& with_;
    std::map<const ScalarNode*, Scalar> done_;
};

}  // namespace

Scalar substitute(const Scalar& scalar, const Substitution& with) { return Substituter(with)(scalar); }

Nest substitute(const Nest& nest, const Substitution& with) {
    Substitution all = with;
    Nest r = nest;
    for (Let& let : r.lets) {
        let.value = Substituter(all)(let.value);
        let.extent = substitute(let.extent, all);
        const AtomPtr old = let.symbol.as_atom();
        let.symbol = Int::symbol(old->name, old->range);
        all[old->id] = let.symbol;
    }
    Substituter apply(all);
    for (Loop& l : r.parallel) l = {substitute(l.variable, all), substitute(l.extent, all)};
    for (Loop& l : r.reduced) l = {substitute(l.variable, all), substitute(l.extent, all)};
    for (Guard& g : r.guards) g = apply.guard(g);
    r.body = apply(r.body);
    return r;
}

namespace {

std::string text_of(const Guard& g) { return g.low.text() + " <= " + g.value.text() + " < " + g.high.text(); }

}  // namespace

std::string text_of(const Scalar& s) {
    switch (s->kind) {
        case ScalarNode::Kind::constant:
            return is_float(s->dtype) ? number_text(s->number, 9) : std::to_string(s->integer);
        case ScalarNode::Kind::index: return s->index.text();
        case ScalarNode::Kind::read: {
            std::string r = "#" + std::to_string(s->operand.number()) + text_of(s->at);
            for (const Guard& g : s->guards) r += " if " + text_of(g);
            return s->guards.empty() ? r : "(" + r + " else " + text_of(s->otherwise) + ")";
        }
        case ScalarNode::Kind::select: {
            std::string r = "(" + text_of(s->arguments[0]);
            for (const Guard& g : s->guards) r += " if " + text_of(g);
            return r + " else " + text_of(s->otherwise) + ")";
        }
        case ScalarNode::Kind::cast:
            return std::string(name_of(s->dtype)) + "(" + text_of(s->arguments[0]) + ")";
        case ScalarNode::Kind::apply: break;
    }
    std::string r = s->op->name + "(";
    for (std::size_t i = 0; i < s->arguments.size(); ++i) r += (i ? ", " : "") + text_of(s->arguments[i]);
    return r + ")";
}

std::string text_of(const Nest& nest) {
    static const char* const combines[] = {"=",   "sum",    "prod",   "max",   "min",        "any",
                                           "all", "argmax", "argmin", "order", "order down", "affine"};
    std::string s = "[";
    for (const Loop& l : nest.parallel)
        s += (s.size() > 1 ? ", " : "") + l.variable.text() + " < " + l.extent.text();
    s += "] " + std::string(combines[static_cast<int>(nest.combine)]);
    for (const Loop& l : nest.reduced) s += " " + l.variable.text() + " < " + l.extent.text();
    for (const Guard& g : nest.guards) s += " where " + text_of(g);
    for (const Let& l : nest.lets) s += " let " + l.symbol.text() + " = " + text_of(l.value);
    return s + ": " + text_of(nest.body);
}

}  // namespace bitale
