// launches=compare: wrong results of kernels and of libraries are found where they arise, right ones pass.
#include "runtime/cuda/compare.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/cuda/library_bounds.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/corpus.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/nets.h"
#include "tests/support/numerics.h"
#include "tests/support/planted.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

Options comparing() {
    Options o = options();
    o.wait_for_launches = o.compare_launches = true;
    return o;
}

std::string here(unsigned line) { return "compare_test.cpp:" + std::to_string(line); }

// A function on an emulated GPU whose libraries a test may replace.
template <class Change>
std::string error_with_libraries(const Function& f, const std::vector<Array>& arguments, Change&& change) {
    cuda::Backend backend = cuda::emulator_backend();
    change(backend);
    const int owner = 0;
    cuda::Gpu gpu(backend, &owner, "planted", "sm_90");
    cuda::CudaRunner runner({f.state().plain, f.state().signature, f.state().program}, gpu);
    return error_of([&] { runner.run(arguments); });
}

template <class Operation>
bool has_step(const Function& f) {
    for (const Step& step : f.state().program->body.steps)
        if (std::holds_alternative<Operation>(step.operation)) return true;
    return false;
}

}  // namespace

TEST_CASE("a process whose third compared launch is wrong") {
    if (planted() != "wrong:#3") return;
    const ScopedOptions scope(comparing());
    const Expr x = vector("x");
    const unsigned line = __LINE__ + 1;
    Function f = function({x}, exp(x) + 1, {.name = "plus", .device = tested_gpu()});
    const Array zeros(std::vector<float>(40, 0.0F));
    for (int call = 1; call <= 4; ++call) {
        const std::string error = error_of([&] { f(zeros); });
        if (call != 3) {
            CHECK(error == "");
            continue;
        }
        const std::string kernel = f.state().program->kernels.at(0).entries.at(0);
        CHECK_THAT(error, Catch::Matchers::StartsWith("kernel " + kernel + " of plus (phase 1 of 1, ") &&
                              ContainsSubstring(here(line)) && ContainsSubstring(": of result") &&
                              ContainsSubstring(" float32 [x.0], element 0 is 4 on device " +
                                                std::string(tested_gpu()) +
                                                ", and 2 when the emulator repeats the launch; 1 of 40 "
                                                "elements differ"));
    }
}

TEST_CASE("a process whose second compared launch spoils a shared variable") {
    if (planted() != "wrong:#2") return;
    const ScopedOptions scope(comparing());
    const Shared n = shared(Array(std::vector<float>{1, 10}), "n");
    const Expr x = scalar("x");
    Function f = function({x}, {}, {.updates = {{n, n * x}}, .name = "times", .device = tested_gpu()});
    f(2.0F);
    CHECK(n.get_value().at(1) == 20);
    CHECK_THAT(error_of([&] { f(2.0F); }),
               ContainsSubstring(" of times (phase ") &&
                   ContainsSubstring(": of shared variable \"n\" float32 [2], element 0 is "));
    CHECK(n.get_value().at(0) == 2);
    f(2.0F);
    CHECK(n.get_value().to_vector<float>() == std::vector<float>{4, 40});
}

TEST_CASE("a process whose loop is wrong in a later step") {
    if (planted() != "wrong:#4") return;
    const ScopedOptions scope(comparing());
    const Shared n = shared(Array(1.0F), "n");
    const Expr i = scalar("i", int64);
    Function f = function({i}, {i * 2}, {.updates = {{n, n * 2}}, .name = "turns", .device = tested_gpu()});
    f.loop(0, 2);
    CHECK(n.get_value().at(0) == 4);
    CHECK_THAT(error_of([&] { f.loop(0, 5); }),
               ContainsSubstring(" of turns ") &&
                   ContainsSubstring(": of result int64 [], element 0 is 3 on device "));
    CHECK(n.get_value().at(0) == 4);
    f.loop(0, 1);
    CHECK(n.get_value().at(0) == 8);
}

TEST_CASE("planted wrong results name kernel, line and element, each in a process of its own") {
    if (emulator_skipped() || !planted().empty()) return;
    CHECK(with_fault("wrong:#3", "a process whose third compared launch is wrong") == 0);
    CHECK(with_fault("wrong:#2", "a process whose second compared launch spoils a shared variable") == 0);
    CHECK(with_fault("wrong:#4", "a process whose loop is wrong in a later step") == 0);
}

TEST_CASE("launches that are compared are no graph, and the report says so") {
    if (emulator_skipped() || !planted().empty()) return;
    const ScopedOptions scope(comparing());
    const Expr x = vector("x");
    Function f = function({x}, x + 1, {.device = tested_gpu()});
    for (int call = 0; call < 2; ++call) f(Array(std::vector<float>{1}));
    CHECK_THAT(f.report(Detail::complete), ContainsSubstring("because of launches=compare"));
}

TEST_CASE("the corpus passes the comparison") {
    if (emulator_left_out() || !planted().empty()) return;
    const ScopedOptions scope(comparing());
    for (const CorpusPart& part : kernel_corpus()) {
        if (!part.typical) continue;
        INFO(part.name);
        CHECK(error_of([&] { part.build(tested_gpu()).call(part.arguments); }) == "");
    }
}

TEST_CASE("networks pass the comparison, by libraries and by our own kernels") {
    if (emulator_left_out() || !planted().empty()) return;
    for (const bool libraries : {true, false}) {
        Options o = comparing();
        if (!libraries) o.disabled = {"cudnn", "onednn"};
        const ScopedOptions scope(o);
        for (const std::string name : {"mlp", "small"}) {
            INFO(name << (libraries ? " with libraries" : ""));
            Net net = make_net(
                name, {.device = tested_gpu(), .images = 40, .batch = 16, .test_batch = 20, .seed = 3});
            CHECK(error_of([&] { net.step.loop(0, 3); }) == "");  // the last one is partial
        }
    }
}

TEST_CASE("NaN is NaN, and a check that fails is no wrong result") {
    if (emulator_skipped() || !planted().empty()) return;
    const ScopedOptions scope(comparing());
    const Expr x = vector("x"), i = vector("i", int64);
    Function f = function({x, i}, gather(x, i) * 2, {.device = tested_gpu()});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Array values(std::vector<float>{1, nan, 3});
    CHECK(f(values, Array(std::vector<std::int64_t>{0, 2}))[0].at(1) == 6);
    CHECK(std::isnan(f(values, Array(std::vector<std::int64_t>{1, 2}))[0].at(0)));
    CHECK_THROWS_AS(f(values, Array(std::vector<std::int64_t>{0, 3})), IndexError);
    CHECK(f(values, Array(std::vector<std::int64_t>{0, 2}))[0].at(1) == 6);
}

TEST_CASE("a comparison under the emulator's checks is refused in words") {
    if (emulator_skipped() || !planted().empty()) return;
    Options o = comparing();
    o.emulator_checks = true;
    const ScopedOptions scope(o);
    const Expr x = vector("x");
    CHECK_THROWS_WITH(function({x}, x + 1, {.name = "plus", .device = "emulator"}),
                      ContainsSubstring("plus") && ContainsSubstring("launches=compare") &&
                          ContainsSubstring("emulator=checked"));
}

TEST_CASE("a product of a library that is wrong is named with its sizes and the user's line") {
    if (emulator_skipped() || !planted().empty()) return;
    const ScopedOptions scope(comparing());
    const Expr x = matrix("x"), y = matrix("y");
    const unsigned line = __LINE__ + 2;
    const Function f =
        function({x, y}, dot(x, y), {.name = "product", .device = "emulator", .specialise = false});
    if (!has_step<GemmStep>(f)) {
        WARN("no library of matrix products stands for cuBLASLt here");
        return;
    }
    Random random(4);
    const std::vector<Array> arguments = {random_array(float32, {64, 96}, random, -1, 1),
                                          random_array(float32, {96, 128}, random, -1, 1)};
    for (const float by : {0.0F, 1e-3F}) {
        const std::string error = error_with_libraries(f, arguments, [&](cuda::Backend& backend) {
            backend.gemm = [by, right = backend.gemm](const GemmShape& shape, const float* a, const float* b,
                                                      const float* bias, float* c, cuda::Stream stream) {
                right(shape, a, b, bias, c, stream);
                cuda::emulated_runtime().cudaStreamSynchronize(stream);
                c[130] += by;
            };
        });
        if (by == 0) {
            CHECK(error == "");
            continue;
        }
        CHECK_THAT(
            error,
            Catch::Matchers::StartsWith(
                "the library's matrix product [64, 96] . [96, 128] of product, which computes dot at " +
                here(line) + ": of ") &&
                ContainsSubstring(", element 130 is ") && ContainsSubstring(" on device planted, and ") &&
                ContainsSubstring(" by plain loops, ") && ContainsSubstring("1 of 8192 elements differ"));
    }
}

TEST_CASE("a convolution of a library that is wrong is named likewise") {
    if (emulator_skipped() || !planted().empty()) return;
    const ScopedOptions scope(comparing());
    const Expr x = tensor4("x"), w = input(float32, {-1, -1, 3, 3}, "w");
    const unsigned line = __LINE__ + 2;
    const Function f =
        function({x, w}, conv2d(x, w), {.name = "filter", .device = "emulator", .specialise = false});
    REQUIRE(has_step<ConvStep>(f));
    Random random(4);
    const std::vector<Array> arguments = {random_array(float32, {2, 8, 10, 10}, random, -1, 1),
                                          random_array(float32, {8, 8, 3, 3}, random, -1, 1)};
    CHECK(error_with_libraries(f, arguments, [](cuda::Backend&) {}) == "");
    const std::string error = error_with_libraries(f, arguments, [](cuda::Backend& backend) {
        backend.conv = [right = backend.conv](const ConvShape& shape, const ConvData& data,
                                              cuda::Stream stream) {
            right(shape, data, stream);
            cuda::emulated_runtime().cudaStreamSynchronize(stream);
            static_cast<float*>(data.output)[7] += 0.01F;
        };
    });
    CHECK_THAT(error, Catch::Matchers::StartsWith("the library's convolution, image [2, 8, 10, 10], ") &&
                          ContainsSubstring(here(line) + ": of ") && ContainsSubstring(", element 7 is ") &&
                          ContainsSubstring(" by plain loops"));
}

TEST_CASE("rounding in another order stays within the bound of a product, another operand does not") {
    Random random(5);
    for (const bool transposed : {false, true})
        for (const bool relu : {false, true}) {
            GemmShape shape;
            shape.m = 5, shape.n = 7, shape.k = 300;
            shape.transpose_a = shape.transpose_b = transposed;
            shape.bias = shape.relu = relu;
            const Array a = random_array(float32, {5, 300}, random, -1, 1),
                        b = random_array(float32, {300, 7}, random, -1, 1),
                        bias = random_array(float32, {7}, random, -1, 1);
            std::vector<float> c(35);
            std::vector<double> bounds;
            const std::span<const float> x = a.view<float>(), y = b.view<float>(), z = bias.view<float>();
            cuda::multiply_with_bounds(shape, x.data(), y.data(), relu ? z.data() : nullptr, c.data(),
                                       bounds);
            for (std::size_t i = 0; i < 5; ++i)
                for (std::size_t j = 0; j < 7; ++j) {
                    float sum = 0, last = 0;
                    for (std::size_t t = 300; t-- > 0;) {
                        last =
                            x[transposed ? t * 5 + i : i * 300 + t] * y[transposed ? j * 300 + t : t * 7 + j];
                        sum += last;
                    }
                    if (relu) sum += z[j];
                    const bool cut = relu && sum < 0;
                    CHECK(cuda::is_within(c[i * 7 + j], cut ? 0 : sum, bounds[i * 7 + j]));
                    if (!cut && sum > 1)
                        CHECK(!cuda::is_within(c[i * 7 + j], sum - 0.01F, bounds[i * 7 + j]));
                }
        }
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    CHECK(cuda::is_within(nan, nan, 0));
    CHECK(!cuda::is_within(0, nan, 0));
    CHECK(!cuda::is_within(nan, 0, 1));
    CHECK(!cuda::is_within(0, 0, nan));
    CHECK(cuda::is_within(inf, 1, inf));
    CHECK(!cuda::is_within(1, inf, 1));
}
