#include "codegen/kernel/wide_lanes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/nest/access.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::int64_t widest_element = 4;

class Widener {
  public:
    explicit Widener(KernelIR& kernel) : kernel_(kernel) {}

    Stmts operator()(Stmts body) {
        Stmts r;
        for (Stmt& s : body) {
            if (s.kind == Stmt::Kind::loop && s.binding == Binding::simd && suits(s)) {
                widen(s, r);
            } else {
                s.body = (*this)(std::move(s.body));
            }
            r.push_back(std::move(s));
        }
        return r;
    }

  private:
    bool suits(const Stmt& s) {
        if (s.step != 1 || !s.begin.is(0) || !s.end.is_constant() || !s.variable.symbol_id() ||
            (s.end.constant() != 8 && s.end.constant() != 16))
            return false;
        stored_.clear();
        bool plain = true, wide = false;
        for (const Stmt& one : s.body) {
            plain = plain && (one.kind == Stmt::Kind::set || one.kind == Stmt::Kind::accumulate ||
                              one.kind == Stmt::Kind::declare || one.kind == Stmt::Kind::comment);
            if (one.place < 0 || one.kind == Stmt::Kind::declare) continue;
            stored_.insert(one.place);
            wide =
                wide || bytes_of(kernel_.places[static_cast<std::size_t>(one.place)].dtype) >= widest_element;
        }
        return plain && wide;
    }

    void widen(Stmt& s, Stmts& before) {
        copies_.clear();
        booleans_.clear();
        kept_.clear();
        Stmts fills;
        for (Stmt& one : s.body)
            for (Scalar* value : {&one.value, &one.position})
                if (*value) *value = widened(*value, s, before, fills);
        if (fills.empty()) return;
        const Int lane = Int::symbol("lane", s.variable.range());
        const std::int64_t count = s.end.constant();
        before.push_back(lanes(lane, count, count, substitute(fills, {{s.variable.symbol_id(), lane}})));
        before.back().high = s.high;
    }

    Scalar widened(const Scalar& value, const Stmt& s, Stmts& before, Stmts& fills) {
        const auto wide = [&](const Scalar& read) {
            Scalar& copy = copies_[{read->operand.place(), read->at}];
            if (copy) return copy;
            const auto place = static_cast<int>(kernel_.places.size());
            kernel_.places.push_back({Place::Scope::private_, DType::int32, {s.end}, -1, true});
            before.push_back(declare(place));
            auto bytes = std::make_shared<ScalarNode>(*read);
            if (bytes->dtype == DType::boolean) bytes->dtype = DType::uint8;  // 0 or 1
            fills.push_back(set(place, {s.variable}, scalar_cast(DType::int32, bytes)));
            return copy = place_read(DType::int32, place, {s.variable});
        };
        return rebuild(value, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
            if (part->kind == ScalarNode::Kind::cast && bytes_of(part->dtype) >= widest_element) {
                // Of a boolean, what was made of it by its own visit is taken apart again.
                const auto from = booleans_.find(part->arguments[0].get());
                const Scalar& read = from == booleans_.end() ? part->arguments[0] : from->second;
                return is_narrow(*read, s) ? scalar_cast(part->dtype, wide(read)) : Scalar(part);
            }
            if (compares_narrow(*part, s)) {
                for (Scalar& a : part->arguments)
                    a = is_narrow(*a, s) ? wide(a) : scalar_cast(DType::int32, a);
                return part;
            }
            if (part->dtype != DType::boolean || !is_narrow(*part, s)) return part;
            const Scalar read = part;
            const Scalar r =
                scalar_apply(Opcode::neq, DType::boolean, {wide(read), scalar_integer(DType::int32, 0)});
            booleans_.emplace(r.get(), read);
            kept_.push_back(r);
            return r;
        });
    }

    // A comparison of integers of fewer than 32 bits, of which some are read here.
    bool compares_narrow(const ScalarNode& s, const Stmt& loop) const {
        constexpr Opcode comparisons[] = {Opcode::lt, Opcode::le, Opcode::gt,
                                          Opcode::ge, Opcode::eq, Opcode::neq};
        if (s.arguments.size() != 2 || !is_integer(s.arguments[0]->dtype) ||
            bytes_of(s.arguments[0]->dtype) >= widest_element)
            return false;
        return std::any_of(std::begin(comparisons), std::end(comparisons),
                           [&](Opcode o) { return applies(s, o); }) &&
               std::any_of(s.arguments.begin(), s.arguments.end(),
                           [&](const Scalar& a) { return is_narrow(*a, loop); });
    }

    bool is_narrow(const ScalarNode& s, const Stmt& loop) const {
        if (s.kind != ScalarNode::Kind::read || is_float(s.dtype) || bytes_of(s.dtype) >= widest_element ||
            !s.guards.empty() || stored_.contains(s.operand.place()))
            return false;
        const Place& place = kernel_.places[static_cast<std::size_t>(s.operand.place())];
        const std::optional<Int> step = stride_of(offset_of(place, s.at), loop.variable);
        return place.scope != Place::Scope::vector && step && step->is(1);
    }

    KernelIR& kernel_;
    std::set<int> stored_;                                       // by the loop
    std::map<std::pair<int, std::vector<Int>>, Scalar> copies_;  // of what the loop reads
    std::map<const ScalarNode*, Scalar> booleans_;               // what stands for a boolean, and it
    std::vector<Scalar> kept_;                                   // so that no address is used again
};

}  // namespace

void widen_lanes(KernelIR& kernel) {
    Widener widen(kernel);
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments) segment.body = widen(std::move(segment.body));
}

}  // namespace bitale
