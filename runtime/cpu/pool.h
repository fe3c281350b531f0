// The thread pool of the CPU device: workers pinned one per core, ranges of tasks that are taken dynamically,
// the caller takes part.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "runtime/exec/shares.h"

namespace bitale {

// Every thread takes ranges from a share of its own, from the front, and then those of the others, from
// behind. The caller waits only for ranges in flight, so a worker that the system does not schedule delays
// nothing; one that lost its core in the middle of a range gets the caller's while the caller waits for it.
// No worker runs on the core the caller runs on: two spinning threads on one core cost a scheduler slice per
// region.
class Pool {
  public:
    using Task = void (*)(void* context, std::int64_t first, std::int64_t last);

    // One thread for each of the cores, or fewer where the system makes no more; the caller is the first.
    explicit Pool(std::vector<int> cores);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    int threads() const { return static_cast<int>(workers_.size()) + 1; }

    // Calls task(context, first, last) over disjoint ranges that cover [0, tasks), in any order and on any
    // thread; returns when all are done. One task, and calls from within a task, run inline. The first
    // exception of a task is rethrown here; ranges not yet begun are then skipped.
    void run(std::int64_t tasks, Task task, void* context);
    // The same over the ranges of `shares`, which were made for threads() threads and are not empty.
    void run(const Shares& shares, Task task, void* context);
    // `work` is a number of tasks, or Shares.
    template <class Work, class F>
    void run(const Work& work, F&& f) {
        run(
            work,
            [](void* context, std::int64_t first, std::int64_t last) {
                (*static_cast<std::remove_reference_t<F>*>(context))(first, last);
            },
            const_cast<void*>(static_cast<const void*>(&f)));
    }

  private:
    struct Job {
        Task task = nullptr;
        void* context = nullptr;
        const TaskRange* ranges = nullptr;  // null: the tasks cut evenly
        std::int64_t tasks = 0, chunk = 1;
    };
    // A thread's share and what others have to know of the thread. Cache lines of its own.
    struct alignas(128) Slot {
        std::atomic<std::uint64_t> left{0};   // numbers of ranges not yet taken: first << 32 | end
        std::atomic<std::uint64_t> begun{0};  // ranges by this thread since it started
        std::atomic<std::uint64_t> done{0};
        std::mutex moving;              // held while the thread's core changes
        int home = -1;                  // the core that the thread has to itself; the caller's slot: none
        std::atomic<bool> lent{false};  // it was moved to the caller's core and goes home by itself
        clockid_t clock{};              // of the time that the thread ran
        bool clocked = false;
    };

    // `begin_of(t)`: the first range of thread t's share; that of threads() is their number.
    template <class F>
    void run_job(const Job& job, F&& begin_of);
    bool must_run_inline();
    void work_loop(std::size_t thread);
    bool work(std::size_t thread);  // takes ranges until none is left; false when there was none
    bool take(std::size_t thread, std::uint32_t& range);
    void run_range(Slot& own, std::uint32_t range);
    bool all_done() const;
    void wait();
    bool lend_core();
    void go_home(std::size_t thread);
    void leave_caller_alone();

    std::vector<int> cores_;
    int spare_core_ = -1;  // the core without a worker, for the caller
    int caller_core_ = -1;

    Job job_;
    std::vector<Slot> slots_;
    std::uint64_t expected_ = 0;                        // ranges of all jobs so far
    alignas(128) std::atomic<std::uint32_t> epoch_{0};  // grows with every job; what sleeping workers wait on
    std::atomic<int> sleepers_{0};
    alignas(128) std::atomic<bool> busy_{false};
    std::atomic<bool> stop_{false}, failed_{false}, caller_sleeps_{false};
    std::atomic<std::uint32_t> finished_{0};  // what a sleeping caller waits on
    std::mutex failure_mutex_;
    std::exception_ptr failure_;
    std::vector<std::thread> workers_;  // worker i has slot i + 1
};

// The process's pool for a number of threads (0: every usable core; never more than those): made at the first
// use and never destroyed, so that nothing waits for a thread at exit or in a forked child.
Pool& process_pool(int threads);

}  // namespace bitale
