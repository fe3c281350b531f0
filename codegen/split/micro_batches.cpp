#include "codegen/split/micro_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "bitale/train.h"
#include "codegen/nest/walk.h"
#include "codegen/split/batch_roles.h"
#include "codegen/split/batches.h"
#include "codegen/split/exact_totals.h"
#include "codegen/split/sliced_batches.h"
#include "graph/base/text.h"
#include "graph/ir/borrowed.h"
#include "graph/ir/length_input.h"
#include "graph/ir/shared.h"
#include "ops/autodiff/modifiers.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/slice.h"

namespace bitale {

namespace {

const Op* combining(Combine combine) {
    switch (combine) {
        case Combine::sum: return add_op();
        case Combine::prod: return mul_op();
        case Combine::max: return maximum_op();
        case Combine::min: return minimum_op();
        case Combine::any: return logical_or_op();
        case Combine::all: return logical_and_op();
        default: break;
    }
    BITALE_CHECK(false, "parts of the batch cannot be combined");
    return nullptr;
}

Int value_of(const NodePtr& scalar) { return scalar->attributes.get<Int>("symbol"); }

bool mentions(const Attributes& attributes, const Substitution& symbols) {
    const auto does = [&](const Int& x) { return depends_on_any(x, symbols); };
    for (const auto& [name, value] : attributes.entries()) {
        if (const Int* x = std::get_if<Int>(&value)) {
            if (does(*x)) return true;
        } else if (const auto* list = std::get_if<std::vector<Int>>(&value)) {
            if (std::any_of(list->begin(), list->end(), does)) return true;
        }
    }
    return false;
}

// First lengths of variables that are no rows of the batch are those of what stands for them.
Substitution other_lengths(const NodeMap& stand_ins, const Batch& batch) {
    Substitution lengths;
    for (const auto& [variable, stand_in] : stand_ins) {
        if (variable->type.rank() == 0) continue;
        const std::uint64_t symbol = variable->type.shape[0].symbol_id();
        if (symbol && symbol != batch.symbol) lengths.emplace(symbol, stand_in->type.shape[0]);
    }
    return lengths;
}

class Splitter {
  public:
    Splitter(const Graph& graph, std::size_t inputs, const NodeMap& stand_ins, BatchRoles roles,
             const Batch& batch, Where where)
        : graph_(graph),
          stand_ins_(stand_ins),
          roles_(std::move(roles)),
          batch_(batch),
          others_(other_lengths(stand_ins, batch)),
          first_(make_length_input("first row", where)),
          count_(make_length_input("rows of the part", where)),
          all_(make_length_input("rows of the batch", where)) {
        inputs_.assign(graph.inputs.begin(), graph.inputs.begin() + static_cast<std::ptrdiff_t>(inputs));
        for (const NodePtr& x : {first_, count_, all_}) inputs_.push_back(x);
    }

    MicroBatches run() {
        MicroBatches r;
        r.passes.resize(passes());
        for (MicroBatches::Pass& pass : r.passes) pass.graph = named(graph_.name);
        r.finale = named(graph_.name);
        for (std::size_t k = 0; k < graph_.outputs.size(); ++k) {
            const NodePtr& x = graph_.outputs[k];
            if (const BatchRole& role = role_of(x); role.is_rows()) {
                MicroBatches::Pass& pass = r.passes.at(static_cast<std::size_t>(role.pass));
                pass.graph.outputs.push_back(some_rows(x));
                if (role.blocks.size() != 1)
                    throw GraphError(x->where, "micro-batches: the output " + describe(*x) +
                                                   " holds the batch more than once, one after another; "
                                                   "return each of them as an output of its own");
                pass.rows.push_back({k, role.axis, role.blocks[0]});
            } else {
                r.finale.outputs.push_back(whole(x));
                r.whole.push_back(k);
            }
        }
        for (const SharedUpdate& u : graph_.updates) {
            if (role_of(u.value).is_rows())
                throw GraphError(u.where,
                                 "micro-batches: the new value of " + in_quotes(u.target->name) +
                                     " consists of rows of the batch, and a variable takes all of them at "
                                     "once; return it as an output, and give that to set_value()");
            r.finale.updates.push_back({u.target, whole(u.value), u.where});
        }
        for (const Check& c : graph_.checks) add_check(r, c);
        add_totals(r);
        // A GPU waits for results: an error is then of the rows of the part that it is thrown for.
        for (MicroBatches::Pass& pass : r.passes)
            if (pass.graph.outputs.empty() && !pass.graph.checks.empty())
                pass.graph.outputs.push_back(first_);
        return r;
    }

  private:
    const BatchRole& role_of(const NodePtr& x) const { return roles_.of.at(x.get()); }

    std::size_t passes() const {
        int most = 0;
        for (const auto& [node, role] : roles_.of)
            if (role.kind != BatchRole::Kind::whole) most = std::max(most, role.pass + 1);
        return static_cast<std::size_t>(most);
    }

    Graph named(const std::string& name) const {
        Graph g;
        g.name = name;
        g.inputs = inputs_;
        g.held_back = graph_.held_back;
        return g;
    }

    void add_check(MicroBatches& r, const Check& check) {
        Check c = check;
        const BatchRole& role = role_of(check.value);
        c.low = substitute(check.low, for_all());
        c.high = substitute(check.high, for_all());
        c.value = role.is_rows() ? some_rows(check.value) : whole(check.value);
        (role.is_rows() ? r.passes.at(static_cast<std::size_t>(role.pass)).graph : r.finale)
            .checks.push_back(std::move(c));
    }

    // Every partial value of the graph is somebody's operand, an output or an update.
    void add_totals(MicroBatches& r) {
        for (const NodePtr& node : topological(graph_.roots())) {
            const BatchRole& role = role_of(node);
            if (role.kind != BatchRole::Kind::partial) continue;
            const NodePtr total = total_of(node).variable, own = total_of(node).own;
            MicroBatches::Pass& pass = r.passes.at(static_cast<std::size_t>(role.pass));
            if (gives_places(role.combine))
                add_place(pass, *node, role.combine == Combine::argmax, total, own);
            else
                add_total(pass, role.combine, total,
                          wrap(make_node(combining(role.combine), {total, as(total->type.dtype, own)}, {},
                                         node->where)));
        }
    }

    static void add_total(MicroBatches::Pass& pass, Combine combine, const NodePtr& total,
                          const Expr& value) {
        pass.graph.updates.push_back({shared_of(total), value.node(), value.node()->where});
        pass.totals.push_back({shared_of(total), combine});
    }

    // The position of the best element so far, beside which that element is a total of its own. As within a
    // part, the first of equal ones and the first NaN count.
    void add_place(MicroBatches::Pass& pass, const Node& node, bool greatest, const NodePtr& total,
                   const NodePtr& own) {
        const Where where = node.where;
        NodePtr best_of_part = make_node(greatest ? max_op() : min_op(), own->inputs, own->attributes, where);
        const bool is_half =
            best_of_part->type.dtype == DType::float16 || best_of_part->type.dtype == DType::bfloat16;
        const Expr part = wrap(is_half ? as(DType::float32, best_of_part) : best_of_part),
                   best = wrap(make_total(part.node()->type, node));
        Expr better = greatest ? gt(part, best) : lt(part, best);
        if (is_float(part.dtype()))
            better = logical_or(better, logical_and(isnan(part), logical_not(isnan(best))));
        Int step = 1;
        const Nest nest = nest_of(*own);
        for (std::size_t l = 1; l < nest.reduced.size(); ++l) step = step * nest.reduced[l].extent;
        const Expr first = wrap(first_) * expr_of(step, where);
        add_total(pass, Combine::sum, total, bitale::where(better, wrap(own) + first, wrap(total)));
        add_total(pass, greatest ? Combine::max : Combine::min, best.node(),
                  bitale::where(better, part, best));
    }

    // What the parts of a partial value add up to.
    struct PartialTotal {
        NodePtr variable;
        NodePtr own;                      // what a part adds
        std::optional<IntegerSum> terms;  // of a total of integers
    };

    const PartialTotal& total_of(const NodePtr& node) {
        if (const auto at = totals_.find(node.get()); at != totals_.end()) return at->second;
        const Type& type = node->type;
        if (!is_static(type.shape))
            throw GraphError(
                node->where,
                "micro-batches: " + describe(*node) +
                    " is a total over the batch whose shape is known only at the call; declare all "
                    "lengths of the inputs but the first, as in input(float32, {-1, 784}, \"x\")");
        const Combine combine = role_of(node).combine;
        const bool rounds = combine == Combine::sum || combine == Combine::prod,
                   is_half = type.dtype == DType::float16 || type.dtype == DType::bfloat16;
        if (rounds && is_half)
            throw GraphError(node->where,
                             "micro-batches: " + describe(*node) +
                                 " is a total in a half type, which each part would round; write "
                                 "cast(..., float32) around its operand");
        const NodePtr own = by_rows(node, operands_by_rows(node), type);
        if (const std::optional<ExactTotal> exact = exact_total_of(node, own))
            return totals_[node.get()] = {make_total(exact->integers->type, *node), exact->integers,
                                          exact->terms};
        // Rounded with each of very many parts, a float32 would lose what a part adds.
        Type of_total = type;
        if (rounds && type.dtype == DType::float32) of_total.dtype = DType::float64;
        if (is_half && !gives_places(combine)) of_total.dtype = DType::float32;  // nothing computes on halves
        return totals_[node.get()] = {make_total(of_total, *node), own, {}};
    }

    std::optional<ExactTotal> exact_total_of(const NodePtr& node, const NodePtr& own) const {
        if (node->op != sum_op()) return {};
        return exact_total(own, substitute(reduced_count(*node), for_all()));
    }

    NodePtr value_of_total(const NodePtr& node) {
        const PartialTotal& total = total_of(node);
        if (!total.terms) return as(node->type.dtype, total.variable);
        return total.terms->value(as(total.terms->wide(), total.variable));
    }

    static NodePtr as(DType dtype, const NodePtr& x) {
        return x->type.dtype == dtype ? x : cast(wrap(x), dtype, x->where).node();
    }

    static NodePtr make_total(const Type& type, const Node& of) {
        auto state = std::make_shared<SharedState>();
        state->name = "total of " + title_of(of);
        state->where = of.where;
        state->value = ArrayMemory::without_elements(type.dtype, static_dims(type.shape));
        return make_shared_node(state, of.where);
    }

    // The value for all rows at once, of totals where it depends on rows.
    NodePtr whole(const NodePtr& node) {
        for (std::vector<NodePtr> stack{node}; !stack.empty();) {
            const NodePtr x = stack.back();
            if (whole_.contains(x.get())) {
                stack.pop_back();
                continue;
            }
            const BatchRole& role = role_of(x);
            BITALE_CHECK(!role.is_rows(), "all rows of a value are asked for at once");
            if (role.kind == BatchRole::Kind::partial) {
                whole_[x.get()] = value_of_total(x);
                continue;
            }
            if (const auto stand_in = stand_ins_.find(x.get()); stand_in != stand_ins_.end()) {
                whole_[x.get()] = stand_in->second;
                continue;
            }
            if (x->op == again_op()) {  // the rows that it waits for are elsewhere
                if (const auto of = whole_.find(x->inputs[0].get()); of != whole_.end())
                    whole_[x.get()] = make_node(again_op(), {of->second}, {}, x->where);
                else
                    stack.push_back(x->inputs[0]);
                continue;
            }
            bool ready = true;
            for (const NodePtr& operand : x->inputs)
                if (!whole_.contains(operand.get())) {
                    stack.push_back(operand);
                    ready = false;
                }
            if (!ready) continue;
            Nodes operands;
            bool changed = x->op->kind != OpKind::leaf && mentions(x->attributes, for_all());
            for (const NodePtr& operand : x->inputs) {
                operands.push_back(whole_.at(operand.get()));
                changed = changed || operands.back() != operand;
            }
            whole_[x.get()] = changed ? with_inputs(x, std::move(operands), for_all()) : x;
        }
        return whole_.at(node.get());
    }

    // The rows of the part alone.
    NodePtr some_rows(const NodePtr& node) {
        for (std::vector<NodePtr> stack{node}; !stack.empty();) {
            const NodePtr x = stack.back();
            if (part_.contains(x.get())) {
                stack.pop_back();
                continue;
            }
            bool ready = true;
            for (const NodePtr& operand : x->inputs)
                if (role_of(operand).is_rows() && !part_.contains(operand.get())) {
                    stack.push_back(operand);
                    ready = false;
                }
            if (ready) part_[x.get()] = made_by_rows(x);
        }
        return part_.at(node.get());
    }

    NodePtr made_by_rows(const NodePtr& x) {
        const BatchRole& role = role_of(x);
        if (x->op->kind == OpKind::leaf || batch_.begins.contains(x.get())) {
            const auto stand_in = stand_ins_.find(x.get());
            if (stand_in != stand_ins_.end()) return rows_of(stand_in->second, role.axis);
            return rows_of(x->op->kind == OpKind::leaf ? x : begin_of_rows(x), role.axis);
        }
        Type expected = x->type;
        expected.shape[static_cast<std::size_t>(role.axis)] =
            value_of(count_) * std::accumulate(role.blocks.begin(), role.blocks.end(), std::int64_t{0});
        return by_rows(x, operands_by_rows(x), expected);
    }

    // A value that begins the batch is made of whole ones.
    NodePtr begin_of_rows(const NodePtr& x) {
        Nodes operands;
        for (const NodePtr& operand : x->inputs) operands.push_back(whole(operand));
        return operands == x->inputs ? x : with_inputs(x, std::move(operands));
    }

    Substitution for_all() const { return with_batch(value_of(all_)); }
    Substitution with_batch(const Int& length) const {
        Substitution lengths = others_;
        if (batch_.symbol) lengths.emplace(batch_.symbol, length);
        return lengths;
    }

    // The node with operands that have the rows of the part.
    NodePtr by_rows(const NodePtr& x, const Nodes& operands, Type expected) {
        const Int count = value_of(count_);
        for (Int& length : expected.shape) length = substitute(length, others_);
        if (batch_.symbol) {
            NodePtr r = with_inputs(x, operands, with_batch(count));
            if (r->type == expected) return r;
        } else {
            // Where an attribute has the known number of rows, it does not say whether it means them.
            for (const bool in_attributes : {false, true}) {
                NodePtr r = in_attributes ? with_length(x, operands, count) : with_inputs(x, operands);
                if (r && r->type == expected && counts_rows_alone(*r, count.symbol_id())) return r;
            }
        }
        throw GraphError(
            x->where, "micro-batches: " + describe(*x) +
                          " has the length of the batch along more than one axis; compute it in a function "
                          "of its own that takes the whole batch");
    }

    // With the length of the axis in shapes that attributes give; null where that cannot be.
    NodePtr with_length(const NodePtr& x, const Nodes& operands, const Int& count) const {
        const BatchRole& role = role_of(x);
        if (!role.is_rows()) return nullptr;
        Attributes attributes = x->attributes;
        for (const auto& [name, value] : x->attributes.entries()) {
            const auto* shape = std::get_if<std::vector<Int>>(&value);
            if (!shape || shape->size() != x->type.shape.size()) continue;
            std::vector<Int> with_count = *shape;
            Int& length = with_count[static_cast<std::size_t>(role.axis)];
            if (length.is(batch_.rows)) length = count;
            attributes.set(name, std::move(with_count));
        }
        NodePtr r;
        try {
            r = make_node(x->op, operands, std::move(attributes), x->where, x->name);
        } catch (const ShapeError&) {
            return nullptr;
        }
        auto* fresh = const_cast<Node*>(r.get());  // not shared yet
        fresh->of_gradient = x->of_gradient;
        fresh->title = x->title;
        fresh->origins = x->origins;
        fresh->rules = x->rules;
        return r;
    }

    // For as many rows as there are, the node is the original one; and their number is the length of one
    // loop and nothing else. So for fewer rows it computes these.
    bool counts_rows_alone(const Node& node, std::uint64_t count) const {
        const Nest nest = nest_of(node);
        int loops = 0;
        for (const std::vector<Loop>* list : {&nest.parallel, &nest.reduced})
            for (const Loop& l : *list) {
                if (l.extent.symbol_id() == count)
                    ++loops;
                else if (depends_on(l.extent, count))
                    return false;
            }
        const auto in_guard = [&](const Guard& g) { return depends_on(g, count); };
        const auto in_let = [&](const Let& l) {
            return depends_on(l.extent, count) || depends_on(l.value, count);
        };
        // That an axis has elements, or as many as a window, holds for any number of rows.
        const auto in_equality = [&](const Equality& e) {
            for (const std::int64_t rows : {std::int64_t{1}, batch_.rows}) {
                const Substitution of_rows{{count, Int(rows)}};
                if (substitute(e.a, of_rows) != substitute(e.b, of_rows)) return true;
            }
            return false;
        };
        const std::vector<Equality> demands =
            node.op->equalities ? node.op->equalities(node) : std::vector<Equality>();
        return loops == 1 && !depends_on(nest.body, count) &&
               std::none_of(nest.guards.begin(), nest.guards.end(), in_guard) &&
               std::none_of(nest.lets.begin(), nest.lets.end(), in_let) &&
               std::none_of(demands.begin(), demands.end(), in_equality);
    }

    Nodes operands_by_rows(const NodePtr& node) {
        const BatchRole& role = role_of(node);
        if (node->op == again_op() && !waits_for_rows(node)) return {some_rows(node->inputs[0])};
        Nodes operands;
        for (std::size_t k = 0; k < node->inputs.size(); ++k) {
            const NodePtr& x = node->inputs[k];
            operands.push_back(role_of(x).is_rows() ? some_rows(x)
                               : role.sliced[k].axis < 0
                                   ? whole(x)
                                   : rows_of(whole(x), role.sliced[k].axis, role.sliced[k].elements));
        }
        return operands;
    }

    // Whether what again() waits for is there in the pass that computes it.
    bool waits_for_rows(const NodePtr& again) const {
        return again->inputs.size() > 1 && role_of(again->inputs[1]).is_rows();
    }

    // Rows of the part of a whole value, of so many elements along the axis: computed from the rows of its
    // operands where that can be said, so that nobody stores the others.
    NodePtr rows_of(const NodePtr& x, int axis, std::int64_t elements = 1) {
        const std::tuple key(x.get(), axis, elements);
        if (const auto at = sliced_.find(key); at != sliced_.end()) return at->second;
        const Int count = elements * value_of(count_);
        NodePtr r;
        if (x->op->kind == OpKind::map && !x->inputs.empty()) {
            Nodes operands;
            for (const NodePtr& operand : x->inputs)
                operands.push_back(operand->type.rank() == 0 ? operand : rows_of(operand, axis, elements));
            r = with_inputs(x, std::move(operands));
        } else if (repeats_along(*x, axis)) {
            Attributes attributes = x->attributes;
            Shape shape = x->type.shape;
            shape[static_cast<std::size_t>(axis)] = count;
            attributes.set("shape", shape);
            r = make_node(x->op, x->inputs, attributes, x->where, x->name);
        } else if (axis == 0 && elements == 1) {
            r = make_node(rows_op(), {x, first_}, {{"count", count}, {"clipped", true}}, x->where);
        } else {
            r = make_slice(x, axis, elements * value_of(first_), count, 1, x->where);
        }
        kept_.push_back(x);
        return sliced_[key] = r;
    }

    const Graph& graph_;
    const NodeMap& stand_ins_;
    const BatchRoles roles_;
    const Batch batch_;
    const Substitution others_;
    const NodePtr first_, count_, all_;
    Nodes inputs_, kept_;
    NodeMap whole_, part_;
    std::unordered_map<const Node*, PartialTotal> totals_;
    std::map<std::tuple<const Node*, int, std::int64_t>, NodePtr> sliced_;
};

Int rows_of(const Batch& batch, const Graph& graph, const NodeMap& stand_ins) {
    if (batch.symbol == 0) return batch.rows;
    for (std::size_t i = graph.inputs.size(); i-- > 0;) {
        const NodePtr& x = graph.inputs[i];
        if (x->type.rank() == 0 || x->type.shape[0].symbol_id() != batch.symbol) continue;
        const auto stand_in = stand_ins.find(x.get());
        return stand_in == stand_ins.end() ? x->type.shape[0] : stand_in->second->type.shape[0];
    }
    BITALE_CHECK(false, "a batch begins nowhere");
    return 0;
}

}  // namespace

namespace {

// Tries one batch after another; keeps why the first of them cannot be split, or that which a user means.
class Trials {
  public:
    Trials(std::size_t inputs, Where where) : inputs_(inputs), where_(where) {}

    std::optional<MicroBatches> operator()(const Graph& graph, const NodeMap& stand_ins, const Batch& batch) {
        BatchRoles roles = batch_roles(graph, batch);
        if (!roles.obstacle.empty()) {
            keep("micro-batches: " + roles.obstacle + "; " + roles.cure, roles.where, batch);
            return {};
        }
        try {
            MicroBatches r = Splitter(graph, inputs_, stand_ins, std::move(roles), batch, where_).run();
            if (r.passes.empty()) return {};
            r.rows = rows_of(batch, graph, stand_ins);
            return r;
        } catch (const GraphError& e) {
            keep(e.what(), {}, batch);
            return {};
        }
    }

    [[noreturn]] void refuse(const Graph& graph) const {
        if (!obstacle_.empty()) throw GraphError(of_obstacle_, obstacle_);
        throw GraphError(where_,
                         fmt::format("micro-batches: no output or update of \"{}\" depends on an input whose "
                                     "first length is unknown, or on known rows of data; declare the length "
                                     "of the batch as -1, as in input(float32, {{-1, 784}}, \"x\")",
                                     graph.name));
    }

  private:
    void keep(std::string obstacle, Where where, const Batch& batch) {
        if (!obstacle_.empty() && !batch.symbol) return;
        obstacle_ = std::move(obstacle);
        of_obstacle_ = where;
    }

    const std::size_t inputs_;
    const Where where_;
    std::string obstacle_;
    Where of_obstacle_ = where_;
};

}  // namespace

MicroBatches micro_batches(const Graph& graph, std::size_t inputs, const NodeMap& stand_ins, Where where) {
    Trials tried(inputs, where);
    const std::vector<Batch> batches = possible_batches(graph);
    const auto known = std::find_if(batches.begin(), batches.end(), [](const Batch& b) { return !b.symbol; });
    for (auto batch = batches.begin(); batch != known; ++batch)
        if (auto r = tried(graph, stand_ins, *batch)) return *std::move(r);
    for (const SlicedBatch& sliced : sliced_batches(graph)) {
        NodeMap all = stand_ins;
        all.insert(sliced.stand_ins.begin(), sliced.stand_ins.end());
        if (auto r = tried(sliced.graph, all, {.symbol = sliced.symbol})) return *std::move(r);
    }
    for (auto batch = known; batch != batches.end(); ++batch)
        if (auto r = tried(graph, stand_ins, *batch)) return *std::move(r);
    tried.refuse(graph);
}

Array beginning_of(const MicroBatches::Total& total) {
    const DType dtype = total.variable->value.dtype();
    const double infinity = std::numeric_limits<double>::infinity();
    double number = 0;
    switch (total.combine) {
        case Combine::prod:
        case Combine::all: number = 1; break;
        case Combine::max: number = -infinity; break;
        case Combine::min: number = infinity; break;
        default: break;
    }
    if (dtype == DType::boolean && !std::isfinite(number)) number = number > 0 ? 1 : 0;
    return full_of({1}, number, dtype);
}

}  // namespace bitale
