// The thread pool of the CPU device: workers pinned one per core, dynamic chunks, the caller takes part.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace bitale {

// The caller takes every chunk that no worker has started and waits only for chunks in flight, so a worker
// that the system does not schedule delays nothing. No worker runs on the core the caller runs on: two
// spinning threads on one core cost a scheduler slice per region.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): counters have cache lines of their own.
class Pool {
  public:
    using Task = void (*)(void* context, std::int64_t first, std::int64_t last);

    // One thread for each of the cores; the caller counts as the first of them.
    explicit Pool(std::vector<int> cores);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    int threads() const { return static_cast<int>(cores_.size()); }

    // Calls task(context, first, last) over disjoint ranges that cover [0, tasks), in any order and on any
    // thread; returns when all are done. One task, and calls from within a task, run inline. The first
    // exception of a task is rethrown here; ranges not yet begun are then skipped.
    void run(std::int64_t tasks, Task task, void* context);
    template <class F>
    void run(std::int64_t tasks, F&& f) {
        run(
            tasks,
            [](void* context, std::int64_t first, std::int64_t last) {
                (*static_cast<std::remove_reference_t<F>*>(context))(first, last);
            },
            const_cast<void*>(static_cast<const void*>(&f)));
    }

  private:
    struct Job {
        Task task = nullptr;
        void* context = nullptr;
        std::int64_t tasks = 0, chunk = 1;
        std::uint32_t chunks = 0;
    };

    void work_loop();
    bool work();  // takes chunks until none is left; false when there was none
    void pin(std::size_t worker, int cpu);
    void leave_caller_alone();

    std::vector<int> cores_;
    std::vector<int> core_of_worker_;
    int spare_core_ = -1;  // the core without a worker, for the caller
    int caller_core_ = -1;

    Job job_;
    std::uint32_t sequence_ = 0;
    // Sequence number of the job in the high half, chunks not yet taken in the low half: a successful
    // exchange proves that the chunk belongs to the job that the fields describe.
    alignas(64) std::atomic<std::uint64_t> ticket_{0};
    alignas(64) std::atomic<std::uint32_t> in_flight_{0};
    alignas(64) std::atomic<std::uint32_t> epoch_{0};  // grows with every job; what sleeping workers wait on
    std::atomic<int> sleepers_{0};
    std::atomic<bool> busy_{false}, stop_{false}, failed_{false};
    std::mutex failure_mutex_;
    std::exception_ptr failure_;
    std::vector<std::thread> workers_;
};

// The process's pool for a number of threads (0: every usable core; never more than those): made at the first
// use and never destroyed, so that nothing waits for a thread at exit or in a forked child.
Pool& process_pool(int threads);

}  // namespace bitale
