// Locks that are taken in turns, and forks between what runs.
#include "graph/base/turns.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "graph/base/check.h"

#include "tests/support/catch.h"
#include "tests/support/without_memory.h"

using namespace bitale;

namespace {

void wait_until(const std::atomic<int>& x, int value) {
    while (x.load() < value) std::this_thread::yield();
}

// The exit status of a child that does `work`.
template <class Work>
int in_a_child(Work&& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Called while a fork has everything. What is registered first is called last before a fork, so this comes
// before all other constructors.
void (*in_a_fork)() = nullptr;
[[gnu::constructor(101)]] void register_hook() {
    pthread_atfork(
        [] {
            if (in_a_fork) in_a_fork();
        },
        nullptr, nullptr);
}

}  // namespace

TEST_CASE("readers have a lock together, a writer has it alone", "[core][graph][turns]") {
    TurnLock lock;
    std::atomic<int> inside{0};
    // Each waits inside for the others, which ends only where they are there at once.
    std::vector<std::thread> readers;
    for (int t = 0; t < 3; ++t)
        readers.emplace_back([&] {
            lock.lock_shared();
            ++inside;
            wait_until(inside, 3);
            lock.unlock_shared();
        });
    for (std::thread& t : readers) t.join();
    REQUIRE(inside == 3);

    std::int64_t count = 0;
    std::atomic<std::int64_t> odd{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int k = 0; k < 2000; ++k) {
                if (t % 2 == 0) {
                    const std::lock_guard alone(lock);
                    ++count;
                    ++count;
                } else {
                    lock.lock_shared();
                    odd += count % 2;
                    lock.unlock_shared();
                }
            }
        });
    for (std::thread& t : threads) t.join();
    REQUIRE(count == 8000);
    REQUIRE(odd == 0);
    REQUIRE_FALSE(lock.wanted());
    REQUIRE_FALSE(TurnLock::any_wanted());
}

TEST_CASE("who waits for a lock has it before whoever gave it back", "[core][graph][turns]") {
    TurnLock lock;
    for (const bool shared : {false, true}) {
        std::atomic<int> turns{0};
        lock.lock();
        std::thread other([&] {
            shared ? lock.lock_shared() : lock.lock();
            turns = 1;
            shared ? lock.unlock_shared() : lock.unlock();
        });
        while (!lock.wanted()) std::this_thread::yield();
        REQUIRE(TurnLock::any_wanted());
        lock.unlock();
        lock.lock();
        REQUIRE(turns == 1);
        lock.unlock();
        other.join();
    }
}

TEST_CASE("readers do not pass by a writer that waits", "[core][graph][turns]") {
    TurnLock lock;
    lock.lock_shared();
    std::atomic<int> order{0};
    int writer_was = 0, reader_was = 0;
    std::thread writer([&] {
        const std::lock_guard alone(lock);
        writer_was = ++order;
    });
    while (!lock.wanted()) std::this_thread::yield();
    std::thread reader([&] {
        lock.lock_shared();
        reader_was = ++order;
        lock.unlock_shared();
    });
    lock.unlock_shared();
    writer.join();
    reader.join();
    REQUIRE(order == 2);
    REQUIRE(writer_was == 1);
    REQUIRE(reader_was == 2);
}

TEST_CASE("a fork waits for what runs, and its child finds all locks free", "[graph][turns]") {
    TurnLock lock;
    ForkMutex mutex;
    std::int64_t a = 0, b = 0;  // equal whenever nobody is running
    std::atomic<bool> stop{false};
    std::atomic<int> began{0};
    std::thread writer([&] {
        while (!stop) {
            const std::lock_guard alone(lock);
            const Running running;
            const std::lock_guard held(mutex);
            ++a;
            ++began;
            std::this_thread::yield();
            ++b;
        }
    });
    // This one keeps what it has, and only begins to run when the fork is over.
    TurnLock kept;
    std::atomic<int> has{0}, goes_on{0};
    std::thread keeper([&] {
        const std::lock_guard alone(kept);
        has = 1;
        wait_until(goes_on, 1);
    });
    wait_until(has, 1);
    wait_until(began, 3);
    const int before = forks_so_far();
    for (int k = 0; k < 20; ++k)
        REQUIRE(in_a_child([&] {
                    const Writing first(lock), second(kept);
                    const std::lock_guard held(mutex);
                    return a == b && forks_so_far() == before + 1 && !TurnLock::any_wanted() ? 7 : 1;
                }) == 7);
    REQUIRE(forks_so_far() == before);
    stop = true;
    goes_on = 1;
    writer.join();
    keeper.join();
    REQUIRE(a == b);
}

TEST_CASE("who waits for several locks has none of them, and is passed by once", "[core][graph][turns]") {
    TurnLock a, b;
    const std::array<TurnLock::Wish, 2> both{{{&a, true}, {&b, true}}};
    std::atomic<int> order{0};
    std::atomic<int> both_was{0}, again_was{0};
    b.lock();
    std::thread waits([&] {
        TurnLock::lock_all(both);
        both_was = ++order;
        TurnLock::GivingBack all;
        all.unlock(a);
        all.unlock(b);
    });
    while (!a.wanted()) std::this_thread::yield();
    a.lock();
    a.unlock();
    std::thread again([&] {
        const std::lock_guard alone(a);
        again_was = ++order;
    });
    while (TurnLock::all_waiting() < 2 && again_was == 0) std::this_thread::yield();
    b.unlock();
    waits.join();
    again.join();
    REQUIRE(both_was == 1);
    REQUIRE(again_was == 2);
    REQUIRE_FALSE(a.wanted());
    REQUIRE_FALSE(b.wanted());
    REQUIRE_FALSE(TurnLock::any_wanted());
}

TEST_CASE("threads that take changing sets of locks have them alone", "[core][graph][turns]") {
    constexpr std::size_t locks = 5;
    std::array<TurnLock, locks> list;
    std::array<std::int64_t, locks> counts{};  // changed by two steps, in which others would be seen
    std::atomic<std::int64_t> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t k = 0; k < 1000; ++k) {
                const std::size_t i = (t + k) % locks, j = (i + 1 + k % (locks - 1)) % locks;
                const bool reads = k % 3 == 0;
                const std::array<TurnLock::Wish, 2> wishes{{{&list[i], true}, {&list[j], !reads}}};
                TurnLock::lock_all(wishes);
                ++counts[i];
                wrong += counts[j] % 2 != 0;
                if (!reads) counts[j] += 2;
                ++counts[i];
                TurnLock::GivingBack all;
                all.unlock(list[i]);
                reads ? all.unlock_shared(list[j]) : all.unlock(list[j]);
            }
        });
    for (std::thread& t : threads) t.join();
    REQUIRE(wrong == 0);
    std::int64_t sum = 0;
    for (const std::int64_t n : counts) sum += n;
    REQUIRE(sum == 4 * (1000 * 2 + 666 * 2));
    REQUIRE_FALSE(TurnLock::any_wanted());
}

TEST_CASE("who holds a mutex of forks makes, destroys and waits for no other lock", "[core][graph][turns]") {
    ForkMutex outer(ForkMutex::Rank::outer), inner(ForkMutex::Rank::inner), other(ForkMutex::Rank::inner);
    TurnLock held;
    held.lock();
    {
        const std::lock_guard first(outer);
        REQUIRE_THROWS_AS(TurnLock(), InternalError);
        REQUIRE_THROWS_AS(ForkMutex(), InternalError);
        REQUIRE_THROWS_AS(Running(), InternalError);
        REQUIRE_THROWS_AS(held.lock(), InternalError);
        const std::lock_guard second(inner);
        REQUIRE_THROWS_AS(other.lock(), InternalError);
        REQUIRE_THROWS_AS(TurnLock(), InternalError);
    }
    held.unlock();
    const TurnLock made;
    const Running running;
    const std::lock_guard lock(other);
}

TEST_CASE("who waited for a fork runs before the next one", "[graph][turns]") {
    static std::atomic<std::int64_t> steps{0}, in_this_fork{0};
    std::atomic<bool> stop{false};
    TurnLock lock;
    std::thread runs([&] {
        while (!stop) {
            const Writing writing(lock);
            ++steps;
        }
    });
    while (steps == 0) std::this_thread::yield();  // from now on it needs nothing that a fork has
    in_a_fork = [] {
        while (Running::at_the_gate() == 0) std::this_thread::yield();
        in_this_fork = steps.load();
    };
    std::int64_t before = -1, waited_in_vain = 0;
    std::vector<pid_t> children;
    for (int k = 0; k < 30; ++k) {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        children.push_back(child);
        waited_in_vain += in_this_fork == before;
        before = in_this_fork;
    }
    in_a_fork = nullptr;
    stop = true;
    runs.join();
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    REQUIRE(waited_in_vain == 0);
}

TEST_CASE("a fork waits for the steps of a thread's last destructors", "[graph][turns]") {
    static std::atomic<std::int64_t> a{0}, b{0};
    static std::atomic<int> inside{0}, forked{0};
    struct Last {
        bool used = false;
        ~Last() {
            for (int k = 0; k < 3; ++k) {
                const Running running;
                ++a;
                ++inside;
                // As long as a fork may take that does not wait.
                for (int wait = 0; wait < 50 && forked < inside; ++wait) usleep(1000);
                ++b;
            }
        }
    };
    std::thread thread([&] {
        static thread_local Last last;
        last.used = true;  // made first, it ends last
        const Running running;
    });
    for (int k = 0; k < 3; ++k) {
        wait_until(inside, k + 1);
        CHECK(in_a_child([&] { return a == b ? 7 : 1; }) == 7);
        ++forked;
    }
    thread.join();
    REQUIRE(a == 3);
}

TEST_CASE("the first step of a thread takes no memory", "[graph][turns]") {
    if (std::string(BITALE_SANITIZE) != "") return;  // sanitizers need memory of their own
    TurnLock lock;
    CHECK(in_a_child([&] {
              return test::in_a_thread_without_memory([&] {
                  const Writing writing(lock);
                  return Running::here() ? 7 : 1;
              });
          }) == 7);
}

TEST_CASE("steps run in the destructors of a thread's keys, and are forgotten after them", "[graph][turns]") {
    static std::atomic<int> steps{0};
    TurnLock lock;  // what threads are known by is older than the key, and ends before it
    pthread_key_t key{};
    REQUIRE(pthread_key_create(&key, [](void* last) {
                for (int k = 0; k < 3; ++k) {
                    const Running running;
                    ++steps;
                }
                if (steps < 6) pthread_setspecific(*static_cast<pthread_key_t*>(last), last);
            }) == 0);
    for (int t = 0; t < 4; ++t) {
        steps = 0;
        std::thread([&] {
            const Writing writing(lock);
            pthread_setspecific(key, &key);
        }).join();
        CHECK(steps == 6);
        CHECK(in_a_child([&] {
                  const Writing writing(lock);
                  return 7;
              }) == 7);
    }
    pthread_key_delete(key);
}
