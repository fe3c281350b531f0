// Placement of the arena's buffers. What is smallest cannot be known quickly, so several orders are tried,
// until one takes hardly more than what lives at the fullest step.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "bitale/error.h"
#include "codegen/program.h"
#include "graph/ir/array_bytes.h"

namespace bitale {

namespace {

// Looks at so many neighbours in time, of all buffers and orders together: some hundredths of a second.
constexpr std::size_t most_looks = std::size_t{1} << 21;

struct Placed {
    std::int64_t offset = 0, bytes = 0;
};

// What is placed already, found by when it lives: a long program has many buffers, few of them at a time.
class Timeline {
  public:
    explicit Timeline(int steps) : starting_(static_cast<std::size_t>(steps)) {
        while (leaves_ < steps) leaves_ *= 2;
        covering_.resize(2 * static_cast<std::size_t>(leaves_));
    }

    void clear() {
        for (auto* lists : {&covering_, &starting_})
            for (std::vector<Placed>& list : *lists) list.clear();
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
    const std::vector<Placed>& overlapping(int first, int last) {
        found_.clear();
        const auto append = [&](const std::vector<Placed>& some) {
            found_.insert(found_.end(), some.begin(), some.end());
        };
        for (int node = first + leaves_; node > 0; node /= 2)
            append(covering_[static_cast<std::size_t>(node)]);
        for (int step = first + 1; step <= last; ++step) append(starting_[static_cast<std::size_t>(step)]);
        std::sort(found_.begin(), found_.end(),
                  [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
        return found_;
    }

  private:
    int leaves_ = 1;
    std::vector<std::vector<Placed>> covering_, starting_;
    std::vector<Placed> found_;
};

std::int64_t end_of(std::int64_t offset, std::int64_t bytes) {
    std::int64_t end = 0;
    if (__builtin_add_overflow(offset, bytes, &end))
        throw OutOfMemory("intermediate results have more bytes than can be counted");
    return end;
}

struct Layout {
    std::vector<std::int64_t> offsets;  // of each lifetime
    std::int64_t bytes = 0;
};

// What is free of an arena: gaps by where they are and by how large they are.
class Gaps {
  public:
    void add(std::int64_t offset, std::int64_t bytes) {
        by_offset_.emplace(offset, bytes);
        by_size_.emplace(bytes, offset);
    }
    // The smallest that holds so many bytes.
    std::optional<Placed> take(std::int64_t bytes) {
        const auto at = by_size_.lower_bound({bytes, 0});
        if (at == by_size_.end()) return std::nullopt;
        const Placed gap{at->second, at->first};
        drop(by_offset_.find(gap.offset));
        return gap;
    }
    // Together with the gaps beside it.
    void give(std::int64_t offset, std::int64_t bytes) {
        auto after = by_offset_.lower_bound(offset);
        if (after != by_offset_.end() && after->first == offset + bytes) {
            bytes += after->second;
            after = drop(after);
        }
        if (after != by_offset_.begin()) {
            const auto before = std::prev(after);
            if (before->first + before->second == offset) {
                offset = before->first;
                bytes += before->second;
                drop(before);
            }
        }
        add(offset, bytes);
    }

  private:
    using ByOffset = std::map<std::int64_t, std::int64_t>;
    ByOffset::iterator drop(ByOffset::iterator at) {
        by_size_.erase({at->second, at->first});
        return by_offset_.erase(at);
    }
    ByOffset by_offset_;
    std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
};

class Packing {
  public:
    Packing(const std::vector<Lifetime>& lives, int steps) : lives_(lives), steps_(steps), timeline_(steps) {
        std::vector<std::int64_t> change(static_cast<std::size_t>(steps) + 1, 0);
        for (const Lifetime& life : lives) {
            std::int64_t& begins = change[static_cast<std::size_t>(life.first)];
            begins = end_of(begins, life.bytes);
            change[static_cast<std::size_t>(life.last) + 1] -= life.bytes;
        }
        std::int64_t live = 0;
        for (int step = 0; step < steps; ++step) {
            live = end_of(live, change[static_cast<std::size_t>(step)]);
            if (live > least_) least_ = live, fullest_ = step;
        }
    }

    std::int64_t least() const { return least_; }
    int fullest() const { return fullest_; }

    Layout best() {
        const InTime forwards = in_time(false), backwards = in_time(true);
        // In units of the least: a little more leaves an allocator room, and what all need together is
        // enough.
        for (const double height : {1.0, 1.01, 1.02, 1.04, 1.08, 1.2, 1.5, 2.0, 0.0}) {
            if (!best_.offsets.empty()) break;
            for (const InTime* time : {&forwards, &backwards}) consider(within(height_of(height), *time));
        }
        const auto bytes = [&](std::size_t i) { return static_cast<double>(lives_[i].bytes); };
        const auto steps = [&](std::size_t i) { return lives_[i].last - lives_[i].first + 1.0; };
        const auto in_fullest = [&](std::size_t i) {
            return lives_[i].first <= fullest_ && fullest_ <= lives_[i].last ? 1.0 : 0.0;
        };
        using Key = std::array<double, 2>;  // the largest first
        const std::function<Key(std::size_t)> keys[] = {
            [&](std::size_t i) {
                return Key{bytes(i), 0};
            },
            [&](std::size_t i) {
                return Key{in_fullest(i), bytes(i)};
            },
            [&](std::size_t i) {
                return Key{bytes(i) * steps(i), 0};
            },
            [&](std::size_t i) {
                return Key{steps(i), bytes(i)};
            },
            [&](std::size_t i) {
                return Key{-static_cast<double>(lives_[i].first), bytes(i)};
            },
        };
        std::vector<std::size_t> order(lives_.size());
        for (const auto& key : keys) {
            if (is_done()) break;
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::vector<Key> of(order.size());
            for (std::size_t i = 0; i < of.size(); ++i) of[i] = key(i);
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t a, std::size_t b) { return of[a] > of[b]; });
            improve(order);
        }
        return std::move(best_);
    }

  private:
    // A hundredth above the least is not worth more work.
    bool is_done() const { return !best_.offsets.empty() && best_.bytes - least_ <= least_ / 100; }
    void consider(std::optional<Layout> layout) {
        if (layout && (best_.offsets.empty() || layout->bytes < best_.bytes)) best_ = std::move(*layout);
    }

    // So many times the least, in whole lines; 0: all one above the other.
    std::int64_t height_of(double times) const {
        constexpr std::int64_t line = 64;
        if (times > 0) {
            const double bytes = static_cast<double>(least_) * times;
            return bytes < 0x1p60 ? std::max(least_, static_cast<std::int64_t>(bytes) / line * line) : least_;
        }
        std::int64_t all = 0;
        for (const Lifetime& life : lives_) all = end_of(all, life.bytes);
        return all;
    }

    // In an order, and with what ends up on top moved to the front, a few times.
    void improve(std::vector<std::size_t> order) {
        constexpr int most_times = 6;
        for (int time = 0; time < most_times && !is_done(); ++time) {
            std::optional<Layout> layout = first_fit(order);
            if (!layout) return;
            const auto on_top = [&](std::size_t i) {
                return layout->offsets[i] + lives_[i].bytes == layout->bytes;
            };
            std::stable_partition(order.begin(), order.end(), on_top);
            consider(std::move(layout));
        }
    }

    // Each at the lowest place that is free while it lives. Nothing where that is too much work.
    std::optional<Layout> first_fit(const std::vector<std::size_t>& order) {
        Layout layout;
        layout.offsets.assign(lives_.size(), 0);
        timeline_.clear();
        for (const std::size_t i : order) {
            const Lifetime& life = lives_[i];
            const std::vector<Placed>& others = timeline_.overlapping(life.first, life.last);
            looks_ += others.size() + static_cast<std::size_t>(life.last - life.first) + 1;
            if (looks_ > most_looks) return std::nullopt;
            std::int64_t offset = 0;
            for (const Placed& other : others) {
                if (other.offset - offset >= life.bytes) break;
                offset = std::max(offset, other.offset + other.bytes);
            }
            layout.offsets[i] = offset;
            layout.bytes = std::max(layout.bytes, end_of(offset, life.bytes));
            timeline_.add(life.first, life.last, {offset, life.bytes});
        }
        return layout;
    }

    // By the steps at which they begin and end; of time that runs backwards where asked for.
    struct InTime {
        std::vector<std::vector<std::size_t>> begins, ends;
        std::vector<int> last;
    };
    InTime in_time(bool backwards) const {
        InTime r;
        r.begins.resize(static_cast<std::size_t>(steps_));
        r.ends.resize(static_cast<std::size_t>(steps_));
        for (std::size_t i = 0; i < lives_.size(); ++i) {
            const int first = backwards ? steps_ - 1 - lives_[i].last : lives_[i].first,
                      last = backwards ? steps_ - 1 - lives_[i].first : lives_[i].last;
            r.begins[static_cast<std::size_t>(first)].push_back(i);
            r.ends[static_cast<std::size_t>(last)].push_back(i);
            r.last.push_back(last);
        }
        for (std::vector<std::size_t>& list : r.begins)
            std::stable_sort(list.begin(), list.end(),
                             [&](std::size_t a, std::size_t b) { return lives_[a].bytes > lives_[b].bytes; });
        return r;
    }

    // As an allocator would meet them in time, in an arena of `height` bytes: each in the smallest gap that
    // holds it, beside the border, or else beside the neighbour that lives longer, so that gaps grow together
    // again. Nothing where one fits in no gap. Work as n log n, whatever the lifetimes.
    std::optional<Layout> within(std::int64_t height, const InTime& time) const {
        Layout layout;
        layout.offsets.assign(lives_.size(), 0);
        Gaps gaps;
        gaps.add(0, height);
        std::map<std::int64_t, std::size_t> beginning, ending;  // which alive one begins or ends there
        for (std::size_t step = 0; step < time.begins.size(); ++step) {
            for (const std::size_t i : time.begins[step]) {
                const std::int64_t bytes = lives_[i].bytes;
                const std::optional<Placed> gap = gaps.take(bytes);
                if (!gap) return std::nullopt;
                const std::int64_t gap_end = gap->offset + gap->bytes;
                const bool at_border = gap->offset == 0 || gap_end == height;
                const bool low = at_border
                                     ? gap->offset == 0
                                     : time.last[ending.at(gap->offset)] >= time.last[beginning.at(gap_end)];
                const std::int64_t offset = low ? gap->offset : gap_end - bytes;
                if (gap->bytes > bytes) gaps.add(low ? offset + bytes : gap->offset, gap->bytes - bytes);
                layout.offsets[i] = offset;
                layout.bytes = std::max(layout.bytes, offset + bytes);
                beginning[offset] = i;
                ending[offset + bytes] = i;
            }
            for (const std::size_t i : time.ends[step]) {
                const std::int64_t offset = layout.offsets[i], bytes = lives_[i].bytes;
                beginning.erase(offset);
                ending.erase(offset + bytes);
                gaps.give(offset, bytes);
            }
        }
        return layout;
    }

    const std::vector<Lifetime>& lives_;
    const int steps_;
    std::int64_t least_ = 0;
    int fullest_ = 0;
    std::size_t looks_ = 0;
    Timeline timeline_;
    Layout best_;
};

}  // namespace

std::vector<Lifetime> arena_lifetimes(const Program& program,
                                      const std::map<std::uint64_t, std::int64_t>& values) {
    constexpr std::int64_t alignment = 64, tail = 64;
    const int once = static_cast<int>(program.once.steps.size()),
              steps = once + static_cast<int>(program.body.steps.size());
    std::vector<Lifetime> all(program.buffers.size(), {0, INT32_MAX, -1, 0});
    const auto use = [&](const Region& region, int offset) {
        for (std::size_t s = 0; s < region.steps.size(); ++s)
            for (const int b : buffers_of(region.steps[s])) {
                Lifetime& life = all[static_cast<std::size_t>(b)];
                life.first = std::min(life.first, offset + static_cast<int>(s));
                life.last = std::max(life.last, offset + static_cast<int>(s));
            }
    };
    use(program.once, 0);
    use(program.body, once);
    std::vector<Lifetime> used;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const BufferInfo& buffer = program.buffers[b];
        if (buffer.kind != BufferInfo::Kind::arena || all[b].last < 0) continue;
        Lifetime life = all[b];
        life.buffer = static_cast<int>(b);
        if (life.first < once && life.last >= once) {  // written once, read by every call
            life.first = 0;
            life.last = steps - 1;
        }
        Dims lengths;
        for (const Int& length : buffer.type.shape) lengths.push_back(evaluate(length, values));
        life.bytes = (bytes_of(buffer.type.dtype, lengths) + tail + alignment - 1) / alignment * alignment;
        used.push_back(life);
    }
    return used;
}

Placement plan_arena(const Program& program, const std::map<std::uint64_t, std::int64_t>& values) {
    std::vector<Lifetime> lives = arena_lifetimes(program, values);
    const int once = static_cast<int>(program.once.steps.size()),
              steps = once + static_cast<int>(program.body.steps.size());
    Placement placement;
    placement.offsets.assign(program.buffers.size(), -1);
    // What is kept lives at every step, and stays at one place whatever the other lengths are.
    std::int64_t kept = 0;
    std::erase_if(lives, [&](const Lifetime& life) {
        if (once == 0 || life.first > 0 || life.last < steps - 1) return false;
        placement.offsets[static_cast<std::size_t>(life.buffer)] = kept;
        kept = end_of(kept, life.bytes);
        return true;
    });
    Packing packing(lives, steps);
    placement.least_bytes = end_of(kept, packing.least());
    placement.fullest_step = packing.fullest();
    placement.bytes = kept;
    if (lives.empty()) return placement;
    const Layout layout = packing.best();
    placement.bytes = end_of(kept, layout.bytes);
    for (std::size_t i = 0; i < lives.size(); ++i)
        placement.offsets[static_cast<std::size_t>(lives[i].buffer)] = kept + layout.offsets[i];
    return placement;
}

}  // namespace bitale
