#include "graph/base/turns.h"

#include <pthread.h>
#include <time.h>

#include <chrono>

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

struct TurnLock::Waiter {
    std::uint32_t as = 0;
    std::atomic<std::uint32_t> served{0};
    Waiter* next = nullptr;
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
        pthread_atfork([] { all().prepare(); }, [] { all().resume(); },
                       [] {
                           all().begin_child();
                           all().resume();
                       });
    }

    template <class T>
    void add(T*& list, T& item) {
        const std::lock_guard lock(mutex);
        item.before_ = nullptr;
        item.after_ = list;
        if (list) list->before_ = &item;
        list = &item;
    }
    template <class T>
    void remove(T*& list, T& item) {
        const std::lock_guard lock(mutex);
        (item.before_ ? item.before_->after_ : list) = item.after_;
        if (item.after_) item.after_->before_ = item.before_;
    }

    std::mutex mutex;  // of the lists, and of the queues of all locks
    TurnLock* locks = nullptr;
    ForkMutex* mutexes = nullptr;
    Running::Thread* threads = nullptr;
    std::atomic<int> generation{0};

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

bool TurnLock::free_for(std::uint32_t as) const {
    const std::uint32_t now = word_.load(std::memory_order_relaxed);
    return as == alone ? (now & ~queued) == 0 : (now & alone) == 0;
}

void TurnLock::wait(std::uint32_t as) {
    BITALE_CHECK(!Running::here(), "a running step waits for a lock");
    Waiter self;
    self.as = as;
    Forks& forks = Forks::all();
    {
        const std::lock_guard lock(forks.mutex);
        // From here on nobody passes by: who unlocks sees the queue.
        word_.fetch_or(queued, std::memory_order_relaxed);
        (last_ ? last_->next : first_) = &self;
        last_ = &self;
        waiting.fetch_add(1, std::memory_order_relaxed);
        serve();
    }
    const auto is_served = [&] { return self.served.load(std::memory_order_acquire) != 0; };
    if (poll(is_served, spins, yields)) return;
    while (!is_served()) self.served.wait(0, std::memory_order_acquire);
}

void TurnLock::serve() {
    while (first_ && free_for(first_->as)) {
        Waiter* const next = first_;
        first_ = next->next;
        if (!first_) last_ = nullptr;
        word_.fetch_add(next->as, std::memory_order_acquire);
        waiting.fetch_sub(1, std::memory_order_relaxed);
        next->served.store(1, std::memory_order_release);  // from here on it may be gone
        next->served.notify_one();
    }
    if (!first_) word_.fetch_and(~queued, std::memory_order_relaxed);
}

void TurnLock::hand_over(std::uint32_t leaving) {
    const std::lock_guard lock(Forks::all().mutex);
    word_.fetch_sub(leaving, std::memory_order_acq_rel);
    serve();
}

// ---- Running ----

// As long as its thread.
struct Running::Known {
    Known() {
        Forks::all().add(Forks::all().threads, thread);
        thread.is_known = true;
    }
    ~Known() {
        Forks::all().remove(Forks::all().threads, thread);
        thread.is_known = false;
    }
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;
};

void Running::make_known() {
    static thread_local const Known known;
    (void)known;
}

void Running::wait_for_fork() {
    do {
        thread.depth.store(0, std::memory_order_release);
        closed.wait(1, std::memory_order_relaxed);
        thread.depth.store(1, std::memory_order_seq_cst);
    } while (closed.load(std::memory_order_seq_cst) != 0);
}

// ---- forks ----

ForkMutex::ForkMutex(Rank rank) : rank_(rank) { Forks::all().add(Forks::all().mutexes, *this); }
ForkMutex::~ForkMutex() { Forks::all().remove(Forks::all().mutexes, *this); }

int forks_so_far() { return Forks::all().generation.load(std::memory_order_relaxed); }

bool Forks::others_run() const {
    for (const Running::Thread* t = threads; t; t = t->after_)
        if (t != &Running::thread && t->depth.load(std::memory_order_seq_cst) != 0) return true;
    return false;
}

void Forks::prepare() {
    one_fork_.lock();
    Running::closed.store(1, std::memory_order_seq_cst);
    TurnLock::waiting.fetch_add(1, std::memory_order_relaxed);
    mutex.lock();
    while (others_run()) {
        mutex.unlock();
        constexpr timespec nap{0, 20'000};
        nanosleep(&nap, nullptr);
        mutex.lock();
    }
    // The lists stay as they are until the fork is over.
    for (const ForkMutex::Rank rank : {ForkMutex::Rank::outer, ForkMutex::Rank::inner, ForkMutex::Rank::log})
        of_rank(rank, [](ForkMutex& m) { m.lock(); });
}

void Forks::resume() {
    for (ForkMutex* m = mutexes; m; m = m->after_) m->unlock();
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
        l->first_ = l->last_ = nullptr;
    }
    TurnLock::waiting.store(1, std::memory_order_relaxed);  // this fork's own
    Running::Thread& own = Running::thread;
    own.before_ = own.after_ = nullptr;
    threads = own.is_known ? &own : nullptr;
}

}  // namespace bitale
