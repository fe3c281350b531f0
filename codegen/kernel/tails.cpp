#include "codegen/kernel/tails.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::int64_t widest_element = 4, fewest_lanes = 4;
// Of longer loops the end does not count.
constexpr std::int64_t longest = 512;
// Registers of a short loop over bytes, each written out with its bytes widened before.
constexpr std::int64_t most_apart = 4;

Int step_of(const Int& x, const Int& variable) {
    return substitute(x, {{variable.symbol_id(), variable + 1}}) - x;
}

bool has_vectors_of(DType dtype) {
    return dtype != DType::boolean && dtype != DType::float16 && dtype != DType::bfloat16 &&
           bytes_of(dtype) <= widest_element;
}

class Filler {
  public:
    Filler(KernelIR& kernel, std::int64_t vector_bytes)
        : kernel_(kernel), width_(std::min(vector_bytes, readable_past_end) / widest_element) {}

    void run() {
        for (Phase& phase : kernel_.phases)
            for (Segment& segment : phase.segments) segment.body = filled(std::move(segment.body));
    }

  private:
    Stmts filled(Stmts body) {
        Stmts r;
        for (Stmt& s : body) {
            if (s.kind == Stmt::Kind::loop && s.binding == Binding::simd && suits(s)) {
                for (Stmt& part : with_tail(s)) r.push_back(std::move(part));
                continue;
            }
            s.body = filled(std::move(s.body));
            r.push_back(std::move(s));
        }
        return r;
    }

    bool suits(const Stmt& s) {
        if (!s.begin.is(0) || s.step != 1 || !s.end.is_constant() || !s.variable.symbol_id()) return false;
        const std::int64_t extent = s.end.constant();
        const bool whole = extent % lanes_for(extent) == 0 &&
                           !(reads_bytes(s) && extent >= width_ && extent <= most_apart * width_);
        if (whole || extent > longest || extent < fewest_lanes - 1) return false;
        std::set<int> read, stored;
        for (const Stmt& one : s.body)
            if (!suits(one, s.variable, read, stored)) return false;
        // What was stored is in no register that a later statement could read.
        return std::none_of(stored.begin(), stored.end(), [&](int place) { return read.contains(place); });
    }

    bool suits(const Stmt& s, const Int& variable, std::set<int>& read, std::set<int>& stored) const {
        switch (s.kind) {
            case Stmt::Kind::comment: return true;
            case Stmt::Kind::declare: return is_scalar(s.place);
            case Stmt::Kind::set:
            case Stmt::Kind::accumulate: break;
            default: return false;
        }
        if (!readable(s.value, variable, read)) return false;
        if (is_scalar(s.place)) return true;
        const Place& place = kernel_.places[static_cast<std::size_t>(s.place)];
        stored.insert(s.place);
        const Int step = step_of(offset_of(place, s.at), variable);
        return s.kind == Stmt::Kind::set && has_vectors_of(place.dtype) &&
               place.scope != Place::Scope::vector && step.is_constant() && !step.is(0);
    }

    bool is_scalar(int place) const {
        const Place& p = kernel_.places[static_cast<std::size_t>(place)];
        return p.scope == Place::Scope::private_ && p.extents.empty() && bytes_of(p.dtype) <= widest_element;
    }

    bool readable(const Scalar& s, const Int& variable, std::set<int>& read) const {
        return !any_part(s, [&](const ScalarNode& part) {
            if (part.kind == ScalarNode::Kind::read) {
                const Place& place = kernel_.places[static_cast<std::size_t>(part.operand.place())];
                const Int step = step_of(offset_of(place, part.at), variable);
                if (!step.is(0) && !step.is(1)) return true;
                if (!is_scalar(part.operand.place())) read.insert(part.operand.place());
            }
            return bytes_of(part.dtype) > widest_element && depends_on(part, variable.symbol_id());
        });
    }

    bool reads_bytes(const Stmt& s) const {
        return std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            return any_part(one.value, [&](const ScalarNode& part) { return is_widened(part, s.variable); });
        });
    }

    std::int64_t lanes_for(std::int64_t extent) const {
        std::int64_t lanes = width_;
        while (lanes > fewest_lanes && lanes / 2 >= extent) lanes /= 2;
        return lanes;
    }

    Stmts with_tail(const Stmt& s) {
        const std::int64_t extent = s.end.constant(), whole = extent / width_ * width_;
        const bool apart = reads_bytes(s) && extent <= most_apart * width_;
        Stmts r;
        if (whole > 0 && !apart) r.push_back(loop(s.variable, 0, whole, Binding::simd, s.body));
        for (std::int64_t first = apart ? 0 : whole; first < extent; first += width_)
            for (Stmt& part : block(s, first, std::min(width_, extent - first))) r.push_back(std::move(part));
        return r;
    }

    // So many lanes from `first` on.
    Stmts block(const Stmt& s, std::int64_t first, std::int64_t count) {
        Stmts r;
        const std::int64_t lanes_here = lanes_for(count);
        const Int lane = Int::symbol("lane", {0, lanes_here - 1});
        Stmts inside = substitute(s.body, {{s.variable.symbol_id(), first + lane}}), before, stores;
        const auto temporary = [&](DType dtype) {
            const auto place = static_cast<int>(kernel_.places.size());
            kernel_.places.push_back({Place::Scope::local, dtype, {Int(lanes_here)}, -1, true});
            r.push_back(declare(place));
            return place;
        };
        std::map<const ScalarNode*, Scalar> widened;
        for (Stmt& one : inside) {
            one.value = widen(one.value, lane, widened, [&](const Scalar& wide) {
                const int place = temporary(wide->dtype);
                before.push_back(set(place, {lane}, wide));
                return place_read(wide->dtype, place, {lane});
            });
            if (one.kind != Stmt::Kind::set || is_scalar(one.place)) continue;
            DType dtype = kernel_.places[static_cast<std::size_t>(one.place)].dtype;
            const bool narrowed = one.value->kind == ScalarNode::Kind::cast && is_integer(dtype) &&
                                  bytes_of(dtype) < widest_element &&
                                  one.value->arguments[0]->dtype == DType::int32;
            if (narrowed) one.value = one.value->arguments[0], dtype = DType::int32;
            const int result = temporary(dtype);
            const Scalar value = place_read(dtype, result, {lane});
            const DType stored = kernel_.places[static_cast<std::size_t>(one.place)].dtype;
            stores.push_back(set(one.place, one.at, narrowed ? scalar_cast(stored, value) : value));
            one.place = result;
            one.at = {lane};
        }
        if (!before.empty()) {
            r.push_back(lanes(lane, lanes_here, lanes_here, std::move(before)));
            r.back().high = count;
        }
        r.push_back(filled_lanes(lane, count, lanes_here, std::move(inside)));
        r.push_back(lanes(lane, count, lanes_here, std::move(stores)));
        return r;
    }

    // Compilers choose registers by the narrowest elements of a loop: bytes become wide before it.
    Scalar widen(const Scalar& s, const Int& lane, std::map<const ScalarNode*, Scalar>& widened,
                 const std::function<Scalar(const Scalar&)>& keep) const {
        if (!s) return s;
        if (const auto at = widened.find(s.get()); at != widened.end()) return at->second;
        Scalar r = s;
        if (is_widened(*s, lane)) {
            r = keep(s);
        } else if (!s->arguments.empty() || s->otherwise) {
            auto copy = std::make_shared<ScalarNode>(*s);
            for (Scalar& a : copy->arguments) a = widen(a, lane, widened, keep);
            copy->otherwise = widen(copy->otherwise, lane, widened, keep);
            r = copy;
        }
        return widened[s.get()] = r;
    }

    bool is_widened(const ScalarNode& s, const Int& lane) const {
        if (s.kind != ScalarNode::Kind::cast) return false;
        const ScalarNode& from = *s.arguments[0];
        if (from.kind != ScalarNode::Kind::read || !from.guards.empty() || !is_integer(from.dtype))
            return false;
        if (s.dtype != DType::int32 && s.dtype != DType::float32) return false;
        const Place& place = kernel_.places[static_cast<std::size_t>(from.operand.place())];
        return from.dtype != DType::boolean && bytes_of(from.dtype) < widest_element &&
               place.scope != Place::Scope::private_ && step_of(offset_of(place, from.at), lane).is(1);
    }

    KernelIR& kernel_;
    const std::int64_t width_;
};

void cut_to_stored(Stmts& body) {
    for (Stmt& s : body) {
        const bool in_lanes = s.binding == Binding::simd || s.binding == Binding::lanes;
        if (s.kind == Stmt::Kind::loop && in_lanes && !s.high.is(0)) s.end = std::exchange(s.high, 0);
        cut_to_stored(s.body);
    }
}

}  // namespace

Stmt filled_lanes(Int lane, Int count, std::int64_t filled, Stmts body) {
    Stmt s = loop(std::move(lane), 0, filled, Binding::simd, std::move(body));
    s.high = std::move(count);
    return s;
}

void fill_tails(KernelIR& kernel, std::int64_t vector_bytes) { Filler(kernel, vector_bytes).run(); }

void read_exactly(KernelIR& kernel) {
    kernel.reads_exactly = true;
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments) cut_to_stored(segment.body);
}

}  // namespace bitale
