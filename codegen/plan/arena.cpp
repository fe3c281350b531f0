// Placement of the arena's buffers. What is smallest cannot be known quickly, so several orders are tried,
// until one takes hardly more than what lives at the fullest step.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

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
        consider(in_turn(false));
        if (!is_done()) consider(in_turn(true));
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

    // As an allocator would meet them in time, or with time reversed: each in the smallest gap that it fits
    // in. Work as n log n, whatever the lifetimes.
    Layout in_turn(bool backwards) const {
        std::vector<std::vector<std::size_t>> begins(static_cast<std::size_t>(steps_)), ends = begins;
        for (std::size_t i = 0; i < lives_.size(); ++i) {
            const int first = backwards ? steps_ - 1 - lives_[i].last : lives_[i].first,
                      last = backwards ? steps_ - 1 - lives_[i].first : lives_[i].last;
            begins[static_cast<std::size_t>(first)].push_back(i);
            ends[static_cast<std::size_t>(last)].push_back(i);
        }
        Layout layout;
        layout.offsets.assign(lives_.size(), 0);
        std::map<std::int64_t, std::int64_t> gaps;                // offset, bytes
        std::set<std::pair<std::int64_t, std::int64_t>> by_size;  // bytes, offset
        const auto add_gap = [&](std::int64_t offset, std::int64_t bytes) {
            gaps.emplace(offset, bytes);
            by_size.emplace(bytes, offset);
        };
        const auto drop_gap = [&](std::map<std::int64_t, std::int64_t>::iterator at) {
            by_size.erase({at->second, at->first});
            return gaps.erase(at);
        };
        for (std::size_t step = 0; step < begins.size(); ++step) {
            std::stable_sort(begins[step].begin(), begins[step].end(),
                             [&](std::size_t a, std::size_t b) { return lives_[a].bytes > lives_[b].bytes; });
            for (const std::size_t i : begins[step]) {
                const std::int64_t bytes = lives_[i].bytes;
                const auto fitting = by_size.lower_bound({bytes, 0});
                if (fitting != by_size.end()) {
                    const auto [size, offset] = *fitting;
                    drop_gap(gaps.find(offset));
                    layout.offsets[i] = offset;
                    if (size > bytes) add_gap(offset + bytes, size - bytes);
                    continue;
                }
                // Upon the last gap, if that reaches the top.
                std::int64_t offset = layout.bytes;
                if (!gaps.empty()) {
                    const auto top = std::prev(gaps.end());
                    if (top->first + top->second == layout.bytes) {
                        offset = top->first;
                        drop_gap(top);
                    }
                }
                layout.offsets[i] = offset;
                layout.bytes = end_of(offset, bytes);
            }
            for (const std::size_t i : ends[step]) {
                std::int64_t offset = layout.offsets[i], bytes = lives_[i].bytes;
                auto after = gaps.lower_bound(offset);
                if (after != gaps.end() && after->first == offset + bytes) {
                    bytes += after->second;
                    after = drop_gap(after);
                }
                if (after != gaps.begin()) {
                    const auto before = std::prev(after);
                    if (before->first + before->second == offset) {
                        offset = before->first;
                        bytes += before->second;
                        drop_gap(before);
                    }
                }
                add_gap(offset, bytes);
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
            for (const int b : region.steps[s].buffers) {
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
        if (life.first < once) {  // written once, read by every call
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
