#include "codegen/kernel/fuse.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/nest/positions.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

// Shorter ones are filled up to whole registers, each by itself (tails.h).
constexpr std::int64_t short_loop = 512;
// Of places: more streams than that are more than a core asks ahead for.
constexpr std::size_t most_streams = 10;
// Compilers choose registers by the narrowest elements of a loop.
constexpr std::int64_t element = 4;

// What one loop does to the places that live longer than an iteration.
struct Accesses {
    std::map<int, std::vector<std::vector<Int>>> reads, writes;

    std::set<int> places() const {
        std::set<int> all;
        for (const auto& [place, at] : reads) all.insert(place);
        for (const auto& [place, at] : writes) all.insert(place);
        return all;
    }
};

class Fuser {
  public:
    explicit Fuser(KernelIR& kernel) : kernel_(kernel) {}

    void run() {
        for (Phase& phase : kernel_.phases)
            for (Segment& segment : phase.segments) segment.body = fused(std::move(segment.body));
    }

  private:
    Stmts fused(Stmts body) {
        Stmts r, between;          // what lies behind the loop and does nothing by itself
        std::ptrdiff_t open = -1;  // the loop that the next one may join
        for (Stmt& s : body) {
            if (s.kind == Stmt::Kind::comment || s.kind == Stmt::Kind::barrier ||
                s.kind == Stmt::Kind::declare) {
                between.push_back(std::move(s));
                continue;
            }
            if (open >= 0 && join(r[static_cast<std::size_t>(open)], s)) {
                const auto before = r.begin() + open;
                open += std::ssize(between);
                r.insert(before, std::make_move_iterator(between.begin()),
                         std::make_move_iterator(between.end()));
                between.clear();
                continue;
            }
            append(r, std::exchange(between, {}));
            if (s.kind != Stmt::Kind::loop || s.binding != Binding::simd) s.body = fused(std::move(s.body));
            open = accesses(s) ? std::ssize(r) : -1;
            r.push_back(std::move(s));
        }
        append(r, std::move(between));
        return r;
    }

    bool join(Stmt& first, const Stmt& second) const {
        const std::optional<Accesses> theirs = accesses(second);
        if (!theirs || !(first.begin == second.begin) || !(first.end == second.end) ||
            first.step != second.step)
            return false;
        const Substitution here{{second.variable.symbol_id(), first.variable}};
        Stmts moved = substitute(second.body, here);
        Stmt both = first;
        append(both.body, moved);
        Stmt other = first;
        other.body = std::move(moved);
        const std::optional<Accesses> a = accesses(first), b = accesses(other);
        if (!a || !b || !meet(*a, *b) || !agree(*a, *b)) return false;
        if (accesses(both)->places().size() > most_streams) return false;
        first = std::move(both);
        return true;
    }

    static bool meet(const Accesses& a, const Accesses& b) {
        const std::set<int> first = a.places(), second = b.places();
        return std::any_of(first.begin(), first.end(), [&](int place) { return second.contains(place); });
    }

    // What either writes, the other one has at the same element only.
    static bool agree(const Accesses& a, const Accesses& b) {
        const auto same = [](const Accesses& from, const Accesses& other) {
            for (const auto& [place, writes] : from.writes)
                for (const auto* all : {&other.reads, &other.writes})
                    if (const auto found = all->find(place); found != all->end())
                        for (const std::vector<Int>& at : found->second)
                            for (const std::vector<Int>& written : writes)
                                if (!(at == written)) return false;
            return true;
        };
        return same(a, b) && same(b, a);
    }

    // Nothing of a statement that is no such loop.
    std::optional<Accesses> accesses(const Stmt& s) const {
        if (s.kind != Stmt::Kind::loop || s.binding != Binding::simd || !s.variable.symbol_id()) return {};
        if (s.end.is_constant() && s.end.constant() <= short_loop) return {};
        Accesses found;
        std::set<int> own;
        for (const Stmt& one : s.body) {
            switch (one.kind) {
                case Stmt::Kind::comment: continue;
                case Stmt::Kind::declare: own.insert(one.place); continue;
                case Stmt::Kind::set: break;
                case Stmt::Kind::accumulate:
                    if (is_position(one.combine)) return {};
                    break;
                default: return {};
            }
            if (!reads(one.value, own, found)) return {};
            if (own.contains(one.place)) continue;
            // An element of its own in every iteration.
            const Place& place = kernel_.places[static_cast<std::size_t>(one.place)];
            if (bytes_of(place.dtype) != element || !moves(step_of(place, one.at, s.variable))) return {};
            found.writes[one.place].push_back(one.at);
            if (one.kind == Stmt::Kind::accumulate) found.reads[one.place].push_back(one.at);
        }
        return found;
    }

    static bool moves(const Int& step) { return step.is_constant() && !step.is(0); }

    bool reads(const Scalar& s, const std::set<int>& own, Accesses& found) const {
        return !any_part(s, [&](const ScalarNode& part) {
            if (part.kind == ScalarNode::Kind::read && !own.contains(part.operand.place()))
                found.reads[part.operand.place()].push_back(part.at);
            return part.dtype != DType::boolean && bytes_of(part.dtype) != element;
        });
    }

    KernelIR& kernel_;
};

}  // namespace

void fuse_loops(KernelIR& kernel) { Fuser(kernel).run(); }

}  // namespace bitale
