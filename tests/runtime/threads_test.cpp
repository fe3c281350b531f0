// Several threads: calls that read run side by side, those that write take turns, loops let others in between
// their steps, a fork waits for a step.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <string_view>
#include <thread>
#include <vector>

#include "bitale/bitale.h"
#include "graph/ir/shared.h"
#include "runtime/exec/call_states.h"
#include "runtime/exec/device.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/small_network.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr std::int64_t endless = std::int64_t{1} << 60;

// A loop in a thread of its own, until it is told to stop.
class EndlessLoop {
  public:
    explicit EndlessLoop(Function f) : function_(std::move(f)) {
        thread_ = std::thread([this] { function_.loop(0, endless, stop_); });
        while (function_.steps_done() < 3) std::this_thread::yield();
    }
    ~EndlessLoop() { end(); }
    EndlessLoop(const EndlessLoop&) = delete;
    EndlessLoop& operator=(const EndlessLoop&) = delete;
    std::int64_t end() {
        stop_.request();
        if (thread_.joinable()) thread_.join();
        return function_.steps_done();
    }

  private:
    Function function_;
    StopToken stop_;
    std::thread thread_;
};

// A fork waits for no lock of AddressSanitizer's allocator: where a thread has one just then, the child's
// first allocation waits for ever, without any code of ours.
bool children_are_safe() {
    return std::string_view(BITALE_SANITIZE).find("address") == std::string_view::npos;
}

bool children_left_out() {
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

std::vector<std::string> devices() {
    std::vector<std::string> list{"cpu", "reference"};
    if (!emulator_skipped()) list.emplace_back("emulator");
    return list;
}

// A state that counts how many there are.
struct Counted {
    static inline std::atomic<int> alive{0};
    Counted() { ++alive; }
    ~Counted() { --alive; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
};

}  // namespace

TEST_CASE("calls that read the same variables have them at once", "[core][runtime][threads]") {
    Device& device = device_named("cpu");
    const auto read = std::make_shared<SharedState>(), a = std::make_shared<SharedState>(),
               b = std::make_shared<SharedState>();
    std::atomic<int> inside{0};
    const auto call = [&](const SharedPtr& written) {
        std::vector<SharedUse> uses{{read, false}, {written, true}};
        std::sort(uses.begin(), uses.end(),
                  [](const SharedUse& x, const SharedUse& y) { return x.variable < y.variable; });
        const CallLock lock(device, uses);
        ++inside;
        while (inside < 2) std::this_thread::yield();
    };
    std::thread other([&] { call(a); });
    call(b);
    other.join();
    REQUIRE(inside == 2);
}

TEST_CASE("there are as many states as calls overlap, and the others are dropped",
          "[core][runtime][threads]") {
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
    for (std::uint32_t k = 0; k < 3 * CallStates<Counted>::uses_between_looks; ++k) const Claim one(states);
    REQUIRE(Counted::alive == 1);
    const Claim one(states), two(states);
    REQUIRE(Counted::alive == 2);
}

TEST_CASE("overlapping calls have the bits of calls alone", "[core][runtime][threads]") {
    for (const std::string device : {"cpu", "reference"}) {
        const bool interpreted = device == "reference";
        Random random(3);
        const std::int64_t rows = interpreted ? 6 : 300;
        const Shared w = shared(random_array(float32, {40, 30}, random), "w");
        const Expr x = matrix("x");
        const Expr y = softmax(tanh(dot(x, w)));
        Function f = function({x}, {y, sum(y, {0})}, {.device = device});
        std::vector<Array> inputs;
        std::vector<Results> expected;
        for (int k = 0; k < 4; ++k) {
            inputs.push_back(random_array(float32, {rows + k, 40}, random));
            expected.push_back(f.call({&inputs.back(), 1}));
        }
        const std::int64_t alone = f.peak_bytes();
        std::atomic<int> wrong{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                for (int k = 0; k < (interpreted ? 5 : 200); ++k) {
                    const auto i = static_cast<std::size_t>(k + t) % inputs.size();
                    const Results got = f.call({&inputs[i], 1});
                    wrong += !same(got[0], expected[i][0]) || !same(got[1], expected[i][1]);
                }
            });
        for (std::thread& t : threads) t.join();
        REQUIRE(wrong == 0);
        REQUIRE(f.peak_bytes() >= alone);
        const std::int64_t parameters = w.get_value().bytes();
        REQUIRE(f.peak_bytes() - parameters <= 4 * (alone - parameters));
    }
}

TEST_CASE("calls that write take turns by whole steps", "[core][runtime][threads]") {
    for (const std::string& device : devices()) {
        INFO(device);
        const Shared n = shared(Array(std::int64_t{0}), "n"), twice = shared(Array(std::int64_t{0}), "twice");
        Function count = function({}, {n}, {.updates = {{n, n + 1}, {twice, twice + 2}}, .device = device});
        const Expr i = lscalar("i");
        Function counts = function({i}, {twice - n * 2 + i * 0},
                                   {.updates = {{n, n + 1}, {twice, twice + 2}}, .device = device});
        Function look = function({}, {twice - n * 2}, {.device = device});
        std::atomic<int> wrong{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 2; ++t)
            threads.emplace_back([&] {
                for (int k = 0; k < 50; ++k) count();
            });
        threads.emplace_back([&] {
            const Array all = counts.loop(0, 200);
            for (std::int64_t k = 0; k < all.size(); ++k) wrong += all.at(k) != 0;
        });
        threads.emplace_back([&] {
            for (int k = 0; k < 50; ++k) wrong += double(look()) != 0;
        });
        for (std::thread& t : threads) t.join();
        REQUIRE(wrong == 0);
        REQUIRE(n.get_value() == 300.0);
        REQUIRE(twice.get_value() == 600.0);
    }
}

TEST_CASE("a value, a call and a report do not wait for a loop's end", "[core][runtime][threads]") {
    for (const std::string& device : devices()) {
        INFO(device);
        Shared n = shared(Array(std::int64_t{0}), "n"), m = shared(Array(std::int64_t{5}), "m");
        const Expr i = lscalar("i");
        Function count = function({i}, {}, {.updates = {{n, n + m * 0 + 1 + i * 0}}, .device = device});
        Function look = function({}, {n + m}, {.device = device});
        Function other = function({}, {m * 2}, {.device = device});
        EndlessLoop loop(count);
        double before = n.get_value();
        for (int k = 0; k < 5; ++k) {
            Array now = n.get_value();
            while (double(now) <= before) now = n.get_value();  // the loop goes on
            const double value = now;
            REQUIRE(double(look()) > value);
            REQUIRE(double(now) == value);  // what was given is not written any more
            before = value;
            REQUIRE(double(other()) == 10);
            REQUIRE(count.peak_bytes() >= 16);
            REQUIRE_THAT(count.report(), ContainsSubstring("device " + device));
            REQUIRE(count.profile().rows.empty());
        }
        n.set_value(Array(endless));
        REQUIRE(double(n.get_value()) >= static_cast<double>(endless));
        n.set_value(Array(std::int64_t{0}));
        REQUIRE(n.get_value().item<std::int64_t>() < endless);
        m.set_value(Array(std::int64_t{7}));
        REQUIRE(double(other()) == 14);
        REQUIRE(loop.end() > 0);
    }
}

TEST_CASE("loops that let others in have the results of loops alone", "[core][runtime][threads]") {
    for (const std::string& device : devices()) {
        INFO(device);
        const Shared n = shared(Array(std::int64_t{100}), "n"),
                     fixed = shared(Array(std::int64_t{3}), "fixed");
        const Expr i = lscalar("i");
        Function f = function({i}, {n + i * fixed}, {.updates = {{n, n + i}}, .device = device});
        Function waits = function({}, {n}, {.device = device});
        const std::int64_t steps = device == "cpu" ? 1000 : 200;
        std::atomic<bool> ended{false};
        std::vector<std::thread> others;
        for (int t = 0; t < 2; ++t)
            others.emplace_back([&] {
                while (!ended) {
                    waits();
                    (void)n.get_value();
                }
            });
        std::vector<std::int64_t> values;
        for (std::int64_t k = 0; k < steps; ++k) values.push_back(k % 7);
        const Array all = f.loop(values);
        ended = true;
        for (std::thread& t : others) t.join();
        REQUIRE(all.shape() == Dims{steps});
        REQUIRE(f.steps_done() == steps);
        std::int64_t expected = 100, wrong = 0;
        for (std::int64_t k = 0; k < steps; ++k) {
            wrong += all.at<std::int64_t>(k) != expected + 3 * (k % 7);
            expected += k % 7;
        }
        REQUIRE(wrong == 0);
        REQUIRE(n.get_value().item<std::int64_t>() == expected);
    }
}

TEST_CASE("a request ends all loops of the function that run", "[core][runtime][threads]") {
    const Expr i = lscalar("i");
    Function f = function({i}, {}, {.on_unused_input = OnUnused::ignore});
    std::atomic<int> running{0};
    std::vector<std::thread> loops;
    for (int t = 0; t < 2; ++t)
        loops.emplace_back([&] {
            ++running;
            f.loop(0, endless);
        });
    while (running < 2 || f.steps_done() < 3) std::this_thread::yield();
    // The second may not have begun yet: then the next request is its own.
    std::atomic<int> ended{0};
    std::thread joiner([&] {
        for (std::thread& t : loops) t.join();
        ended = 1;
    });
    while (ended == 0) {
        f.request_stop();
        usleep(1000);
    }
    joiner.join();
    REQUIRE(f.steps_done() < endless);
}

TEST_CASE("a child of a process whose threads call can call what it had", "[runtime][threads]") {
    if (children_left_out()) return;
    for (const std::string device : {"cpu", "reference"}) {
        INFO(device);
        SmallNetwork net(device, 12, 5, 4);
        const Expr x = scalar("x");
        Function f = function({x}, {x * 2}, {.device = device});
        const Shared n = shared(Array(std::int64_t{0}), "n"), same_n = shared(Array(std::int64_t{0}), "same");
        const Expr i = lscalar("i");
        Function count =
            function({i}, {}, {.updates = {{n, n + 1 + i * 0}, {same_n, same_n + 1}}, .device = device});
        net.minibatch(0);
        EndlessLoop loop(count), training([&] {
            const Shared w = shared(zeros({50, 50}), "w");
            return function({i}, {},
                            {.updates = {{w, tanh(dot(w, w)) + cast(i, float32)}}, .device = device});
        }());
        std::atomic<bool> stop{false};
        std::vector<std::thread> others;
        others.emplace_back([&] {
            while (!stop) f(1.0f);
        });
        others.emplace_back([&] {
            while (!stop) (void)n.get_value();
        });
        for (int k = 0; k < 10; ++k)
            REQUIRE(in_a_child([&] {
                        const auto before = n.get_value().item<std::int64_t>();
                        if (same_n.get_value().item<std::int64_t>() != before) return 1;
                        if (double(f(3.0f)) != 6) return 2;
                        count.loop(0, 10);
                        if (n.get_value().item<std::int64_t>() != before + 10) return 3;
                        net.minibatch(1);
                        if (!std::isfinite(net.w.get_value().at(0))) return 4;
                        Shared(n).set_value(Array(std::int64_t{4}));
                        return count(0), n.get_value().item<std::int64_t>() == 5 ? 7 : 5;
                    }) == 7);
        stop = true;
        for (std::thread& t : others) t.join();
        REQUIRE(loop.end() > 0);
    }
}

TEST_CASE("a child of a process that uses a GPU is told so", "[runtime][threads]") {
    if (emulator_skipped() || children_left_out()) return;
    const Shared n = shared(Array(std::int64_t{0}), "n");
    const Expr i = lscalar("i");
    Function count = function({i}, {}, {.updates = {{n, n + 1 + i * 0}}, .device = "emulator"});
    Function host = function({}, {n * 2}, {.device = "cpu"});
    Function apart = function({i}, {i * 2}, {.device = "cpu"});
    EndlessLoop loop(count);
    REQUIRE(in_a_child([&] {
                const auto told = [](auto&& f) {
                    try {
                        f();
                    } catch (const DeviceError& e) {
                        return std::string(e.what()).find("forked") != std::string::npos;
                    }
                    return false;
                };
                if (!told([&] { count(0); })) return 1;
                if (!told([&] { count.loop(0, 3); })) return 2;
                if (!told([&] { (void)n.get_value(); })) return 3;
                if (!told([&] { host(); })) return 4;
                if (!told([&] { function({i}, {i + 1}, {.device = "emulator"}); })) return 5;
                if (double(apart(std::int64_t{4})) != 8) return 6;
                Shared(n).set_value(Array(std::int64_t{4}));
                if (double(host()) != 8) return 8;
                count = Function();
                return 7;
            }) == 7);
    REQUIRE(loop.end() > 3);
    REQUIRE(n.get_value() > 3.0);
}

TEST_CASE("threads that call, loop, get, set, compile, fork and stop at once", "[core][runtime][threads]") {
    // `n` and `twice` change together, whoever writes them.
    Shared n = shared(Array(std::int64_t{0}), "n"), twice = shared(Array(std::int64_t{0}), "twice"),
           rate = shared(Array(0.5f), "rate");
    const Updates both = {{n, n + 1}, {twice, twice + 2}};
    const Expr i = lscalar("i"), x = matrix("x");
    Random random(9);
    const Shared w = shared(random_array(float32, {30, 20}, random), "w");
    Function count = function({i}, {twice - n * 2 + i * 0}, {.updates = both});
    Function read = function({x}, {tanh(dot(x, w)), twice - n * 2});
    Function train = function({i}, {}, {.updates = {{w, w * (1 - rate * 0) + cast(i * 0, float32)}}});
    const Array rows = random_array(float32, {7, 30}, random);
    const Array expected = read.call({&rows, 1})[0];
    std::atomic<int> wrong{0}, working{6};
    const auto thread = [&](auto&& work) {
        return std::thread([&, work] {
            for (int k = 0; k < 40; ++k) work(k);
            --working;
        });
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
        threads.push_back(thread([&](int) {
            const Results got = read.call({&rows, 1});
            wrong += !same(got[0], expected) || double(got[1]) != 0;
        }));
    threads.push_back(thread([&](int k) {
        const Array all = count.loop(0, 20 + k);
        for (std::int64_t step = 0; step < all.size(); ++step) wrong += all.at(step) != 0;
    }));
    threads.push_back(thread([&](int k) {
        train.loop(0, 5);
        rate.set_value(Array(static_cast<float>(k)));
        wrong += w.get_value().shape() != Dims{30, 20};
    }));
    threads.push_back(thread([&](int k) {
        if (k % 10 == 0) wrong += double(function({i}, {i + n * 0 + 1}, {.device = "cpu"})(k)) != k + 1;
        wrong += read.peak_bytes() <= 0 || count.report().empty();
    }));
    threads.push_back(thread([&](int k) {
        if (k % 10 == 0 && children_are_safe())
            wrong += in_a_child([&] {
                         const Results got = read.call({&rows, 1});
                         return same(got[0], expected) && double(got[1]) == 0 ? 7 : 1;
                     }) != 7;
        count(k);
    }));
    {
        EndlessLoop endless_loop(function({i}, {}, {.updates = both, .on_unused_input = OnUnused::ignore}));
        while (working > 0) {
            wrong += n.get_value().item<std::int64_t>() < 0;
            std::this_thread::yield();
        }
    }
    for (std::thread& t : threads) t.join();
    REQUIRE(wrong == 0);
    REQUIRE(twice.get_value().item<std::int64_t>() == 2 * n.get_value().item<std::int64_t>());
}
