#include "codegen/kernel/shared_memory.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "codegen/kernel/places.h"

namespace bitale {

namespace {

constexpr std::int64_t alignment = 16;

// From the first to the last statement of the segment that uses a place.
struct Life {
    int place = -1;
    std::size_t first = 0, last = 0;
    std::int64_t bytes = 0, offset = 0;
};

// A loop that runs not at all passes no barrier, and uses nothing either.
bool ends_with_barrier(const Stmt& s) {
    if (s.kind == Stmt::Kind::barrier) return true;
    return s.kind == Stmt::Kind::loop && s.binding == Binding::serial && !s.body.empty() &&
           ends_with_barrier(s.body.back());
}

class Planner {
  public:
    Planner(const KernelIR& kernel, const Segment& segment) : kernel_(kernel), body_(segment.body) {}

    SharedMemory run() {
        for (std::size_t i = 0; i < body_.size(); ++i) note(body_[i], i);
        std::vector<Life> lives;
        for (auto& [place, life] : lives_) {
            const Place& p = kernel_.places[static_cast<std::size_t>(place)];
            const std::int64_t bytes =
                std::max<std::int64_t>(count_of(p.extents).constant(), 1) * bytes_of(p.dtype);
            life.bytes = (bytes + alignment - 1) / alignment * alignment;
            lives.push_back(life);
        }
        // Long lives first: short ones then take turns in what is left.
        std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
            return a.last - a.first != b.last - b.first ? a.last - a.first > b.last - b.first
                                                        : a.bytes > b.bytes;
        });
        SharedMemory memory;
        std::vector<Life> placed;
        for (Life& life : lives) {
            life.offset = room_for(life, placed);
            placed.push_back(life);
            memory.offsets.emplace(life.place, life.offset);
            memory.bytes = std::max(memory.bytes, life.offset + life.bytes);
        }
        return memory;
    }

  private:
    void note(const Stmt& s, std::size_t at) {
        for_each_place(s, [&](int place, Use) { use(place, at); });
        for (const Stmt& inner : s.body) note(inner, at);
    }

    bool is_local(int place) const {
        return kernel_.places[static_cast<std::size_t>(place)].scope == Place::Scope::local;
    }

    void use(int place, std::size_t at) {
        if (!is_local(place)) return;
        lives_.try_emplace(place, Life{place, at, at}).first->second.last = at;
    }

    // The lowest offset that keeps clear of all that the place must not share bytes with.
    std::int64_t room_for(const Life& life, const std::vector<Life>& placed) const {
        std::vector<Life> others;
        for (const Life& other : placed)
            if (!apart(life, other) && !apart(other, life)) others.push_back(other);
        std::sort(others.begin(), others.end(),
                  [](const Life& a, const Life& b) { return a.offset < b.offset; });
        std::int64_t offset = 0;
        for (const Life& other : others) {
            if (offset + life.bytes <= other.offset) break;
            offset = std::max(offset, other.offset + other.bytes);
        }
        return offset;
    }

    // All threads are done with `before` when the first of them comes to `after`.
    bool apart(const Life& before, const Life& after) const {
        if (before.last >= after.first) return false;
        if (before.first == before.last && ends_with_barrier(body_[before.last])) return true;
        for (std::size_t i = before.last + 1; i < after.first; ++i)
            if (body_[i].kind == Stmt::Kind::barrier) return true;
        return false;
    }

    const KernelIR& kernel_;
    const Stmts& body_;
    std::map<int, Life> lives_;
};

}  // namespace

SharedMemory shared_memory_of(const KernelIR& kernel, const Segment& segment) {
    return Planner(kernel, segment).run();
}

}  // namespace bitale
