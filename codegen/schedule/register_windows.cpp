#include "codegen/schedule/register_windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/positions.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/whole_windows.h"
#include "codegen/schedule/windows.h"

namespace bitale {

namespace {

struct Plan {
    std::size_t axis;    // the loop that runs in lanes
    std::int64_t width;  // lanes of a register
};

bool suits(const Nest& nest) {
    return takes_windows(nest) && nest.body->guards.empty() && nest.body->kind == ScalarNode::Kind::read &&
           accumulator_of(nest) == DType::float32 && nest.body->dtype == DType::float32 &&
           bytes_of(nest.dtype) <= bytes_of(DType::int32);
}

std::optional<Plan> plan_for(const Member& member, const Target& target, const KernelBuilder& builder) {
    constexpr std::int64_t fewest = 3, narrowest = 4;
    const Nest& nest = member.nest;
    if (!target.has_vectors() || builder.short_text || member.tree.lanes > 1) return {};
    if (!suits(nest)) return {};
    const Place& from = builder.ir.places[static_cast<std::size_t>(nest.body->operand.place())];
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
    RegisterWindows(const Member& member, const Member* also, WholeWindows windows, const Plan& plan,
                    KernelBuilder& builder)
        : member_(member),
          also_(also),
          first_(std::move(windows.first)),
          nest_(std::move(windows.nest)),
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
        for (const Member* m : {&member_, also_}) {
            if (!m) continue;
            const bool position = is_position(m->nest.combine);
            const DType found = position ? DType::int32 : DType::float32;
            const int place = builder_.scratch(Place::Scope::vector, found, {Int(1), Int(width_)});
            Scalar value = place_read(found, place, {Int(0), lane});
            if (position && !first_.is(0))
                value = scalar_apply(Opcode::add, found, {value, scalar_index(found, first_)});
            value = scalar_cast(m->nest.dtype, value);
            body.push_back(declare(place));
            body.push_back(best_of_registers(place, candidates, m->nest.combine));
            body.push_back(lanes(lane, count, width_, substitute(stores(*m, value), here)));
        }
        return body;
    }

    const Member& member_;
    const Member* const also_;
    const Int first_;
    const Nest nest_;
    const Loop lanes_;
    const std::int64_t width_;
    KernelBuilder& builder_;
    const std::vector<Substitution> points_;
    std::vector<Loop> others_;
};

}  // namespace

std::optional<Stmts> schedule_register_windows(const Member& member, const Member* also, const Target& target,
                                               KernelBuilder& builder) {
    const std::optional<Plan> plan = plan_for(member, target, builder);
    if (!plan || (also && !suits(also->nest))) return {};
    std::optional<WholeWindows> windows =
        whole_windows(member.nest, member.nest.parallel[plan->axis].variable);
    if (!windows) return {};
    return RegisterWindows(member, also, *std::move(windows), *plan, builder).run();
}

}  // namespace bitale
