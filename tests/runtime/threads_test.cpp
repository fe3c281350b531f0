// Several threads: calls that read run side by side, those that write take turns, loops let others in between
// their steps, a fork waits for a step.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "graph/ir/shared.h"
#include "runtime/exec/device.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/small_network.h"
#include "tests/support/threads.h"
#include "tests/support/without_memory.h"

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

std::vector<std::string> devices() {
    std::vector<std::string> list{"cpu", "reference"};
    if (!emulator_skipped()) list.emplace_back("emulator");
    return list;
}

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
    Threads other;
    other.add([&] { call(a); });
    call(b);
    other.join();
    REQUIRE(inside == 2);
}

TEST_CASE("any number of loops of one function let others in", "[core][runtime][threads]") {
    constexpr int most = 140;
    const Shared n = shared(Array(std::int64_t{0}), "n");
    const Expr i = lscalar("i");
    Function count = function({i}, {}, {.updates = {{n, n + 1 + i * 0}}});
    std::atomic<int> begun{0};
    Threads loops;
    const StopToken stop;
    struct Stops {
        const StopToken& token;
        ~Stops() { token.request(); }
    } const stops{stop};
    for (int t = 0; t < most; ++t)
        loops.add([&] {
            ++begun;
            count.loop(0, endless, stop);
        });
    while (begun < most) std::this_thread::yield();
    double before = n.get_value();
    for (int k = 0; k < 5; ++k) {
        double now = before;
        while (now <= before) now = n.get_value();
        before = now;
        count(std::int64_t{1});
    }
    if (children_are_safe())
        REQUIRE(in_a_child([&] {
                    const auto was = n.get_value().item<std::int64_t>();
                    count.loop(0, 10);
                    return n.get_value().item<std::int64_t>() == was + 10 ? 7 : 1;
                }) == 7);
    stop.request();
    loops.join();
    REQUIRE(double(n.get_value()) > before);
}

TEST_CASE("what ends with a value runs under no lock", "[core][runtime][threads]") {
    for (const std::string device : {"cpu", "reference"}) {
        INFO(device);
        std::atomic<int> ended{0};
        Shared s;
        const auto adopted = [&](float value) {
            void* const memory = std::aligned_alloc(64, 4096);
            std::fill_n(static_cast<float*>(memory), 1024, value);
            return Array::adopt(float32, {100}, std::shared_ptr<void>(memory, [&](void* p) {
                                    // It may use the variable whose value it was.
                                    if (s.shape() == Dims{100} && s.get_value().size() == 100) ++ended;
                                    std::free(p);
                                }));
        };
        s = shared(adopted(1), "s");
        s.set_value(adopted(2));
        REQUIRE(ended == 1);
        const Expr i = lscalar("i");
        Function f = function({i}, {sum(s)}, {.updates = {{s, s + cast(i, float32)}}, .device = device});
        REQUIRE(double(f(std::int64_t{1})) == 200);
        REQUIRE(s.get_value().at(7) == 3);
        s.set_value(adopted(5));
        {
            const Array held = s.get_value();
            f.loop(0, 3);
            REQUIRE(held.at(0) == 5);
        }
        REQUIRE(s.get_value().at(7) == 8);
        s.set_value(zeros({100}));
        REQUIRE(ended == 3);
    }
}

TEST_CASE("a call that waits holds nothing that others wait for, and is passed by once",
          "[core][runtime][threads]") {
    Device& device = device_named("cpu");
    std::vector<SharedPtr> v;
    for (int k = 0; k < 2; ++k) v.push_back(std::make_shared<SharedState>());
    std::sort(v.begin(), v.end());
    const std::vector<SharedUse> first{{v[0], true}}, both{{v[0], true}, {v[1], true}};
    std::atomic<int> order{0};
    std::atomic<int> both_was{0}, again_was{0};
    Threads threads;
    v[1]->turns.lock();
    threads.add([&] {
        const CallLock lock(device, both);
        both_was = ++order;
    });
    while (!v[1]->turns.wanted()) std::this_thread::yield();
    { const CallLock not_held(device, first); }
    threads.add([&] {
        const CallLock lock(device, first);
        again_was = ++order;
    });
    while (TurnLock::all_waiting() < 2 && again_was == 0) std::this_thread::yield();
    v[1]->turns.unlock();
    threads.join();
    REQUIRE(both_was == 1);
    REQUIRE(again_was == 2);
}

TEST_CASE("devices and pools are made without a mutex that forks hold", "[core][runtime][threads]") {
    // Each device has a lock of its own, which a fork may not find half made.
    for (const std::string name : {"cuda:sm_80", "cuda:sm_90", "cuda:sm_90"})
        REQUIRE(device_named(name).name() == name);
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
        Threads threads;
        for (int t = 0; t < 4; ++t)
            threads.add([&, t] {
                for (int k = 0; k < (interpreted ? 5 : 200); ++k) {
                    const auto i = static_cast<std::size_t>(k + t) % inputs.size();
                    const Results got = f.call({&inputs[i], 1});
                    wrong += !same(got[0], expected[i][0]) || !same(got[1], expected[i][1]);
                }
            });
        threads.join();
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
        Threads threads;
        for (int t = 0; t < 2; ++t)
            threads.add([&] {
                for (int k = 0; k < 50; ++k) count();
            });
        threads.add([&] {
            const Array all = counts.loop(0, 200);
            for (std::int64_t k = 0; k < all.size(); ++k) wrong += all.at(k) != 0;
        });
        threads.add([&] {
            for (int k = 0; k < 50; ++k) wrong += double(look()) != 0;
        });
        threads.join();
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
        Threads others(&ended);
        for (int t = 0; t < 2; ++t)
            others.add([&] {
                while (!ended) {
                    waits();
                    (void)n.get_value();
                }
            });
        std::vector<std::int64_t> values;
        for (std::int64_t k = 0; k < steps; ++k) values.push_back(k % 7);
        const Array all = f.loop(values);
        others.join();
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
    Threads loops, joiner;
    for (int t = 0; t < 2; ++t)
        loops.add([&] {
            ++running;
            f.loop(0, endless);
        });
    while (running < 2 || f.steps_done() < 3) std::this_thread::yield();
    // The second may not have begun yet: then the next request is its own.
    std::atomic<int> ended{0};
    joiner.add([&] {
        loops.join();
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
        Threads others(&stop);
        others.add([&] {
            while (!stop) f(1.0f);
        });
        others.add([&] {
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
        others.join();
        REQUIRE(loop.end() > 0);
    }
}

TEST_CASE("the first call in a thread without memory is a result or an error", "[runtime][threads]") {
    if (!std::string(BITALE_SANITIZE).empty()) return;  // sanitizers need memory of their own
    const Expr x = vector("x");
    const Shared w = shared(Array(std::vector<float>{1, 2, 3}), "w");
    Function f = function({x}, x * w, {.updates = {{w, w + 1}}, .device = "cpu"});
    const std::vector<Array> arguments{Array(std::vector<float>{1, 1, 1})};
    f.call(arguments);
    const pid_t child = fork();
    if (child == 0) {
        enum { result, refused };
        const int outcome = in_a_thread_without_memory([&] {
            try {
                f.call(arguments);
            } catch (const OutOfMemory&) {
                return refused;
            }
            return result;
        });
        _exit(w.get_value().at(0) == (outcome == refused ? 2 : 3) ? 7 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
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
    Threads threads;
    const auto thread = [&](auto&& work) {
        threads.add([&, work] {
            for (int k = 0; k < 40; ++k) work(k);
            --working;
        });
    };
    for (int t = 0; t < 2; ++t)
        thread([&](int) {
            const Results got = read.call({&rows, 1});
            wrong += !same(got[0], expected) || double(got[1]) != 0;
        });
    thread([&](int k) {
        const Array all = count.loop(0, 20 + k);
        for (std::int64_t step = 0; step < all.size(); ++step) wrong += all.at(step) != 0;
    });
    thread([&](int k) {
        train.loop(0, 5);
        rate.set_value(Array(static_cast<float>(k)));
        wrong += w.get_value().shape() != Dims{30, 20};
    });
    thread([&](int k) {
        if (k % 10 == 0) wrong += double(function({i}, {i + n * 0 + 1}, {.device = "cpu"})(k)) != k + 1;
        wrong += read.peak_bytes() <= 0 || count.report().empty();
    });
    thread([&](int k) {
        if (k % 10 == 0 && children_are_safe())
            wrong += in_a_child([&] {
                         const Results got = read.call({&rows, 1});
                         return same(got[0], expected) && double(got[1]) == 0 ? 7 : 1;
                     }) != 7;
        count(k);
    });
    {
        EndlessLoop endless_loop(function({i}, {}, {.updates = both, .on_unused_input = OnUnused::ignore}));
        while (working > 0) {
            wrong += n.get_value().item<std::int64_t>() < 0;
            std::this_thread::yield();
        }
    }
    threads.join();
    REQUIRE(wrong == 0);
    REQUIRE(twice.get_value().item<std::int64_t>() == 2 * n.get_value().item<std::int64_t>());
}

TEST_CASE("a child of a process that uses one GPU can use no other", "[runtime][threads]") {
    if (emulator_skipped() || children_left_out()) return;
    Options two = options();
    two.emulator_devices = 2;
    const ScopedOptions scope(two);
    const Expr x = scalar("x");
    const Function here = function({x}, {x + 1}, {.device = "emulator"});
    const auto in_child = [&](const char* device) {
        return in_a_child([&] {
            try {
                function({x}, {x * 2}, {.device = device});
            } catch (const DeviceError& e) {
                const std::string words = e.what();
                return words.find("forked") != std::string::npos &&
                               words.find("fork before") != std::string::npos
                           ? 7
                           : 2;
            }
            return 1;
        });
    };
    CHECK(in_child("emulator:1") == 7);  // which the parent has not asked for
    function({x}, {x + 1}, {.device = "emulator:1"});
    CHECK(in_child("emulator:1") == 7);
    CHECK(in_child("cpu") == 1);
}
