#include "codegen/schedule/gpu_pointwise.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/collapse.h"

namespace bitale::gpu {

namespace {

constexpr std::int64_t bytes_at_once = 16, threads = 256;

class PointwiseGroup {
  public:
    PointwiseGroup(const Group& group, const SegmentContext& context, KernelBuilder& builder)
        : group_(group),
          context_(context),
          builder_(builder),
          count_(count_of(value(group.values[0]).shape)),
          width_(elements_at_once()),
          block_(width_ * threads) {}

    Segment run(const std::string& title, std::string& notes) {
        Segment segment;
        segment.title = title;
        segment.tasks = ceildiv(count_, block_);
        segment.task = make_loop("task", segment.tasks).variable;
        const Int own = Int::symbol("own", {0, threads - 1});
        first_ = segment.task * block_ + own * width_;
        Stmts body, stores;
        for (const int v : group_.values) compute(v, body, stores);
        std::move(stores.begin(), stores.end(), std::back_inserter(body));
        segment.body = {loop(own, 0, min(threads, ceildiv(count_ - segment.task * block_, width_)),
                             Binding::threads, std::move(body))};
        notes += "  one axis of " + count_.text() + " elements, " + std::to_string(width_) + " a thread\n";
        return segment;
    }

  private:
    const Value& value(int v) const { return context_.values.list[v]; }

    // So many that the widest type fills 16 bytes.
    std::int64_t elements_at_once() const {
        std::int64_t widest = 1;
        for (const int v : group_.values) {
            widest = std::max<std::int64_t>(widest, bytes_of(value(v).node->type.dtype));
            for_each_read(fully_composed_nest(context_.values, v), [&](const ScalarNode& s) {
                if (!value(s.operand.value()).shape.empty())
                    widest =
                        std::max<std::int64_t>(widest, bytes_of(value(s.operand.value()).node->type.dtype));
            });
        }
        return bytes_at_once / widest;
    }

    int registers(DType dtype) { return builder_.scratch(Place::Scope::vector, dtype, {Int(width_)}); }

    int global(int v, bool written, int buffer) {
        const Type type = value(v).stored_type();
        return builder_.global(buffer, type.dtype, type.shape, written);
    }

    // The value's elements into registers; stores come after everything has been read.
    void compute(int v, Stmts& body, Stmts& stores) {
        const Int i = Int::symbol("i", {0, width_ - 1});
        Nest flat = flattened(fully_composed_nest(context_.values, v), first_ + i);
        flat = map_reads(flat, [&](const Scalar& s) { return placed(*s, i, body); });
        const Type type = value(v).stored_type();
        const int result = registers(type.dtype);
        body.push_back(declare(result));
        body.push_back(comment_of(*value(v).node));
        body.push_back(
            loop(i, 0, width_, Binding::unrolled, {set(result, {i}, scalar_cast(type.dtype, flat.body))}));
        computed_[v] = result;
        const bool leaves = context_.leaves_group(v);
        if (!leaves) return;
        for (const int buffer : context_.buffers_to_write(v))
            stores.push_back(vector_store(global(v, true, buffer), unflattened(first_, type.shape), result,
                                          count_ - first_));
    }

    Scalar placed(const ScalarNode& s, const Int& i, Stmts& body) {
        auto r = std::make_shared<ScalarNode>(s);
        if (const auto own = computed_.find(s.operand.value()); own != computed_.end()) {
            r->operand = Operand::of_place(own->second);
            r->at = {i};
            return r;
        }
        const int place = global(s.operand.value(), false, context_.buffer_to_read(s.operand.value()));
        r->operand = Operand::of_place(place);
        const Shape& shape = value(s.operand.value()).shape;
        Int offset = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + s.at[d];
        if (!(offset == first_ + i)) return r;  // a single element, or an unaligned row of them
        auto [at, is_new] = loaded_.emplace(place, -1);
        if (is_new) {
            at->second = registers(s.dtype);
            body.push_back(declare(at->second));
            body.push_back(vector_load(at->second, place, unflattened(first_, shape)));
        }
        r->operand = Operand::of_place(at->second);
        r->at = {i};
        return r;
    }

    const Group& group_;
    const SegmentContext& context_;
    KernelBuilder& builder_;
    const Int count_;
    const std::int64_t width_, block_;
    Int first_;                    // element of the thread
    std::map<int, int> loaded_;    // global places to registers
    std::map<int, int> computed_;  // values to registers
};

}  // namespace

Segment schedule_pointwise_group(const Group& group, const SegmentContext& context, KernelBuilder& builder,
                                 const std::string& title, std::string& notes) {
    return PointwiseGroup(group, context, builder).run(title, notes);
}

}  // namespace bitale::gpu
