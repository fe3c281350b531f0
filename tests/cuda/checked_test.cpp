// Generated kernels under the emulator's checks: no race, no access outside of a buffer, nothing read from
// shared memory that was not written there.
#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/corpus.h"
#include "tests/support/emulator.h"
#include "tests/support/nets.h"

using namespace bitale;
using namespace bitale::test;

namespace {

void check_corpus(bool typical) {
    const CheckedEmulator checked;
    const InOrder scope(cuda::ThreadOrder::random);
    for (const CorpusPart& part : kernel_corpus())
        if (part.typical == typical) {
            INFO(part.name);
            CHECK_NOTHROW(part.build("emulator").call(part.arguments));
        }
}

void check_net(const std::string& name, std::int64_t images, std::int64_t batch) {
    const CheckedEmulator checked;
    const InOrder scope(cuda::ThreadOrder::random);
    Net net = make_net(name, {.device = "emulator", .images = images, .batch = batch, .test_batch = batch});
    INFO(name);
    const std::int64_t steps = (images + batch - 1) / batch;  // the last one is partial
    CHECK_NOTHROW(net.step.loop(0, steps));
    CHECK_NOTHROW(net.evaluation.loop(0, 1));
}

}  // namespace

TEST_CASE("kernels of the corpus keep the rules of CUDA") {
    if (!emulator_sanitized()) check_corpus(true);
}

TEST_CASE("kernels of the rest of the corpus keep the rules of CUDA", "[slow]") {
    if (!emulator_skipped()) check_corpus(false);
}

TEST_CASE("functions are watched while the checks are on, and no others") {
    if (emulator_skipped()) return;
    const Expr x = vector("x");
    const Array values(float32, {100});
    const auto accesses = [&](Function& f) {
        const std::uint64_t before = cuda::checked_accesses();
        f(values);
        return cuda::checked_accesses() - before;
    };
    Function plain = function({x}, {x * 2, sum(x)}, {.device = "emulator"});
    CHECK(accesses(plain) == 0);
    const CheckedEmulator checked;
    Function watched = function({x}, {x * 2, sum(x)}, {.device = "emulator"});
    CHECK(accesses(watched) >= 200);
    CHECK(accesses(plain) == 0);
}

TEST_CASE("networks keep the rules of CUDA") {
    if (emulator_sanitized()) return;
    check_net("logistic", 12, 8);
    check_net("mlp", 12, 8);
    check_net("small", 3, 2);
}

TEST_CASE("the larger network keeps the rules of CUDA", "[slow]") {
    if (!emulator_skipped()) check_net("keras", 3, 2);
}
