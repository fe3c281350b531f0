// Planted faults of the emulated GPU: each is what its name says, and a process that has planted none has
// none.
#include "runtime/cuda/emulator/faults.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/emulator/compile.h"
#include "runtime/cuda/emulator/table.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/planted.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::cuda;
using namespace bitale::test;

namespace {

Function doubled() {
    const Expr n = vector("n", int32);
    return function({n}, n * 2, {.name = "doubled", .device = tested_gpu()});
}

std::string kernel_of(const Function& f) {
    const std::string report = f.report(Detail::complete);
    const std::size_t at = report.find("1. k_");
    REQUIRE(at != std::string::npos);
    return report.substr(at + 3, report.find(' ', at + 3) - at - 3);
}

}  // namespace

TEST_CASE("a fault has a kind and a place, or is refused in words") {
    std::string problem;
    CHECK(parse_fault(nullptr, problem).kind == Fault::Kind::none);
    const Fault named = parse_fault("illegal:k_train", problem);
    CHECK(named.kind == Fault::Kind::illegal);
    CHECK(named.kernel == "k_train");
    const Fault third = parse_fault("wrong:#3", problem);
    CHECK(third.kind == Fault::Kind::wrong);
    CHECK(third.kernel.empty());
    CHECK(third.launch == 3);
    CHECK(parse_fault("hang:#12", problem).kind == Fault::Kind::hang);
    CHECK(!third.at_next);
    const Fault next = parse_fault("illegal-next:#1", problem);
    CHECK(next.kind == Fault::Kind::illegal);
    CHECK(next.at_next);
    CHECK(problem.empty());
    for (const char* text : {"wrong", "wrong:", "slow:k_a", "wrong:#", "wrong:#0", "wrong:#2x", "hang:#-1"}) {
        INFO(text);
        problem.clear();
        CHECK(parse_fault(text, problem).kind == Fault::Kind::none);
        CHECK_THAT(problem, ContainsSubstring(text) && ContainsSubstring("the number of a launch"));
    }
}

TEST_CASE("a process whose second launch is wrong") {
    if (planted() != "wrong:#2") return;
    const Expr x = vector("x");
    Function f = function({x}, x + 1, {.name = "plus", .device = tested_gpu()});
    const Array ones(std::vector<float>(40, 1.0F));
    for (int call = 1; call <= 4; ++call) {
        const Array y = f(ones);
        CHECK(y.at(0) == (call == 2 ? 4 : 2));
        for (std::int64_t i = 1; i < 40; ++i) CHECK(y.at(i) == 2);
    }
}

TEST_CASE("a process of which one function is always wrong") {
    Function bad = doubled();
    if (planted() != "wrong:" + kernel_of(bad)) return;
    const Expr x = vector("x");
    Function good = function({x}, x + 1, {.name = "good", .device = tested_gpu()});
    const Array ones(std::vector<float>(3, 1.0F)), numbers(std::vector<std::int32_t>{5, 6, 7});
    for (int call = 0; call < 3; ++call) {
        CHECK(good(ones)[0].at(0) == 2);
        const Array y = bad(numbers);
        CHECK(y.at(0) == 11);  // one bit of the 10
        CHECK(y.at(1) == 12);
    }
}

TEST_CASE("a process with an illegal access") {
    if (planted() != "illegal:#2") return;
    const Shared n = shared(Array(1.0F), "n");
    const Expr x = scalar("x");
    Function f = function({x}, {}, {.updates = {{n, n * x}}, .name = "times", .device = tested_gpu()});
    Function other = function({x}, x + 1, {.name = "other", .device = tested_gpu()});
    f(2.0F);
    CHECK(n.get_value().at(0) == 2);
    f(2.0F);  // nobody sees it yet
    CHECK_THROWS_WITH(n.get_value(), ContainsSubstring("an illegal memory access was encountered"));
    CHECK_THROWS_WITH(other(1.0F), ContainsSubstring("an illegal memory access was encountered"));
    CHECK_THROWS_AS(f(1.0F), DeviceError);
}

// As on a GPU: the error of a launch is returned by the next one, which has done nothing wrong.
TEST_CASE("a process whose second launch is told the fault of the first") {
    if (planted() != "illegal-next:#1") return;
    const Expr x = vector("x");
    const unsigned line = __LINE__ + 1;
    Function f = function({x}, sum(exp(x)), {.name = "many", .device = tested_gpu()});
    const std::string first = kernel_of(f);
    const std::string error = error_of([&] { f(Array(std::vector<float>(100'000, 0.5F))); });
    CHECK_THAT(error, Catch::Matchers::StartsWith("launching kernel ") && ContainsSubstring("phase 2 of 2") &&
                          ContainsSubstring("an illegal memory access was encountered"));
    const std::string list =
        "; the fault is of this launch or of one of those before it that nobody waited for: " + first;
    CHECK_THAT(error, ContainsSubstring(list) && ContainsSubstring(" phase 1 of many (") &&
                          ContainsSubstring("planted_faults_test.cpp:" + std::to_string(line)) &&
                          ContainsSubstring("launches=wait in BITALE_FLAGS"));
}

TEST_CASE("a process that is told a fault by a copy after many launches") {
    if (planted() != "illegal-next:#20") return;
    const Shared n = shared(Array(1.0F), "n");
    const Expr x = scalar("x");
    Options plain = options();
    plain.graphs = Options::Graphs::off;
    const ScopedOptions scope(plain);
    Function f = function({x}, {}, {.updates = {{n, n * x}}, .name = "grows", .device = tested_gpu()});
    for (int call = 0; call < 20; ++call) f(1.0F);
    CHECK_THAT(error_of([&] { f(1.0F); }),
               Catch::Matchers::StartsWith("copying ") &&
                   ContainsSubstring("; the fault is of one of the launches before this that nobody waited "
                                     "for: ") &&
                   ContainsSubstring(" others, then k_"));
}

TEST_CASE("a process whose launches are waited for names the one") {
    if (planted() != "illegal-next:#2") return;
    Options waiting = options();
    waiting.wait_for_launches = true;
    const ScopedOptions scope(waiting);
    const Expr x = vector("x");
    Function f = function({x}, sum(exp(x)), {.name = "many", .device = tested_gpu()});
    const std::string error = error_of([&] { f(Array(std::vector<float>(100'000, 0.5F))); });
    CHECK_THAT(error, Catch::Matchers::StartsWith("kernel ") && ContainsSubstring("(phase 2 of 2"));
    CHECK(error.find("the fault is of") == std::string::npos);
}

TEST_CASE("a process with a launch that never ends") {
    if (planted() != "hang:k_long") return;
    const RuntimeTable& runtime = emulated_runtime();
    const EmulatedModules modules =
        compile_emulated({"struct k_arguments { int* out; };\n"
                          "extern \"C\" __global__ void k_short(const k_arguments a) { a.out[0] = 1; }\n"
                          "extern \"C\" __global__ void k_long(const k_arguments a) { a.out[1] = 1; }\n"});
    Library library = nullptr;
    Stream stream = nullptr;
    void* out = nullptr;
    REQUIRE(runtime.cudaSetDevice(0) == success);
    REQUIRE(runtime.cudaMalloc(&out, 64) == success);
    REQUIRE(runtime.cudaStreamCreateWithFlags(&stream, stream_non_blocking) == success);
    REQUIRE(runtime.cudaLibraryLoadData(&library, modules.images[0].data(), nullptr, nullptr, 0, nullptr,
                                        nullptr, 0) == success);
    LaunchConfig config;
    config.stream = stream;
    void* list[] = {&out};
    for (const char* name : {"k_short", "k_long", "k_short"}) {
        KernelFunction kernel = nullptr;
        REQUIRE(runtime.cudaLibraryGetKernel(&kernel, library, name) == success);
        REQUIRE(runtime.cudaLaunchKernelExC(&config, kernel, list) == success);
    }
    for (int asked = 0; asked < 50; ++asked) CHECK(runtime.cudaStreamQuery(stream) == error_not_ready);
    CHECK(static_cast<const int*>(out)[0] == 1);
    CHECK(static_cast<const int*>(out)[1] == -1);
}

TEST_CASE("a process whose loop ends its first step by an illegal access") {
    if (planted() != "illegal:bitale_advance") return;
    Options waiting = options();
    waiting.wait_for_launches = true;
    waiting.debug_lines = true;
    const ScopedOptions scope(waiting);
    const Shared n = shared(Array(std::int32_t{1}), "n");
    const Expr i = iscalar("i");
    Function f = function({i}, {}, {.updates = {{n, n + i}}, .name = "adds", .device = tested_gpu()});
    f(1);
    CHECK_THROWS_WITH(f.loop(0, 4), ContainsSubstring("kernel bitale_advance") &&
                                        ContainsSubstring("which ends a step of adds") &&
                                        ContainsSubstring("an illegal memory access was encountered"));
}

TEST_CASE("a process whose fault is malformed") {
    if (planted() != "wrong:#none") return;
    const Expr x = vector("x");
    CHECK_THROWS_WITH(function({x}, x + 1, {.device = tested_gpu()})(Array(std::vector<float>{1})),
                      ContainsSubstring("BITALE_EMULATED_FAULT=wrong:#none"));
}

TEST_CASE("planted faults are what they say, each in a process of its own") {
    if (emulator_skipped() || !planted().empty()) return;
    CHECK(with_fault("wrong:#2", "a process whose second launch is wrong") == 0);
    CHECK(with_fault("wrong:" + kernel_of(doubled()), "a process of which one function is always wrong") ==
          0);
    CHECK(with_fault("illegal:#2", "a process with an illegal access") == 0);
    CHECK(with_fault("illegal-next:#1", "a process whose second launch is told the fault of the first") == 0);
    CHECK(with_fault("illegal-next:#20", "a process that is told a fault by a copy after many launches") ==
          0);
    CHECK(with_fault("illegal-next:#2", "a process whose launches are waited for names the one") == 0);
    CHECK(with_fault("hang:k_long", "a process with a launch that never ends") == 0);
    CHECK(with_fault("illegal:bitale_advance",
                     "a process whose loop ends its first step by an illegal access") == 0);
    CHECK(with_fault("wrong:#none", "a process whose fault is malformed") == 0);
}
