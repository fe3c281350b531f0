// Steps and loops as one launch: the same bits as launches one by one, on every rung of the ladder.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/emulator/stream.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/cuda/slices.h"
#include "runtime/state.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/nets.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// A GPU's library adds products in an order of its own.
Tolerance by_tested_gpu() { return on_emulator() ? Tolerance{} : by_library; }

class Rung {
  public:
    explicit Rung(Options::Graphs graphs)
        : scope_([&] {
              Options o = options();
              o.graphs = graphs;
              return o;
          }()) {}

  private:
    ScopedOptions scope_;
};
const Options::Graphs rungs[] = {Options::Graphs::off, Options::Graphs::step, Options::Graphs::loop};

// A small network by hand: minibatches of a shuffled data set, the last one partial.
struct Small {
    static constexpr std::int64_t images = 23, batch = 5;
    Shared w, moment;
    Function step;
    explicit Small(const std::string& device, DType index = int64) {
        Random random(3);
        const Shared x = shared(random_array(uint8, {images, 6}, random, 0, 255), "x"),
                     order = shared(permutation(images, 5), "order");
        w = shared(random_array(float32, {6, 3}, random), "w");
        moment = shared(zeros({6, 3}), "moment");
        const Expr i = scalar("i", index);
        const Expr rows = gather(x, order[Slice{i * batch, (i + 1) * batch}]);
        const Expr loss = mean(sqr(dot(cast(rows, float32) / 255, w)));
        const Updates updates = {{moment, moment * 0.9f + grad(loss, w)}, {w, w - moment * 0.1f}};
        step = function({i}, {loss, max(rows, {0}), w},
                        {.updates = updates, .name = "small_step", .device = device});
    }
};

void compare(const Results& got, const Results& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
        INFO("result " << k);
        CHECK(difference(got[k], expected[k]) == "");
    }
}

int nodes_in(const std::string& report) {
    std::smatch found;
    return std::regex_search(report, found, std::regex("a step is (\\d+) nodes")) ? std::stoi(found[1]) : -1;
}

}  // namespace

TEST_CASE("graphs give the bits of single launches and of the CPU") {
    if (tested_gpu_skipped()) return;
    Small cpu("cpu");
    const std::vector<std::int64_t> shuffled = {3, 0, 2, 1}, again = {2, 1};
    const Results first = cpu.step.loop(0, 4), second = cpu.step.loop(shuffled), third = cpu.step(2),
                  fourth = cpu.step.loop(again);
    for (const Options::Graphs graphs : rungs) {
        const Rung scope(graphs);
        INFO("graphs " << static_cast<int>(graphs));
        Small there(tested_gpu()), other(tested_gpu());
        CHECK_THAT(there.step.report(Detail::complete), ContainsSubstring("launches: none yet"));
        // Calls before loops, and the other way round.
        other.step(0);
        other.step(1);
        compare(other.step.loop(std::vector<std::int64_t>{2, 3, 4}), [&] {
            Small alone("cpu");
            alone.step.loop(0, 2);
            return alone.step.loop(std::vector<std::int64_t>{2, 3, 4});
        }());
        compare(there.step.loop(0, 4), first);
        compare(there.step.loop(shuffled), second);
        compare(there.step(2), third);
        compare(there.step.loop(again), fourth);
        CHECK(there.step.steps_done() == 2);
        CHECK(difference(there.w.get_value(), cpu.w.get_value()) == "");
        CHECK(difference(there.moment.get_value(), cpu.moment.get_value()) == "");
        const std::string report = there.step.report(Detail::complete);
        if (graphs == Options::Graphs::off)
            CHECK_THAT(report, ContainsSubstring("not more, because of graphs=off"));
        else
            CHECK(nodes_in(report) > 0);
        CHECK((report.find("WHILE") != std::string::npos) == (graphs == Options::Graphs::loop));
        if (graphs == Options::Graphs::step)
            CHECK_THAT(report, ContainsSubstring("not more, because of graphs=step"));
    }
}

TEST_CASE("a call is one launch, and so is a loop over minibatches of one size") {
    if (left_out()) return;
    cuda::set_longest_launch(std::chrono::hours(1000));  // however slow the machine is
    Small net("emulator");
    net.step.loop(0, 5);
    net.step.loop(0, 5);
    net.step(0);
    const auto launches = [&](auto&& run) {
        const cuda::LaunchCount before = cuda::launches_so_far();
        run();
        const cuda::LaunchCount after = cuda::launches_so_far();
        return cuda::LaunchCount{after.kernels - before.kernels, after.graphs - before.graphs};
    };
    CHECK(launches([&] { net.step(3); }) == cuda::LaunchCount{0, 1});
    CHECK(launches([&] { net.step.loop(0, 4); }) == cuda::LaunchCount{0, 1});
    CHECK(launches([&] { net.step.loop(std::vector<std::int64_t>{3, 1, 2}); }) == cuda::LaunchCount{0, 1});
    CHECK(launches([&] { net.step.loop(0, 5); }) == cuda::LaunchCount{0, 2});  // the last one is partial
    const Rung scope(Options::Graphs::step);
    net.step.loop(0, 5);
    CHECK(launches([&] { net.step.loop(0, 5); }) == cuda::LaunchCount{0, 5});
    cuda::set_longest_launch(std::chrono::milliseconds(10));
}

TEST_CASE("a partial minibatch runs between and after the others, and results of any size are collected") {
    if (tested_gpu_skipped()) return;
    Random random(4);
    const Shared x = shared(random_array(float32, {23, 9000}, random), "x"),
                 bytes = shared(Array(uint8, {23, 3}), "bytes"), sum_so_far = shared(zeros({9000}), "sum");
    const auto make = [&](const char* device, DType index) {
        const Expr i = scalar("i", index);
        const Expr rows = x[Slice{i * 5, (i + 1) * 5}];
        // 36 KB: more than one block copies; and a result whose rows are not whole words.
        return function({i},
                        {sum(rows, {0}), sum(rows, {0}) * 2, sum(sqr(rows)),
                         max(bytes[Slice{i * 5, (i + 1) * 5}], {0}) + cast(i, uint8)},
                        {.updates = {{sum_so_far, sum_so_far + sum(rows, {0})}}, .device = device});
    };
    const std::vector<std::int64_t> order = {0, 4, 1, 2, 3, 4, 4, 0};
    Function cpu = make("cpu", int64);
    const Results expected = cpu.loop(order);
    const Array sum = sum_so_far.get_value();
    for (const Options::Graphs graphs : rungs)
        for (const DType index : {int64, int32, uint8}) {
            const Rung scope(graphs);
            Shared(sum_so_far).set_value(zeros({9000}));
            Function there = make(tested_gpu(), index);
            compare(there.loop(order), expected);
            CHECK(difference(sum_so_far.get_value(), sum) == "");
        }
}

TEST_CASE("a loop with results of different shapes stops before the step") {
    if (tested_gpu_skipped()) return;
    const Shared x = shared(Array(float32, {8, 2}), "x"), n = shared(Array(0.0f), "n");
    const Expr i = lscalar("i");
    Function f = function({i}, {x[Slice{i * 3, (i + 1) * 3}]},
                          {.updates = {{n, n + 1}}, .name = "rows", .device = tested_gpu()});
    CHECK_THROWS_WITH(f.loop(0, 3), ContainsSubstring("output 0 has the shape [2, 2] in this step") &&
                                        ContainsSubstring("in step 2"));
    CHECK(n.get_value().at(0) == 2);
}

TEST_CASE("a step that fails within a loop is named, and changes nothing") {
    if (tested_gpu_skipped()) return;
    for (const Options::Graphs graphs : rungs) {
        const Rung scope(graphs);
        const Shared table = shared(Array(std::vector<float>{1, 2, 3}), "table"),
                     total = shared(Array(0.0f), "total"), before = shared(Array(0.0f), "before");
        const Expr i = lscalar("i");
        Function f = function({i}, {gather(table, i)},
                              {.updates = {{total, total + gather(table, i)}, {before, total}},
                               .name = "pick",
                               .device = tested_gpu()});
        std::vector<std::int64_t> values(40, 1);
        values[20] = 3;
        for (int twice = 0; twice < 2; ++twice) {
            Shared(total).set_value(Array(0.0f));
            CHECK_THROWS_WITH(f.loop(values), ContainsSubstring("in step 20 of the loop") &&
                                                  ContainsSubstring("argument is 3"));
            CHECK(f.steps_done() == 20);
            CHECK(total.get_value().at(0) == 40);
            CHECK(before.get_value().at(0) == 38);
        }
        CHECK(f.loop(0, 3)[0].at(2) == 3);
    }
}

TEST_CASE("a library's result becomes a shared variable's value only after the checks") {
    if (tested_gpu_skipped()) return;
    Random random(6);
    const Shared a = shared(random_array(float32, {256, 256}, random), "a"),
                 w = shared(random_array(float32, {256, 256}, random), "w");
    const Shared table = shared(Array(std::vector<float>{1, 2, 3}), "table");
    const Array before = w.get_value();
    const Expr i = lscalar("i");
    const auto make = [&](const char* device) {
        return function({i}, {gather(table, i)},
                        {.updates = {{w, dot(a, w)}}, .name = "product", .device = device});
    };
    Function cpu = make("cpu");
    cpu(0);
    cpu(1);
    const Array twice = w.get_value();
    for (const Options::Graphs graphs : rungs) {
        const Rung scope(graphs);
        Shared(w).set_value(before);
        Function f = make(tested_gpu());
        CHECK_THROWS_AS(f(3), IndexError);
        CHECK(difference(w.get_value(), before) == "");
        CHECK_THROWS_AS(f.loop(std::vector<std::int64_t>{0, 1, 5, 2, 0}), IndexError);
        CHECK(difference(w.get_value(), twice, by_tested_gpu()) == "");
    }
}

TEST_CASE("a copy that ends a step looks at the error word too") {
    if (tested_gpu_skipped()) return;
    Random random(7);
    const Shared data = shared(random_array(float32, {300, 256}, random), "data"),
                 b = shared(random_array(float32, {256, 256}, random), "b"),
                 w = shared(zeros({256, 256}), "w");
    Array places = permutation(1024, 2);
    auto* place = static_cast<std::int64_t*>(places.mutable_data());
    for (int k = 0; k < 1024; ++k) place[k] = k / 256 == 2 ? 290 + k % 20 : place[k] % 300;
    const Shared order = shared(places, "order");
    const Expr i = lscalar("i");
    const auto make = [&](const char* device) {
        return function({i}, {},
                        {.updates = {{w, dot(gather(data, order[Slice{i * 256, (i + 1) * 256}]), b)}},
                         .name = "product",
                         .device = device});
    };
    make("cpu")(1);
    const Array expected = w.get_value();
    for (const Options::Graphs graphs : rungs) {
        const Rung scope(graphs);
        Shared(w).set_value(zeros({256, 256}));
        Function f = make(tested_gpu());
        f(1);
        f(2);
        CHECK_THROWS_AS(w.get_value(), IndexError);
        CHECK(difference(w.get_value(), expected, by_tested_gpu()) == "");
        Shared(w).set_value(zeros({256, 256}));
        CHECK_THROWS_WITH(f.loop(std::vector<std::int64_t>{0, 3, 1, 2, 0}), ContainsSubstring("in step 3"));
        CHECK(difference(w.get_value(), expected, by_tested_gpu()) == "");
    }
}

TEST_CASE("a running loop tells its progress, and ends after the step when asked to") {
    if (tested_gpu_skipped()) return;
    for (const Options::Graphs graphs : rungs) {
        const Rung scope(graphs);
        const Shared n = shared(Array(0.0f), "n");
        const Expr i = lscalar("i");
        Function f = function({i}, {cast(i, float32) + n}, {.updates = {{n, n + 1}}, .device = tested_gpu()});
        constexpr std::int64_t steps = 1000000;
        std::atomic<bool> ended{false};
        std::int64_t done = 0;
        std::thread caller([&] {
            done = f.loop(0, steps)[0].shape()[0];
            ended = true;
        });
        while (f.steps_done() < 20 && !ended) std::this_thread::yield();
        f.request_stop();
        caller.join();
        INFO("graphs " << static_cast<int>(graphs));
        CHECK(done >= 20);
        CHECK(done < steps);
        CHECK(f.steps_done() == done);
        CHECK(n.get_value().at(0) == static_cast<double>(done));
    }
}

TEST_CASE("a call without results is not waited for; its error comes up at the next read") {
    if (tested_gpu_skipped()) return;
    const Shared table = shared(Array(std::vector<float>{1, 2, 3}), "table"), n = shared(Array(0.0f), "n");
    const Expr i = lscalar("i");
    Function add =
        function({i}, {}, {.updates = {{n, n + gather(table, i)}}, .name = "add", .device = tested_gpu()});
    Function look = function({}, {n * 1}, {.name = "look", .device = tested_gpu()});
    for (int k = 0; k < 5; ++k) add(1);
    CHECK(n.get_value().at(0) == 10);
    add(2);
    add(7);  // fails, unseen
    add(2);  // and this changes nothing
    CHECK_THROWS_WITH(n.get_value(), ContainsSubstring("7") && ContainsSubstring("earlier call of add") &&
                                         ContainsSubstring("graphs_test.cpp"));
    CHECK(n.get_value().at(0) == 13);
    add(0);
    CHECK(double(look()) == 14);
    add(9);
    CHECK_THROWS_AS(look(), IndexError);
    CHECK(double(look()) == 14);
    add(9);
    add = Function();  // nobody can ask it any more
    CHECK_THROWS_AS(n.get_value(), IndexError);
    CHECK(n.get_value().at(0) == 14);
}

TEST_CASE("large arguments and values pass through pinned memory in pieces") {
    if (tested_gpu_skipped()) return;
    Random random(9);
    const Array large = random_array(float64, {3, 190000}, random);  // 4.6 MB
    const Expr x = matrix("x", float64);
    Function f = function({x}, {x * 2, x[0] + 1}, {.device = tested_gpu()});
    Function g = function({x}, {x * 2, x[0] + 1}, {.device = "cpu"});
    compare(f(large), g(large));
    compare(f(large), g(large));
}

TEST_CASE("steps of the examples are few launches") {
    if (tested_gpu_skipped()) return;
    for (const auto& [name, most] : {std::pair{"logistic", 4}, {"small", 12}}) {
        Net net = make_net(name, {.device = tested_gpu(), .images = 256, .batch = 128, .test_batch = 128});
        net.step(0);
        net.step(1);
        const Program& program = *net.step.state().program;
        int launches = 0;  // a library may need several nodes for its part
        for (const Step& step : program.body.steps) {
            const auto* kernel = std::get_if<KernelStep>(&step.operation);
            launches += kernel ? static_cast<int>(kernel->tasks.size()) : 1;
        }
        INFO(net.step.report(Detail::complete));
        CHECK(launches <= most);
        CHECK(nodes_in(net.step.report(Detail::complete)) >= launches);
    }
}

TEST_CASE("memory that a loop's results take is named when it runs out") {
    if (left_out()) return;
    const Shared x = shared(Array(float32, {50000}), "x");
    const Expr i = lscalar("i");
    Function f = function({i}, {x + cast(i, float32)}, {.name = "many", .device = "emulator"});
    f(1);
    cuda::set_emulated_memory(std::int64_t{4} << 20);
    CHECK_THROWS_WITH(f.loop(0, 100), ContainsSubstring("function \"many\" on emulator") &&
                                          ContainsSubstring("float32 [100, 50000] = 20.0 MB") &&
                                          ContainsSubstring("shared variable \"x\""));
    cuda::set_emulated_memory(0);
    CHECK(f.loop(0, 3)[0].at(100000) == 2);
}

TEST_CASE("functions on one GPU are called from several threads") {
    if (tested_gpu_skipped()) return;
    const Shared n = shared(Array(0.0f), "n");
    const Expr x = scalar("x");
    Function f = function({x}, {x * 2}, {.device = tested_gpu()});
    Function g = function({}, {}, {.updates = {{n, n + 1}}, .device = tested_gpu()});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            Function own = function({x}, {x + 1}, {.device = tested_gpu()});
            for (int k = 0; k < 20; ++k) {
                const double value = t * 100 + k;
                wrong += double(f(static_cast<float>(value))) != value * 2;
                wrong += double(own(static_cast<float>(value))) != value + 1;
                g();
                if (k % 5 == 0) wrong += n.get_value().at(0) < 1;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(n.get_value().at(0) == 80);
}

TEST_CASE("rows of a profile name the user's lines") {
    if (tested_gpu_skipped()) return;
    const Expr x = vector("x");
    Function f = function({x}, sum(exp(x)), {.device = tested_gpu(), .profile = true});
    f(Array(std::vector<float>(1000, 0.5f)));
    CHECK_THAT(f.profile().rows.at(0).where, ContainsSubstring("graphs_test.cpp"));
    CHECK_THAT(f.report(Detail::complete), ContainsSubstring("because of the profile"));
}

namespace {
constexpr const char* child_variable = "BITALE_TEST_BROKEN_DEVICE";
}

TEST_CASE("a process whose GPU fails") {
    if (!std::getenv(child_variable) || left_out()) return;
    const Shared w = shared(Array(1.0f), "w"), v = shared(Array(1.0f), "v");
    const Expr x = scalar("x");
    Function train = function({x}, {}, {.updates = {{w, w * x}}, .name = "train", .device = "emulator"});
    Function other = function({x}, {x + v}, {.name = "other", .device = "emulator"});
    Function cpu = function({x}, {x + v}, {.device = "cpu"}),
             reads = function({}, {w + 1}, {.device = "cpu"});
    train(2.0f);
    CHECK(w.get_value().at(0) == 2);
    cuda::plant_failure("k_");
    train(2.0f);  // nobody sees it yet
    std::string first;
    try {
        w.get_value();
        FAIL("a failed kernel goes unnoticed");
    } catch (const DeviceError& e) {
        first = e.what();
    }
    CHECK_THAT(first, ContainsSubstring("shared variable \"w\" is lost with device emulator") &&
                          ContainsSubstring("kernel k_") && ContainsSubstring("in train") &&
                          ContainsSubstring("not usable any more"));
    const std::string cause =
        first.substr(first.find("waiting for"), first.find("; set_value") - first.find("waiting for"));
    CHECK_THROWS_WITH(other(1.0f), ContainsSubstring(cause));
    CHECK_THROWS_WITH(train(1.0f), ContainsSubstring(cause));
    CHECK_THROWS_WITH(w.get_value(), ContainsSubstring(cause));
    CHECK_THROWS_WITH(reads(), ContainsSubstring(cause));
    CHECK_THROWS_WITH(function({x}, {x * 3}, {.device = "emulator"}), ContainsSubstring(cause));
    CHECK(double(cpu(1.0f)) == 2);
    Shared(w).set_value(Array(5.0f));
    CHECK(w.get_value().at(0) == 5);
    CHECK(double(reads()) == 6);
}

// In a process of its own: what fails once fails there for good.
TEST_CASE("a failure of the GPU stays with it and is told each time") {
    if (std::getenv(child_variable) || left_out()) return;
    const std::string command =
        std::string(child_variable) + "=1 /proc/$PPID/exe 'a process whose GPU fails' > /dev/null";
    CHECK(std::system(command.c_str()) == 0);  // NOLINT(concurrency-mt-unsafe)
}
