// Placement of the arena's buffers: first fit, largest lifetimes resolved by the order of the steps.
#include <algorithm>

#include "bitale/error.h"
#include "codegen/program.h"
#include "graph/ir/array_bytes.h"

namespace bitale {

namespace {

struct Lifetime {
    int buffer = 0, first = 0, last = 0;
    std::int64_t bytes = 0;
};

// What is placed already, found by when it lives: a long program has many buffers, few of them at a time.
class Timeline {
  public:
    struct Placed {
        std::int64_t offset = 0, bytes = 0;
    };

    explicit Timeline(int steps) : starting_(static_cast<std::size_t>(steps)) {
        while (leaves_ < steps) leaves_ *= 2;
        covering_.resize(2 * static_cast<std::size_t>(leaves_));
    }

    void add(int first, int last, Placed placed) {
        starting_[static_cast<std::size_t>(first)].push_back(placed);
        // The fewest nodes of a binary tree over the steps that make up first .. last.
        for (int l = first + leaves_, r = last + leaves_ + 1; l < r; l /= 2, r /= 2) {
            if (l % 2) covering_[static_cast<std::size_t>(l++)].push_back(placed);
            if (r % 2) covering_[static_cast<std::size_t>(--r)].push_back(placed);
        }
    }

    // All that live at some step of first .. last, by offset.
    std::vector<Placed> overlapping(int first, int last) const {
        std::vector<Placed> found;
        const auto append = [&](const std::vector<Placed>& some) {
            found.insert(found.end(), some.begin(), some.end());
        };
        for (int node = first + leaves_; node > 0; node /= 2)
            append(covering_[static_cast<std::size_t>(node)]);
        for (int step = first + 1; step <= last; ++step) append(starting_[static_cast<std::size_t>(step)]);
        std::sort(found.begin(), found.end(),
                  [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
        return found;
    }

  private:
    int leaves_ = 1;
    std::vector<std::vector<Placed>> covering_, starting_;
};

}  // namespace

Placement plan_arena(const Program& program, const std::map<std::uint64_t, std::int64_t>& values) {
    constexpr std::int64_t alignment = 64, tail = 64;
    const int once = static_cast<int>(program.once.steps.size()),
              steps = once + static_cast<int>(program.body.steps.size());
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
            life.last = steps - 1;
        }
        Dims lengths;
        for (const Int& length : buffer.type.shape) lengths.push_back(evaluate(length, values));
        life.bytes = (bytes_of(buffer.type.dtype, lengths) + tail + alignment - 1) / alignment * alignment;
        order.push_back(life);
    }
    std::sort(order.begin(), order.end(), [](const Lifetime& a, const Lifetime& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer;
    });
    Placement placement;
    placement.offsets.assign(program.buffers.size(), -1);
    Timeline timeline(steps);
    for (const Lifetime& life : order) {
        std::int64_t offset = 0;
        for (const Timeline::Placed& other : timeline.overlapping(life.first, life.last)) {
            if (other.offset >= offset + life.bytes) break;
            offset = std::max(offset, other.offset + other.bytes);
        }
        std::int64_t end = 0;
        if (__builtin_add_overflow(offset, life.bytes, &end))
            throw OutOfMemory("intermediate results have more bytes than can be counted");
        placement.offsets[life.buffer] = offset;
        placement.bytes = std::max(placement.bytes, end);
        timeline.add(life.first, life.last, {offset, life.bytes});
    }
    return placement;
}

}  // namespace bitale
