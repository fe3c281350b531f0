// Parts of a concatenation: a slice that takes one of them whole is that part, also through maps. The
// gradient of a concatenation of n parts slices one value n times; each slice would otherwise choose among n
// parts.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ops/rules/rules.h"
#include "ops/shape/join.h"
#include "ops/shape/slice.h"

namespace bitale {

namespace {

// The parts of a concatenation by start and length. Those of the last one are kept, because slices of the
// same one follow each other: n slices of n parts would otherwise add up n * n lengths.
class Parts {
  public:
    NodePtr find(const NodePtr& concat, const Cut& cut) {
        constexpr std::size_t many = 16;
        if (concat->inputs.size() < many) return nullptr;
        if (concat->attributes.get<std::int64_t>("axis") != static_cast<std::int64_t>(cut.axis))
            return nullptr;
        if (of_.lock() != concat) {
            parts_.clear();
            const std::vector<Int> starts = starts_of_parts(concat->inputs, cut.axis);
            for (std::size_t k = 0; k < concat->inputs.size(); ++k)
                parts_.emplace(std::pair(starts[k], concat->inputs[k]->type.shape[cut.axis]), k);
            of_ = concat;
        }
        const auto at = parts_.find({cut.start, cut.count});
        return at == parts_.end() ? nullptr : concat->inputs[at->second];
    }

  private:
    std::weak_ptr<const Node> of_;
    std::map<std::pair<Int, Int>, std::size_t> parts_;
};

NodePtr part_of(const NodePtr& concat, const Cut& cut) {
    thread_local Parts parts;
    return parts.find(concat, cut);
}

// The slice of x if a part is found below it; null otherwise. `depth` bounds what is computed again where
// other values need x too.
NodePtr taken(const Match& m, const NodePtr& x, const Cut& cut, int depth, Where where) {
    if (!m.may_look_through(x) && x != m.root()->inputs[0]) return nullptr;
    if (x->op == concat_op()) return part_of(x, cut);
    if (x->op->kind != OpKind::map || depth == 0) return nullptr;
    Nodes inputs = x->inputs;
    bool found = false;
    for (NodePtr& input : inputs) {
        if (input->type.rank() == 0) continue;
        if (NodePtr part = taken(m, input, cut, depth - 1, where)) {
            input = std::move(part);
            found = true;
        } else {
            input = make_slice(input, static_cast<int>(cut.axis), cut.start, cut.count, 1, where);
        }
    }
    return found ? make_node(x->op, std::move(inputs), x->attributes, x->where) : nullptr;
}

NodePtr without_concat(const Match& m) {
    constexpr int most_maps = 4;
    const NodePtr& slice = m.root();
    const NodePtr& x = slice->inputs[0];
    if (x->op != concat_op() && x->op->kind != OpKind::map) return nullptr;
    if (slice->attributes.find("places")) return nullptr;
    const std::optional<Cut> cut = cut_of(*slice);
    return cut ? taken(m, x, *cut, most_maps, slice->where) : nullptr;
}

}  // namespace

std::vector<Rule> part_rules() {
    return {{"slice-part", Pattern::apply("slice", {Pattern::any("x").again()}), without_concat}};
}

}  // namespace bitale
