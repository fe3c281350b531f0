#include "tests/faults/failing_new.h"

#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace bitale::test {

namespace {

std::atomic<std::int64_t> left{0};  // uses until one fails; 0: none fails
std::atomic<bool> all_later{false}, failed{false};
std::atomic<std::int64_t> alive{0};
thread_local int without_failing = 0;

constexpr std::size_t most_sites = std::size_t{1} << 20;
std::uint64_t* sites = nullptr;
std::atomic<std::size_t> recorded{0};
std::atomic<bool> recording{false};

[[maybe_unused]] bool fails_now() {
    if (left.load(std::memory_order_relaxed) <= 0 || without_failing > 0) return false;
    const std::int64_t before = left.fetch_sub(1);
    if (before > 1) return false;
    if (all_later) left = 1;
    if (before < 1) return false;
    failed = true;
    return true;
}

[[maybe_unused]] void record() {
    constexpr int depth = 12;
    void* frames[depth];
    std::uint64_t hash = 14695981039346656037u;
    for (int i = 2, n = backtrace(frames, depth); i < n; ++i)
        hash = (hash ^ reinterpret_cast<std::uintptr_t>(frames[i])) * 1099511628211u;
    if (const std::size_t at = recorded++; at < most_sites) sites[at] = hash;
}

}  // namespace

void fail_new(std::int64_t n, bool onwards) {
    failed = false;
    all_later = onwards;
    left = n;
}

bool stop_failing_new() {
    left = 0;
    all_later = false;
    return failed;
}

WithoutFailing::WithoutFailing() { ++without_failing; }
WithoutFailing::~WithoutFailing() { --without_failing; }

std::int64_t blocks_alive() { return alive; }

NewSites::NewSites() {
    void* frame = nullptr;
    backtrace(&frame, 1);  // the first one loads a library
    if (!sites) sites = static_cast<std::uint64_t*>(std::malloc(most_sites * sizeof *sites));
    recorded = 0;
    recording = true;
}
NewSites::~NewSites() { recording = false; }
std::vector<std::uint64_t> NewSites::take() {
    recording = false;
    return {sites, sites + std::min<std::size_t>(recorded, most_sites)};
}

#if defined(__SANITIZE_THREAD__)

bool new_can_fail() { return false; }

}  // namespace bitale::test

#else

bool new_can_fail() { return true; }

namespace {

void* take_memory(std::size_t alignment, std::size_t bytes) {
    if (recording.load(std::memory_order_relaxed) && without_failing == 0) record();
    if (fails_now()) throw std::bad_alloc();
    if (bytes == 0) bytes = 1;
    void* p = alignment <= alignof(std::max_align_t)
                  ? std::malloc(bytes)
                  : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (!p) throw std::bad_alloc();
    alive.fetch_add(1, std::memory_order_relaxed);
    return p;
}

void* try_memory(std::size_t alignment, std::size_t bytes) noexcept try {
    return take_memory(alignment, bytes);
} catch (const std::bad_alloc&) {
    return nullptr;
}

void give_memory(void* p) {
    if (p) alive.fetch_sub(1, std::memory_order_relaxed);
    std::free(p);
}

}  // namespace

}  // namespace bitale::test

using bitale::test::give_memory;
using bitale::test::take_memory;
using bitale::test::try_memory;

void* operator new(std::size_t bytes) { return take_memory(1, bytes); }
void* operator new[](std::size_t bytes) { return take_memory(1, bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return take_memory(std::size_t(a), bytes); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return take_memory(std::size_t(a), bytes); }
// Sanitizers have their own of these; the system's call the ones above.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return try_memory(1, bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return try_memory(1, bytes); }
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
    return try_memory(std::size_t(a), bytes);
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
    return try_memory(std::size_t(a), bytes);
}
void operator delete(void* p) noexcept { give_memory(p); }
void operator delete[](void* p) noexcept { give_memory(p); }
void operator delete(void* p, std::size_t) noexcept { give_memory(p); }
void operator delete[](void* p, std::size_t) noexcept { give_memory(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_memory(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give_memory(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give_memory(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give_memory(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { give_memory(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { give_memory(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_memory(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give_memory(p); }

#endif
