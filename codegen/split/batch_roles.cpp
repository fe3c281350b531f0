#include "codegen/split/batch_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "codegen/nest/walk.h"
#include "graph/walk/traverse.h"
#include "ops/autodiff/modifiers.h"
#include "ops/shape/join.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using Kind = BatchRole::Kind;

constexpr const char* declare_the_batch =
    "declare the length of the batch as -1, as in input(float32, {-1, 784}, \"x\")";

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

// Why a value is in the way, after its description, and what to do about it.
struct Obstacle {
    std::string reason;
    std::string cure = "compute it in a function of its own that takes the whole batch";
};

class Classifier {
  public:
    Classifier(const Node& node, const std::unordered_map<const Node*, BatchRole>& known, const Batch& batch)
        : node_(node), known_(known), batch_(batch) {}

    BatchRole run() {
        BatchRole role;
        role.sliced.resize(node_.inputs.size());
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
            if (of.is_rows()) role.kind = Kind::rows, role.axis = of.axis, role.blocks = of.blocks;
            return role;
        }
        if (by_rows && role.is_rows())
            throw Obstacle{"reads rows of the batch and counts as a batch itself", declare_the_batch};
        if (by_rows) follow(role);
        return role;
    }

  private:
    void find_batch_axis(BatchRole& role) const {
        const Shape& shape = node_.type.shape;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            if (!depends_on(shape[axis], batch_.symbol)) continue;
            if (role.is_rows() || shape[axis].symbol_id() != batch_.symbol)
                throw Obstacle{"has the length of the batch along more than one axis"};
            role.kind = Kind::rows;
            role.axis = static_cast<int>(axis);
        }
    }

    void follow(BatchRole& role) {
        if (node_.op->kind == OpKind::opaque)
            throw Obstacle{"is computed by a routine that needs all rows at once"};
        if (node_.op == concat_op() && joins_batches(role)) return;
        const Nest nest = nest_of(node_);
        const Along along = along_rows(nest);
        const auto is_it = [&](const Loop& l) { return l.variable.symbol_id() == along.variable; };
        const auto result = std::find_if(nest.parallel.begin(), nest.parallel.end(), is_it);
        if (result != nest.parallel.end()) {
            role.kind = Kind::rows;
            role.axis = static_cast<int>(result - nest.parallel.begin());
            role.blocks = along.blocks;
        } else if (std::any_of(nest.reduced.begin(), nest.reduced.end(), is_it)) {
            const bool is_place =
                along.blocks == std::vector<std::int64_t>{1} && is_place_by_rows(nest, along.variable);
            if (!combines_in_parts(nest.combine) && !is_place)
                throw Obstacle{
                    "needs all rows of the batch at once, as sorting and running sums along it do"};
            role.kind = Kind::partial;
            role.combine = nest.combine;
        } else {
            throw Obstacle{"looks up rows of the batch by indices that are computed"};
        }
        refuse_other_uses(nest, along.variable);
        find_sliced(role, nest, along);
    }

    // Of a known length, a reshape has numbers that only a symbol would show to be multiples of the rows.
    Obstacle reads_other_rows() const {
        Obstacle r{"reads other rows of the batch than the one that it computes"};
        if (batch_.symbol == 0 && node_.op == reshape_op()) r.cure = declare_the_batch;
        return r;
    }

    // Batches one after another along the axis of the rows.
    bool joins_batches(BatchRole& role) const {
        const auto axis = static_cast<int>(node_.attributes.get<std::int64_t>("axis"));
        std::vector<std::int64_t> blocks;
        for (const NodePtr& x : node_.inputs) {
            const BatchRole& operand = known_.at(x.get());
            if (operand.is_rows() && operand.axis != axis) return false;
            if (!operand.is_rows())
                throw Obstacle{"joins rows of the batch with other rows", "join them outside the function"};
            blocks.insert(blocks.end(), operand.blocks.begin(), operand.blocks.end());
        }
        if (batch_.symbol == 0) throw Obstacle{"joins batches of a known length", declare_the_batch};
        role.kind = Kind::rows;
        role.axis = axis;
        role.blocks = std::move(blocks);
        return true;
    }

    // A loop whose turns go through the rows of the batch, blocks as of BatchRole.
    struct Along {
        std::uint64_t variable = 0;
        std::vector<std::int64_t> blocks;
        bool operator==(const Along&) const = default;
    };

    // The one loop along which the rows are read.
    Along along_rows(const Nest& nest) const {
        Along along;
        for_each_read(nest, [&](const ScalarNode& read) {
            const BatchRole& operand = role_of(read);
            if (!operand.is_rows()) return;
            const Along here =
                loop_behind(read.at.at(static_cast<std::size_t>(operand.axis)), operand.blocks, nest);
            if (here.variable == 0 || (along.variable != 0 && here != along)) throw reads_other_rows();
            along = here;
        });
        if (along.variable == 0) throw Obstacle{"depends on the batch without reading its rows"};
        return along;
    }

    // Which loop goes through the rows where an axis of such blocks is read at `at`; variable 0: none.
    Along loop_behind(const Int& at, const std::vector<std::int64_t>& blocks, const Nest& nest) const {
        if (const std::uint64_t id = at.symbol_id()) return {id, blocks};
        if (blocks.size() != 1 || batch_.symbol == 0) return {};
        const std::int64_t elements = blocks[0];
        // The loop has the batch joined with an axis of which the operand knows nothing.
        if (const AtomPtr atom = at.as_atom();
            atom && atom->kind == Atom::Kind::floordiv && atom->b.is_constant())
            if (const std::uint64_t id = atom->a.symbol_id())
                if (atom->b.constant() > 0) return {id, {elements * atom->b.constant()}};
        // The operand has the batch joined with an axis over which the node has a loop of its own.
        for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
            for (const Loop& l : *loops) {
                const std::uint64_t id = l.variable.symbol_id();
                if (id == 0 || !depends_on(l.extent, batch_.symbol)) continue;
                const std::int64_t factor = factor_of(at, id);
                if (factor > 0 && elements % factor == 0 && is_below(at - factor * l.variable, id, factor))
                    return {id, {elements / factor}};
            }
        return {};
    }

    // Of the loop's variable in `x`, where it stands by itself.
    static std::int64_t factor_of(const Int& x, std::uint64_t variable) {
        for (const Int::Term& term : x.terms())
            if (term.atoms.size() == 1 && term.atoms[0]->id == variable) return term.factor;
        return 0;
    }
    static bool is_below(const Int& rest, std::uint64_t variable, std::int64_t end) {
        const IntRange range = rest.range();
        return !depends_on(rest, variable) && range.low >= 0 && range.high < end;
    }

    const BatchRole& role_of(const ScalarNode& read) const {
        return known_.at(node_.inputs.at(static_cast<std::size_t>(read.operand.input())).get());
    }

    static void refuse_other_uses(const Nest& nest, std::uint64_t variable) {
        const auto refuse = [&](const std::vector<Guard>& guards) {
            for (const Guard& g : guards)
                if (depends_on(g, variable))
                    throw Obstacle{
                        "treats some rows of the batch differently from the rest, by their position"};
        };
        refuse(nest.guards);
        for_each_part(nest, [&](const ScalarNode& part) {
            refuse(part.guards);
            if (part.kind == ScalarNode::Kind::index && depends_on(part.index, variable))
                throw Obstacle{"computes with the position of a row in the batch"};
        });
    }

    void find_sliced(BatchRole& role, const Nest& nest, const Along& along) const {
        for_each_read(nest, [&](const ScalarNode& read) {
            const BatchRole& operand = role_of(read);
            for (std::size_t axis = 0; axis < read.at.size(); ++axis) {
                if (!depends_on(read.at[axis], along.variable)) continue;
                const int here = static_cast<int>(axis);
                if (operand.is_rows() && here == operand.axis) continue;
                std::int64_t elements = elements_of_row(read.at[axis], along);
                if (elements == 0) continue;  // the same in each row
                const Node& of = *node_.inputs.at(static_cast<std::size_t>(read.operand.input()));
                if (elements < 0 && read.at[axis].symbol_id() == along.variable && repeats_along(of, here))
                    elements = std::accumulate(along.blocks.begin(), along.blocks.end(), std::int64_t{0});
                BatchRole::Slice& slice = role.sliced[static_cast<std::size_t>(read.operand.input())];
                if (operand.is_rows() || elements < 0 || (slice.axis >= 0 && slice.axis != here))
                    throw Obstacle{"reads several axes by the position of a row in the batch"};
                slice = {here, elements};
            }
        });
        // Each read of such an operand has to be of the row itself.
        for_each_read(nest, [&](const ScalarNode& read) {
            const BatchRole::Slice& slice = role.sliced[static_cast<std::size_t>(read.operand.input())];
            const bool is_sliced = slice.axis >= 0 && along.blocks.size() == 1;
            if (is_sliced &&
                elements_of_row(read.at[static_cast<std::size_t>(slice.axis)], along) != slice.elements)
                throw Obstacle{
                    "reads an operand both by the position of a row in the batch and in another way"};
        });
    }

    // How many elements of an axis that is read at `at` belong to a row; 0: each row reads the same ones; -1:
    // neither.
    static std::int64_t elements_of_row(const Int& at, const Along& along) {
        if (!depends_on(at, along.variable)) return 0;
        if (along.blocks.size() != 1) return -1;
        const std::int64_t elements = along.blocks[0];
        if (at.symbol_id() == along.variable) return elements;
        if (const AtomPtr atom = at.as_atom(); atom && atom->kind == Atom::Kind::floordiv &&
                                               atom->a.symbol_id() == along.variable && atom->b.is_constant())
            return elements % atom->b.constant() == 0 ? elements / atom->b.constant() : -1;
        // The place within a row, in an axis that the rows are joined with.
        for (const Int::Term& term : at.terms())
            for (const AtomPtr& atom : term.atoms)
                if (atom->kind == Atom::Kind::floordiv && atom->a.symbol_id() == along.variable &&
                    atom->b.is_constant() && elements % atom->b.constant() == 0 &&
                    at == mod(atom->a, atom->b))
                    return 0;
        return -1;
    }

    const Node& node_;
    const std::unordered_map<const Node*, BatchRole>& known_;
    const Batch& batch_;
};

}  // namespace

bool repeats_along(const Node& node, int axis) {
    if (node.op != expand_op()) return false;
    const Nest nest = nest_of(node);
    const std::uint64_t id = nest.parallel[static_cast<std::size_t>(axis)].variable.symbol_id();
    return id != 0 && std::none_of(nest.body->at.begin(), nest.body->at.end(),
                                   [&](const Int& at) { return depends_on(at, id); });
}

BatchRoles batch_roles(const Graph& graph, const Batch& batch) {
    BatchRoles roles;
    for (const NodePtr& node : topological(graph.roots())) {
        try {
            roles.of.emplace(node.get(), Classifier(*node, roles.of, batch).run());
        } catch (const Obstacle& obstacle) {
            roles.obstacle = describe(*node) + " " + obstacle.reason;
            roles.cure = obstacle.cure;
            roles.where = node->where;
            return roles;
        }
    }
    return roles;
}

}  // namespace bitale
