// Jobs, chunks, spinning and sleeping of the thread pool.
#include "runtime/cpu/pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "runtime/cpu/affinity.h"

namespace bitale {

namespace {

thread_local bool inside_task = false;

// A forked child has no workers: it runs everything inline.
std::atomic<bool> workers_gone{false};
void watch_forks() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { workers_gone.store(true); });
    (void)registered;
}

void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Polls `ready`, at first without giving the core away, then yielding; false when nothing came.
template <class F>
bool poll(F&& ready, std::chrono::microseconds spinning, std::chrono::microseconds yielding) {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
        for (int i = 0; i < 64; ++i) {
            if (ready()) return true;
            pause_briefly();
        }
        const auto waited = std::chrono::steady_clock::now() - start;
        if (waited > spinning + yielding) return false;
        if (waited > spinning) sched_yield();
    }
}

constexpr std::uint64_t low_half = 0xffffffffu;
constexpr int chunks_per_thread = 8;
constexpr std::chrono::microseconds worker_spins{50}, worker_yields{200}, caller_spins{20},
    caller_yields{2000};

}  // namespace

Pool::Pool(std::vector<int> cores) : cores_(std::move(cores)) {
    watch_forks();
    if (cores_.empty()) cores_.push_back(0);
    spare_core_ = cores_[0];
    core_of_worker_.assign(cores_.begin() + 1, cores_.end());
    for (std::size_t i = 0; i < core_of_worker_.size(); ++i) {
        workers_.emplace_back([this] { work_loop(); });
        pin(i, core_of_worker_[i]);
    }
}

Pool::~Pool() {
    stop_.store(true, std::memory_order_seq_cst);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void Pool::pin(std::size_t worker, int cpu) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (cpu < 0 || cpu >= CPU_SETSIZE) return;
    CPU_SET(cpu, &mask);
    pthread_setaffinity_np(workers_[worker].native_handle(), sizeof mask, &mask);
    core_of_worker_[worker] = cpu;
}

// The worker that owns the core under the caller moves to the spare one.
void Pool::leave_caller_alone() {
    const int cpu = sched_getcpu();
    if (cpu == caller_core_ || cpu < 0) return;
    caller_core_ = cpu;
    const auto at = std::find(core_of_worker_.begin(), core_of_worker_.end(), cpu);
    if (at == core_of_worker_.end()) return;
    const int free_core = spare_core_;
    spare_core_ = cpu;
    pin(static_cast<std::size_t>(at - core_of_worker_.begin()), free_core);
}

bool Pool::work() {
    bool any = false;
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while ((ticket & low_half) != 0) {
        if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
            continue;
        any = true;
        // The job cannot end before this chunk does, so its fields are stable from here on.
        const Job& job = job_;
        const std::int64_t index = job.chunks - static_cast<std::int64_t>(ticket & low_half);
        const std::int64_t first = index * job.chunk, last = std::min(first + job.chunk, job.tasks);
        if (!failed_.load(std::memory_order_relaxed)) {
            inside_task = true;
            try {
                job.task(job.context, first, last);
            } catch (...) {
                const std::lock_guard lock(failure_mutex_);
                if (!failure_) failure_ = std::current_exception();
                failed_.store(true, std::memory_order_relaxed);
            }
            inside_task = false;
        }
        if (in_flight_.fetch_sub(1, std::memory_order_acq_rel) == 1) in_flight_.notify_all();
        ticket = ticket_.load(std::memory_order_acquire);
    }
    return any;
}

void Pool::work_loop() {
    std::uint32_t seen = epoch_.load(std::memory_order_acquire);
    while (!stop_.load(std::memory_order_relaxed)) {
        if (work()) continue;
        const auto changed = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
        if (!poll(changed, worker_spins, worker_yields)) {
            // Either the caller sees the sleeper and wakes it, or the sleeper sees the new epoch: both sides
            // write before they read, in one total order.
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            while (epoch_.load(std::memory_order_seq_cst) == seen)
                epoch_.wait(seen, std::memory_order_seq_cst);
            sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        }
        seen = epoch_.load(std::memory_order_acquire);
    }
}

void Pool::run(std::int64_t tasks, Task task, void* context) {
    if (tasks <= 0) return;
    if (tasks == 1 || workers_.empty() || inside_task || workers_gone.load(std::memory_order_relaxed) ||
        busy_.exchange(true, std::memory_order_acquire)) {
        task(context, 0, tasks);
        return;
    }
    leave_caller_alone();
    const std::int64_t wanted =
        std::min<std::int64_t>(tasks, static_cast<std::int64_t>(threads()) * chunks_per_thread);
    job_.task = task;
    job_.context = context;
    job_.tasks = tasks;
    job_.chunk = (tasks + wanted - 1) / wanted;
    job_.chunks = static_cast<std::uint32_t>((tasks + job_.chunk - 1) / job_.chunk);
    failed_.store(false, std::memory_order_relaxed);
    in_flight_.store(job_.chunks, std::memory_order_relaxed);
    ticket_.store(static_cast<std::uint64_t>(++sequence_) << 32 | job_.chunks, std::memory_order_seq_cst);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) epoch_.notify_all();

    work();
    const auto done = [&] { return in_flight_.load(std::memory_order_acquire) == 0; };
    while (!poll(done, caller_spins, caller_yields)) {
        const std::uint32_t left = in_flight_.load(std::memory_order_acquire);
        if (left != 0) in_flight_.wait(left, std::memory_order_acquire);
    }
    std::exception_ptr failure;
    if (failed_.load(std::memory_order_relaxed)) {
        const std::lock_guard lock(failure_mutex_);
        failure = std::exchange(failure_, nullptr);
    }
    busy_.store(false, std::memory_order_release);
    if (failure) std::rethrow_exception(failure);
}

Pool& process_pool(int threads) {
    static std::mutex& mutex = *new std::mutex;
    static auto& pools = *new std::map<std::size_t, Pool*>;
    static const std::vector<int>& usable = *new std::vector<int>(usable_cores());
    const std::size_t count =
        threads > 0 ? std::min(usable.size(), static_cast<std::size_t>(threads)) : usable.size();
    const std::lock_guard lock(mutex);
    Pool*& pool = pools[count];
    if (!pool)
        pool =
            new Pool(std::vector<int>(usable.begin(), usable.begin() + static_cast<std::ptrdiff_t>(count)));
    return *pool;
}

}  // namespace bitale
