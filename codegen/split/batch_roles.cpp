#include "codegen/split/batch_roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/nest/walk.h"
#include "graph/walk/traverse.h"
#include "ops/autodiff/modifiers.h"

namespace bitale {

namespace {

using Kind = BatchRole::Kind;

// Parts of the batch can be combined in any grouping.
bool combines_in_parts(Combine combine) {
    switch (combine) {
        case Combine::sum:
        case Combine::prod:
        case Combine::max:
        case Combine::min:
        case Combine::any:
        case Combine::all: return true;
        default: return false;
    }
}

// A position among all rows, the rows outermost: that of a part goes on where the one before ends.
bool is_place_by_rows(const Nest& nest, std::uint64_t variable) {
    return (nest.combine == Combine::argmax || nest.combine == Combine::argmin) && nest.guards.empty() &&
           nest.reduced[0].variable.symbol_id() == variable;
}

struct Obstacle {
    std::string text;
};

class Classifier {
  public:
    Classifier(const Node& node, const std::unordered_map<const Node*, BatchRole>& known, const Batch& batch)
        : node_(node), known_(known), batch_(batch) {}

    BatchRole run() {
        BatchRole role;
        role.sliced.assign(node_.inputs.size(), -1);
        if (batch_.begins.contains(&node_)) role.kind = Kind::rows;
        if (node_.op->kind == OpKind::leaf) {
            if (node_.op == input_op() && batch_.symbol) find_batch_axis(role);
            return role;
        }
        const bool by_rows = std::any_of(node_.inputs.begin(), node_.inputs.end(),
                                         [&](const NodePtr& x) { return known_.at(x.get()).is_rows(); });
        for (const NodePtr& x : node_.inputs) role.pass = std::max(role.pass, known_.at(x.get()).complete());
        if (node_.op == again_op()) {  // waits for its second operand, and reads none of it
            const BatchRole& of = known_.at(node_.inputs[0].get());
            if (of.is_rows()) role.kind = Kind::rows, role.axis = of.axis;
            return role;
        }
        if (by_rows && role.is_rows()) throw Obstacle{"has rows of the batch in two ways"};
        if (by_rows) follow(role);
        return role;
    }

  private:
    void find_batch_axis(BatchRole& role) const {
        const Shape& shape = node_.type.shape;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            if (!depends_on(shape[axis], batch_.symbol)) continue;
            if (role.is_rows() || shape[axis].symbol_id() != batch_.symbol)
                throw Obstacle{"has the number of rows in more than one length"};
            role.kind = Kind::rows;
            role.axis = static_cast<int>(axis);
        }
    }

    void follow(BatchRole& role) {
        if (node_.op->kind == OpKind::opaque) throw Obstacle{"is computed by a routine, all rows at once"};
        const Nest nest = nest_of(node_);
        const std::uint64_t variable = variable_of_rows(nest);
        const auto is_it = [&](const Loop& l) { return l.variable.symbol_id() == variable; };
        const auto result = std::find_if(nest.parallel.begin(), nest.parallel.end(), is_it);
        if (result != nest.parallel.end()) {
            role.kind = Kind::rows;
            role.axis = static_cast<int>(result - nest.parallel.begin());
        } else if (std::any_of(nest.reduced.begin(), nest.reduced.end(), is_it)) {
            if (!combines_in_parts(nest.combine) && !is_place_by_rows(nest, variable))
                throw Obstacle{"needs all rows of the batch at once, as orders and running sums do"};
            role.kind = Kind::partial;
            role.combine = nest.combine;
        } else {
            throw Obstacle{"reads rows of the batch by an index that is computed"};
        }
        refuse_other_uses(nest, variable);
        find_sliced(role, nest, variable);
    }

    // The one loop along which the rows are read.
    std::uint64_t variable_of_rows(const Nest& nest) const {
        std::uint64_t variable = 0;
        for_each_read(nest, [&](const ScalarNode& read) {
            const BatchRole& operand = role_of(read);
            if (!operand.is_rows()) return;
            const std::uint64_t id = read.at.at(static_cast<std::size_t>(operand.axis)).symbol_id();
            if (id == 0 || (variable != 0 && id != variable))
                throw Obstacle{"reads other rows of the batch than the one that it computes"};
            variable = id;
        });
        if (variable == 0) throw Obstacle{"depends on the rows of the batch otherwise than by reading them"};
        return variable;
    }

    const BatchRole& role_of(const ScalarNode& read) const {
        return known_.at(node_.inputs.at(static_cast<std::size_t>(read.operand)).get());
    }

    static void refuse_other_uses(const Nest& nest, std::uint64_t variable) {
        const auto refuse = [&](const std::vector<Guard>& guards) {
            for (const Guard& g : guards)
                if (depends_on(g, variable))
                    throw Obstacle{"treats some rows of the batch otherwise than the rest, by their number"};
        };
        refuse(nest.guards);
        for_each_part(nest, [&](const ScalarNode& part) {
            refuse(part.guards);
            if (part.kind == ScalarNode::Kind::index && depends_on(part.index, variable))
                throw Obstacle{"computes with the number of a row of the batch"};
        });
    }

    void find_sliced(BatchRole& role, const Nest& nest, std::uint64_t variable) const {
        for_each_read(nest, [&](const ScalarNode& read) {
            const BatchRole& operand = role_of(read);
            for (std::size_t axis = 0; axis < read.at.size(); ++axis) {
                const Int& at = read.at[axis];
                if (!depends_on(at, variable)) continue;
                if (operand.is_rows() && static_cast<int>(axis) == operand.axis) continue;
                int& along = role.sliced[static_cast<std::size_t>(read.operand)];
                const int here = static_cast<int>(axis);
                if (operand.is_rows() || at.symbol_id() != variable || (along >= 0 && along != here))
                    throw Obstacle{"reads along several axes by the number of a row of the batch"};
                along = here;
            }
        });
        // Each read of such an operand has to be of the row itself.
        for_each_read(nest, [&](const ScalarNode& read) {
            const int along = role.sliced[static_cast<std::size_t>(read.operand)];
            if (along >= 0 && read.at[static_cast<std::size_t>(along)].symbol_id() != variable)
                throw Obstacle{"reads an operand both by the number of a row and otherwise"};
        });
    }

    const Node& node_;
    const std::unordered_map<const Node*, BatchRole>& known_;
    const Batch& batch_;
};

}  // namespace

BatchRoles batch_roles(const Graph& graph, const Batch& batch) {
    BatchRoles roles;
    for (const NodePtr& node : topological(graph.roots())) {
        try {
            roles.of.emplace(node.get(), Classifier(*node, roles.of, batch).run());
        } catch (const Obstacle& obstacle) {
            roles.obstacle = describe(*node) + " " + obstacle.text;
            roles.where = node->where;
            return roles;
        }
    }
    return roles;
}

}  // namespace bitale
