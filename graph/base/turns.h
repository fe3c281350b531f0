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
#include <span>

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
        if (!try_lock()) wait(true);
    }
    void unlock() {
        std::uint32_t mine = alone;
        if (!word_.compare_exchange_strong(mine, 0, std::memory_order_release, std::memory_order_relaxed))
            hand_over(alone);
    }
    void lock_shared() {
        if (!try_lock_shared()) wait(false);
    }
    void unlock_shared() {
        const std::uint32_t before = word_.fetch_sub(one_reader, std::memory_order_release);
        if (before == (queued | one_reader)) hand_over(0);
    }
    // False where somebody has it, or waits for it.
    bool try_lock() {
        std::uint32_t none = 0;
        return word_.compare_exchange_strong(none, alone, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    bool try_lock_shared() {
        std::uint32_t now = word_.load(std::memory_order_relaxed);
        while ((now & (alone | queued)) == 0)
            if (word_.compare_exchange_weak(now, now + one_reader, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return true;
        return false;
    }

    struct Wish {
        TurnLock* lock = nullptr;
        bool alone = false;
    };
    // All of them at once, each of them one time; who waits has none of them. Somebody who waits for several
    // lets others have what he could not use yet, once: then all that gets free is kept for him.
    static void lock_all(std::span<const Wish> wishes);
    // Gives several back at once, so that whoever waits for all of them is not passed by in between.
    class GivingBack;

    // Whether somebody waits for it.
    bool wanted() const { return (word_.load(std::memory_order_relaxed) & queued) != 0; }

    // Whether somebody waits for any TurnLock, or for a fork: one load, for those who look after every step.
    static bool any_wanted() { return all_waiting() != 0; }
    static int all_waiting() { return waiting.load(std::memory_order_relaxed); }

  private:
    friend class Forks;
    struct Waiter;
    static constexpr std::uint32_t alone = std::uint32_t{1} << 31, queued = std::uint32_t{1} << 30,
                                   one_reader = 1;
    static std::atomic<int> waiting;

    static std::uint32_t as(const Wish& wish) { return wish.alone ? alone : one_reader; }
    void wait(bool alone);
    void hand_over(std::uint32_t leaving);
    // With the mutex of the queue held, as what follows.
    static void serve();  // those who may have all that they wait for
    bool is_free_for(std::uint32_t as, std::uint64_t look) const;
    void keep_for(std::uint32_t as, std::uint64_t look);

    std::atomic<std::uint32_t> word_{0};
    std::uint32_t waiters_ = 0;  // how many wait for it
    std::uint32_t kept_as_ = 0;  // in one look along the queue: for somebody who came before
    std::uint64_t kept_in_look_ = 0;
    TurnLock *before_ = nullptr, *after_ = nullptr;  // in the list of all
};

class TurnLock::GivingBack {
  public:
    GivingBack();
    ~GivingBack();
    GivingBack(const GivingBack&) = delete;
    GivingBack& operator=(const GivingBack&) = delete;
    void unlock(TurnLock& lock) { lock.word_.fetch_sub(alone, std::memory_order_release); }
    void unlock_shared(TurnLock& lock) { lock.word_.fetch_sub(one_reader, std::memory_order_release); }
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
        if (!thread.is_known || thread.mutexes != 0) make_known();
        // Either the fork sees this thread running, or this thread sees the fork: both write before they
        // read, in one total order.
        thread.depth.store(1, std::memory_order_seq_cst);
        if (closed.load(std::memory_order_seq_cst) != 0) wait_for_fork();
    }
    ~Running() {
        const int left = thread.depth.load(std::memory_order_relaxed) - 1;
        thread.depth.store(left, std::memory_order_release);
        if (left == 0 && !thread.stays_known) forget();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    static bool fork_waits() { return closed.load(std::memory_order_relaxed) != 0; }
    static bool here() { return thread.depth.load(std::memory_order_relaxed) != 0; }
    // How many threads a fork keeps from running.
    static int at_the_gate() { return at_gate.load(std::memory_order_seq_cst); }

  private:
    friend class Forks;
    friend class ForkMutex;
    // Of one thread: how many of them there are, one inside of the other.
    struct alignas(64) Thread {
        std::atomic<int> depth{0};
        bool is_known = false;     // to those who fork
        bool stays_known = false;  // until it ends; else only while it runs
        bool is_ending = false;    // its variables are being destroyed
        std::uint8_t mutexes = 0;  // the rank of the ForkMutex that it took last, from 1 on
        Thread *before_ = nullptr, *after_ = nullptr;
    };
    static void make_known();
    static void forget();
    static void end(void* thread);
    static void wait_for_fork();

    static thread_local constinit Thread thread;
    static std::atomic<std::uint32_t> closed;  // a fork waits, or takes place: nobody begins to run
    static std::atomic<int> at_gate;           // of those who wait for its end
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
// only. Who holds one of them may take one of a higher rank, and no other lock of this file: he makes none,
// destroys none, waits for none, and does not begin to run. A fork would wait for him, and he for the fork.
// All this is checked.
class ForkMutex {
  public:
    enum class Rank : std::uint8_t { outer, inner, log };
    explicit ForkMutex(Rank rank = Rank::inner);
    ~ForkMutex();
    ForkMutex(const ForkMutex&) = delete;
    ForkMutex& operator=(const ForkMutex&) = delete;

    void lock() {
        const auto level = static_cast<std::uint8_t>(static_cast<int>(rank_) + 1);
        if (Running::thread.mutexes >= level) out_of_order();
        mutex_.lock();
        before_this_ = Running::thread.mutexes;
        Running::thread.mutexes = level;
    }
    void unlock() {
        Running::thread.mutexes = before_this_;
        mutex_.unlock();
    }

  private:
    friend class Forks;
    [[noreturn]] static void out_of_order();
    std::mutex mutex_;
    const Rank rank_;
    std::uint8_t before_this_ = 0;  // Thread::mutexes of who has it
    ForkMutex *before_ = nullptr, *after_ = nullptr;
};

// How many forks lie between the first process and this one.
int forks_so_far();

// As pthread_atfork; std::bad_alloc where that finds no memory.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace bitale
