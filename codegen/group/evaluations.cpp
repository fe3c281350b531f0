#include "codegen/group/evaluations.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Places of a value that are told apart.
constexpr std::size_t most_places = 16;

// The reads of a nest by operand: null for an operand that is read at several places, which count as one.
std::map<int, const ScalarNode*> single_reads(const Nest& nest) {
    std::map<int, const ScalarNode*> reads;
    for_each_read(nest, [&](const ScalarNode& s) {
        const auto [at, fresh] = reads.try_emplace(s.operand.value(), &s);
        if (fresh || !at->second) return;
        if (at->second->at != s.at || at->second->guards != s.guards) at->second = nullptr;
    });
    return reads;
}

}  // namespace

double Evaluations::of(int value) const {
    const OfValue& v = of_[static_cast<std::size_t>(value)];
    double n = v.others;
    for (const Place& p : v.places) n += p.points;
    return n;
}

void Evaluations::add(int value, Place place) {
    OfValue& v = of_[static_cast<std::size_t>(value)];
    if (!apart_.empty() && apart_[static_cast<std::size_t>(value)]) {
        v.others += place.points;
        return;
    }
    for (Place& p : v.places)
        if (p.root == place.root && p.at == place.at && p.guards == place.guards) {
            p.points = std::max(p.points, place.points);
            return;
        }
    if (v.places.size() < most_places)
        v.places.push_back(std::move(place));
    else
        v.others += place.points;
}

void Evaluations::add_reads(int user, const Nest& nest, double points) {
    for (const auto& [operand, read] : single_reads(nest))
        if (read)
            add(operand, {user, read->at, read->guards, points});
        else
            add(operand, points);
}

void Evaluations::pass_on(int user, const Nest& nest) {
    const OfValue from = of_[static_cast<std::size_t>(user)];
    for (const auto& [operand, read] : single_reads(nest)) {
        add(operand, from.others);
        for (const Place& p : from.places) {
            if (!read) {
                add(operand, p.points);
                continue;
            }
            Substitution here;
            for (std::size_t d = 0; d < nest.parallel.size(); ++d)
                if (const std::uint64_t id = nest.parallel[d].variable.symbol_id()) here[id] = p.at[d];
            Place place{p.root, {}, p.guards, p.points};
            for (const Int& x : read->at) place.at.push_back(substitute(x, here));
            for (const Guard& g : read->guards)
                place.guards.push_back(
                    {substitute(g.value, here), substitute(g.low, here), substitute(g.high, here)});
            add(operand, std::move(place));
        }
    }
}

LongChains long_chains(const Values& values) {
    LongChains found{{}, std::vector<bool>(values.list.size(), false)};
    std::vector<std::vector<int>> inside(values.list.size());
    for (std::size_t i = 0; i < values.list.size(); ++i) {
        const Value& value = values.list[i];
        if (value.storage == Value::Storage::leaf) continue;
        std::vector<int> all{static_cast<int>(i)};
        for_each_read(value.nest, [&](const ScalarNode& s) {
            const auto operand = static_cast<std::size_t>(s.operand.value());
            if (values.list[operand].storage == Value::Storage::stored) return;
            std::vector<int> merged;
            std::set_union(all.begin(), all.end(), inside[operand].begin(), inside[operand].end(),
                           std::back_inserter(merged));
            all = std::move(merged);
        });
        const bool stored = value.storage == Value::Storage::stored;
        if (!stored && all.size() > longest_chain) {
            found.ends.push_back(static_cast<int>(i));
            for (const int member : all) found.members[static_cast<std::size_t>(member)] = true;
        }
        if (stored || all.size() > longest_chain) all.clear();
        inside[i] = std::move(all);
    }
    return found;
}

}  // namespace bitale
