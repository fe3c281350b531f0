// A free list per size class: four classes between powers of two waste at most a fifth.
#include "runtime/storage/host_memory.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "graph/base/memory.h"
#include "graph/base/turns.h"
#include "graph/ir/array_bytes.h"
#include "graph/ir/borrowed.h"
#include "runtime/memory/limit.h"

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

class FreeBlocks {
  public:
    explicit FreeBlocks(std::int64_t most_kept) : most_kept_(most_kept) {}

    // Null where there is none. `counts`: those that are given out are counted here.
    void* take(int c, bool counts) {
        const std::lock_guard lock(mutex_);
        if (counts) numbers_.used += class_bytes(c);
        std::vector<void*>& list = free_[static_cast<std::size_t>(c)];
        if (list.empty()) return nullptr;
        void* p = list.back();
        list.pop_back();
        numbers_.kept -= class_bytes(c);
        return p;
    }
    // False where it is not kept.
    bool give(int c, void* p, bool counts) {
        const std::lock_guard lock(mutex_);
        if (counts) numbers_.used -= class_bytes(c);
        std::vector<void*>& list = free_[static_cast<std::size_t>(c)];
        if (!p || numbers_.kept + class_bytes(c) > most_kept_ || !has_place(list)) return false;
        numbers_.kept += class_bytes(c);
        list.push_back(p);
        return true;
    }
    // Gives back what is kept; whether there was anything.
    bool trim() {
        const std::lock_guard lock(mutex_);
        bool any = false;
        for (int c = 0; c < classes; ++c) {
            std::vector<void*>& list = free_[static_cast<std::size_t>(c)];
            if (list.empty()) continue;  // the largest classes are more bytes than an int64 counts
            any = true;
            for (void* p : list) free_memory(p, static_cast<std::size_t>(class_bytes(c)));
            numbers_.kept -= static_cast<std::int64_t>(list.size()) * class_bytes(c);
            list.clear();
        }
        return any;
    }
    void add_to(HostMemory& sum) {
        const std::lock_guard lock(mutex_);
        sum.used += numbers_.used;
        sum.kept += numbers_.kept;
    }

  private:
    const std::int64_t most_kept_;
    ForkMutex mutex_;
    HostMemory numbers_;
    std::array<std::vector<void*>, classes> free_;
};

// Small blocks are kept by threads, several of which share a place, so that those that call at once do not
// wait for each other; the others, and what is left over, by all together.
class HostPool {
  public:
    void* take(int c, std::int64_t limit) {
        FreeBlocks& own = list_for(c);
        void* p = own.take(c, true);
        if (!p && &own != &shared_) p = shared_.take(c, false);
        if (!p) p = allocate(static_cast<std::size_t>(class_bytes(c)), limit);
        if (p) return p;
        own.give(c, nullptr, true);
        throw OutOfMemory(refusal("a result", class_bytes(c), limit));
    }

    static std::string refusal(const std::string& what, std::int64_t bytes, std::int64_t limit) {
        std::string words = "no host memory for " + what + " of " + std::to_string(bytes) + " bytes";
        if (const std::int64_t alive = host_ledger().now(); limit > 0 && alive + bytes > limit)
            words += " beside the " + bytes_text(alive) +
                     " that are alive there: memory_limit in BITALE_FLAGS is " + bytes_text(limit);
        return words;
    }

    void give(int c, void* p) {
        FreeBlocks& own = list_for(c);
        if (own.give(c, p, true)) return;
        if (&own == &shared_ || !shared_.give(c, p, false))
            free_memory(p, static_cast<std::size_t>(class_bytes(c)));
    }

    void* allocate(std::size_t bytes, std::int64_t limit) {
        void* p = allocate_memory(bytes, limit);
        if (p) return p;
        return trim() ? allocate_memory(bytes, limit) : nullptr;
    }

    bool trim() {
        bool any = shared_.trim();
        for (FreeBlocks& list : of_threads_) any = list.trim() || any;
        return any;
    }

    HostMemory numbers() {
        HostMemory sum;
        shared_.add_to(sum);
        for (FreeBlocks& list : of_threads_) list.add_to(sum);
        return sum;
    }

  private:
    static constexpr std::int64_t most_kept_by_threads = std::int64_t{4} << 20, largest_small = 64 << 10;

    FreeBlocks& list_for(int c) {
        static std::atomic<std::size_t> threads{0};
        constinit static thread_local std::size_t number = 0;  // from 1 on
        if (class_bytes(c) > largest_small) return shared_;
        if (number == 0) number = ++threads;
        return of_threads_[number % of_threads_.size()];
    }

    FreeBlocks shared_{most_kept};
    std::array<FreeBlocks, 4> of_threads_{FreeBlocks(most_kept_by_threads), FreeBlocks(most_kept_by_threads),
                                          FreeBlocks(most_kept_by_threads), FreeBlocks(most_kept_by_threads)};
};

// Leaked: results may outlive main.
HostPool& pool() {
    static HostPool& p = *new HostPool;
    return p;
}

}  // namespace

std::int64_t pooled_bytes(std::int64_t bytes) { return class_bytes(class_of(bytes + tail)); }

bool trim_host_memory() { return pool().trim(); }

namespace {

struct IdleList {
    ForkMutex mutex{ForkMutex::Rank::log};
    IdleMemory* first = nullptr;
};
IdleList& idle_list() {
    static IdleList& list = *new IdleList;  // functions may outlive main
    return list;
}

}  // namespace

IdleMemory::IdleMemory(std::function<void()> give_back) : give_back_(std::move(give_back)) {
    IdleList& list = idle_list();
    const std::lock_guard lock(list.mutex);
    after_ = list.first;
    if (after_) after_->before_ = this;
    list.first = this;
}

IdleMemory::~IdleMemory() {
    IdleList& list = idle_list();
    const std::lock_guard lock(list.mutex);
    (before_ ? before_->after_ : list.first) = after_;
    if (after_) after_->before_ = before_;
}

void IdleMemory::give_all_back() {
    IdleList& list = idle_list();
    const std::lock_guard lock(list.mutex);
    for (IdleMemory* each = list.first; each; each = each->after_) each->give_back_();
}

void* allocate_or_trim(std::size_t bytes, std::int64_t limit) { return pool().allocate(bytes, limit); }

Array limited_array(DType dtype, Dims shape, std::int64_t limit) {
    const std::int64_t bytes = bytes_of(dtype, shape);
    const auto padded = static_cast<std::size_t>(block_of_array(bytes));
    void* p = pool().allocate(padded, limit);
    if (!p) throw OutOfMemory(HostPool::refusal("a total of parts", bytes, limit));
    std::memset(p, 0, padded);
    return ArrayMemory::in({p, [padded](void* q) { free_memory(q, padded); }}, dtype, std::move(shape));
}

Array pooled_array(DType dtype, Dims shape, std::int64_t limit) {
    const std::int64_t bytes = bytes_of(dtype, shape);
    const int c = class_of(bytes + tail);
    void* block = pool().take(c, limit);
    // As behind other arrays: kernels read there, and integers that were here before are denormal floats,
    // of which a product takes a hundred cycles.
    std::memset(static_cast<char*>(block) + bytes, 0, tail);
    return Array::adopt(dtype, std::move(shape),
                        std::shared_ptr<void>(block, [c](void* p) { pool().give(c, p); }));
}

HostMemory host_memory() { return pool().numbers(); }

}  // namespace bitale
