// autotune=on: what is measured, what is remembered, and what becomes of the results. Times are those that a
// test makes up.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bitale/function.h"
#include "bitale/io.h"
#include "bitale/ops.h"
#include "graph/base/options.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cpu/gemm.h"
#include "runtime/tune/choices.h"
#include "runtime/tune/measure.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// Every candidate runs once; the favourite takes 1 us, the others 2.
class Stopwatch {
  public:
    explicit Stopwatch(std::string favourite)
        : favourite_(std::move(favourite)), scope_([this](const std::vector<Candidate>& candidates) {
              ++measurements;
              std::vector<double> seconds;
              for (const Candidate& c : candidates) {
                  c.run();
                  seconds.push_back(c.name == favourite_ ? 1e-6 : 2e-6);
              }
              return seconds;
          }) {}
    int measurements = 0;

  private:
    std::string favourite_;
    ScopedMeasure scope_;
};

Options tuned(const std::string& cache) {
    Options o = options();
    o.cache_directory = cache;
    o.autotune = true;
    return o;
}

bool by_library(const Function& f) {
    return std::any_of(f.kernels().begin(), f.kernels().end(), [](const Kernel& k) { return k.by_library; });
}

Function product(std::optional<std::int64_t> rows = 48) {
    const Expr a = rows ? input(float32, {*rows, 96}, "a") : matrix("a"), b = input(float32, {96, 32}, "b"),
               c = input(float32, Dims{32}, "c");
    return function({a, b, c}, tanh(dot(a * 2, b) + c), {.name = "product", .device = "cpu"});
}

void check_product(Function& f, std::int64_t rows) {
    Random random(3);
    const Array a = random_array(float32, {rows, 96}, random, -1, 1),
                b = random_array(float32, {96, 32}, random, -1, 1),
                c = random_array(float32, {32}, random, -1, 1);
    const Array y = f(a, b, c);
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < 32; ++j) {
            double sum = c.at(j);
            for (std::int64_t k = 0; k < 96; ++k) sum += 2 * a.at(i * 96 + k) * b.at(k * 32 + j);
            REQUIRE(y.at(i * 32 + j) == Approx(std::tanh(sum)).margin(1e-5));
        }
}

// The entries of the cache that are choices.
std::vector<std::string> choices_in(const std::string& cache) {
    std::vector<std::string> keys;
    for (const auto& file : std::filesystem::directory_iterator(cache))
        if (file.path().extension() == ".so" &&
            text_of_file(file.path().string()).starts_with("bitale-choice-"))
            keys.push_back(file.path().stem().string());
    return keys;
}

bool has_library() {
    if (gemm_library().present) return true;
    WARN("left out: " + gemm_library().name);
    return false;
}

}  // namespace

TEST_CASE("the faster way is taken, and the report says what was measured", "[core][runtime][autotune]") {
    if (!has_library()) return;
    for (const std::string favourite : {"library", "generated"}) {
        const TemporaryFolder folder;
        const ScopedOptions scope(tuned(folder / "cache"));
        Stopwatch watch(favourite);
        Function f = product();
        CHECK(watch.measurements == 1);
        CHECK(by_library(f) == (favourite == "library"));
        CHECK_THAT(f.report(Detail::complete),
                   ContainsSubstring(favourite + " 1.00 us") &&
                       ContainsSubstring("autotune: 1 choices measured, 0 remembered"));
        check_product(f, 48);
        CHECK(watch.measurements == 1);
    }
}

TEST_CASE("without autotune nothing is measured", "[core][runtime][autotune]") {
    const TemporaryFolder folder;
    Options o = tuned(folder / "cache");
    o.autotune = false;
    const ScopedOptions scope(o);
    Stopwatch watch("generated");
    Function f = product();
    check_product(f, 48);
    CHECK(watch.measurements == 0);
    CHECK_THAT(f.report(Detail::complete), !ContainsSubstring("autotune: "));
    // A function may ask for itself, or ask for nothing.
    const Expr a = input(float32, {40, 64}, "a");
    const auto asking = [&](bool autotune) {
        return function({a}, dot(a, transpose(a)), {.device = "cpu", .autotune = autotune});
    };
    CHECK_THAT(asking(true).report(Detail::complete), ContainsSubstring("autotune: "));
    CHECK(watch.measurements == (gemm_library().present ? 1 : 0));
    CHECK_THAT(asking(false).report(Detail::complete), !ContainsSubstring("autotune: "));
}

TEST_CASE("a choice is remembered on disk, whatever the number of threads", "[core][runtime][autotune]") {
    if (!has_library()) return;
    const TemporaryFolder folder;
    Options o = tuned(folder / "cache");
    Stopwatch watch("generated");
    for (const int threads : {2, 1, 0}) {
        o.threads = threads;
        const ScopedOptions scope(o);
        forget_choices();  // as a new process
        Function f = product();
        CHECK(watch.measurements == 1);
        CHECK_FALSE(by_library(f));
        check_product(f, 48);
        if (threads == 2) continue;
        CHECK(f.compiler_runs() == 0);
        CHECK_THAT(f.report(Detail::complete), ContainsSubstring("0 choices measured, 1 remembered") &&
                                                   ContainsSubstring("generated 1.00 us"));
    }
    CHECK(choices_in(folder / "cache").size() == 1);
    // Another shape is another question, and so is another target.
    const ScopedOptions scope(o);
    Function other = product(56);
    CHECK(watch.measurements == 2);
    o.mode = Options::Mode::fast_compile;
    const ScopedOptions fast(o);
    Function shorter = product();
    CHECK(watch.measurements == 3);
}

// The other half of the next test; alone it does nothing.
TEST_CASE("autotune in a process of its own", "[core][runtime][autotune]") {
    const char* out = std::getenv("BITALE_TEST_AUTOTUNE_REPORT");
    if (!out) return;
    Function f = product();
    check_product(f, 48);
    write_file(out, std::to_string(f.compiler_runs()) + " compiler runs\n" + f.report(Detail::complete));
}

TEST_CASE("a second process measures nothing", "[core][runtime][autotune]") {
    if (!has_library()) return;
    const TemporaryFolder folder;
    std::array<char, 4096> self{};
    REQUIRE(readlink("/proc/self/exe", self.data(), self.size() - 1) > 0);
    const ScopedVariable flags("BITALE_FLAGS", "autotune=on,cache_dir=" + (folder / "cache"));
    const ScopedVariable report("BITALE_TEST_AUTOTUNE_REPORT", folder / "report");
    const std::string command =
        "'" + std::string(self.data()) + "' 'autotune in a process of its own' > /dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
    const std::string first = text_of_file(folder / "report");
    CHECK_THAT(first, ContainsSubstring("1 choices measured, 0 remembered"));
    REQUIRE(std::system(command.c_str()) == 0);
    const std::string second = text_of_file(folder / "report");
    CHECK_THAT(second, ContainsSubstring("0 choices measured, 1 remembered") &&
                           ContainsSubstring("remembered (estimates") &&
                           ContainsSubstring("0 compiler runs"));
    // The same choice, and the times of the first process.
    const auto times = [](const std::string& text) {
        const std::size_t at = text.find("autotuned: ");
        return text.substr(at, text.find(" on one core", at) - at);
    };
    CHECK(times(first) == times(second));
}

TEST_CASE("damaged choices are measured again", "[core][runtime][autotune]") {
    if (!has_library()) return;
    const TemporaryFolder folder;
    const std::string cache = folder / "cache";
    const ScopedOptions scope(tuned(cache));
    Stopwatch watch("generated");
    product();
    const std::vector<std::string> keys = choices_in(cache);
    REQUIRE(keys.size() == 1);
    const std::string file = cache + "/" + keys[0] + ".so";
    const std::string good = text_of_file(file);
    const auto measured_again = [&] {
        const int before = watch.measurements;
        forget_choices();
        Function f = product();
        check_product(f, 48);
        CHECK_FALSE(by_library(f));
        const bool again = watch.measurements == before + 1;
        CHECK(again ==
              (f.report(Detail::complete).find("the choice on disk was damaged") != std::string::npos));
        return again;
    };
    CHECK_FALSE(measured_again());
    write_file(file, good.substr(0, good.size() / 2));
    CHECK(measured_again());
    CHECK_FALSE(measured_again());
    write_file(file, "");
    CHECK(measured_again());
    // Sealed as it should be, but no choice, or one that this question does not have.
    for (const char* text : {"nonsense", "bitale-choice-1\nchosen winners\n1e-6 generated\n1e-6 library\n",
                             "bitale-choice-1\nchosen library\n1e-6 generated\n",
                             "bitale-choice-1\nchosen library\n1e-6 generated\n-1 library\n",
                             "bitale-choice-0\nchosen library\n1e-6 generated\n1e-6 library\n"}) {
        INFO(text);
        REQUIRE(DiskCache(cache, 1 << 30).keep(keys[0], text, "").empty());
        CHECK(measured_again());
        CHECK_FALSE(measured_again());
    }
}

TEST_CASE("choices that cannot be kept are made anyway, once a process", "[core][runtime][autotune]") {
    if (!has_library()) return;
    const TemporaryFolder folder;
    write_file(folder / "file", "");
    Options o = tuned(folder / "file");
    const auto check = [&](const std::string& problem) {
        const ScopedOptions scope(o);
        forget_choices();
        Stopwatch watch("generated");
        Function f = product();
        CHECK(watch.measurements == 1);
        CHECK_FALSE(by_library(f));
        CHECK_THAT(
            f.report(Detail::complete),
            ContainsSubstring("choices are not kept for other processes: ") && ContainsSubstring(problem));
        check_product(f, 48);
        Function again = product();
        CHECK(watch.measurements == 1);
        CHECK_THAT(again.report(Detail::complete), ContainsSubstring("0 choices measured, 1 remembered"));
    };
    check("is not a folder");
    o.cache = false;
    check("cache=off");
}

TEST_CASE("lengths that only a call tells are measured there, once", "[core][runtime][autotune]") {
    if (!has_library()) return;
    const TemporaryFolder folder;
    const ScopedOptions scope(tuned(folder / "cache"));
    Stopwatch generated("generated");
    Function f = product(std::nullopt);
    CHECK(generated.measurements == 0);
    CHECK_THAT(f.report(Detail::complete),
               ContainsSubstring("1 by estimates until the first call tells the lengths"));
    const Array wrong(float32, {7, 95});
    CHECK_THROWS_AS(f(wrong, Array(float32, {96, 32}), Array(float32, {32})), ShapeError);
    CHECK(generated.measurements == 0);
    check_product(f, 300);
    CHECK(generated.measurements == 1);
    CHECK_FALSE(by_library(f));
    CHECK_THAT(f.report(Detail::complete), ContainsSubstring("1 choices measured, 0 remembered"));
    // For good: another length is the same function.
    check_product(f, 5);
    CHECK(generated.measurements == 1);
    // The lengths of the first call are part of the question.
    const auto first_call = [&](std::int64_t rows, int measurements) {
        Stopwatch library("library");
        Function g = product(std::nullopt);
        check_product(g, rows);
        CHECK(library.measurements == measurements);
        CHECK(by_library(g) == (measurements > 0));
    };
    first_call(300, 0);
    first_call(301, 1);
}

TEST_CASE("a loop measures before its first step", "[core][runtime][autotune]") {
    if (!has_library()) return;
    const TemporaryFolder folder;
    const ScopedOptions scope(tuned(folder / "cache"));
    Stopwatch watch("library");
    const Expr i = lscalar("i"), x = matrix("x");
    Random random(5);
    const Array values = random_array(float32, {33, 64}, random, -1, 1);
    Shared total = shared(zeros({64, 64}), "total");
    Function f =
        function({i, Input(x, values)}, {sum(x)},
                 {.updates = {{total, total + dot(transpose(x), x) * cast(i, float32)}}, .device = "cpu"});
    CHECK(watch.measurements == 0);
    f.loop(1, 4);
    CHECK(watch.measurements == 1);
    CHECK(by_library(f));
    const Array sum = total.get_value();
    for (std::int64_t j = 0; j < 64; ++j) {
        double expected = 0;
        for (std::int64_t k = 0; k < 33; ++k) expected += values.at(k * 64 + j) * values.at(k * 64 + 3);
        CHECK(sum.at(j * 64 + 3) == Approx(6 * expected).epsilon(1e-4).margin(1e-4));
    }
}

TEST_CASE("gradients of filters behind pooling are measured both ways", "[core][runtime][autotune]") {
    const Expr x = input(uint8, {6, 2, 14, 15}, "x"), w = input(float32, {5, 2, 3, 3}, "w");
    for (const PoolOptions& pooling : {PoolOptions{}, PoolOptions{.pad = 1}}) {
        const Expr y = max_pool(conv2d(cast(x, float32) / 255, w, {.border_mode = half}), 3, pooling);
        const Expr g = grad(sum(y * y), w);
        Random random(7);
        const Array images = random_array(uint8, {6, 2, 14, 15}, random, 0, 255),
                    filters = random_array(float32, {5, 2, 3, 3}, random, -1, 1);
        const Array expected = function({x, w}, g, {.device = "reference"})(images, filters);
        for (const std::string favourite : {"winners", "all places"}) {
            const TemporaryFolder folder;
            const ScopedOptions scope(tuned(folder / "cache"));
            Stopwatch watch(favourite);
            Function f = function({x, w}, g, {.device = "cpu"});
            CHECK(watch.measurements == 1);
            CHECK_THAT(f.report(Detail::complete),
                       ContainsSubstring(favourite == "winners" ? "over the windows of the pooling, autotuned"
                                                                : "over all places, autotuned") &&
                           ContainsSubstring(favourite + " 1.00 us"));
            const Array got = f(images, filters);
            for (std::int64_t k = 0; k < expected.size(); ++k)
                CHECK(got.at(k) == Approx(expected.at(k)).epsilon(1e-4).margin(1e-4));
        }
    }
}

TEST_CASE("what surrounds a product is measured with it", "[core][runtime][autotune]") {
    if (!has_library()) return;
    const TemporaryFolder folder;
    const ScopedOptions scope(tuned(folder / "cache"));
    Stopwatch watch("generated");
    // Rows that are looked up, labels and minibatches need numbers that lead somewhere.
    Random random(9);
    const Shared images = shared(random_array(uint8, {500, 48}, random, 0, 255), "images"),
                 labels = shared(random_array(uint8, {500}, random, 0, 9), "labels"),
                 order = shared(permutation(500, 3), "order");
    Shared w = shared(zeros({48, 10}), "w");
    const Expr i = lscalar("i"), rows = order[Slice{i * 50, (i + 1) * 50}];
    const Expr x = cast(images[rows], float32) / 255, y = cast(labels[rows], int32);
    const Expr loss = mean(categorical_crossentropy(softmax(dot(x, w)), y));
    Function f = function({i}, loss, {.updates = sgd(loss, {w}, 0.1F), .device = "cpu"});
    CHECK(watch.measurements == 2);
    CHECK_THAT(f.report(Detail::complete), ContainsSubstring("2 choices measured, 0 remembered\n"));
    CHECK(double(f(std::int64_t{3})) == Approx(std::log(10.0)).epsilon(1e-5));
}

TEST_CASE("what cannot be measured is estimated", "[core][runtime][autotune]") {
    if (!has_library()) return;
    const TemporaryFolder folder;
    const ScopedOptions scope(tuned(folder / "cache"));
    int asked = 0;
    const ScopedMeasure failing([&](const std::vector<Candidate>&) -> std::vector<double> {
        ++asked;
        throw OutOfMemory("no room");
    });
    Function f = product();
    CHECK(asked == 1);
    CHECK_THAT(f.report(Detail::complete),
               ContainsSubstring("1 by estimates because measuring failed; no room") &&
                   ContainsSubstring("estimated"));
    check_product(f, 48);
    CHECK(choices_in(folder / "cache").empty());
}

TEST_CASE("devices whose times mean nothing measure nothing", "[core][runtime][autotune]") {
    const TemporaryFolder folder;
    const ScopedOptions scope(tuned(folder / "cache"));
    Stopwatch watch("generated");
    const Expr a = input(float32, {64, 64}, "a");
    const auto report = [&](const char* device) {
        return function({a}, dot(a, a), {.device = device}).report(Detail::complete);
    };
    CHECK_THAT(report("emulator"), ContainsSubstring("autotune: nothing is measured, because times of the "
                                                     "emulator say nothing about a GPU"));
    CHECK_THAT(report("null"),
               ContainsSubstring("autotune: nothing is measured, because this device runs nothing"));
    CHECK_THAT(report("reference"), ContainsSubstring("evaluated node by node"));
    CHECK(watch.measurements == 0);
}

TEST_CASE("candidates are timed in turn, a few times", "[core][runtime][autotune]") {
    std::vector<int> runs(2, 0);
    volatile double sink = 0;
    const auto work = [&](std::size_t candidate, int amount) {
        return [&runs, &sink, candidate, amount] {
            ++runs[candidate];
            for (int k = 0; k < amount; ++k) sink = sink + k;
        };
    };
    const std::vector<double> seconds = measure({{"short", work(0, 100)}, {"long", work(1, 100'000)}});
    REQUIRE(seconds.size() == 2);
    CHECK(seconds[0] > 0);
    CHECK(seconds[0] < seconds[1]);
    CHECK(runs[0] >= 5);
    CHECK(runs[1] >= 5);
    CHECK(runs[0] <= 2000);
}

TEST_CASE("threads that make the first call at once", "[core][runtime]") {
    const TemporaryFolder folder;
    const ScopedOptions scoped(tuned(folder / "cache"));
    Stopwatch watch("library");
    Function f = product(std::nullopt);
    const std::vector<Kernel>& before = f.kernels();
    const std::size_t count = before.size();
    Random random(3);
    const Array a = random_array(float32, {48, 96}, random, -1, 1),
                b = random_array(float32, {96, 32}, random, -1, 1),
                c = random_array(float32, {32}, random, -1, 1), wrong(float32, {48, 95});
    const auto reference = product(48)(a, b, c)[0];
    std::atomic<int> bad{0}, refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20; ++i) {
                try {
                    // Lengths that do not fit are refused before anything is measured, or after.
                    const Array y = f(t % 2 == 0 ? a : wrong, b, c);
                    for (std::int64_t j = 0; j < y.size(); ++j)
                        bad += std::abs(y.at(j) - reference.at(j)) > 1e-4 ? 1 : 0;
                } catch (const ShapeError&) {
                    ++refused;
                }
                bad += f.kernels().empty() || f.report(Detail::complete).empty() ? 1 : 0;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(bad == 0);
    CHECK(refused == 40);
    CHECK(before.size() == count);  // the list that was taken before the call is still there
}
