#include "codegen/schedule/register_windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/nest/compose.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/windows.h"

namespace bitale {

namespace {

struct Plan {
    std::size_t axis;    // the loop that runs in lanes
    std::int64_t width;  // lanes of a register
};

bool is_position(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

std::optional<Plan> plan_for(const Member& member, const Target& target, const KernelBuilder& builder) {
    constexpr std::int64_t fewest = 3, narrowest = 4;
    const Nest& nest = member.nest;
    if (target.kind != Target::Kind::cpu || builder.short_text || member.tree.lanes > 1) return {};
    if (!takes_windows(nest) || !nest.guards.empty() || !nest.body->guards.empty()) return {};
    if (nest.body->kind != ScalarNode::Kind::read || accumulator_of(nest) != DType::float32 ||
        nest.body->dtype != DType::float32 || bytes_of(nest.dtype) > bytes_of(DType::int32))
        return {};
    const Place& from = builder.ir.places[static_cast<std::size_t>(nest.body->operand)];
    for (std::size_t axis = 0; axis < nest.parallel.size(); ++axis) {
        const Loop& l = nest.parallel[axis];
        if (!l.variable.symbol_id() || !l.extent.is_constant() || l.extent.constant() < fewest) continue;
        if (!step_of(from, nest.body->at, l.variable).is(1)) continue;
        std::int64_t width = target.vector_bytes / bytes_of(DType::float32);
        while (width > narrowest && width / 2 >= l.extent.constant()) width /= 2;
        return Plan{axis, width};
    }
    return {};
}

class RegisterWindows {
  public:
    RegisterWindows(const Member& member, const Plan& plan, KernelBuilder& builder)
        : member_(member),
          nest_(member.nest),
          lanes_(nest_.parallel[plan.axis]),
          width_(plan.width),
          builder_(builder),
          points_(points_of(nest_.reduced)) {
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i)
            if (i != plan.axis) others_.push_back(nest_.parallel[i]);
    }

    Stmts run() {
        LoopBuilder loops(nest_);
        return loops.nest(others_, [&](LoopBuilder&) {
            const std::int64_t extent = lanes_.extent.constant(), whole = extent / width_ * width_;
            Stmts body;
            if (whole == width_) {
                append(body, registers(0, width_));
            } else if (whole > 0) {
                const Int first = Int::symbol("lanes", {0, whole - width_});
                body.push_back(loop(first, 0, whole, Binding::serial, registers(first, width_), width_));
            }
            if (extent > whole) append(body, registers(whole, extent - whole));
            return body;
        });
    }

  private:
    // The windows of `count` neighbours.
    Stmts registers(const Int& first, std::int64_t count) {
        const Int lane = Int::symbol("lane", {0, width_ - 1});
        const Substitution here{{lanes_.variable.symbol_id(), first + lane}};
        const int candidates =
            builder_.scratch(Place::Scope::vector, DType::float32, {Int(std::ssize(points_)), Int(width_)});
        Stmts fetch;
        for (std::size_t i = 0; i < points_.size(); ++i) {
            Substitution point = points_[i];
            point.insert(here.begin(), here.end());
            fetch.push_back(
                set(candidates, {Int(static_cast<std::int64_t>(i)), lane}, substitute(nest_.body, point)));
        }
        Stmts body{declare(candidates), lanes(lane, width_, width_, std::move(fetch))};
        const auto give = [&](Combine combine, DType dtype, const std::vector<Destination>& destinations) {
            const DType found = is_position(combine) ? DType::int32 : DType::float32;
            const int place = builder_.scratch(Place::Scope::vector, found, {Int(1), Int(width_)});
            const Scalar value = scalar_cast(dtype, scalar_read(found, place, {Int(0), lane}));
            Stmts stores;
            for (const Destination& d : destinations) stores.push_back(set(d.place, d.at, value));
            body.push_back(declare(place));
            body.push_back(best(place, candidates, combine));
            body.push_back(lanes(lane, count, width_, substitute(stores, here)));
        };
        give(nest_.combine, nest_.dtype, member_.destinations);
        if (!member_.positions.empty())
            give(nest_.combine == Combine::max ? Combine::argmax : Combine::argmin, member_.position_dtype,
                 member_.positions);
        return body;
    }

    const Member& member_;
    const Nest& nest_;
    const Loop lanes_;
    const std::int64_t width_;
    KernelBuilder& builder_;
    const std::vector<Substitution> points_;
    std::vector<Loop> others_;
};

// What makes the second nest's reads those of the first: its loops by the axes in which they occur.
std::optional<Substitution> same_windows(const Nest& first, const Nest& second) {
    const ScalarNode &a = *first.body, &b = *second.body;
    if (a.operand != b.operand || a.at.size() != b.at.size() || first.reduced.size() != second.reduced.size())
        return {};
    Substitution with;
    for (std::size_t i = 0; i < first.reduced.size(); ++i) {
        if (!(first.reduced[i].extent == second.reduced[i].extent)) return {};
        if (const std::uint64_t id = second.reduced[i].variable.symbol_id())
            with[id] = first.reduced[i].variable;
    }
    for (const Loop& theirs : second.parallel) {
        const std::uint64_t id = theirs.variable.symbol_id();
        if (!id) continue;
        const auto axis =
            std::find_if(b.at.begin(), b.at.end(), [&](const Int& x) { return depends_on(x, id); });
        if (axis == b.at.end()) return {};
        const Int& ours = a.at[static_cast<std::size_t>(axis - b.at.begin())];
        const auto same = std::find_if(first.parallel.begin(), first.parallel.end(), [&](const Loop& l) {
            const std::uint64_t own = l.variable.symbol_id();
            return own && depends_on(ours, own) && l.extent == theirs.extent;
        });
        if (same == first.parallel.end()) return {};
        with[id] = same->variable;
    }
    for (std::size_t d = 0; d < a.at.size(); ++d)
        if (!(substitute(b.at[d], with) == a.at[d])) return {};
    return with;
}

}  // namespace

std::optional<Stmts> schedule_register_windows(const Member& member, const Target& target,
                                               KernelBuilder& builder) {
    const std::optional<Plan> plan = plan_for(member, target, builder);
    if (!plan) return {};
    return RegisterWindows(member, *plan, builder).run();
}

bool take_positions(Member& best, const Member& positions, const Target& target,
                    const KernelBuilder& builder) {
    const Combine asked = positions.nest.combine;
    if (!(best.nest.combine == Combine::max && asked == Combine::argmax) &&
        !(best.nest.combine == Combine::min && asked == Combine::argmin))
        return false;
    if (!plan_for(best, target, builder) || !plan_for(positions, target, builder)) return false;
    const std::optional<Substitution> with = same_windows(best.nest, positions.nest);
    if (!with) return false;
    best.position_dtype = positions.nest.dtype;
    best.positions = positions.destinations;
    for (Destination& d : best.positions)
        for (Int& x : d.at) x = substitute(x, *with);
    return true;
}

}  // namespace bitale
