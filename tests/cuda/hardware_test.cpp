// The kernels and the executor on the device that BITALE_TEST_DEVICE names, against the CPU: what
// scripts/gpu_check runs on a GPU, and on the emulator to try the script. Elsewhere skipped, visibly.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bitale/bitale.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/corpus.h"
#include "tests/support/nets.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

bool no_gpu_to_test() {
    if (std::strcmp(tested_device(), "cpu") != 0) return false;
    std::printf("SKIPPED: BITALE_TEST_DEVICE names no GPU\n");
    return true;
}

void compare(const CorpusPart& part) {
    Function cpu = part.build("cpu"), tested = part.build(tested_device());
    const Results expected = cpu.call(part.arguments), got = tested.call(part.arguments);
    bool library = false;
    for (const Kernel& k : tested.kernels()) library = library || k.by_library;
    for (std::size_t k = 0; k < part.outputs.size(); ++k) {
        INFO(part.name << ": " << part.names[k]);
        CHECK(difference(got[k], expected[k], library ? by_library : Tolerance{}) == "");
    }
}

}  // namespace

TEST_CASE("the tested device gives the CPU's bits for the typical corpus") {
    if (no_gpu_to_test()) return;
    for (const CorpusPart& part : kernel_corpus())
        if (part.typical) compare(part);
}

TEST_CASE("the tested device gives the CPU's bits for the rest of the corpus", "[slow]") {
    if (no_gpu_to_test()) return;
    for (const CorpusPart& part : kernel_corpus())
        if (!part.typical) compare(part);
}

TEST_CASE("the networks train on the tested device as on the CPU") {
    if (no_gpu_to_test()) return;
    for (const std::string& name : net_names()) {
        NetOptions options{.device = "cpu", .images = 40, .batch = 16, .test_batch = 20};
        if (name == "keras" || name == "cifar") {
            options.images = options.batch = 4;
            options.test_batch = 2;
        }
        Net cpu = make_net(name, options);
        options.device = tested_device();
        Net tested = make_net(name, options);
        const std::int64_t steps =
            (options.images + options.batch - 1) / options.batch;  // the last one is partial
        INFO(name);
        const Results a = cpu.step.loop(0, steps), b = tested.step.loop(0, steps);
        for (std::size_t k = 0; k < 2; ++k) CHECK(difference(b[k], a[k], by_library) == "");
        for (std::size_t p = 0; p < cpu.params.size(); ++p) {
            INFO(cpu.params[p].name());
            CHECK(difference(tested.params[p].get_value(), cpu.params[p].get_value(), by_library) == "");
        }
        const Results c = cpu.evaluation.loop(0, 2), d = tested.evaluation.loop(0, 2);
        for (std::size_t k = 0; k < 2; ++k) CHECK(difference(d[k], c[k], by_library) == "");
    }
}

TEST_CASE("a failing check on the tested device leaves everything as it was") {
    if (no_gpu_to_test()) return;
    const Shared table = shared(Array(std::vector<float>{1, 2, 3}), "table"), n = shared(Array(0.0F), "n");
    const Expr i = lscalar("i");
    Function f = function({i}, {gather(table, i)},
                          {.updates = {{n, n + 1}}, .name = "pick", .device = tested_device()});
    CHECK(double(f(1)) == 2);
    CHECK_THROWS_AS(f(3), IndexError);
    CHECK(n.get_value().at(0) == 1);
    CHECK(double(f(2)) == 3);
}
