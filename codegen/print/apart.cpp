#include "codegen/print/apart.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "codegen/nest/access.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

constexpr std::int64_t longest_group = 16;  // elements of a line or two

bool is_power(std::int64_t step) { return (step & (step - 1)) == 0; }

// Steps for which there are no instructions.
bool is_awkward(std::int64_t step) { return step > 3 && step <= longest_group && !is_power(step); }

}  // namespace

std::vector<ApartRead> reads_apart(const Stmt& loop, const std::vector<Place>& places) {
    std::vector<ApartRead> found, guarded;
    if (loop.binding != Binding::simd) return found;
    const std::uint64_t lane = loop.variable.symbol_id();
    const auto stores_in = [&](int place) {
        return std::any_of(loop.body.begin(), loop.body.end(),
                           [&](const Stmt& s) { return s.place == place; });
    };
    for (const Stmt& s : loop.body) {
        // Others bind what is known in the loop alone, or ask whether to read at all.
        if (!is_plain(s)) return {};
        for (const Scalar& value : {s.value, s.position})
            if (value)
                for_each_read(value, [&](const ScalarNode& read) {
                    const Place& place = places[static_cast<std::size_t>(read.operand.place())];
                    const Int offset = offset_of(place, read.at);
                    const std::optional<Int> step = stride_of(offset, loop.variable);
                    if (!step || !step->is_constant()) return;
                    const bool all_lanes =
                        std::none_of(read.guards.begin(), read.guards.end(),
                                     [&](const Guard& g) { return !lane || depends_on(g, lane); });
                    // Compilers take it for granted that what is stored in a buffer is read by its own
                    // pointer.
                    const bool is_global = place.scope == Place::Scope::global,
                               changes = place.written && (is_global || stores_in(read.operand.place()));
                    if (changes || (read.guards.empty() ? !is_awkward(std::abs(step->constant()))
                                                        : !all_lanes || !is_global))
                        return;
                    std::vector<ApartRead>& list = read.guards.empty() ? found : guarded;
                    const bool known = std::any_of(list.begin(), list.end(), [&](const ApartRead& r) {
                        return r.place == read.operand.place() && r.offset == offset &&
                               r.guards == read.guards;
                    });
                    if (!known) list.push_back({read.operand.place(), offset, step->constant(), read.guards});
                });
    }
    // One of them alone is no group.
    std::erase_if(found, [all = found](const ApartRead& r) {
        return std::count_if(all.begin(), all.end(), [&](const ApartRead& other) {
                   return other.place == r.place && other.step == r.step;
               }) < 2;
    });
    found.insert(found.end(), guarded.begin(), guarded.end());
    return found;
}

Pointed pointed(const ApartRead& read, const std::string& type, const std::string& first,
                const std::string& condition) {
    const std::string place = "p" + std::to_string(read.place);
    if (read.guards.empty()) return {"const " + type + "*", place + " + " + first};
    if (read.step == 0)
        return {type, "(" + condition + ") ? " + place + "[" + first + "] : " + type + "()", true};
    return {"const " + type + "*", place + " + ((" + condition + ") ? " + first + " : 0)"};
}

std::vector<std::int64_t> long_steps(const Stmt& loop, const std::vector<Place>& places) {
    constexpr std::int64_t register_bytes = 32;
    std::set<std::int64_t> found;
    if (loop.binding != Binding::simd) return {};
    const auto add = [&](int number, const std::vector<Int>& at) {
        const Place& place = places[static_cast<std::size_t>(number)];
        const std::optional<Int> step = stride_of(offset_of(place, at), loop.variable);
        if (!step || !step->is_constant()) return;
        const std::int64_t n = step->constant();
        const bool is_group = n > 1 && is_power(n) && n * bytes_of(place.dtype) >= register_bytes;
        if (is_group || n > longest_group) found.insert(n);
    };
    for (const Stmt& s : loop.body) {
        if (!is_plain(s)) return {};
        if (s.kind == Stmt::Kind::set || s.kind == Stmt::Kind::accumulate) add(s.place, s.at);
        for (const Scalar& value : {s.value, s.position})
            if (value)
                for_each_read(value, [&](const ScalarNode& read) { add(read.operand.place(), read.at); });
    }
    return {found.begin(), found.end()};
}

namespace {

template <class F>
void for_each_inside(const Stmts& body, const F& f) {
    for (const Stmt& s : body) {
        f(s);
        for_each_inside(s.body, f);
    }
}

}  // namespace

std::vector<std::vector<Guard>> guards_of_all_lanes(const Stmt& loop) {
    std::vector<std::vector<Guard>> all;
    if (loop.binding != Binding::simd) return all;
    std::vector<std::uint64_t> inside{loop.variable.symbol_id()};
    for_each_inside(loop.body, [&](const Stmt& s) { inside.push_back(s.variable.symbol_id()); });
    const auto moves = [&](const Guard& g) {
        return std::any_of(inside.begin(), inside.end(),
                           [&](std::uint64_t id) { return id != 0 && depends_on(g, id); });
    };
    const auto look = [&](const std::vector<Guard>& guards) {
        std::vector<Guard> fixed;
        for (const Guard& g : guards)
            if (!moves(g)) fixed.push_back(g);
        if (!fixed.empty() && std::find(all.begin(), all.end(), fixed) == all.end()) all.push_back(fixed);
    };
    for_each_inside(loop.body, [&](const Stmt& s) {
        if (s.value) for_each_part(s.value, [&](const ScalarNode& part) { look(part.guards); });
    });
    return all;
}

}  // namespace bitale
