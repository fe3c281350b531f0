// Every failure in turn: the n-th use of each door and of operator new fails, for n from 1 on until none is
// left to fail; after each the promises are checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/faults.h"

namespace bitale::test {

// What may fail, and how its results are judged.
struct Workload {
    std::string name;
    std::function<void()> prepare;  // to the state before
    std::function<void()> act;
    // What is wrong afterwards, or nothing. `rounding`: a library refused, so the last bits may differ.
    std::function<std::string(bool thrown, bool rounding)> judge;
    bool keeps_blocks = false;  // acting grows what is kept for later, so counting blocks says nothing
};

enum class Failing : std::uint8_t { doors, doors_onwards, memory, memory_onwards };

struct Swept {
    std::int64_t tried = 0, thrown = 0;  // failures that were met, and those that ended in an error
    std::vector<std::string> bad;
    std::string text() const;
};

// n = 1, 2, ... until none is met; or those of `numbers`.
Swept sweep(const Workload& workload, Failing failing, const std::vector<std::int64_t>& numbers = {});

// Of all uses of operator new in act: the first, second and last of each place in the program, and `random`
// others drawn by the seed.
std::vector<std::int64_t> interesting_allocations(const Workload& workload, std::size_t random,
                                                  std::uint64_t seed);

// Those of `numbers` (empty: all), with the results as checks of the test that runs.
void check(const Workload& workload, Failing failing, const std::vector<std::int64_t>& numbers = {});

// In every way. `sampled`: of uses of operator new, those that are interesting.
void check_every(const Workload& workload, bool sampled = false);

// Where launches are single: a launch that is refused between two that write variables. Their values are
// lost, and that is said.
Workload may_lose(Workload workload);

// What differs, to the bit; `rounding`: by more than another order of additions makes.
std::string to_rounding(const std::vector<Array>& got, const std::vector<Array>& expected, bool rounding);

// Another one each time, or that of the environment's BITALE_TEST_SEED.
std::uint64_t seed_of_run();

// At most `most` of the numbers, drawn by the seed, in order.
std::vector<std::int64_t> sample(std::vector<std::int64_t> numbers, std::size_t most, std::uint64_t seed);

}  // namespace bitale::test
