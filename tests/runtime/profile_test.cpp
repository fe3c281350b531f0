// The times of a profile are those of the calls.
#include <algorithm>
#include <chrono>
#include <vector>

#include "bitale/bitale.h"
#include "runtime/exec/call_state.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

// A training step of products, reductions and updates: some milliseconds in several kernels and library
// calls.
Function training_step(bool profile) {
    const Shared images = shared(uniform_values({512, 784}, 0, 256, 1).as(uint8), "images"),
                 w = shared(uniform_values({784, 300}, -0.05, 0.05, 2), "w"),
                 v = shared(uniform_values({300, 10}, -0.1, 0.1, 3), "v");
    const Expr x = matrix("x"), i = lscalar("i");
    const Expr loss = mean(sqr(softmax(dot(tanh(dot(x / 255, w)), v)) - 0.1));
    return function({i}, loss,
                    {.updates = adam(loss, {w, v}, 0.001),
                     .givens = {{x, cast(images[range(i * 256, (i + 1) * 256)], float32)}},
                     .device = "cpu",
                     .profile = profile});
}

double total_of(const Function& f) {
    double all = 0;
    for (const Profile::Row& row : f.profile().rows) all += row.seconds;
    return all;
}

// The median, over many calls, of what the profile counts of a call divided by the time that the caller sees.
// A call that others interrupt between two kernels is one of many.
template <class Call>
double share_in_profile(const Function& f, Call call) {
    std::vector<double> shares;
    call();  // what is computed once, and first touches of memory
    call();  // after which the first one counts as much as this one
    for (int k = 0; k < 31; ++k) {
        const double before = total_of(f);
        const auto start = std::chrono::steady_clock::now();
        call();
        const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        shares.push_back((total_of(f) - before) / wall);
        CHECK(shares.back() <= 1.0001);
    }
    std::nth_element(shares.begin(), shares.begin() + 15, shares.end());
    return shares[15];
}

}  // namespace

TEST_CASE("the times of a profile add up to the time of the calls, within 5 percent") {
    Function step = training_step(true);
    CHECK(share_in_profile(step, [&] { step(0); }) >= 0.95);
    CHECK(share_in_profile(step, [&] { step.loop(0, 2); }) >= 0.95);
    const std::vector<Profile::Row> rows = step.profile().rows;
    CHECK(rows.size() >= 3);
    for (const Profile::Row& row : rows) CHECK(row.calls >= 31);
}

TEST_CASE("a first call, in which libraries compile, counts as much as the second one") {
    Meters::Meter meter;
    meter.add(100);
    CHECK(meter.seconds == 100);
    meter.add(1);
    CHECK(meter.seconds == 2);
    meter.add(3);
    CHECK(meter.seconds == 5);
    CHECK(meter.calls == 3);
}

TEST_CASE("without a profile nothing is timed") {
    Function step = training_step(false);
    step(0);
    CHECK(step.profile().rows.empty());
}
