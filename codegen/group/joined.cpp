#include "codegen/group/joined.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "codegen/nest/access.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/pieces.h"

namespace bitale {

namespace {

const Value& at(const Values& values, int number) { return values.list[static_cast<std::size_t>(number)]; }

bool is_map(const Value& value) {
    return value.storage == Value::Storage::inlined && value.nest.body &&
           value.nest.combine == Combine::none && !value.required && !value.by_library;
}

struct Parts {
    int guarded = 0;      // reads that ask whether they have the element
    bool narrow = false;  // some have fewer bytes in memory
    bool given = false;   // some are of arguments or shared variables
};

Parts parts_of(const Values& values, int number) {
    constexpr std::size_t longest = 64;
    const DType dtype = at(values, number).node->type.dtype;
    Parts parts;
    std::vector<int> found{number};
    for (std::size_t next = 0; next < found.size() && found.size() < longest; ++next)
        for_each_read(at(values, found[next]).nest, [&](const ScalarNode& s) {
            parts.narrow = parts.narrow || bytes_of(s.dtype) < bytes_of(dtype);
            const int operand = s.operand.value();
            parts.given = parts.given || (at(values, operand).storage == Value::Storage::leaf &&
                                          at(values, operand).node->type.rank() > 0);
            if (!s.guards.empty()) ++parts.guarded;
            if (is_map(at(values, operand)) && std::find(found.begin(), found.end(), operand) == found.end())
                found.push_back(operand);
        });
    return parts;
}

bool is_view(const Value& value) {
    return is_map(value) && value.nest.body->kind == ScalarNode::Kind::read &&
           value.nest.body->guards.empty() && value.nest.lets.empty();
}

constexpr double often = 8;
constexpr double twice = 1.5;
constexpr int many_readers = 8;
constexpr double seldom = 0.5;  // at most twice as many elements are stored as are looked up

bool is_read_by_larger_map(const Values& values, int number, double size) {
    const std::vector<int>& users = at(values, number).users;
    return std::any_of(users.begin(), users.end(), [&](int user) {
        const Value& v = at(values, user);
        if (is_view(v)) return is_read_by_larger_map(values, user, size);
        return v.nest.body && v.nest.combine == Combine::none && !v.by_library &&
               typical_count(v.nest.parallel) >= size;
    });
}

bool reads_whole_for_each_row(const Values& values, int number, const Value& product) {
    if (product.nest.combine != Combine::sum || product.by_library || product.nest.parallel.empty())
        return false;
    const Nest nest = compose(product.nest, [&](int operand) -> const Nest* {
        const Value& v = at(values, operand);
        return operand != number && is_view(v) ? &v.nest : nullptr;
    });
    if (!adds_products(nest)) return false;
    const Int& row = nest.parallel[0].variable;
    bool whole = true;
    for_each_read(nest, [&](const ScalarNode& s) {
        if (s.operand.value() != number) return;
        for (const Int& place : s.at) whole = whole && !depends_on(place, row.symbol_id());
    });
    return whole;
}

bool is_read_whole(const Values& values, int number, int read) {
    const std::vector<int>& users = at(values, read).users;
    return std::any_of(users.begin(), users.end(), [&](int user) {
        const Value& v = at(values, user);
        return is_view(v) ? is_read_whole(values, number, user) : reads_whole_for_each_row(values, number, v);
    });
}

bool is_looked_up(const Values& values, int number) {
    const Value& value = at(values, number);
    return is_map(value) && (!value.nest.lets.empty() ||
                             (is_view(value) && is_looked_up(values, value.nest.body->operand.value())));
}

bool has_quotients(const Int& x) {
    return std::any_of(x.terms().begin(), x.terms().end(), [](const Int::Term& t) {
        return std::any_of(t.atoms.begin(), t.atoms.end(),
                           [](const AtomPtr& a) { return a->kind == Atom::Kind::floordiv; });
    });
}

// Whether a lookup reads it by the numbers of its elements, as the rows of a reshaped array, from which
// quotients give the places.
bool is_looked_up_by_number(const Values& values, int number, bool by_number = false) {
    const std::vector<int>& users = at(values, number).users;
    return std::any_of(users.begin(), users.end(), [&](int user) {
        const Value& v = at(values, user);
        if (is_view(v)) {
            const std::vector<Int>& places = v.nest.body->at;
            const bool split = std::any_of(places.begin(), places.end(), has_quotients);
            return is_looked_up_by_number(values, user, by_number || split);
        }
        bool found = false;
        if (by_number && v.nest.body)
            for_each_read(v.nest, [&](const ScalarNode& s) {
                for (const Let& let : v.nest.lets)
                    for (const Int& place : s.at)
                        found = found ||
                                (s.operand.value() == number && depends_on(place, let.symbol.symbol_id()));
            });
        return found;
    });
}

// Part of an array, or of several: each element asks whether it has one.
bool is_guarded(const Values& values, int number) {
    const Value& value = at(values, number);
    if (!is_map(value) || value.shape.empty()) return false;
    return any_part(value.nest.body, [](const ScalarNode& s) { return !s.guards.empty(); });
}

// How many readers find its elements by quotients of sums, as those that look at a padded array in rows of
// another length do: rows that were shifted by one more element each, as relative places of attention are.
int readers_in_other_rows(const Values& values, int number) {
    constexpr std::size_t longest = 512;
    const auto by_sum = [](const Int& place) {
        return std::any_of(place.terms().begin(), place.terms().end(), [](const Int::Term& t) {
            return std::any_of(t.atoms.begin(), t.atoms.end(), [](const AtomPtr& a) {
                if (a->kind != Atom::Kind::floordiv) return false;
                const std::vector<AtomPtr> symbols = symbols_of(a->a);
                return symbols.size() > 1 ||
                       (symbols.size() == 1 && !(a->a - Int::from(symbols[0])).is_constant());
            });
        });
    };
    int readers = 0;
    std::vector<int> found{number};
    for (std::size_t next = 0; next < found.size() && readers < many_readers; ++next)
        for (const int user : at(values, found[next]).users) {
            const Value& v = at(values, user);
            if (is_view(v)) {
                const bool is_new = std::find(found.begin(), found.end(), user) == found.end();
                if (is_new && found.size() < longest) found.push_back(user);
                continue;
            }
            if (!v.nest.body || next == 0) continue;
            const Nest nest = compose(v.nest, [&](int operand) -> const Nest* {
                return operand != number && is_view(at(values, operand)) ? &at(values, operand).nest
                                                                         : nullptr;
            });
            bool other = false;
            for_each_read(nest, [&](const ScalarNode& r) {
                other =
                    other || (r.operand.value() == number && std::any_of(r.at.begin(), r.at.end(), by_sum));
            });
            if (other) ++readers;
        }
    return readers;
}

// A view whose elements along its last axis are not neighbours in memory.
bool is_strided(const Value& value) {
    if (!is_view(value) || value.nest.parallel.empty()) return false;
    const ScalarNode& read = *value.nest.body;
    const Int& lane = value.nest.parallel.back().variable;
    return std::any_of(read.at.begin(), read.at.end(),
                       [&](const Int& x) { return depends_on(x, lane.symbol_id()); }) &&
           axis_along(read, lane) != read.at.size() - 1;
}

bool is_view_of_given(const Values& values, int number) {
    const Value& value = at(values, number);
    return value.storage == Value::Storage::leaf ||
           (is_view(value) && is_view_of_given(values, value.nest.body->operand.value()));
}

// Whether some stored map, by way of others, has the last axis of the value in lanes. Sums along that axis do
// not count: products have their own ways to read factors.
bool is_in_lanes_of_map(const Values& values, int number) {
    constexpr std::size_t longest = 64;
    std::vector<int> found{number};
    for (std::size_t next = 0; next < found.size() && found.size() < longest; ++next)
        for (const int user : at(values, found[next]).users) {
            const Value& v = at(values, user);
            if (!v.nest.body || v.nest.combine != Combine::none || v.nest.parallel.empty()) continue;
            if (is_strided(v) || std::find(found.begin(), found.end(), user) != found.end()) continue;
            bool lanes = false;
            for_each_read(v.nest, [&](const ScalarNode& s) {
                lanes = lanes || (s.operand.value() == found[next] && !s.at.empty() &&
                                  s.at.back() == v.nest.parallel.back().variable);
            });
            if (!lanes) continue;
            if (!is_map(v)) return true;
            found.push_back(user);
        }
    return false;
}

bool is_read_by_many_maps(const Values& values, int number) {
    const Value& value = at(values, number);
    return is_map(value) && is_float(value.node->type.dtype) && value.shape.size() >= 2 &&
           is_read_by_larger_map(values, number, often * typical_count(value.nest.parallel));
}

// Whether only sums along the axis of the parts read it, by way of so many maps at most: they add up the
// parts as they are.
bool is_added_up(const Values& values, int number, int maps = 4) {
    if (maps < 0) return false;
    const std::vector<int>& users = at(values, number).users;
    return std::all_of(users.begin(), users.end(), [&](int user) {
        const Nest& nest = at(values, user).nest;
        const std::vector<Loop>& walked = is_map(at(values, user)) ? nest.parallel : nest.reduced;
        if (walked.empty() || (nest.combine != Combine::none && nest.reduced.size() > 1)) return false;
        bool along = nest.body != nullptr;
        for_each_read(nest, [&](const ScalarNode& s) {
            along = along && (s.operand.value() != number || s.at.back() == walked.back().variable);
        });
        return along && (nest.combine != Combine::none || is_added_up(values, user, maps - 1));
    });
}

// Each element asks in which of many parts it lies.
bool is_joined_from_many(const Values& values, int number) {
    const Value& value = at(values, number);
    return is_map(value) && are_narrow(pieces_of(value.nest), value.nest) && !is_added_up(values, number);
}

bool is_joined_for_products(const Values& values, int number) {
    constexpr double small = 1 << 18;
    const Value& value = at(values, number);
    if (!is_map(value) || value.shape.empty()) return false;
    double most = 1;
    for (const Loop& l : value.nest.parallel) most *= static_cast<double>(l.extent.range().high);
    if (most > small) return false;
    const Parts parts = parts_of(values, number);
    return parts.guarded >= 2 && !parts.narrow && is_read_whole(values, number, number);
}

// A view of an argument whose neighbours lie apart in memory along every axis, as filters that are cut out of
// an array with the taps last do, and of which a product reads the whole for each of its rows: lanes would
// load each element by itself, for each row again.
bool is_scattered_factor(const Values& values, int number) {
    const Value& value = at(values, number);
    if (!is_view(value) || value.shape.size() < 2 || !is_view_of_given(values, number)) return false;
    const std::vector<int>& users = value.users;
    if (std::none_of(users.begin(), users.end(),
                     [&](int user) { return reads_whole_for_each_row(values, number, at(values, user)); }))
        return false;
    const Nest view = compose(value.nest, [&](int operand) -> const Nest* {
        return is_view(at(values, operand)) ? &at(values, operand).nest : nullptr;
    });
    const Int offset = offset_of(*view.body, values.shapes());
    return std::none_of(view.parallel.begin(), view.parallel.end(), [&](const Loop& l) {
        const std::optional<Int> step = stride_of(offset, l.variable);
        return !l.extent.is(1) && step && (step->is(1) || step->is(0));
    });
}

}  // namespace

const char* why_stored_for_vectors(const Values& values, int number, double times, const Target& target) {
    if (!target.library_in_tasks) return nullptr;
    if (is_joined_from_many(values, number)) return "put together from many parts";
    if (times >= seldom && is_guarded(values, number) && is_looked_up_by_number(values, number))
        return "padded or put together, and looked up by number";
    if (times >= seldom && is_guarded(values, number))
        if (const int readers = readers_in_other_rows(values, number);
            readers >= (times >= twice ? 1 : many_readers))
            return "padded or put together, and read in rows of another length";
    if (times < often) return nullptr;
    if (is_scattered_factor(values, number))
        return "not contiguous along any axis, and read whole for each row of a product";
    if (is_joined_for_products(values, number))
        return "put together from parts, and read whole for each row of a product";
    if (!is_read_by_many_maps(values, number)) return nullptr;
    if (is_looked_up(values, number)) return "looked up, and read many times";
    return is_strided(at(values, number)) && is_view_of_given(values, number) &&
                   is_in_lanes_of_map(values, number)
               ? "not contiguous, and read many times"
               : nullptr;
}

bool is_joined_from_computed(const Values& values, int number) {
    if (!is_map(at(values, number))) return false;
    const Parts parts = parts_of(values, number);
    return parts.guarded >= 2 && !parts.narrow && !parts.given;
}

}  // namespace bitale
