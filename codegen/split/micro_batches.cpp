#include "codegen/split/micro_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "bitale/train.h"
#include "codegen/split/batch_roles.h"
#include "graph/ir/length_input.h"
#include "graph/ir/shared.h"
#include "ops/elementwise/elementwise.h"
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

bool mentions(const Attributes& attributes, std::uint64_t symbol) {
    for (const auto& [name, value] : attributes.entries()) {
        if (const Int* x = std::get_if<Int>(&value)) {
            if (depends_on(*x, symbol)) return true;
        } else if (const auto* list = std::get_if<std::vector<Int>>(&value)) {
            for (const Int& x : *list)
                if (depends_on(x, symbol)) return true;
        }
    }
    return false;
}

class Splitter {
  public:
    Splitter(const Graph& graph, std::size_t inputs, const NodeMap& stand_ins, BatchRoles roles,
             std::uint64_t rows, Where where)
        : graph_(graph),
          stand_ins_(stand_ins),
          roles_(std::move(roles)),
          rows_(rows),
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
                pass.rows.push_back({k, role.axis});
            } else {
                r.finale.outputs.push_back(whole(x));
                r.whole.push_back(k);
            }
        }
        for (const SharedUpdate& u : graph_.updates)
            r.finale.updates.push_back({u.target, whole(u.value), u.where});
        for (const Check& c : graph_.checks) add_check(r, c);
        add_totals(r);
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
        const Substitution all{{rows_, value_of(all_)}};
        c.low = substitute(check.low, all);
        c.high = substitute(check.high, all);
        c.value = role.is_rows() ? some_rows(check.value) : whole(check.value);
        (role.is_rows() ? r.passes.at(static_cast<std::size_t>(role.pass)).graph : r.finale)
            .checks.push_back(std::move(c));
    }

    // Every partial value of the graph is somebody's operand, an output or an update.
    void add_totals(MicroBatches& r) {
        for (const NodePtr& node : topological(graph_.roots())) {
            const BatchRole& role = role_of(node);
            if (role.kind != BatchRole::Kind::partial) continue;
            const NodePtr total = total_of(node);
            const Substitution part{{rows_, value_of(count_)}};
            const NodePtr own = with_inputs(node, operands_by_rows(node), part);
            BITALE_CHECK(own->type == node->type, "a part of a sum has another type");
            MicroBatches::Pass& pass = r.passes.at(static_cast<std::size_t>(role.pass));
            const SharedPtr variable = shared_of(total);
            pass.graph.updates.push_back(
                {variable, make_node(combining(role.combine), {total, own}, {}, node->where), node->where});
            pass.totals.push_back({variable, role.combine});
        }
    }

    NodePtr total_of(const NodePtr& node) {
        NodePtr& total = totals_[node.get()];
        if (total) return total;
        const Type& type = node->type;
        if (!is_static(type.shape))
            throw GraphError(
                node->where,
                "micro-batches: " + describe(*node) +
                    " is a total over the rows whose size is known at the call only; declare the "
                    "lengths of the inputs behind their first axis");
        const Combine combine = role_of(node).combine;
        const bool rounds = combine == Combine::sum || combine == Combine::prod;
        if (rounds && (type.dtype == DType::float16 || type.dtype == DType::bfloat16))
            throw GraphError(node->where,
                             "micro-batches: " + describe(*node) +
                                 " is a total in a half type, which would be rounded with each part; "
                                 "cast its operand to float32");
        auto state = std::make_shared<SharedState>();
        state->name = "total of " + node->op->name;
        state->where = node->where;
        state->value = Array(type.dtype, static_dims(type.shape));
        total = make_shared_node(state, node->where);
        return total;
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
                whole_[x.get()] = total_of(x);
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
            bool changed = x->op->kind != OpKind::leaf && mentions(x->attributes, rows_);
            for (const NodePtr& operand : x->inputs) {
                operands.push_back(whole_.at(operand.get()));
                changed = changed || operands.back() != operand;
            }
            whole_[x.get()] = changed ? with_inputs(x, std::move(operands), {{rows_, value_of(all_)}}) : x;
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
        if (x->op->kind == OpKind::leaf) {
            const auto stand_in = stand_ins_.find(x.get());
            return rows_of(stand_in == stand_ins_.end() ? x : stand_in->second, role.axis);
        }
        NodePtr r = with_inputs(x, operands_by_rows(x), {{rows_, value_of(count_)}});
        Type expected = x->type;
        expected.shape[static_cast<std::size_t>(role.axis)] = value_of(count_);
        if (!(r->type == expected))
            throw GraphError(x->where, "micro-batches: " + describe(*x) +
                                           " has the number of rows in more than one length");
        return r;
    }

    Nodes operands_by_rows(const NodePtr& node) {
        const BatchRole& role = role_of(node);
        Nodes operands;
        for (std::size_t k = 0; k < node->inputs.size(); ++k) {
            const NodePtr& x = node->inputs[k];
            operands.push_back(role_of(x).is_rows() ? some_rows(x)
                               : role.sliced[k] < 0 ? whole(x)
                                                    : rows_of(whole(x), role.sliced[k]));
        }
        return operands;
    }

    // Rows of the part of a whole value: computed from the rows of its operands where that can be said, so
    // that nobody stores the others.
    NodePtr rows_of(const NodePtr& x, int axis) {
        if (const auto at = sliced_.find({x.get(), axis}); at != sliced_.end()) return at->second;
        const Int count = value_of(count_);
        NodePtr r;
        if (x->op->kind == OpKind::map && !x->inputs.empty()) {
            Nodes operands;
            for (const NodePtr& operand : x->inputs)
                operands.push_back(operand->type.rank() == 0 ? operand : rows_of(operand, axis));
            r = with_inputs(x, std::move(operands));
        } else if (x->op->name == "expand" && !reads_by(*x, axis)) {
            Attributes attributes = x->attributes;
            Shape shape = x->type.shape;
            shape[static_cast<std::size_t>(axis)] = count;
            attributes.set("shape", shape);
            r = make_node(x->op, x->inputs, attributes, x->where, x->name);
        } else if (axis == 0) {
            r = make_node(rows_op(), {x, first_}, {{"count", count}, {"clipped", true}}, x->where);
        } else {
            r = make_slice(x, axis, value_of(first_), count, 1, x->where);
        }
        kept_.push_back(x);
        return sliced_[{x.get(), axis}] = r;
    }

    static bool reads_by(const Node& x, int axis) {
        const Nest nest = nest_of(x);
        const std::uint64_t id = nest.parallel[static_cast<std::size_t>(axis)].variable.symbol_id();
        return id == 0 || std::any_of(nest.body->at.begin(), nest.body->at.end(),
                                      [&](const Int& at) { return depends_on(at, id); });
    }

    const Graph& graph_;
    const NodeMap& stand_ins_;
    const BatchRoles roles_;
    const std::uint64_t rows_;
    const NodePtr first_, count_, all_;
    Nodes inputs_, kept_;
    NodeMap whole_, part_, totals_;
    std::map<std::pair<const Node*, int>, NodePtr> sliced_;
};

}  // namespace

MicroBatches micro_batches(const Graph& graph, std::size_t inputs, const NodeMap& stand_ins, Where where) {
    std::set<std::uint64_t> tried;
    std::string obstacle;
    Where of_obstacle = where;
    // Expressions that stand for variables come last, and are what a user means by the batch.
    for (std::size_t i = graph.inputs.size(); i-- > 0;) {
        const Type& type = graph.inputs[i]->type;
        const std::uint64_t rows = type.rank() == 0 ? 0 : type.shape[0].symbol_id();
        if (rows == 0 || !tried.insert(rows).second) continue;
        BatchRoles roles = batch_roles(graph, rows);
        if (!roles.obstacle.empty()) {
            obstacle = roles.obstacle;
            of_obstacle = roles.where;
            continue;
        }
        MicroBatches r = Splitter(graph, inputs, stand_ins, std::move(roles), rows, where).run();
        if (r.passes.empty()) continue;
        const auto stand_in = stand_ins.find(graph.inputs[i].get());
        r.rows = stand_in == stand_ins.end() ? type.shape[0] : stand_in->second->type.shape[0];
        return r;
    }
    if (obstacle.empty())
        throw GraphError(where,
                         fmt::format("micro-batches: no output or update of \"{}\" depends on an input whose "
                                     "first length is unknown; declare the batch as -1, as in "
                                     "input(float32, {{-1, 784}}, \"x\")",
                                     graph.name));
    throw GraphError(of_obstacle,
                     "micro-batches: " + obstacle + ", so the rows of the batch cannot be computed in parts");
}

Array beginning_of(const MicroBatches::Total& total) {
    const Array& value = total.variable->value;
    const DType dtype = value.dtype();
    const double least = dtype == DType::boolean ? 0 : -std::numeric_limits<double>::infinity();
    const double most = dtype == DType::boolean ? 1 : std::numeric_limits<double>::infinity();
    double number = 0;
    switch (total.combine) {
        case Combine::prod:
        case Combine::all: number = 1; break;
        case Combine::max: number = least; break;
        case Combine::min: number = most; break;
        default: break;
    }
    return full_of(value.shape(), number, dtype);
}

}  // namespace bitale
