// Placement of the arena's buffers: first fit, largest lifetimes resolved by the order of the steps.
#include <algorithm>

#include "codegen/program.h"

namespace bitale {

namespace {

struct Lifetime {
    int buffer = 0, first = 0, last = 0;
    std::int64_t bytes = 0;
};

}  // namespace

Placement plan_arena(const Program& program, const std::map<std::uint64_t, std::int64_t>& values) {
    constexpr std::int64_t alignment = 64, tail = 64;
    const int once = static_cast<int>(program.once.steps.size());
    std::vector<Lifetime> lifetimes(program.buffers.size(), {0, INT32_MAX, -1, 0});
    const auto use = [&](const Region& region, int offset) {
        for (std::size_t s = 0; s < region.steps.size(); ++s)
            for (const int b : region.steps[s].buffers) {
                lifetimes[b].first = std::min(lifetimes[b].first, offset + static_cast<int>(s));
                lifetimes[b].last = std::max(lifetimes[b].last, offset + static_cast<int>(s));
            }
    };
    use(program.once, 0);
    use(program.body, once);
    std::vector<Lifetime> order;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const BufferInfo& buffer = program.buffers[b];
        if (buffer.kind != BufferInfo::Kind::arena || lifetimes[b].last < 0) continue;
        Lifetime life = lifetimes[b];
        life.buffer = static_cast<int>(b);
        if (life.first < once) {  // written once, read by every call
            life.first = 0;
            life.last = INT32_MAX;
        }
        const std::int64_t count = evaluate(count_of(buffer.type.shape), values);
        life.bytes = (count * bytes_of(buffer.type.dtype) + tail + alignment - 1) / alignment * alignment;
        order.push_back(life);
    }
    std::sort(order.begin(), order.end(), [](const Lifetime& a, const Lifetime& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer;
    });
    Placement placement;
    placement.offsets.assign(program.buffers.size(), -1);
    // Sorted by offset: what is placed already, with its lifetime.
    std::vector<std::pair<std::int64_t, Lifetime>> placed;
    for (const Lifetime& life : order) {
        std::int64_t offset = 0;
        for (const auto& [at, other] : placed) {
            if (other.last < life.first || other.first > life.last) continue;
            if (at >= offset + life.bytes) break;
            offset = std::max(offset, at + other.bytes);
        }
        placement.offsets[life.buffer] = offset;
        placement.bytes = std::max(placement.bytes, offset + life.bytes);
        const auto where = std::upper_bound(placed.begin(), placed.end(), offset,
                                            [](std::int64_t o, const auto& p) { return o < p.first; });
        placed.insert(where, {offset, life});
    }
    return placement;
}

}  // namespace bitale
