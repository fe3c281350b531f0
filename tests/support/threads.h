// For tests of several threads and processes.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bitale/error.h"
#include "tests/support/catch.h"

namespace bitale::test {

// Threads that are joined in any case: where a check fails, others may still be waiting for what comes next.
class Threads {
  public:
    // `stop` is set before they are joined.
    explicit Threads(std::atomic<bool>* stop = nullptr) : stop_(stop) {}
    ~Threads() { join(); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    template <class Work>
    void add(Work&& work) {
        list_.emplace_back(std::forward<Work>(work));
    }
    void join() {
        if (stop_) *stop_ = true;
        for (std::thread& t : list_)
            if (t.joinable()) t.join();
    }

  private:
    std::atomic<bool>* stop_;
    std::vector<std::thread> list_;
};

// A fork waits for no lock of AddressSanitizer's allocator: where a thread has one just then, the child's
// first allocation waits for ever, without any code of ours.
inline bool children_are_safe() {
    return std::string_view(BITALE_SANITIZE).find("address") == std::string_view::npos;
}

inline bool children_left_out() {
    if (children_are_safe()) return false;
    WARN("left out: a child cannot allocate under AddressSanitizer while its parent's threads do");
    return true;
}

// The exit status of a child that does `work`; it is ended where it hangs.
template <class Work>
int in_a_child(Work&& work) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        int status = 99;
        try {
            status = work();
        } catch (const Error& e) {
            std::fprintf(stderr, "%s\n", e.what());
        }
        _exit(status);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace bitale::test
