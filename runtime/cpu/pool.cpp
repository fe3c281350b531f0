// Jobs, chunks, spinning and sleeping of the thread pool.
#include "runtime/cpu/pool.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "graph/base/poll.h"
#include "graph/base/turns.h"
#include "runtime/cpu/affinity.h"
#include "runtime/outside.h"

namespace bitale {

namespace {

constinit thread_local bool inside_task = false;
// Of a caller, short while other processes keep the cores busy.
constinit thread_local Slices slices_of_caller;

// A forked child has no workers: it runs everything inline.
std::atomic<bool> workers_gone{false};
void watch_forks() {
    static const bool registered = [] {
        at_fork(nullptr, nullptr, [] { workers_gone.store(true); });
        return true;
    }();
    (void)registered;
}

constexpr int ranges_per_thread = 8;
constexpr std::chrono::microseconds worker_spins{50}, worker_yields{200};
// How long the caller waits for ranges in flight before it looks whether their threads run at all, how long
// it looks, and after how many looks it sleeps.
constexpr std::chrono::microseconds caller_spins{20}, look{10}, between_looks{40};
constexpr int most_looks = 40;

constexpr std::uint64_t ranges_between(std::uint64_t first, std::uint64_t end) { return first << 32 | end; }
constexpr std::uint32_t first_of(std::uint64_t left) { return static_cast<std::uint32_t>(left >> 32); }
constexpr std::uint32_t end_of(std::uint64_t left) { return static_cast<std::uint32_t>(left); }

bool pin(pthread_t thread, int cpu) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
    CPU_SET(cpu, &mask);
    return pthread_setaffinity_np(thread, sizeof mask, &mask) == 0;
}

}  // namespace

Pool::Pool(std::vector<int> cores)
    : cores_(cores.empty() ? std::vector<int>{0} : std::move(cores)), slots_(cores_.size()) {
    watch_forks();
    spare_core_ = cores_[0];
    workers_.reserve(slots_.size());  // nothing may be thrown once a worker runs
    for (std::size_t t = 1; t < slots_.size(); ++t) {
        std::optional<std::thread> started = outside::start_thread([this, t] { work_loop(t); });
        if (!started) break;  // the slots behind this one never get a share
        std::thread& worker = workers_.emplace_back(*std::move(started));
        const std::lock_guard lock(slots_[t].moving);
        slots_[t].home = cores_[t];
        slots_[t].clocked = pthread_getcpuclockid(worker.native_handle(), &slots_[t].clock) == 0;
        pin(worker.native_handle(), cores_[t]);
    }
}

Pool::~Pool() {
    stop_.store(true, std::memory_order_seq_cst);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

// The worker that owns the core under the caller moves to the spare one.
void Pool::leave_caller_alone() {
    const int cpu = sched_getcpu();
    if (cpu == caller_core_ || cpu < 0) return;
    for (std::size_t t = 1; t < slots_.size(); ++t) {
        // A worker on its way home is asked again by the next job.
        const std::unique_lock lock(slots_[t].moving, std::try_to_lock);
        if (!lock) return;
        if (slots_[t].home != cpu) continue;
        slots_[t].home = std::exchange(spare_core_, cpu);
        pin(workers_[t - 1].native_handle(), slots_[t].home);
        break;
    }
    caller_core_ = cpu;
}

bool Pool::take(std::size_t thread, std::uint32_t& range) {
    // A ticket is what is left now, whichever job it was read in: the exchange makes the range ours, and no
    // job ends before its ranges do.
    std::atomic<std::uint64_t>& own = slots_[thread].left;
    std::uint64_t left = own.load(std::memory_order_acquire);
    while (first_of(left) < end_of(left)) {
        range = first_of(left);
        if (own.compare_exchange_weak(left, ranges_between(range + 1, end_of(left)),
                                      std::memory_order_acq_rel, std::memory_order_acquire))
            return true;
    }
    for (std::size_t i = 1; i < slots_.size(); ++i) {
        std::atomic<std::uint64_t>& other = slots_[(thread + i) % slots_.size()].left;
        left = other.load(std::memory_order_acquire);
        while (first_of(left) < end_of(left)) {
            range = end_of(left) - 1;
            if (other.compare_exchange_weak(left, ranges_between(first_of(left), range),
                                            std::memory_order_acq_rel, std::memory_order_acquire))
                return true;
        }
    }
    return false;
}

void Pool::run_range(Slot& own, std::uint32_t range) {
    own.begun.store(own.begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const Job& job = job_;
    if (!failed_.load(std::memory_order_relaxed)) {
        const std::int64_t even = static_cast<std::int64_t>(range) * job.chunk;
        const TaskRange tasks =
            job.ranges ? job.ranges[range] : TaskRange{even, std::min(even + job.chunk, job.tasks)};
        inside_task = true;
        try {
            job.task(job.context, tasks.first, tasks.last);
        } catch (...) {
            const std::lock_guard lock(failure_mutex_);
            if (!failure_) failure_ = std::current_exception();
            failed_.store(true, std::memory_order_relaxed);
        }
        inside_task = false;
    }
    own.done.store(own.done.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
}

bool Pool::work(std::size_t thread) {
    std::uint32_t range = 0;
    if (!take(thread, range)) return false;
    do {
        run_range(slots_[thread], range);
    } while (take(thread, range));
    // Either the caller sees the last range done, or this thread sees it sleep.
    if (thread != 0 && caller_sleeps_.load(std::memory_order_seq_cst)) {
        finished_.fetch_add(1, std::memory_order_seq_cst);
        finished_.notify_all();
    }
    return true;
}

void Pool::go_home(std::size_t thread) {
    Slot& own = slots_[thread];
    const std::lock_guard lock(own.moving);
    pin(pthread_self(), own.home);
    own.lent.store(false, std::memory_order_relaxed);
}

void Pool::work_loop(std::size_t thread) {
    Slices().shorten();
    const Slot& own = slots_[thread];
    std::uint32_t seen = epoch_.load(std::memory_order_acquire);
    while (!stop_.load(std::memory_order_relaxed)) {
        const bool worked = work(thread);
        if (own.lent.load(std::memory_order_acquire)) go_home(thread);
        if (worked) continue;
        const auto changed = [&] {
            return epoch_.load(std::memory_order_acquire) != seen || own.lent.load(std::memory_order_relaxed);
        };
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

bool Pool::all_done() const {
    std::uint64_t done = 0;
    for (const Slot& slot : slots_) done += slot.done.load(std::memory_order_seq_cst);
    return done == expected_;
}

// Of the threads in the middle of a range, those that do not run get this core; false when all run. It is
// left to them by sleeping.
bool Pool::lend_core() {
    const auto ran = [&](const Slot& slot) {
        timespec t{};
        clock_gettime(slot.clock, &t);
        return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
    };
    bool lent = false;
    for (std::size_t t = 1; t < slots_.size() && !lent; ++t) {
        Slot& slot = slots_[t];
        const std::uint64_t begun = slot.begun.load(std::memory_order_relaxed);
        if (!slot.clocked || begun == slot.done.load(std::memory_order_relaxed)) continue;
        const auto before = ran(slot);
        if (poll([&] { return slot.done.load(std::memory_order_relaxed) == begun; }, look, {})) continue;
        if (ran(slot) - before > look / 4) continue;
        const std::unique_lock lock(slot.moving, std::try_to_lock);
        if (!lock || !pin(workers_[t - 1].native_handle(), sched_getcpu())) continue;
        slot.lent.store(true, std::memory_order_release);
        lent = true;
    }
    return lent;
}

void Pool::wait() {
    const auto done = [&] { return all_done(); };
    if (poll(done, caller_spins, {})) return;
    bool lent = false;
    for (int i = 0; i < most_looks && !lent; ++i) {
        lent = lend_core();
        if (!lent && poll(done, {}, between_looks)) return;
    }
    if (lent) slices_of_caller.shorten();
    caller_sleeps_.store(true, std::memory_order_seq_cst);
    for (;;) {
        const std::uint32_t finished = finished_.load(std::memory_order_seq_cst);
        if (all_done()) break;
        finished_.wait(finished, std::memory_order_seq_cst);
    }
    caller_sleeps_.store(false, std::memory_order_relaxed);
}

bool Pool::must_run_inline() {
    return workers_.empty() || inside_task || workers_gone.load(std::memory_order_relaxed) ||
           busy_.exchange(true, std::memory_order_acquire);
}

template <class F>
void Pool::run_job(const Job& job, F&& begin_of) {
    leave_caller_alone();
    job_ = job;
    failed_.store(false, std::memory_order_relaxed);
    const auto threads = static_cast<std::size_t>(this->threads());
    expected_ += begin_of(threads);
    for (std::size_t t = 0; t < threads; ++t)
        slots_[t].left.store(ranges_between(begin_of(t), begin_of(t + 1)), std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) epoch_.notify_all();

    work(0);
    wait();
    slices_of_caller.restore_when_calm();
    std::exception_ptr failure;
    if (failed_.load(std::memory_order_relaxed)) {
        const std::lock_guard lock(failure_mutex_);
        failure = std::exchange(failure_, nullptr);
    }
    busy_.store(false, std::memory_order_release);
    if (failure) std::rethrow_exception(failure);
}

void Pool::run(std::int64_t tasks, Task task, void* context) {
    if (tasks <= 0) return;
    if (tasks == 1 || must_run_inline()) {
        task(context, 0, tasks);
        return;
    }
    const std::int64_t wanted = std::min<std::int64_t>(tasks, std::int64_t{threads()} * ranges_per_thread);
    const std::int64_t chunk = (tasks + wanted - 1) / wanted, ranges = (tasks + chunk - 1) / chunk;
    run_job({task, context, nullptr, tasks, chunk}, [&](std::size_t t) {
        return static_cast<std::uint64_t>(ranges * static_cast<std::int64_t>(t) / threads());
    });
}

void Pool::run(const Shares& shares, Task task, void* context) {
    if (must_run_inline()) {
        for (const TaskRange& r : shares.ranges) task(context, r.first, r.last);
        return;
    }
    run_job({task, context, shares.ranges.data(), 0, 1},
            [&](std::size_t t) { return std::uint64_t{shares.begins[t]}; });
}

Pool& process_pool(int threads) {
    static ForkMutex& mutex = *new ForkMutex(ForkMutex::Rank::outer);
    static auto& pools = *new std::map<std::size_t, Pool*>;
    static const std::vector<int>& usable = *new std::vector<int>(usable_cores());
    const std::size_t count =
        threads > 0 ? std::min(usable.size(), static_cast<std::size_t>(threads)) : usable.size();
    Pool* made = nullptr;
    {
        const std::lock_guard lock(mutex);
        Pool*& pool = pools[count];
        if (pool) return *pool;
        made = pool =
            new Pool(std::vector<int>(usable.begin(), usable.begin() + static_cast<std::ptrdiff_t>(count)));
    }
    // The first warning of a process makes a lock.
    if (const auto got = static_cast<std::size_t>(made->threads()); got < count)
        warn_of_fewer_threads(count, got);
    return *made;
}

}  // namespace bitale
