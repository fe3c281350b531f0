// What the emulator counts of kernels whose requests can be counted by hand, with their lines; and of
// generated ones.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/json_schema.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr auto of_global = AccessCounts::Memory::global, of_shared = AccessCounts::Memory::shared;

// The body begins on line 2; `more` has so many ints, each its own number.
LaunchCounts counts_of_body(const std::string& body, unsigned blocks = 1, unsigned threads = 64,
                            std::size_t more = 65536) {
    const DeviceInts ints(more);
    const KernelOutcome outcome = run_kernel(body, blocks, threads, ints.data());
    REQUIRE(outcome.problem.empty());
    CHECK(outcome.counts.kernel == "k_test");
    CHECK(outcome.counts.launches == 1);
    CHECK(outcome.counts.blocks == blocks);
    CHECK(outcome.counts.threads == threads);
    return outcome.counts;
}

// With an unrolled loop as generated text has them.
const char* const unrolled_by_8 =
    "#define B_PRAGMA(X) _Pragma(#X)\n"
    "#define B_UNROLL_LOADS(TURNS) B_PRAGMA(unroll TURNS)\n"
    "B_UNROLL_LOADS(8)\n";

}  // namespace

TEST_CASE("the sectors and lines of a warp are counted, and the worst load is named") {
    if (emulator_skipped()) return;
    const CountedEmulator counted;
    for (const cuda::ThreadOrder order :
         {cuda::ThreadOrder::ascending, cuda::ThreadOrder::descending, cuda::ThreadOrder::random}) {
        const InOrder scope(order);
        const LaunchCounts far = counts_of_body("int x = in[all];\nx += more[t * 676];\nout[all] = x;");
        const AccessCounts* worst = far.worst(&AccessCounts::worst_sectors);
        REQUIRE(worst);
        CHECK(worst->where == "line 3, `x += more[t * 676];`");
        CHECK_FALSE(worst->store);
        CHECK(worst->requests == 2);
        CHECK(worst->threads == 64);
        CHECK(worst->sectors == 64);
        CHECK(worst->worst_sectors == 32);
        CHECK(worst->worst_lines == 32);
        const AccessCounts loads = far.sum(of_global, false), stores = far.sum(of_global, true);
        CHECK(loads.requests == 4);
        CHECK(loads.sectors == 64 + 8);
        CHECK(stores.requests == 2);
        CHECK(stores.sectors == 8);
        CHECK(stores.lines == 2);
    }
    const LaunchCounts near = counts_of_body("int x = in[all];\nx += more[t];\nout[all] = x;");
    CHECK(near.worst(&AccessCounts::worst_sectors)->worst_sectors == 4);
    CHECK(near.worst(&AccessCounts::worst_lines)->worst_lines == 1);
    CHECK(counts_of_body("out[all] = more[t + 1];").worst(&AccessCounts::worst_sectors)->worst_sectors == 5);
    CHECK(counts_of_body("out[all] = more[0];").sum(of_global, false).sectors == 2);
    CHECK(counts_of_body("((char*)out)[t] = 1;").sum(of_global, true).sectors == 2);
}

TEST_CASE("turns of the banks of shared memory are counted, and the worst access is named") {
    if (emulator_skipped()) return;
    const CountedEmulator counted;
    const auto turns = [](const std::string& index, const char* type = "int") {
        const LaunchCounts c =
            counts_of_body("__shared__ " + std::string(type) +
                           " s[4096];\ns[t] = t;\n__syncthreads();\nout[all] = (int)s[" + index + "];");
        const AccessCounts loads = c.sum(of_shared, false);
        CHECK(loads.requests == 2);
        CHECK(c.sum(of_shared, true).worst_turns == 1);
        if (loads.worst_turns > 1) {
            const std::string where = c.worst(&AccessCounts::worst_turns)->where;
            CHECK(where == "line 5, `out[all] = (int)s[" + index + "];`");
        }
        return loads.worst_turns;
    };
    CHECK(turns("t * 8") == 8);
    CHECK(turns("t * 9") == 1);
    CHECK(turns("t * 32") == 32);
    CHECK(turns("7") == 1);               // one word for all
    CHECK(turns("t / 2 * 32") == 16);     // one for two each
    CHECK(turns("t", "long long") == 1);  // by halves of the warp
    CHECK(turns("t * 2", "long long") == 2);
    CHECK(turns("t", "char") == 1);
}

TEST_CASE("loads that a thread waits for one after another are counted") {
    if (emulator_skipped()) return;
    const CountedEmulator counted;
    const std::string before = "int x = 0;\n", sum = "for (int i = 0; i < 600; ++i) x += more[i * 64 + t];\n",
                      after = "out[all] = x;";
    const LaunchCounts serial = counts_of_body(before + sum + after);
    CHECK(serial.chain == 600);
    CHECK(serial.worst(&AccessCounts::waits)->where ==
          "line 3, `for (int i = 0; i < 600; ++i) x += more[i * 64 + t];`");
    CHECK(counts_of_body(before + unrolled_by_8 + sum + after).chain == 75);
    const LaunchCounts list =
        counts_of_body("int x = t;\nfor (int i = 0; i < 600; ++i) x = more[x] + 1;\n" + after);
    CHECK(list.chain == 600);
    CHECK(list.worst(&AccessCounts::waits)->waits == 600);
    CHECK(counts_of_body("out[all] = in[all] + more[t] + more[t + 64];").chain == 1);
    CHECK(counts_of_body("int x = more[t];\n__syncthreads();\nx += more[t + 64];\n" + after).chain == 2);
    // The slowest thread counts.
    CHECK(counts_of_body("int x = 0;\nfor (int i = 0; i < t; ++i) x += more[i];\n" + after).chain == 63);
    // Shared memory is not what it waits for.
    CHECK(counts_of_body("__shared__ int s[64];\ns[t] = t;\n__syncthreads();\nint x = 0;\n"
                         "for (int i = 0; i < 64; ++i) x += s[i];\n" +
                         after)
              .chain == 0);
}

TEST_CASE("threads at work, barriers, and lanes that take no part are counted") {
    if (emulator_skipped()) return;
    const CountedEmulator counted;
    const LaunchCounts few = counts_of_body("if (t < 3) out[all] = in[all];", 5, 128);
    CHECK(few.working == 15);
    CHECK(few.barriers == 0);
    CHECK(few.sum(of_global, false).requests == 5);
    CHECK(few.sum(of_global, false).threads == 15);
    CHECK(counts_of_body("for (int i = 0; i < 7; ++i) __syncthreads();\nout[all] = 1;", 3).barriers == 21);
    // A warp meets in a shuffle: what its lanes load before and behind it are two requests.
    const LaunchCounts halves = counts_of_body(
        "int x = 0;\nfor (int i = 0; i < 2; ++i) {\n    if (t % 2 == i) x += in[t];\n"
        "    x += __shfl_xor_sync(0xffffffffu, x, 1);\n}\nout[all] = x;",
        1, 32);
    CHECK(halves.sum(of_global, false).requests == 2);
    CHECK(halves.sum(of_global, false).threads == 32);
    CHECK(halves.chain == 1);
    // Lanes that leave a loop early.
    CHECK(counts_of_body("int x = 0;\nfor (int i = 0; i <= t % 4; ++i) x += more[t + 32 * i];\nout[all] = x;",
                         1, 32)
              .sum(of_global, false)
              .requests == 4);
    // A block of which the last warp is not whole.
    CHECK(counts_of_body("out[all] = in[all];", 2, 40).sum(of_global, true).requests == 4);
    CHECK(counts_of_body("atomicAdd(out, 1);", 1, 64).sum(of_global, true).requests == 2);
}

TEST_CASE("a function's counts are in its report, as JSON, and of each of its lines") {
    if (emulator_skipped()) return;
    const Expr x = vector("x");
    const Array values(float32, {4096});
    const FunctionOptions on_emulator{.device = "emulator"};
    Function plain = function({x}, {exp(x) * 2}, on_emulator);
    plain(values);
    CHECK(plain.counts().launches.empty());
    CHECK(plain.report().find("Counted") == std::string::npos);

    for (const bool debug_kernels : {false, true}) {
        INFO("debug_kernels " << debug_kernels);
        const CountedEmulator counted(debug_kernels);
        Function f = function({x}, {exp(x) * 2}, on_emulator);
        CHECK(f.counts().launches.empty());
        for (int i = 0; i < 3; ++i) f(values);
        const KernelCounts counts = f.counts();
        REQUIRE(counts.launches.size() == 1);
        const LaunchCounts& launch = counts.launches[0];
        CHECK(launch.number == 1);
        CHECK(launch.kernel.starts_with(f.kernels()[0].name));
        CHECK(launch.launches == 3);
        CHECK(launch.waves == 1);
        // 16 bytes of each thread.
        const AccessCounts loads = launch.sum(of_global, false), stores = launch.sum(of_global, true);
        CHECK(loads.requests == 3 * 4096 / 4 / 32);
        CHECK(loads.sectors == 16 * loads.requests);
        CHECK(loads.worst_lines == 4);
        CHECK(stores.requests == loads.requests);
        CHECK(stores.sectors == loads.sectors);
        CHECK(launch.working == 3 * 1024);
        for (const AccessCounts& a : launch.accesses)
            CHECK_THAT(a.where, Catch::Matchers::StartsWith(debug_kernels ? "counted_test.cpp:" : "line "));
        CHECK_THAT(f.report(), ContainsSubstring("Counted by the emulator") && ContainsSubstring("at work") &&
                                   ContainsSubstring("16.0 sectors and 4.0 lines each, at worst 16 and 4"));
        CHECK_THAT(f.report(Detail::complete), ContainsSubstring("16.0 / 16"));
        CHECK(counts.to_string().find("16.0 / 16") != std::string::npos);

        using Json = nlohmann::json;
        Json schema = Json::parse(text_of_file(std::string(BITALE_SOURCE_DIR) + "/docs/program.schema.json"));
        const Json of_counts = {{"$ref", "#/$defs/counts"}, {"$defs", schema.at("$defs")}};
        const Json json = Json::parse(counts.json());
        CHECK(JsonSchema(of_counts).fault(json) == "");
        CHECK(json.at("launches").at(0).at("launches") == 3);
    }
}

TEST_CASE("kernels with the lines of the program tell of the same accesses") {
    if (emulator_skipped()) return;
    const Expr x = matrix("x");
    const Array values(float32, {100, 70});
    const auto counts = [&](bool debug_kernels) {
        const CountedEmulator counted(debug_kernels);
        Function f = function({x}, {sum(x, {0})}, {.device = "emulator"});
        f(values);
        std::vector<AccessCounts> all;
        for (const LaunchCounts& launch : f.counts().launches) {
            CHECK(launch.working > 0);
            for (const AccessCounts& a : launch.accesses)
                if (debug_kernels) CHECK_THAT(a.where, Catch::Matchers::StartsWith("counted_test.cpp:"));
            for (const bool store : {false, true}) all.push_back(launch.sum(of_global, store));
        }
        return all;
    };
    const std::vector<AccessCounts> plain = counts(false), with_lines = counts(true);
    REQUIRE(plain.size() == with_lines.size());
    for (std::size_t k = 0; k < plain.size(); ++k) {
        CHECK(plain[k].requests > 0);
        CHECK(plain[k].requests == with_lines[k].requests);
        CHECK(plain[k].sectors == with_lines[k].sectors);
    }
    // So are they under the checks.
    Options checked = options();
    checked.emulator_checks = checked.debug_kernels = true;
    const ScopedOptions scope(checked);
    Function f = function({x}, {sum(x, {0})}, {.device = "emulator"});
    const std::uint64_t before = cuda::checked_accesses();
    f(values);
    CHECK(cuda::checked_accesses() - before >= 7000);
}

TEST_CASE("a loop's steps are counted like calls") {
    if (emulator_skipped()) return;
    const CountedEmulator counted;
    const Expr i = lscalar("i");
    const Shared w = shared(Array(float32, {64, 64}), "w");
    Function step = function({i}, {sum(w) * i}, {.updates = {{w, w * 0.5F}}, .device = "emulator"});
    step.loop(0, 5);
    const KernelCounts counts = step.counts();
    REQUIRE_FALSE(counts.launches.empty());
    for (const LaunchCounts& launch : counts.launches) CHECK(launch.launches == 5);
}
