#include "codegen/kernel/likely.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace bitale {

namespace {

using Point = std::map<std::uint64_t, std::int64_t>;

// A length that no loop gives.
std::int64_t usual_length(const Atom& symbol) {
    constexpr std::int64_t unknown = 128, small_bound = 1 << 16;
    const IntRange& r = symbol.range;
    return r.high <= small_bound ? r.high : std::max(r.low, unknown);
}

std::int64_t value_at(const Int& x, const Point& point) {
    if (x.is_constant()) return x.constant();
    const std::vector<AtomPtr> symbols = symbols_of(x);
    const bool all =
        std::all_of(symbols.begin(), symbols.end(), [&](const AtomPtr& s) { return point.contains(s->id); });
    if (all) return evaluate(x, point);
    Point with = point;
    for (const AtomPtr& s : symbols) with.emplace(s->id, usual_length(*s));
    return evaluate(x, with);
}

GuardSide side_at(const Guard& guard, const Point& point) {
    const std::int64_t value = value_at(guard.value, point);
    if (value < value_at(guard.low, point)) return GuardSide::below;
    return value < value_at(guard.high, point) ? GuardSide::within : GuardSide::above;
}

}  // namespace

LikelyPoints::Sample LikelyPoints::sample() const {
    constexpr std::size_t count = 48;
    // Multiples of irrational numbers fill a range evenly, those of different ones every corner.
    constexpr std::array<double, 8> primes{2, 3, 5, 7, 11, 13, 17, 19};
    Sample r;
    r.drawn_ = count;
    for (std::size_t k = 0; k < count; ++k) {
        Point point;
        for (std::size_t i = 0; i < loops_.size(); ++i) {
            const Entered& loop = loops_[i];
            const double turns = (static_cast<double>(k) + 0.5) * std::sqrt(primes[i % primes.size()]);
            const std::int64_t begin = value_at(loop.begin, point), end = value_at(loop.end, point);
            const auto length = static_cast<double>(std::max<std::int64_t>(end - begin, 1));
            if (const std::uint64_t id = loop.variable.symbol_id())
                point[id] = begin + static_cast<std::int64_t>((turns - std::floor(turns)) * length);
        }
        r.points_.push_back(std::move(point));
    }
    return r;
}

LikelyPoints::Likely LikelyPoints::Sample::side_of(const Guard& guard) const {
    std::array<std::size_t, 3> counts{};
    for (const Point& point : points_) ++counts[static_cast<std::size_t>(side_at(guard, point))];
    Likely r;
    std::size_t most = 0;
    for (const GuardSide side : {GuardSide::within, GuardSide::below, GuardSide::above})
        if (const std::size_t n = counts[static_cast<std::size_t>(side)]; n > most) {
            most = n;
            r.side = side;
        }
    if (most > 0) r.share = static_cast<double>(most) / static_cast<double>(points_.size());
    return r;
}

void LikelyPoints::Sample::keep(const Guard& guard, GuardSide side) {
    std::erase_if(points_, [&](const Point& point) { return side_at(guard, point) != side; });
}

double LikelyPoints::Sample::share_left() const {
    return static_cast<double>(points_.size()) / static_cast<double>(drawn_);
}

double LikelyPoints::Sample::mean_of(const Int& x) const {
    if (x.is_constant() || points_.empty()) return x.is_constant() ? static_cast<double>(x.constant()) : 0;
    double sum = 0;
    for (const Point& point : points_) sum += static_cast<double>(value_at(x, point));
    return sum / static_cast<double>(points_.size());
}

}  // namespace bitale
