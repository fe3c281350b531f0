#include "graph/base/turns.h"

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <new>

#include "graph/base/check.h"
#include "graph/base/poll.h"

namespace bitale {

namespace {

// How long who waits keeps its core, and then yields it, before it sleeps.
constexpr std::chrono::microseconds spins{20}, yields{100};

}  // namespace

std::atomic<int> TurnLock::waiting{0};
thread_local constinit Running::Thread Running::thread;
constinit std::atomic<std::uint32_t> Running::closed{0};
constinit std::atomic<int> Running::at_gate{0};

struct TurnLock::Waiter {
    std::span<const Wish> wishes;
    bool passed = false;  // by somebody who came later
    std::atomic<std::uint32_t> served{0};
    Waiter* next = nullptr;

    bool disagrees_with(const Waiter& other) const {
        for (const Wish& a : wishes)
            for (const Wish& b : other.wishes)
                if (a.lock == b.lock && (a.alone || b.alone)) return true;
        return false;
    }
};

// All locks, all threads that run steps, and what happens to them at a fork. Never destroyed: static
// variables of the user may be the last to use them.
class Forks {
  public:
    static Forks& all() {
        static Forks& f = *new Forks;
        return f;
    }

    Forks() {
        at_fork([] { all().prepare(); }, [] { all().resume(); },
                [] {
                    all().begin_child();
                    all().resume();
                });
        // Not a thread_local with a destructor: the C library allocates when a thread first meets one, and
        // ends the process where it finds no memory.
        has_key = pthread_key_create(&key, [](void* thread) { Running::end(thread); }) == 0;
    }

    // Its mutex; a fork takes the ForkMutexes while it has it.
    std::unique_lock<std::mutex> held() {
        BITALE_CHECK(Running::thread.mutexes == 0,
                     "a lock is made, destroyed or waited for under a ForkMutex");
        return std::unique_lock(mutex);
    }

    template <class T>
    void add(T*& list, T& item) {
        const auto lock = held();
        item.before_ = nullptr;
        item.after_ = list;
        if (list) list->before_ = &item;
        list = &item;
    }
    template <class T>
    void remove(T*& list, T& item) {
        const auto lock = held();
        (item.before_ ? item.before_->after_ : list) = item.after_;
        if (item.after_) item.after_->before_ = item.before_;
    }

    std::mutex mutex;                                    // of the lists and the queue
    TurnLock::Waiter *first = nullptr, *last = nullptr;  // the queue: who waits for TurnLocks
    std::uint64_t looks = 0;                             // along it
    TurnLock* locks = nullptr;
    ForkMutex* mutexes = nullptr;
    Running::Thread* threads = nullptr;
    std::atomic<int> generation{0};
    pthread_key_t key{};  // of each thread that is known: calls us when the thread ends
    bool has_key = false;

  private:
    void prepare();
    void resume();
    void begin_child();
    bool others_run() const;
    template <class F>
    void of_rank(ForkMutex::Rank rank, F&& f) {
        for (ForkMutex* m = mutexes; m; m = m->after_)
            if (m->rank_ == rank) f(*m);
    }

    std::mutex one_fork_;
};

// ---- TurnLock ----

TurnLock::TurnLock() { Forks::all().add(Forks::all().locks, *this); }
TurnLock::~TurnLock() { Forks::all().remove(Forks::all().locks, *this); }

bool TurnLock::is_free_for(std::uint32_t as, std::uint64_t look) const {
    const std::uint32_t now = word_.load(std::memory_order_relaxed);
    const bool kept = kept_in_look_ == look && (as == alone || kept_as_ == alone);
    return !kept && (as == alone ? (now & ~queued) == 0 : (now & alone) == 0);
}

void TurnLock::keep_for(std::uint32_t as, std::uint64_t look) {
    if (kept_in_look_ != look || as == alone) kept_as_ = as;
    kept_in_look_ = look;
}

void TurnLock::wait(bool alone) {
    const Wish wish{this, alone};
    lock_all({&wish, 1});
}

void TurnLock::lock_all(std::span<const Wish> wishes) {
    BITALE_CHECK(!Running::here(), "a running step waits for a lock");
    Waiter self;
    self.wishes = wishes;
    Forks& forks = Forks::all();
    {
        const auto lock = forks.held();
        // From here on nobody passes by: who unlocks sees the queue.
        for (const Wish& wish : wishes)
            if (wish.lock->waiters_++ == 0) wish.lock->word_.fetch_or(queued, std::memory_order_relaxed);
        (forks.last ? forks.last->next : forks.first) = &self;
        forks.last = &self;
        waiting.fetch_add(1, std::memory_order_relaxed);
        serve();
    }
    const auto is_served = [&] { return self.served.load(std::memory_order_acquire) != 0; };
    if (poll(is_served, spins, yields)) return;
    while (!is_served()) self.served.wait(0, std::memory_order_acquire);
}

void TurnLock::serve() {
    Forks& forks = Forks::all();
    const std::uint64_t look = ++forks.looks;
    Waiter* before = nullptr;
    for (Waiter *w = forks.first, *next = nullptr; w; w = next) {
        next = w->next;
        bool all_free = true;
        for (const Wish& wish : w->wishes) {
            const bool is_free = wish.lock->is_free_for(as(wish), look);
            all_free &= is_free;
        }
        if (!all_free) {
            for (const Wish& wish : w->wishes)
                if (w->passed || !wish.lock->is_free_for(as(wish), look)) wish.lock->keep_for(as(wish), look);
            before = w;
            continue;
        }
        for (Waiter* earlier = forks.first; earlier != w; earlier = earlier->next)
            earlier->passed = earlier->passed || (earlier->wishes.size() > 1 && earlier->disagrees_with(*w));
        (before ? before->next : forks.first) = next;
        if (!next) forks.last = before;
        for (const Wish& wish : w->wishes) {
            wish.lock->word_.fetch_add(as(wish), std::memory_order_acquire);
            if (--wish.lock->waiters_ == 0) wish.lock->word_.fetch_and(~queued, std::memory_order_relaxed);
        }
        waiting.fetch_sub(1, std::memory_order_relaxed);
        w->served.store(1, std::memory_order_release);  // from here on it may be gone
        w->served.notify_one();
    }
}

void TurnLock::hand_over(std::uint32_t leaving) {
    const auto lock = Forks::all().held();
    word_.fetch_sub(leaving, std::memory_order_acq_rel);
    serve();
}

TurnLock::GivingBack::GivingBack() { Forks::all().held().release(); }
TurnLock::GivingBack::~GivingBack() {
    serve();
    Forks::all().mutex.unlock();
}

// ---- Running ----

void Running::make_known() {
    BITALE_CHECK(thread.mutexes == 0, "who holds a ForkMutex begins to run");
    if (thread.is_known) return;
    Forks& forks = Forks::all();
    // Known until the thread ends. Where nobody tells when that is, for want of keys or of memory, and in the
    // last destructors of a thread, which may run steps too, only while it runs.
    if (!thread.is_ending) thread.stays_known = forks.has_key && pthread_setspecific(forks.key, &thread) == 0;
    forks.add(forks.threads, thread);
    thread.is_known = true;
}

void Running::forget() {
    Forks::all().remove(Forks::all().threads, thread);
    thread.is_known = false;
}

void Running::end(void* ending) {
    BITALE_CHECK(ending == &thread, "a thread ends another one");
    if (thread.is_known) forget();
    thread.stays_known = false;
    thread.is_ending = true;
}

void Running::wait_for_fork() {
    at_gate.fetch_add(1, std::memory_order_seq_cst);
    do {
        thread.depth.store(0, std::memory_order_release);
        closed.wait(1, std::memory_order_relaxed);
        thread.depth.store(1, std::memory_order_seq_cst);
    } while (closed.load(std::memory_order_seq_cst) != 0);
    at_gate.fetch_sub(1, std::memory_order_seq_cst);
}

// ---- forks ----

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
    if (pthread_atfork(before, in_parent, in_child) != 0) throw std::bad_alloc();
}

ForkMutex::ForkMutex(Rank rank) : rank_(rank) { Forks::all().add(Forks::all().mutexes, *this); }
ForkMutex::~ForkMutex() { Forks::all().remove(Forks::all().mutexes, *this); }

void ForkMutex::out_of_order() {
    BITALE_CHECK(false, "who holds a ForkMutex takes one whose rank is not higher");
    std::abort();
}

int forks_so_far() { return Forks::all().generation.load(std::memory_order_relaxed); }

bool Forks::others_run() const {
    for (const Running::Thread* t = threads; t; t = t->after_)
        if (t != &Running::thread && t->depth.load(std::memory_order_seq_cst) != 0) return true;
    return false;
}

void Forks::prepare() {
    constexpr timespec nap{0, 20'000};
    one_fork_.lock();
    // Who waited for the fork before goes first, or forks that follow each other would let nobody run.
    while (Running::at_the_gate() != 0) nanosleep(&nap, nullptr);
    Running::closed.store(1, std::memory_order_seq_cst);
    TurnLock::waiting.fetch_add(1, std::memory_order_relaxed);
    mutex.lock();
    while (others_run()) {
        mutex.unlock();
        nanosleep(&nap, nullptr);
        mutex.lock();
    }
    // The lists stay as they are until the fork is over.
    for (const ForkMutex::Rank rank : {ForkMutex::Rank::outer, ForkMutex::Rank::inner, ForkMutex::Rank::log})
        of_rank(rank, [](ForkMutex& m) { m.mutex_.lock(); });
}

void Forks::resume() {
    for (ForkMutex* m = mutexes; m; m = m->after_) m->mutex_.unlock();
    mutex.unlock();
    TurnLock::waiting.fetch_sub(1, std::memory_order_relaxed);
    Running::closed.store(0, std::memory_order_seq_cst);
    Running::closed.notify_all();
    one_fork_.unlock();
}

// The other threads are gone, and with them whatever they held or waited for.
void Forks::begin_child() {
    generation.fetch_add(1, std::memory_order_relaxed);
    for (TurnLock* l = locks; l; l = l->after_) {
        l->word_.store(0, std::memory_order_relaxed);
        l->waiters_ = 0;
    }
    first = last = nullptr;
    Running::at_gate.store(0, std::memory_order_relaxed);
    TurnLock::waiting.store(1, std::memory_order_relaxed);  // this fork's own
    Running::Thread& own = Running::thread;
    own.before_ = own.after_ = nullptr;
    threads = own.is_known ? &own : nullptr;
}

}  // namespace bitale
