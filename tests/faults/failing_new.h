// An operator new that fails when it is told to, and counts.
#pragma once

#include <cstdint>
#include <vector>

namespace bitale::test {

// Not under sanitizers, which need theirs.
bool new_can_fail();
// The n-th use from now on fails, counted from 1; `onwards`: that and all later ones, until stopped.
void fail_new(std::int64_t n, bool onwards = false);
// Whether one failed since; none fails from now on.
bool stop_failing_new();
// None fails in this thread while such an object lives.
class WithoutFailing {
  public:
    WithoutFailing();
    ~WithoutFailing();
    WithoutFailing(const WithoutFailing&) = delete;
    WithoutFailing& operator=(const WithoutFailing&) = delete;
};
// What was allocated and not given back yet.
std::int64_t blocks_alive();

// The places in the program that allocate while it lives: for each use, from the first, a number that is the
// same for the same chain of callers.
class NewSites {
  public:
    NewSites();
    ~NewSites();
    NewSites(const NewSites&) = delete;
    NewSites& operator=(const NewSites&) = delete;
    std::vector<std::uint64_t> take();
};

}  // namespace bitale::test
