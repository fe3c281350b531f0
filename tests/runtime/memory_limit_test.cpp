// Limits of memory: kept to the byte, or refused before anything runs, with words that help.
#include <atomic>
#include <sstream>
#include <thread>

#include "graph/base/memory.h"
#include "graph/base/options.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// Stores the square of n x n, and counts its calls.
struct Squares {
    explicit Squares(const std::string& device, ByteCount limit = {})
        : x(vector("x")), calls(shared(Array(0.0f), "calls")) {
        const Expr square = exp(expand_dims(x, 1) * expand_dims(x, 0));
        f = function(
            {x}, {sum(square / sum(square, {0}), {1})},
            {.updates = {{calls, calls + 1}}, .name = "squares", .device = device, .memory_limit = limit});
    }
    static Array ones(std::int64_t n) { return {std::vector<float>(static_cast<std::size_t>(n), 1)}; }
    std::int64_t peak(std::int64_t n) const { return f.memory_plan({{x, {n}}}).peak_bytes; }
    void check(std::int64_t n) {
        const double before = calls.get_value().at(0);
        for (const double y : Array(f(ones(n))).to_vector<double>()) REQUIRE(y == Approx(1));
        REQUIRE(calls.get_value().at(0) == before + 1);
    }
    void check_refused(std::int64_t n) {
        const double before = calls.get_value().at(0);
        CHECK_THROWS_AS(f(ones(n)), OutOfMemory);
        REQUIRE(calls.get_value().at(0) == before);
    }

    Expr x;
    Shared calls;
    Function f;
};

// "Where the 1691456 bytes go:".
std::int64_t bytes_needed(const std::string& refusal) {
    const std::string before = "\nWhere the ";
    const std::size_t at = refusal.find(before);
    REQUIRE(at != std::string::npos);
    const std::int64_t bytes = std::stoll(refusal.substr(at + before.size()));
    CHECK_THAT(refusal, ContainsSubstring(" (" + std::to_string(bytes) + " bytes)"));
    return bytes;
}

// Of the rows below it: those that begin with a number, others belong to the row above.
std::int64_t sum_of_table(const std::string& refusal) {
    std::istringstream lines(refusal.substr(refusal.find("\nWhere the ") + 1));
    std::int64_t sum = 0;
    std::string line;
    for (std::getline(lines, line); std::getline(lines, line) && line.starts_with("  ");) {
        const std::size_t first = line.find_first_not_of(' '),
                          end = line.find_first_not_of("0123456789", first);
        if (end > first && line.compare(end, 2, "  ") == 0) sum += std::stoll(line.substr(first));
    }
    return sum;
}

}  // namespace

TEST_CASE("bytes are counted in units of 1024") {
    CHECK((1_KiB).bytes == 1024);
    CHECK(512_MiB == ByteCount{std::int64_t{512} << 20});
    CHECK((3_GiB).bytes == std::int64_t{3} << 30);
    CHECK((99999999999999_GiB).bytes == INT64_MAX);
    CHECK(parse_options("memory_limit=1G", nullptr, nullptr).memory_limit == std::int64_t{1} << 30);
    CHECK(parse_options("memory_limit=64MiB", nullptr, nullptr).memory_limit == std::int64_t{64} << 20);
    CHECK(parse_options("memory_limit=3K", nullptr, nullptr).memory_limit == 3072);
    CHECK(parse_options("memory_limit=2TiB", nullptr, nullptr).memory_limit == std::int64_t{2} << 40);
    CHECK(parse_options("memory_limit=32767T", nullptr, nullptr).memory_limit == std::int64_t{32767} << 40);
    CHECK(parse_options("memory_limit=1000", nullptr, nullptr).memory_limit == 1000);
    CHECK(parse_options("memory_limit=0", nullptr, nullptr).memory_limit == 0);
    for (const char* bad :
         {"memory_limit=", "memory_limit=G", "memory_limit=-1", "memory_limit=1X", "memory_limit=1GG",
          "memory_limit=99999999T", "memory_limit=1.5G", "memory_limit=1gb", "memory_limit=99999999TB"})
        CHECK_THAT(error_of([&] { parse_options(bad, nullptr, nullptr); }),
                   ContainsSubstring("memory_limit") &&
                       ContainsSubstring("a number of bytes, such as 1000000, 512MiB or 1GB"));
}

TEST_CASE("flags count MB by 1000, as messages do") {
    CHECK(parse_options("memory_limit=3KB", nullptr, nullptr).memory_limit == 3000);
    CHECK(parse_options("memory_limit=3kB", nullptr, nullptr).memory_limit == 3000);
    CHECK(parse_options("memory_limit=512MB", nullptr, nullptr).memory_limit == 512000000);
    CHECK(parse_options("memory_limit=1GB", nullptr, nullptr).memory_limit == 1000000000);
    CHECK(parse_options("memory_limit=2TB", nullptr, nullptr).memory_limit == 2000000000000);
}

TEST_CASE("a limit of what a call needs passes, and of a byte less is refused before anything is written") {
    for (const std::string device : {"cpu", "emulator"}) {
        if (device == "emulator" && emulator_skipped()) continue;
        const std::int64_t peak = Squares(device).peak(300);
        INFO(device << ": " << peak);
        Squares fits(device, {peak});
        fits.check(300);
        fits.check_refused(301);
        fits.check(299);
        fits.check(300);
        Squares less(device, {peak - 1});
        less.check_refused(300);
        less.check(200);
        less.check_refused(300);
        less.check(20);
    }
}

TEST_CASE("a refusal names the function, the line, the limit, what is short, the buffers and the cure") {
    const unsigned line = __LINE__ + 1;
    Squares f("cpu", 100_KiB);
    const std::int64_t peak = f.peak(300);
    const std::string said = error_of([&] { f.f(Squares::ones(300)); });
    INFO(said << "\nline " << line);
    CHECK_THAT(said, ContainsSubstring("memory_limit_test.cpp:") &&
                         ContainsSubstring("function \"squares\" on cpu") &&
                         ContainsSubstring(std::to_string(peak) + " bytes") &&
                         ContainsSubstring("memory_limit is 102.4 kB") && ContainsSubstring("too little") &&
                         ContainsSubstring("float32 [300, 300] = 360.0 kB") &&
                         ContainsSubstring("exp at memory_limit_test.cpp:") &&
                         ContainsSubstring("Cure: a smaller batch"));
    CHECK(sum_of_table(said) == peak);
    // Of a loop, with the step.
    const Expr i = lscalar("i");
    Function many = function({i}, {Expr(shared(Array(float32, {50000}), "table")) + cast(i, float32)},
                             {.name = "many", .device = "cpu", .memory_limit = 3_MiB});
    CHECK(Results(many.loop(0, 3))[0].size() == 150000);
    CHECK_THAT(error_of([&] { many.loop(0, 100); }), ContainsSubstring("float32 [100, 50000] = 20.0 MB") &&
                                                         ContainsSubstring("shared variable \"table\""));
    CHECK(many.steps_done() <= 3);
}

TEST_CASE("the rows of a refusal add up to the bytes that the call needs") {
    const Expr images = input(float32, {-1, 1, 12, 12}, "images"), x = matrix("x");
    const Shared w = shared(Array(float32, {8, 1, 5, 5}), "w");
    const Expr loss = sum(relu(conv2d(images, w, {.border_mode = half})));
    for (const std::string device : {"cpu", "emulator"}) {
        if (device == "emulator" && emulator_skipped()) continue;
        const FunctionOptions options{.device = device, .memory_limit = 20_KiB};
        FunctionOptions training = options;
        training.updates = sgd(loss, {w}, 0.1);
        Function step = function({images}, loss, training);  // in parts, of several passes
        Function halves = function({x}, max_pool(reshape(x, {-1, 1, 2, 25}), {2, 2}), options);
        Function whole = function({x}, sort(exp(x), 0) + 1, options);
        for (const std::string& said : {error_of([&] {
                                            step(Array(float32, {300, 1, 12, 12}));
                                        }),
                                        error_of([&] {
                                            halves(Array(float32, {100, 100}));
                                        }),
                                        error_of([&] {
                                            whole(Array(float32, {100, 100}));
                                        }),
                                        error_of([&] { Squares("cpu").f(Squares::ones(200000)); })}) {
            INFO(device << ": " << said);
            CHECK_THAT(said, !ContainsSubstring("floordiv") && !ContainsSubstring("\"first row\""));
            CHECK(sum_of_table(said) == bytes_needed(said));
        }
    }
}

TEST_CASE("a limit of so few bytes is taken for MiB in the error") {
    CHECK_THAT(error_of([&] { Squares("cpu", ByteCount{512}).f(Squares::ones(300)); }),
               ContainsSubstring("; the limit counts bytes, write 512_MiB if you mean MiB"));
    CHECK_THAT(error_of([&] { Squares("cpu", 100_KiB).f(Squares::ones(300)); }),
               ContainsSubstring("too little") && !ContainsSubstring("MiB"));
    Options o = options();
    o.memory_limit = 512;
    const ScopedOptions scope(o);
    CHECK_THAT(error_of([] { Squares("cpu", ByteCount{}).f(Squares::ones(300)); }),
               ContainsSubstring("memory_limit in BITALE_FLAGS is 512 bytes; write memory_limit=512MiB"));
}

TEST_CASE("a refusal advises bytes only where floats are given, and says that one row was tried") {
    const Expr bytes = matrix("bytes", uint8), floats = matrix("floats");
    const Shared w = shared(Array(float32, {40}), "w");
    const FunctionOptions options{.device = "cpu", .memory_limit = 2_KiB};
    Function of_bytes = function({bytes}, sum(exp(cast(bytes, float32) * w)), options),
             of_floats = function({floats}, sum(exp(floats * w)), options);
    CHECK_THAT(error_of([&] {
                   of_bytes(Array(uint8, {3000, 40}));
               }),
               ContainsSubstring("too little, even for one row of its batch at a time") &&
                   ContainsSubstring("Cure: a smaller batch, a higher limit"));
    CHECK_THAT(error_of([&] {
                   of_floats(Array(float32, {3000, 40}));
               }),
               ContainsSubstring("Cure: a smaller batch, data kept as bytes and not as floats"));
}

TEST_CASE("what is known not to fit is refused when the function is built") {
    const Shared table = shared(Array(float32, {1000, 100}), "table");
    for (const std::string device : {"cpu", "null", "emulator"}) {
        if (device == "emulator" && emulator_skipped()) continue;
        // Results of parts wait on the host of a GPU.
        CHECK_THAT(error_of([&] {
                       function({}, {Expr(table) * 2},
                                {.name = "twice",
                                 .device = device,
                                 .memory_limit = device == "emulator" ? 380_KiB : 700_KiB});
                   }),
                   ContainsSubstring("function \"twice\"") && ContainsSubstring("too little") &&
                       ContainsSubstring("float32 [1000, 100] = 400.0 kB"));
        function({}, {Expr(table) * 2}, {.device = device, .memory_limit = 2_MiB});
    }
    CHECK_THAT(
        error_of([&] { function({}, {Expr(table) * 2}, {.device = "reference", .memory_limit = 1_GiB}); }),
        ContainsSubstring("cannot be kept on device reference"));
    CHECK_THAT(error_of([&] { function({}, {Expr(table) * 2}, {.memory_limit = ByteCount{-5}}); }),
               ContainsSubstring("negative"));
}

TEST_CASE("less limit never takes more, and what is alive stays within it") {
    std::int64_t before = INT64_MAX;
    for (const ByteCount limit : {4_MiB, 2_MiB, 1_MiB, 500_KiB, 370_KiB, 100_KiB, 10_KiB}) {
        Squares f("cpu", limit);
        trim_host_memory();
        host_ledger().forget_most();
        const std::int64_t alive = host_ledger().now();
        std::int64_t most = -1;
        for (const std::int64_t n : {300, 100, 500, 50}) {
            const Array argument = Squares::ones(n);
            try {
                f.f(argument);
                most = std::max(most, host_ledger().most() - alive);
            } catch (const OutOfMemory&) {
            }
        }
        INFO(limit.bytes);
        CHECK(most <= limit.bytes);
        CHECK(most <= before);
        before = most;
    }
}

TEST_CASE("an arena that larger arguments left makes room for others") {
    // A large arena with a small argument, then a large argument with a small arena.
    const Expr x = vector("x"), y = vector("y");
    const Expr square = exp(expand_dims(x, 1) * expand_dims(x, 0));
    const auto made = [&](ByteCount limit) {
        return function({x, y}, {sum(square / sum(square, {0}), {1}), sum(y)},
                        {.device = "cpu", .memory_limit = limit});
    };
    const Function free = made({});
    const std::int64_t first = free.memory_plan({{x, {300}}, {y, {10}}}).peak_bytes,
                       second = free.memory_plan({{x, {10}}, {y, {90000}}}).peak_bytes;
    Function f = made({std::max(first, second)});
    const Array small = Squares::ones(10), large = Squares::ones(300), many = Squares::ones(90000);
    trim_host_memory();
    const std::int64_t alive = host_ledger().now();
    for (int i = 0; i < 3; ++i) {
        f(large, small);
        CHECK(host_ledger().now() - alive > 300000);
        f(small, many);
        CHECK(host_ledger().now() - alive < 50000);
    }
}

TEST_CASE("the limit of a device counts all that is alive") {
    Squares a("cpu"), b("cpu");
    trim_host_memory();
    const std::int64_t alive = host_ledger().now(), each = a.f.memory_plan({{a.x, {400}}}).arena_bytes;
    {
        const ScopedOptions scope = with_limit(alive + each + each / 2);
        Array held = ones({each / 4});
        const std::string said = error_of([&] { b.f(Squares::ones(400)); });
        CHECK_THAT(said, ContainsSubstring("function \"squares\" on cpu") &&
                             ContainsSubstring("memory_limit in BITALE_FLAGS") &&
                             ContainsSubstring("float32 [400, 400] = 640.0 kB") && ContainsSubstring("Cure"));
        CHECK(b.calls.get_value().at(0) == 0);
        held = Array();
        a.check(400);
        b.check(200);
        b.check(400);  // where a's arena was
        a.check(400);
        CHECK(host_ledger().now() <= alive + each + each / 2);
    }
    b.check(500);
}

TEST_CASE("the limit of an emulated GPU counts all that is alive there") {
    if (emulator_skipped()) return;
    Squares a("emulator"), b("emulator");
    a.check(10);
    b.check(10);
    const std::int64_t alive = a.f.state().executable->ledger()->now();
    {
        const ScopedOptions scope = with_limit(alive + 1000000);
        a.check(400);
        CHECK_THAT(error_of([&] { b.f(Squares::ones(400)); }),
                   ContainsSubstring("function \"squares\" on emulator") &&
                       ContainsSubstring("memory_limit in BITALE_FLAGS") &&
                       ContainsSubstring("float32 [400, 400] = 640.0 kB"));
        b.check(100);
    }
    b.check(400);
}

TEST_CASE("threads keep the limit of their device together") {
    const Expr x = vector("x");
    const Expr square = exp(expand_dims(x, 1) * expand_dims(x, 0));
    Function f = function({x}, {sum(square / sum(square, {0}), {1})}, {.device = "cpu"});
    f(Squares::ones(10));
    trim_host_memory();
    const std::int64_t arena = f.memory_plan({{x, {300}}}).arena_bytes;
    const std::int64_t limit = host_ledger().now() + 2 * arena + arena / 2;
    const ScopedOptions scope = with_limit(limit);
    host_ledger().forget_most();
    std::atomic<int> wrong{0}, done{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            const Array ones = Squares::ones(300);
            for (int k = 0; k < 20; ++k) {
                try {
                    const Array y = f(ones);
                    ++done;
                    if (std::abs(y.at(7) - 1) > 1e-5) ++wrong;
                } catch (const OutOfMemory&) {
                } catch (...) {
                    ++wrong;
                }
            }
        });
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
    CHECK(done > 0);
    CHECK(host_ledger().most() <= limit + 4 * 2048);  // arguments are the caller's
}

TEST_CASE("without a limit too, want of memory names the buffers") {
    Squares f("cpu");
    const std::string said = error_of([&] { f.f(Squares::ones(200000)); });  // 160 GB
    CHECK_THAT(said, ContainsSubstring("function \"squares\" on cpu: no memory for intermediate values") &&
                         ContainsSubstring("float32 [200000, 200000] = 160.0 GB") &&
                         ContainsSubstring("exp at memory_limit_test.cpp:") &&
                         ContainsSubstring("Cure: a smaller batch"));
    f.check(100);
}

namespace {

// What is alive at most while `f` runs.
template <class F>
std::int64_t most_alive(F&& f) {
    trim_host_memory();
    host_ledger().forget_most();
    f();
    return host_ledger().most();
}

// A step whose parts add up gradients of megabytes.
struct WideStep {
    explicit WideStep(ByteCount limit = {}) {
        const Expr loss = mean(sqr(dot(tanh(dot(x, w)), v)));
        f = function(
            {x}, loss,
            {.updates = sgd(loss, {w, v}, 0.1), .name = "step", .device = "cpu", .memory_limit = limit});
    }
    static Array rows(std::int64_t n) { return ones({n, 200}); }
    Expr x = input(float32, {-1, 200}, "x");
    Shared w = shared(zeros({200, 600}), "w"), v = shared(zeros({600, 10}), "v");
    Function f;
};

constexpr std::int64_t beside_plans = 2048;  // numbers of the call itself

}  // namespace

TEST_CASE("totals of a call in parts make room for the next call at once") {
    constexpr std::int64_t few = 1500, many = 4000;
    const std::int64_t before = host_ledger().now();
    const std::int64_t limit = [] {
        const WideStep step;
        return step.f.memory_plan({{step.x, {few, 200}}}).peak_bytes;
    }();
    WideStep step(ByteCount{limit});
    const Array large = WideStep::rows(many), small = WideStep::rows(few);
    for (int round = 0; round < 2; ++round) {
        step.f(large);
        CHECK(step.f.memory_plan().micro_batch > 0);
        CHECK(most_alive([&] { step.f(small); }) - before - large.bytes() <= limit + beside_plans);
        CHECK(step.f.memory_plan().micro_batch == 0);
    }
}

TEST_CASE("workspaces of products that fewer rows have left make room") {
    const Expr x = input(float64, {-1, 784}, "x");
    const auto make = [&](std::int64_t limit) {
        const Shared w = shared(zeros({784, 500}).as(float64), "w"),
                     v = shared(zeros({500, 500}).as(float64), "v");
        return function({x}, mean(dot(tanh(dot(x, w)), v)),
                        {.name = "means", .device = "cpu", .memory_limit = ByteCount{limit}});
    };
    std::int64_t limit = 0;
    {
        const Function plain = make(0);
        limit = plain.memory_plan({{x, {512, 784}}}).peak_bytes;
    }
    const Array large = ones({512, 784}).as(float64);
    for (const std::int64_t first : {512, 400, 257, 100}) {
        const std::int64_t before = host_ledger().now();
        Function f = make(limit);
        f(ones({first, 784}).as(float64));
        INFO("after " << first << " rows");
        CHECK(most_alive([&] { f(large); }) - before + large.bytes() <= limit + beside_plans);
    }
}

TEST_CASE("the plan of a minibatch that is computed in parts is that of a whole one after a short one") {
    const Shared data = shared(zeros({149, 200}), "data"), w = shared(zeros({200, 500}), "w");
    const Expr i = lscalar("i"), x = matrix("x");
    const auto make = [&](std::int64_t limit) {
        return function({i}, mean(sqr(tanh(dot(x, w)))),
                        {.givens = {{x, Expr(data)[Slice{i * 64, (i + 1) * 64}]}},
                         .name = "means",
                         .device = "cpu",
                         .memory_limit = ByteCount{limit}});
    };
    Function plain = make(0);
    plain(0);
    Function f = make(plain.memory_plan().peak_bytes - 30000);
    f(0);
    const MemoryPlan whole = f.memory_plan();
    CHECK(whole.micro_batch > 21);
    f(2);  // 21 rows
    CHECK(f.memory_plan().micro_batch == whole.micro_batch);
    CHECK(f.memory_plan().peak_bytes == whole.peak_bytes);
}
