// Locks that are taken in turns, and what a fork of the process waits for.
//
// A step of a function first takes its locks, then declares itself as running (Running), and only then
// touches what they guard. A fork waits until nobody is running, so it waits for no lock; its child finds
// every TurnLock free, whatever thread of the parent had it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace bitale {

// For one that writes or several that read. Who has to wait is served in the order of coming, so nobody waits
// for ever: an unlock hands over to the first in the queue, and who unlocks and locks again comes last.
class TurnLock {
  public:
    TurnLock();
    ~TurnLock();
    TurnLock(const TurnLock&) = delete;
    TurnLock& operator=(const TurnLock&) = delete;

    void lock() {
        std::uint32_t none = 0;
        if (!word_.compare_exchange_strong(none, alone, std::memory_order_acquire, std::memory_order_relaxed))
            wait(alone);
    }
    void unlock() {
        std::uint32_t mine = alone;
        if (!word_.compare_exchange_strong(mine, 0, std::memory_order_release, std::memory_order_relaxed))
            hand_over(alone);
    }
    void lock_shared() {
        std::uint32_t now = word_.load(std::memory_order_relaxed);
        while ((now & (alone | queued)) == 0)
            if (word_.compare_exchange_weak(now, now + one_reader, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return;
        wait(one_reader);
    }
    void unlock_shared() {
        const std::uint32_t before = word_.fetch_sub(one_reader, std::memory_order_release);
        if (before == (queued | one_reader)) hand_over(0);
    }
    // Whether somebody waits for it.
    bool wanted() const { return (word_.load(std::memory_order_relaxed) & queued) != 0; }

    // Whether somebody waits for any TurnLock, or for a fork: one load, for those who look after every step.
    static bool any_wanted() { return waiting.load(std::memory_order_relaxed) != 0; }

  private:
    friend class Forks;
    struct Waiter;
    static constexpr std::uint32_t alone = std::uint32_t{1} << 31, queued = std::uint32_t{1} << 30,
                                   one_reader = 1;
    static std::atomic<int> waiting;

    void wait(std::uint32_t as);
    void hand_over(std::uint32_t leaving);
    void serve();  // those at the head of the queue that may have it; its mutex is held
    bool free_for(std::uint32_t as) const;

    std::atomic<std::uint32_t> word_{0};
    Waiter *first_ = nullptr, *last_ = nullptr;      // the queue
    TurnLock *before_ = nullptr, *after_ = nullptr;  // in the list of all
};

// While it lives, its thread changes what TurnLocks guard, and a fork waits. It begins after the locks are
// taken and ends before they are given back: whoever is running waits for no TurnLock.
class Running {
  public:
    Running() {
        const int before = thread.depth.load(std::memory_order_relaxed);
        if (before > 0) {
            thread.depth.store(before + 1, std::memory_order_relaxed);
            return;
        }
        if (!thread.is_known) make_known();
        // Either the fork sees this thread running, or this thread sees the fork: both write before they
        // read, in one total order.
        thread.depth.store(1, std::memory_order_seq_cst);
        if (closed.load(std::memory_order_seq_cst) != 0) wait_for_fork();
    }
    ~Running() {
        thread.depth.store(thread.depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    static bool fork_waits() { return closed.load(std::memory_order_relaxed) != 0; }
    static bool here() { return thread.depth.load(std::memory_order_relaxed) != 0; }

  private:
    friend class Forks;
    // Of one thread: how many of them there are, one inside of the other.
    struct alignas(64) Thread {
        std::atomic<int> depth{0};
        bool is_known = false;  // to those who fork
        Thread *before_ = nullptr, *after_ = nullptr;
    };
    struct Known;
    static void make_known();
    static void wait_for_fork();

    static thread_local constinit Thread thread;
    static std::atomic<std::uint32_t> closed;  // a fork waits, or takes place: nobody begins to run
};

// For a few words or a copy: the lock, and Running.
template <class Lock>
class RunningWith {
  public:
    explicit RunningWith(TurnLock& lock) : lock_(lock) {}
    RunningWith(const RunningWith&) = delete;
    RunningWith& operator=(const RunningWith&) = delete;

  private:
    Lock lock_;
    Running running_;
};
using Reading = RunningWith<std::shared_lock<TurnLock>>;
using Writing = RunningWith<std::lock_guard<TurnLock>>;

// A mutex that a fork holds, so that its child finds it free and what it guards whole. Held for short times
// only; who holds one of them may ask for one of a higher rank.
class ForkMutex {
  public:
    enum class Rank : std::uint8_t { outer, inner, log };
    explicit ForkMutex(Rank rank = Rank::inner);
    ~ForkMutex();
    ForkMutex(const ForkMutex&) = delete;
    ForkMutex& operator=(const ForkMutex&) = delete;

    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    friend class Forks;
    std::mutex mutex_;
    const Rank rank_;
    ForkMutex *before_ = nullptr, *after_ = nullptr;
};

// How many forks lie between the first process and this one.
int forks_so_far();

}  // namespace bitale
