#include "codegen/kernel/collect.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
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
            if (s.kind == Stmt::Kind::loop && s.binding == Binding::simd && suits(s)) {
                append(r, is_long(s) ? in_blocks(std::move(s)) : with_elements(std::move(s)));
                continue;
            }
            s.body = collected(std::move(s.body));
            r.push_back(std::move(s));
        }
        return r;
    }

    bool suits(const Stmt& s) const {
        const bool filled = !s.high.is(0);  // reads past the end
        if (!s.begin.is(0) || s.step != 1 || !s.variable.symbol_id() || filled ||
            s.end.range().high < shortest_collected)
            return false;
        const bool usual = std::all_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            return one.kind == Stmt::Kind::set || one.kind == Stmt::Kind::accumulate ||
                   one.kind == Stmt::Kind::declare || one.kind == Stmt::Kind::comment ||
                   (one.kind == Stmt::Kind::let && !any_part(one.value, [&](const ScalarNode& part) {
                        return part.kind == ScalarNode::Kind::read && part.operand.is_place() &&
                               is_written(part.operand.place(), s);
                    }));
        });
        return usual && std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
                   if (one.kind == Stmt::Kind::let) return is_computed(one, s);
                   return is_costly(one.value) &&
                          any_part(one.value, [&](const ScalarNode& part) { return lies_apart(part, s); });
               });
    }

    // A place that each lane computes from floats or conditions, which compilers leave scalar beside what is
    // loaded there.
    static bool is_computed(const Stmt& let, const Stmt& s) {
        const auto computes = [](const ScalarNode& part) {
            return (part.kind == ScalarNode::Kind::apply && is_float(part.dtype)) ||
                   part.dtype == DType::boolean;
        };
        return depends_on(let.value, s.variable.symbol_id()) && any_part(let.value, computes);
    }

    static bool is_long(const Stmt& s) { return s.end.range().high > longest_collected; }

    // Whether the place is an element of a list, or computed.
    static bool is_looked_up(const ScalarNode& read, const Stmt& s) {
        return std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            return one.kind == Stmt::Kind::let &&
                   std::any_of(read.at.begin(), read.at.end(),
                               [&](const Int& x) { return depends_on(x, one.variable.symbol_id()); });
        });
    }

    static bool is_written(int place, const Stmt& s) {
        return std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            return one.kind != Stmt::Kind::comment && one.place == place;
        });
    }

    bool lies_apart(const ScalarNode& read, const Stmt& s) const {
        if (read.kind != ScalarNode::Kind::read || !read.guards.empty() || !read.operand.is_place())
            return false;
        const Place& place = kernel_.places[static_cast<std::size_t>(read.operand.place())];
        if (place.scope == Place::Scope::vector || is_written(read.operand.place(), s)) return false;
        if (is_looked_up(read, s)) return true;
        if (is_long(s)) return false;
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

    //     for blocks of lanes:
    //         for lane of block: collected[lane] = x[list[lane]]
    //         for lane of block: y[lane] = exp(collected[lane])
    Stmts in_blocks(Stmt s) {
        const std::int64_t most = s.end.range().high;
        const Int block = Int::symbol("block", {0, (most - 1) / longest_collected}),
                  lane = Int::symbol("lane", {0, longest_collected - 1});
        const Int first = block * longest_collected;
        const Stmt inner = loop(lane, 0, min(Int(longest_collected), s.end - first), Binding::simd,
                                substitute(std::move(s.body), {{s.variable.symbol_id(), first + lane}}));
        Stmts r;
        r.push_back(loop(block, 0, ceildiv(s.end, longest_collected), Binding::serial, with_elements(inner)));
        return r;
    }

    //     for each lane: places[lane] = floor(t[lane])
    //     for each lane: y[lane] = x[places[lane]]
    void compute_places(Stmt& s, Stmts& before) {
        for (std::size_t i = 0; i < s.body.size(); ++i) {
            if (s.body[i].kind != Stmt::Kind::let || !is_computed(s.body[i], s)) continue;
            const DType own = s.body[i].value->dtype;
            const DType dtype = bits_of(own) < 32 || own == DType::int32 ? DType::int32 : DType::int64;
            if (const std::optional<int> place = array_of(dtype, s.end.range().high)) {
                before.push_back(declare(*place));
                before.push_back(loop_that_collects(s, *place, scalar_cast(dtype, s.body[i].value)));
                s.body[i].value = place_read(dtype, *place, {s.variable});
            }
        }
    }

    std::optional<int> array_of(DType dtype, std::int64_t length) {
        bytes_ += length * bytes_of(dtype);
        if (bytes_ > most_bytes_collected) return {};
        kernel_.places.push_back({Place::Scope::local, dtype, {Int(length)}, -1, true});
        return static_cast<int>(kernel_.places.size()) - 1;
    }

    // The loop, behind those that collect what it reads.
    Stmts with_elements(Stmt s) {
        const std::int64_t most = s.end.range().high;
        std::vector<std::pair<Scalar, Scalar>> instead;  // elements, and where they are collected
        Stmts r;
        compute_places(s, r);
        for (Stmt& one : s.body) {
            if (!one.value || one.kind == Stmt::Kind::let || !is_costly(one.value)) continue;
            one.value = rebuild(one.value, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
                if (!lies_apart(*part, s)) return part;
                for (const auto& [other, scalar] : instead)
                    if (other->operand.place() == part->operand.place() && other->at == part->at)
                        return scalar;
                const std::optional<int> place = array_of(part->dtype, most);
                if (!place) return part;
                r.push_back(declare(*place));
                const Scalar element = part;
                r.push_back(loop_that_collects(s, *place, element));
                return instead.emplace_back(element, place_read(part->dtype, *place, {s.variable})).second;
            });
        }
        drop_unused_lets(s.body);
        r.push_back(std::move(s));
        return r;
    }

    static Stmt loop_that_collects(const Stmt& s, int place, const Scalar& element) {
        const Int lane = Int::symbol("lane", {0, s.end.range().high - 1});
        std::vector<const Stmt*> lets;  // that it depends on, the last one first
        for (auto one = s.body.rbegin(); one != s.body.rend(); ++one) {
            const std::uint64_t id = one->variable.symbol_id();
            if (one->kind == Stmt::Kind::let &&
                (depends_on(element, id) || std::any_of(lets.begin(), lets.end(), [&](const Stmt* later) {
                     return depends_on(later->value, id);
                 })))
                lets.push_back(&*one);
        }
        Stmts body;
        Substitution own{{s.variable.symbol_id(), lane}};
        for (auto one = lets.rbegin(); one != lets.rend(); ++one) {
            const Int index = Int::symbol("index", (*one)->variable.range());
            body.push_back(let(index, substitute((*one)->value, own), (*one)->end));
            own[(*one)->variable.symbol_id()] = index;
        }
        body.push_back(set(place, {lane}, substitute(element, own)));
        return loop(lane, 0, s.end, Binding::simd, std::move(body));
    }

    static void drop_unused_lets(Stmts& body) {
        for (std::size_t i = body.size(); i-- > 0;) {
            if (body[i].kind != Stmt::Kind::let) continue;
            const std::uint64_t id = body[i].variable.symbol_id();
            const bool used = std::any_of(body.begin(), body.end(), [&](const Stmt& one) {
                return depends_on(one.value, id) || depends_on(one.position, id) ||
                       std::any_of(one.at.begin(), one.at.end(),
                                   [&](const Int& x) { return depends_on(x, id); });
            });
            if (!used) body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }

    KernelIR& kernel_;
    std::int64_t bytes_ = 0;  // of the arrays so far
};

}  // namespace

void collect_lanes(KernelIR& kernel) { Collector(kernel).run(); }

}  // namespace bitale
