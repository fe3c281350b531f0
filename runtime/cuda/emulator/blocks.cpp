#include "runtime/cuda/emulator/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "runtime/cuda/emulator/checker.h"
#include "runtime/cuda/emulator/checks.h"
#include "runtime/cuda/emulator/counter.h"
#include "runtime/cuda/emulator/fiber.h"
#include "runtime/cuda/emulator/graphs.h"

namespace bitale::cuda {

namespace {

constexpr unsigned warp_size = 32;

struct Order {
    ThreadOrder order = ThreadOrder::ascending;
    std::mt19937_64 engine{1};

    void arrange(std::vector<unsigned>& numbers) {
        std::iota(numbers.begin(), numbers.end(), 0u);
        if (order == ThreadOrder::descending) std::reverse(numbers.begin(), numbers.end());
        if (order == ThreadOrder::random) std::shuffle(numbers.begin(), numbers.end(), engine);
    }
};

// A stack on which threads run; one that waits keeps it until it ends.
struct Worker {
    Fiber fiber;
    std::uint64_t launch = 0;  // the one it was prepared for
};

struct Thread {
    enum class State : std::uint8_t { fresh, ready, at_barrier, at_warp_operation, done };
    State state = State::fresh;
    Worker* worker = nullptr;
    int line = 0;
    unsigned mask = 0;            // of the warp operation it waits in
    unsigned long long word = 0;  // handed in there
    bool orders_memory = false;   // it does
};

class Scheduler {
  public:
    Scheduler();

    std::mutex mutex;  // of the launch that runs
    Order order;
    std::uint64_t accesses = 0;  // checked ones

    std::string run(const EmulatedKernel& kernel, const Extent& grid, const Extent& size, int device,
                    void** arguments) {
        kernel_ = &kernel;
        arguments_ = arguments;
        ++launch_;
        checked_ = emulator_checks();
        counted_ = !checked_ && emulator_counts() && kernel.watched;
        const unsigned threads = size.x * size.y * size.z;
        threads_.resize(threads);
        order_.resize(threads);
        words_.resize((threads + warp_size - 1) / warp_size);
        free_.clear();
        for (const std::unique_ptr<Worker>& w : workers_) free_.push_back(w.get());
        state_.block_size = size;
        state_.grid_size = grid;
        std::vector<unsigned> blocks(grid.x * grid.y * grid.z);
        order.arrange(blocks);
        if (checked_) checker_.begin_launch(kernel, threads, device, arguments);
        if (counted_) counter_.begin_launch(kernel, grid, size);
        for (const unsigned b : blocks) {
            state_.block = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
            if (checked_) checker_.begin_block(b);
            if (counted_) counter_.begin_block();
            poison_shared_arrays();
            run_block();
            if (!problem_.empty())
                return fmt::format("{} (block {}, {}, {})", std::exchange(problem_, ""), state_.block.x,
                                   state_.block.y, state_.block.z);
            if (counted_) counter_.end_block();
        }
        return "";
    }

    void barrier(int line) {
        threads_[current_].line = line;
        wait(Thread::State::at_barrier);
    }
    unsigned long long exchange(unsigned mask, unsigned long long word, unsigned from, int line) {
        const unsigned first = current_ / warp_size * warp_size;
        if (!(mask >> (from % warp_size) & 1) || first + from % warp_size >= threads_.size()) {
            problem_ = fmt::format("thread {} reads lane {}, which takes no part in the shuffle ({})",
                                   current_, from % warp_size, cite(line));
            abandon();
        }
        meet(mask, word, line);
        return words_[current_ / warp_size][from % warp_size];
    }
    unsigned ballot(unsigned mask, int predicate, int line) {
        meet(mask, predicate != 0, line);
        unsigned bits = 0;
        for (unsigned lane = 0; lane < warp_size; ++lane)
            if ((mask & present(current_)) >> lane & 1 && words_[current_ / warp_size][lane])
                bits |= 1u << lane;
        return bits;
    }
    void meet(unsigned mask, unsigned long long word, int line, bool orders_memory = false) {
        Thread& t = threads_[current_];
        if (!(mask >> (current_ % warp_size) & 1)) {
            problem_ = fmt::format("thread {} takes part in a warp operation whose mask {:#x} lacks it ({})",
                                   current_, mask, cite(line));
            abandon();
        }
        t.mask = mask;
        t.word = word;
        t.line = line;
        t.orders_memory = orders_memory;
        wait(Thread::State::at_warp_operation);
    }
    void access(const void* address, std::size_t bytes, AccessKind kind, const void* code) {
        if (!checked_ && !counted_) return;
        if (checked_) ++accesses;
        const char* stack = threads_[current_].worker->fiber.stack();
        if (static_cast<std::size_t>(static_cast<const char*>(address) - stack) < Fiber::stack_bytes) return;
        if (counted_) return counter_.access(address, bytes, kind, code, current_);
        if (checker_.access(address, bytes, kind, code, current_)) return;
        problem_ = checker_.problem();
        abandon();
    }

  private:
    static void work();

    std::string cite(int line) const { return kernel_->module->cite(line); }

    // The lanes of the thread's warp that exist.
    unsigned present(unsigned thread) const {
        const std::size_t lanes = threads_.size() - thread / warp_size * warp_size;
        return lanes >= warp_size ? ~0u : (1u << lanes) - 1;
    }

    // Ends the launch because of problem_: the thread is left where it stands, so nothing there may need its
    // destructor.
    [[noreturn]] void abandon() {
        threads_[current_].worker->fiber.leave(true);
        __builtin_unreachable();
    }

    void wait(Thread::State state) {
        const unsigned self = current_;
        threads_[self].state = state;
        if (counted_) counter_.stops(self);
        threads_[self].worker->fiber.leave();
        select(self);
    }

    void select(unsigned t) {
        current_ = t;
        const Extent& size = state_.block_size;
        state_.thread = {t % size.x, t / size.x % size.y, t / size.x / size.y};
        state_.lane = t % warp_size;
    }

    // Nobody may count on what an earlier block left. Under AddressSanitizer clang counts the guard behind an
    // array among its bytes.
#if defined(__clang__)
    __attribute__((no_sanitize("address")))
#endif
    void
    poison_shared_arrays() {
        for (const SharedArray& a : kernel_->shared) {
#if defined(__clang__)
            auto* bytes = static_cast<volatile unsigned char*>(static_cast<void*>(a.data));
            for (std::size_t i = 0; i < a.bytes; ++i) bytes[i] = 0xff;
#else
            std::memset(a.data, 0xff, a.bytes);
#endif
        }
    }

    Worker& free_worker() {
        if (free_.empty()) free_.push_back(workers_.emplace_back(std::make_unique<Worker>()).get());
        Worker& w = *free_.back();
        free_.pop_back();
        if (std::exchange(w.launch, launch_) != launch_) w.fiber.prepare(&Scheduler::work);
        return w;
    }

    void run_block() {
        for (Thread& t : threads_) t.state = Thread::State::fresh;
        order.arrange(order_);
        next_ = 0;
        // Each worker runs threads to their end until one of them waits.
        while (next_ < order_.size()) {
            working_ = &free_worker();
            working_->fiber.resume();
            if (!problem_.empty()) return;
        }
        for (;;) {
            if (std::all_of(threads_.begin(), threads_.end(),
                            [](const Thread& t) { return t.state == Thread::State::done; }))
                return;
            if (!release_warps()) release_barrier();
            if (!problem_.empty()) return;
            order.arrange(order_);
            for (const unsigned t : order_) {
                if (threads_[t].state != Thread::State::ready) continue;
                working_ = threads_[t].worker;
                working_->fiber.resume();
                if (!problem_.empty()) return;
            }
        }
    }

    // True when the lanes of some warp have all met.
    bool release_warps() {
        bool any = false;
        const auto threads = static_cast<unsigned>(threads_.size());
        for (unsigned first = 0; first < threads; first += warp_size) {
            const unsigned end = std::min(first + warp_size, threads);
            for (unsigned t = first; t < end; ++t) {
                const Thread& leader = threads_[t];
                if (leader.state != Thread::State::at_warp_operation) continue;
                unsigned met = 0;
                for (unsigned other = first; other < end; ++other)
                    if (const Thread& o = threads_[other]; o.state == Thread::State::at_warp_operation &&
                                                           o.line == leader.line && o.mask == leader.mask)
                        met |= 1u << (other - first);
                if (met != (leader.mask & present(t))) continue;
                for (unsigned other = first; other < end; ++other) {
                    if (!(met >> (other - first) & 1)) continue;
                    words_[first / warp_size][other - first] = threads_[other].word;
                    threads_[other].state = Thread::State::ready;
                    if (counted_) counter_.goes_on(other);
                }
                if (checked_ && leader.orders_memory) checker_.met(first, met);
                any = true;
                break;
            }
        }
        return any;
    }

    void release_barrier() {
        const Thread* first = nullptr;
        for (unsigned t = 0; t < threads_.size(); ++t) {
            const Thread& thread = threads_[t];
            if (thread.state == Thread::State::done) {
                const auto waiting = static_cast<unsigned>(
                    std::find_if(threads_.begin(), threads_.end(),
                                 [](const Thread& w) { return w.state != Thread::State::done; }) -
                    threads_.begin());
                problem_ = fmt::format("thread {} has ended, thread {} and others wait ({})", t, waiting,
                                       cite(threads_[waiting].line));
                return;
            }
            if (thread.state != Thread::State::at_barrier) {
                problem_ = fmt::format("the lanes of thread {}'s warp never meet ({})", t, cite(thread.line));
                return;
            }
            if (first && first->line != thread.line) {
                problem_ = fmt::format(
                    "threads of a block wait at different barriers: thread 0 at {}, thread {} at {}",
                    cite(first->line), t, cite(thread.line));
                return;
            }
            if (!first) first = &thread;
        }
        for (unsigned t = 0; t < threads_.size(); ++t) {
            threads_[t].state = Thread::State::ready;
            if (counted_) counter_.goes_on(t);
        }
        if (counted_) counter_.barrier();
        if (checked_) checker_.next_interval();
    }

    const EmulatedKernel* kernel_ = nullptr;
    void** arguments_ = nullptr;
    EmulatorState state_;
    bool checked_ = false, counted_ = false;
    Checker checker_;
    Counter counter_;
    std::string problem_;

    std::uint64_t launch_ = 0;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<Worker*> free_;
    Worker* working_ = nullptr;  // the one that runs
    std::vector<Thread> threads_;
    std::vector<unsigned> order_;
    std::size_t next_ = 0;  // of order_: those before it have begun
    unsigned current_ = 0;  // the thread that runs
    std::vector<std::array<unsigned long long, warp_size>> words_;
};

Scheduler& scheduler() {
    static Scheduler& s = *new Scheduler;
    return s;
}

Scheduler::Scheduler() {
    state_.barrier = [](int line) { scheduler().barrier(line); };
    state_.exchange = [](unsigned mask, unsigned long long word, unsigned from, int line) {
        return scheduler().exchange(mask, word, from, line);
    };
    state_.ballot = [](unsigned mask, int predicate, int line) {
        return scheduler().ballot(mask, predicate, line);
    };
    state_.meet = [](unsigned mask, int line) { scheduler().meet(mask, 0, line, true); };
    state_.access = [](const void* address, std::size_t bytes, AccessKind kind, const void* code) {
        scheduler().access(address, bytes, kind, code);
    };
    state_.set_conditional = set_emulated_condition;
}

void Scheduler::work() {
    Scheduler& s = scheduler();
    for (;;) {
        Worker* self = s.working_;
        while (s.next_ < s.order_.size()) {
            const unsigned t = s.order_[s.next_++];
            s.threads_[t].worker = self;
            s.select(t);
            s.kernel_->entry(&s.state_, s.arguments_);
            s.threads_[s.current_].state = Thread::State::done;
            if (s.counted_) s.counter_.stops(s.current_);
        }
        s.free_.push_back(self);
        self->fiber.leave();
    }
}

}  // namespace

void set_thread_order(ThreadOrder order, std::uint64_t seed) {
    const std::lock_guard lock(scheduler().mutex);
    scheduler().order.order = order;
    scheduler().order.engine.seed(seed);
}

std::uint64_t checked_accesses() {
    const std::lock_guard lock(scheduler().mutex);
    return scheduler().accesses;
}

std::vector<CountedLaunches> counted_launches(const EmulatedKernel& kernel) {
    const std::lock_guard lock(scheduler().mutex);
    return kernel.counts->launches;
}

std::string run_blocks(const EmulatedKernel& kernel, const Extent& grid, const Extent& block, int device,
                       void** arguments) {
    const std::lock_guard lock(scheduler().mutex);
    return scheduler().run(kernel, grid, block, device, arguments);
}

}  // namespace bitale::cuda
