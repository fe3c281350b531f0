// The emulator keeps CUDA's rules and notices who breaks them; the executor for GPUs computes on it what the
// CPU device computes, to the bit.
#include "tests/support/emulator.h"
#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/emulator/blocks.h"
#include "runtime/cuda/emulator/table.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/corpus.h"
#include "tests/support/nets.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::cuda;
using namespace bitale::test;

TEST_CASE("barriers, shared memory and warp operations are CUDA's") {
    if (emulator_skipped()) return;
    for (const ThreadOrder order : thread_orders) {
        const InOrder scope(order);
        const KernelOutcome reversed =
            run_kernel("__shared__ int s[96]; s[t] = all; __syncthreads(); out[all] = s[95 - t];", 3, 96);
        CHECK(reversed.problem.empty());
        for (int i = 0; i < 3 * 96; ++i)
            CHECK(reversed.values[static_cast<std::size_t>(i)] == i / 96 * 96 + 95 - i % 96);

        const KernelOutcome warp = run_kernel(
            "int sum = t;\nfor (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);\n"
            "const unsigned odd = __ballot_sync(0xffffffffu, t & 1);\n"
            "out[t] = sum + (odd == 0xaaaaaaaau ? 0 : 1000000) + __shfl_down_sync(0xffffffffu, t, 1u) * 0;",
            1, 64);
        CHECK(warp.problem.empty());
        CHECK(warp.values[0] == 31 * 16);
        CHECK(warp.values[40] == 31 * 16 + 32 * 32);

        const KernelOutcome atomic = run_kernel("atomicAdd(out, 1);", 4, 50);
        CHECK(atomic.values[0] == 200);
    }
}

TEST_CASE("planted bugs are found") {
    if (emulator_skipped()) return;
    CHECK_THAT(run_kernel("if (t < 3) {\n__syncthreads();\n} else {\n__syncthreads();\n}", 2, 8).problem,
               ContainsSubstring("different barriers"));
    CHECK_THAT(run_kernel("if (t == 5) return;\n__syncthreads();", 1, 8).problem,
               ContainsSubstring("thread 5 has ended"));
    CHECK_THAT(run_kernel("if (t != 7) out[t] = __shfl_xor_sync(0xffffffffu, t, 1);", 1, 32).problem,
               ContainsSubstring("warp never meet"));
    // Without its barrier this is right in one order, and wrong in another.
    const auto wrong = [](ThreadOrder order) {
        const InOrder scope(order);
        const KernelOutcome o = run_kernel("__shared__ int s[64]; s[t] = all; out[all] = s[63 - t];", 1, 64);
        int count = 0;
        for (int i = 0; i < 64; ++i) count += o.values[static_cast<std::size_t>(i)] != 63 - i;
        return count;
    };
    CHECK(wrong(ThreadOrder::ascending) + wrong(ThreadOrder::descending) > 0);
    CHECK(run_kernel("out[t] = t;", 1, 2000).problem == "cudaErrorInvalidValue");
}

namespace {

// A library sums in an order of its own, and devices choose what it computes by costs of their own.
Options without_libraries() {
    Options generated = options();
    generated.disabled.insert("cudnn");
    generated.disabled.insert("onednn");
    return generated;
}

void compare_in_every_order(const CorpusPart& part) {
    const ScopedOptions scope(without_libraries());
    Function cpu = part.build("cpu"), emulated = part.build("emulator");
    const Results expected = cpu.call(part.arguments);
    for (const ThreadOrder order : thread_orders) {
        const InOrder scope(order);
        const Results got = emulated.call(part.arguments);
        for (std::size_t k = 0; k < part.outputs.size(); ++k) {
            INFO(part.name << ": " << part.names[k] << ", order " << static_cast<int>(order));
            CHECK(difference(got[k], expected[k]) == "");
        }
    }
}

}  // namespace

TEST_CASE("kernels of the corpus give the CPU's bits in every order of threads") {
    if (emulator_left_out()) return;
    for (const CorpusPart& part : kernel_corpus())
        if (part.typical) compare_in_every_order(part);
}

TEST_CASE("kernels of the rest of the corpus give the CPU's bits in every order of threads", "[slow]") {
    if (emulator_left_out()) return;
    for (const CorpusPart& part : kernel_corpus())
        if (!part.typical) compare_in_every_order(part);
}

TEST_CASE("the networks of the examples train on the emulator as on the CPU") {
    if (emulator_skipped()) return;
    const ScopedOptions scope(without_libraries());
    for (const std::string& name : net_names()) {
        if (emulator_sanitized() && name != "logistic" && name != "mlp") continue;
        NetOptions options{.device = "cpu", .images = 40, .batch = 16, .test_batch = 20};
        if (name == "keras" || name == "cifar") {
            options.images = options.batch = 4;
            options.test_batch = 2;
        }
        Net cpu = make_net(name, options);
        options.device = "emulator";
        Net emulated = make_net(name, options);
        const std::int64_t steps =
            (options.images + options.batch - 1) / options.batch;  // the last one is partial
        const Results a = cpu.step.loop(0, steps), b = emulated.step.loop(0, steps);
        INFO(name);
        for (std::size_t k = 0; k < 2; ++k) CHECK(difference(b[k], a[k]) == "");
        for (std::size_t p = 0; p < cpu.params.size(); ++p) {
            INFO(cpu.params[p].name());
            CHECK(difference(emulated.params[p].get_value(), cpu.params[p].get_value()) == "");
        }
        const Results c = cpu.evaluation.loop(0, 2), d = emulated.evaluation.loop(0, 2);
        for (std::size_t k = 0; k < 2; ++k) CHECK(difference(d[k], c[k]) == "");
    }
}

TEST_CASE("filters learn through the winners of pooling as on the CPU") {
    if (emulator_skipped()) return;
    Options generated = options();  // a library sums in an order of its own
    for (const char* library : {"cudnn", "onednn"}) generated.disabled.insert(library);
    const ScopedOptions scope(generated);
    Random random(8);
    const Array images = random_array(float32, {5, 10, 13, 12}, random, -1, 1),
                filters = random_array(float32, {4, 10, 3, 3}, random, -1, 1);
    const std::vector<PoolOptions> pools = {{}, {.stride = Size2(2), .pad = Size2(1)}};
    std::vector<Expr> gradients;
    const Expr x = tensor4("x"), w = input(float32, {4, 10, 3, 3}, "w");
    for (const PoolOptions& pool : pools)
        for (const Border border : {valid, half}) {
            const Expr y = relu(max_pool(conv2d(x / 4, w, {.border_mode = border}), 3, pool));
            gradients.push_back(grad(sum(y * y), w));
        }
    Function cpu = function({x, w}, gradients, {.device = "cpu", .specialise = false}),
             emulated = function({x, w}, gradients, {.device = "emulator", .specialise = false});
    CHECK_THAT(cpu.report(Detail::complete), ContainsSubstring("over the windows of the pooling"));
    const Results a = cpu(images, filters), b = emulated(images, filters);
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(difference(b[k], a[k]) == "");
}

TEST_CASE("shared variables move between devices") {
    if (emulator_skipped()) return;
    const Shared w = shared(Array(std::vector<float>{1, 2, 3}), "w");
    const auto twice = [&](const char* device) {
        return function({}, {sum(w)}, {.updates = {{w, w * 2}}, .device = device});
    };
    Function there = twice("emulator"), here = twice("cpu");
    CHECK(double(there()) == 6);
    CHECK(double(there()) == 12);
    CHECK(double(here()) == 24);
    CHECK(double(there()) == 48);
    CHECK(w.get_value().at(2) == 48);
    CHECK(w.get_value().at(2) == 48);
    Shared(w).set_value(Array(std::vector<float>{1, 1, 1}));
    CHECK(double(there()) == 3);
    CHECK(double(there()) == 6);
}

TEST_CASE("a failing check on the emulator leaves everything as it was") {
    if (emulator_skipped()) return;
    const Shared table = shared(Array(std::vector<float>{1, 2, 3}), "table"), n = shared(Array(0.0f), "n");
    const Expr i = lscalar("i");
    Function f =
        function({i}, {gather(table, i)}, {.updates = {{n, n + 1}}, .name = "pick", .device = "emulator"});
    CHECK(double(f(1)) == 2);
    CHECK_THROWS_AS(f(3), IndexError);
    CHECK(n.get_value().at(0) == 1);
    CHECK(double(f(2)) == 3);  // the error word is clear again
    const std::vector<std::int64_t> values = {0, 1, 7, 2};
    CHECK_THROWS_WITH(f.loop(values), ContainsSubstring("in step 2 of the loop"));
    CHECK(n.get_value().at(0) == 4);
}

TEST_CASE("a profile and the number of compiler runs come from the emulator") {
    if (emulator_skipped()) return;
    const Expr x = vector("x");
    Function f = function({x}, sum(exp(x)), {.device = "emulator", .profile = true});
    f(Array(std::vector<float>(1000, 0.5f)));
    f(Array(std::vector<float>(1000, 0.5f)));
    REQUIRE(!f.profile().rows.empty());
    CHECK(f.profile().rows[0].calls == 2);
    CHECK(f.profile().rows[0].seconds > 0);
    CHECK_THAT(f.report(Detail::complete), ContainsSubstring("device emulator"));
    CHECK_THAT(f.kernels()[0].source, ContainsSubstring("__global__"));
}

TEST_CASE("what does not fit into the GPU's memory is named") {
    if (emulator_skipped()) return;
    const Expr x = matrix("x");
    Function f =
        function({x}, sum(softmax(dot(x, transpose(x))) * 3), {.name = "large", .device = "emulator"});
    set_emulated_memory(std::int64_t{3} << 20);
    const Array small(float32, {10, 10}), large(float32, {1000, 100});
    f(small);
    try {
        f(large);
        FAIL("1000 x 1000 floats fit into 3 MB");
    } catch (const OutOfMemory& e) {
        CHECK_THAT(e.what(), ContainsSubstring("function \"large\" on emulator") &&
                                 ContainsSubstring("float32 [") && ContainsSubstring("MB"));
    }
    // The next call is right, with the memory there is and with what it had before.
    const Array ones(std::vector<float>(100, 1), {10, 10});
    CHECK(double(f(ones)) == Approx(30));
    set_emulated_memory(0);
    f(large);
    CHECK(double(f(ones)) == Approx(30));
}
