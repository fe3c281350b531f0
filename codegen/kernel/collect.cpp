#include "codegen/kernel/collect.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "codegen/nest/compose.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::int64_t shortest_collected = 8, longest_collected = 256;
// Neighbours at most so far apart are shuffled out of whole registers, in longer loops.
constexpr std::int64_t farthest_shuffled = 4, longest_unshuffled = 64;
constexpr int worth_collecting = 10;                    // cycles
constexpr std::int64_t most_bytes_collected = 1 << 17;  // of a kernel, on the stack of its thread

class Collector {
  public:
    explicit Collector(KernelIR& kernel) : kernel_(kernel) {}

    void run() {
        for (Phase& phase : kernel_.phases)
            for (Segment& segment : phase.segments) segment.body = collected(std::move(segment.body));
    }

  private:
    Stmts collected(Stmts body) {
        Stmts r;
        for (Stmt& s : body) {
            if (s.kind == Stmt::Kind::loop && s.binding == Binding::simd)
                collect(s, r);
            else
                s.body = collected(std::move(s.body));
            r.push_back(std::move(s));
        }
        return r;
    }

    bool suits(const Stmt& s) const {
        const std::int64_t most = s.end.range().high;
        const bool filled = !s.high.is(0);  // reads past the end
        if (!s.begin.is(0) || s.step != 1 || !s.variable.symbol_id() || filled || most < shortest_collected ||
            most > longest_collected)
            return false;
        return std::all_of(s.body.begin(), s.body.end(),
                           [](const Stmt& one) {
                               return one.kind == Stmt::Kind::set || one.kind == Stmt::Kind::accumulate ||
                                      one.kind == Stmt::Kind::declare || one.kind == Stmt::Kind::comment;
                           }) &&
               std::any_of(s.body.begin(), s.body.end(),
                           [](const Stmt& one) { return one.value && costs_much(one.value); });
    }

    static bool costs_much(const Scalar& value) {
        Nest nest;
        nest.body = value;
        return cost_of(nest) >= worth_collecting;
    }

    bool lies_apart(const ScalarNode& read, const Stmt& s) const {
        if (read.kind != ScalarNode::Kind::read || !read.guards.empty() || !read.operand.is_place())
            return false;
        const Place& place = kernel_.places[static_cast<std::size_t>(read.operand.place())];
        const bool written = std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            return one.kind != Stmt::Kind::comment && one.place == read.operand.place();
        });
        if (place.scope == Place::Scope::vector || written) return false;
        const Int step = step_of(place, read.at, s.variable);
        if (depends_on(step, s.variable.symbol_id()) || step.is(0) || step.is(1)) return false;
        if (step.is_constant() && reads_of(read.operand.place(), s) >= std::abs(step.constant()))
            return false;
        const bool shuffled = step.is_constant() && std::abs(step.constant()) <= farthest_shuffled;
        return !shuffled || s.end.range().high <= longest_unshuffled;
    }

    // Where they are as many as elements lie apart, nothing between them is left out, and whole registers are
    // loaded and shuffled.
    static std::int64_t reads_of(int place, const Stmt& s) {
        std::set<const ScalarNode*> reads;
        for (const Stmt& one : s.body)
            if (one.value)
                for_each_read(one.value, [&](const ScalarNode& read) {
                    if (read.operand.is_place() && read.operand.place() == place) reads.insert(&read);
                });
        return std::ssize(reads);
    }

    // Puts the loops that collect before it.
    void collect(Stmt& s, Stmts& before) {
        if (!suits(s)) return;
        const std::int64_t most = s.end.range().high;
        std::vector<std::pair<Scalar, Scalar>> instead;  // elements, and where they are collected
        for (Stmt& one : s.body) {
            if (!one.value) continue;
            one.value = rebuild(one.value, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
                if (!lies_apart(*part, s)) return part;
                for (const auto& [other, scalar] : instead)
                    if (other->operand.place() == part->operand.place() && other->at == part->at)
                        return scalar;
                bytes_ += most * bytes_of(part->dtype);
                if (bytes_ > most_bytes_collected) return part;
                const auto place = static_cast<int>(kernel_.places.size());
                kernel_.places.push_back({Place::Scope::local, part->dtype, {Int(most)}, -1, true});
                before.push_back(declare(place));
                const Int lane = Int::symbol("lane", {0, most - 1});
                const Scalar element = part;
                before.push_back(loop(
                    lane, 0, s.end, Binding::simd,
                    substitute(Stmts{set(place, {s.variable}, element)}, {{s.variable.symbol_id(), lane}})));
                return instead.emplace_back(element, place_read(part->dtype, place, {s.variable})).second;
            });
        }
    }

    KernelIR& kernel_;
    std::int64_t bytes_ = 0;  // of the arrays so far
};

}  // namespace

void collect_lanes(KernelIR& kernel) { Collector(kernel).run(); }

}  // namespace bitale
