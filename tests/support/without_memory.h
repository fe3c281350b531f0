// A thread for which the C library's malloc finds no memory any more. For a child of a test's process: what
// was taken is not given back, but there is memory again when the thread has ended.
#pragma once

#include <sys/resource.h>

#include <cstdlib>
#include <thread>
#include <utility>

namespace bitale::test {

// Whatever malloc can still give is taken.
inline void take_all_memory() {
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_AS, &limit);
    static void* volatile last = nullptr;  // else a compiler leaves the calls out
    const auto take = [](std::size_t bytes) {
        do last = std::malloc(bytes);
        while (last);
    };
    for (std::size_t bytes = std::size_t{1} << 20; bytes > 1024; bytes /= 2) take(bytes);
    for (std::size_t bytes = 1024; bytes > 0; bytes -= 16) take(bytes);
}

inline void allow_memory() {
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

template <class Work>
int in_a_thread_without_memory(Work&& work) {
    int result = -1;
    std::thread([&] {
        take_all_memory();
        result = std::forward<Work>(work)();
    }).join();
    allow_memory();
    return result;
}

}  // namespace bitale::test
