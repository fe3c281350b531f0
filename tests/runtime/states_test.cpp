// What overlapping calls of one function need: as many states as there are calls, which go when they are not
// used.
#include "runtime/exec/call_states.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/threads.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// A state that counts how many there are.
struct Counted {
    static inline std::atomic<int> alive{0};
    Counted() { ++alive; }
    ~Counted() { --alive; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
};

}  // namespace

TEST_CASE("there are as many states as calls overlap, and the others are dropped",
          "[core][runtime][states]") {
    CallStates<Counted> states([] { return std::make_unique<Counted>(); });
    using Claim = CallStates<Counted>::Claim;
    for (int k = 0; k < 10; ++k) const Claim one(states);
    REQUIRE(Counted::alive == 1);
    {
        const Claim one(states), two(states), three(states);
        REQUIRE(Counted::alive == 3);
    }
    { const Claim one(states), two(states); }
    REQUIRE(Counted::alive == 3);
    states.patience = {};
    { const Claim one(states); }
    REQUIRE(Counted::alive == 1);
    // A long call drops them too.
    states.patience = std::chrono::hours(1);
    const Claim one(states);
    { const Claim two(states), three(states); }
    states.tidy();
    REQUIRE(Counted::alive == 3);
    states.patience = {};
    states.tidy();
    REQUIRE(Counted::alive == 1);
}

TEST_CASE("a call that wants memory has that of states which nobody uses", "[core][runtime][states]") {
    CallStates<Counted> states([] { return std::make_unique<Counted>(); });
    using Claim = CallStates<Counted>::Claim;
    const Claim one(states);
    int tries = 0;
    const auto wants_memory = [&] {
        ++tries;
        if (Counted::alive > 1) throw OutOfMemory("none");
        return Counted::alive.load();
    };
    { const Claim two(states), three(states); }
    REQUIRE(Counted::alive == 3);
    REQUIRE(states.with_room(wants_memory) == 1);
    REQUIRE(tries == 2);
    const Claim two(states);
    REQUIRE_THROWS_AS(states.with_room(wants_memory), OutOfMemory);
    REQUIRE(tries == 3);
    REQUIRE(Counted::alive == 2);
}

TEST_CASE("any number of calls have a state, and a child finds those of its parent free",
          "[runtime][states]") {
    CallStates<Counted> states([] { return std::make_unique<Counted>(); });
    using Claim = CallStates<Counted>::Claim;
    std::vector<std::unique_ptr<Claim>> claims;
    for (int k = 0; k < 1000; ++k) claims.push_back(std::make_unique<Claim>(states));
    REQUIRE(Counted::alive == 1000);
    REQUIRE(in_a_child([&] {
                const Claim one(states), two(states);
                return Counted::alive == 1000 ? 7 : 1;
            }) == 7);
    claims.clear();
    states.patience = {};
    const Claim one(states);
    REQUIRE(Counted::alive == 1);
}
