// Locks that are taken in turns, and forks between what runs.
#include "graph/base/turns.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/support/catch.h"

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
