// A free list per size class: four classes between powers of two waste at most a fifth.
#include "runtime/storage/host_memory.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "graph/base/memory.h"
#include "graph/base/turns.h"

namespace bitale {

namespace {

constexpr std::int64_t smallest = 256, tail = 64;
constexpr std::int64_t most_kept = std::int64_t{1} << 30;
constexpr int classes = 4 * 56;

// The class of a size, and the size of a class: smallest * 2^(c / 4) * (1 + (c % 4) / 4).
std::int64_t class_bytes(int c) { return (smallest << (c / 4)) / 4 * (4 + c % 4); }
int class_of(std::int64_t bytes) {
    if (bytes <= smallest) return 0;
    const int power = std::bit_width(static_cast<std::uint64_t>(bytes - 1) / smallest) - 1;
    int c = 4 * power;
    while (class_bytes(c) < bytes) ++c;
    return c;
}

// Whether one more fits: memory is given back where nothing may be thrown.
bool has_place(std::vector<void*>& list) {
    if (list.size() < list.capacity()) return true;
    try {
        list.reserve(2 * list.size() + 8);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

class HostPool {
  public:
    void* take(int c) {
        {
            const std::lock_guard lock(mutex_);
            numbers_.used += class_bytes(c);
            std::vector<void*>& list = free_[static_cast<std::size_t>(c)];
            if (!list.empty()) {
                void* p = list.back();
                list.pop_back();
                numbers_.kept -= class_bytes(c);
                return p;
            }
        }
        void* p = allocate_memory(static_cast<std::size_t>(class_bytes(c)));
        if (!p) {
            const std::lock_guard lock(mutex_);
            numbers_.used -= class_bytes(c);
            throw OutOfMemory("no host memory for a result of " + std::to_string(class_bytes(c)) + " bytes");
        }
        return p;
    }

    void give(int c, void* p) {
        {
            const std::lock_guard lock(mutex_);
            numbers_.used -= class_bytes(c);
            std::vector<void*>& list = free_[static_cast<std::size_t>(c)];
            if (numbers_.kept + class_bytes(c) <= most_kept && has_place(list)) {
                numbers_.kept += class_bytes(c);
                list.push_back(p);
                return;
            }
        }
        std::free(p);
    }

    HostMemory numbers() {
        const std::lock_guard lock(mutex_);
        return numbers_;
    }

  private:
    ForkMutex mutex_;
    HostMemory numbers_;
    std::array<std::vector<void*>, classes> free_;
};

// Leaked: results may outlive main.
HostPool& pool() {
    static HostPool& p = *new HostPool;
    return p;
}

}  // namespace

Array pooled_array(DType dtype, Dims shape) {
    const int c = class_of(count_of(shape) * bytes_of(dtype) + tail);
    void* block = pool().take(c);
    return Array::adopt(dtype, std::move(shape),
                        std::shared_ptr<void>(block, [c](void* p) { pool().give(c, p); }));
}

HostMemory host_memory() { return pool().numbers(); }

}  // namespace bitale
