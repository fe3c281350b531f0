// Products and convolutions through our own code for cuBLASLt and cuDNN, on a device with these libraries: a
// GPU, or CUDA's emulated libraries, for which tests/CMakeLists.txt has this file's tests a second time.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/libraries.h"
#include "runtime/exec/device.h"
#include "runtime/state.h"
#include "tests/cuda/library_misuse.h"
#include "tests/support/catch.h"
#include "tests/support/conv_definition.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

bool emulated() { return options().cuda_home.find("emulated_cuda") != std::string::npos; }

// Where cuda_home asks for the emulated libraries, they must be there.
bool library_calls_skipped() {
    if (emulator_left_out()) return true;
    std::string problem = "there is no device cuda";
    for (const DeviceStatus& d : device_list())
        if (d.name == "cuda") problem = d.available ? "" : d.text;
    if (problem.empty()) problem = cuda::cublaslt_library().problem;
    if (problem.empty()) problem = cuda::cudnn_library().problem;
    if (problem.empty()) return false;
    INFO(problem);
    REQUIRE(!emulated());
    std::printf("SKIPPED: %s\n", problem.c_str());
    WARN("SKIPPED: " << problem);
    return true;
}

template <class Operation>
std::int64_t calls_of(const Function& f) {
    const std::vector<Step>& steps = f.state().program->body.steps;
    return std::count_if(steps.begin(), steps.end(),
                         [](const Step& s) { return std::holds_alternative<Operation>(s.operation); });
}

// a . b + bias in float64; a matrix that is `transposed` is stored by columns.
struct Operand {
    const Array& array;
    bool transposed = false;
    std::int64_t rows() const { return array.shape()[transposed ? 1 : 0]; }
    std::int64_t columns() const { return array.shape()[transposed ? 0 : 1]; }
    double at(std::int64_t i, std::int64_t j) const {
        const auto place = transposed ? j * rows() + i : i * columns() + j;
        return static_cast<double>(array.view<float>()[static_cast<std::size_t>(place)]);
    }
};
Array product(const Operand& a, const Operand& b, const Array* bias, bool relu) {
    std::vector<float> to;
    for (std::int64_t i = 0; i < a.rows(); ++i)
        for (std::int64_t j = 0; j < b.columns(); ++j) {
            double sum = bias ? bias->at(j) : 0;
            for (std::int64_t l = 0; l < a.columns(); ++l) sum += a.at(i, l) * b.at(l, j);
            to.push_back(static_cast<float>(relu ? std::max(sum, 0.0) : sum));
        }
    return {to, Dims{a.rows(), b.columns()}};
}

// Where numbers may be assumed to be finite, relu is always the library's.
Options assuming_finite(bool finite) {
    Options o = options();
    o.assume_finite = finite;
    return o;
}

constexpr double exact = 2e-6;  // float32 sums of some hundred terms
constexpr double of_rounded_factors = 2e-3;

const std::vector<ConvLayer>& layers() {
    static const std::vector<ConvLayer> all = {
        {{16, 8, 24, 20}, {16, 8, 3, 3}},
        {{9, 16, 17, 23}, {24, 16, 5, 3}, {2, 1}, {1, 1}, 1, false},
        {{32, 5, 33, 29}, {31, 5, 3, 4}, {2, 0}, {2, 1}},
        {{8, 12, 27, 31}, {20, 12, 3, 3}, {4, 4}, {1, 2}, 2},
        {{64, 64, 7, 7}, {32, 64, 1, 1}, {0, 0}, {1, 1}, 1, false},
        // In two, three and four groups.
        {{16, 16, 17, 15}, {24, 8, 3, 3}, {1, 0}, {1, 1}},
        {{19, 24, 17, 23}, {36, 8, 3, 3}, {2, 2}, {2, 1}, 2, false},
        {{16, 32, 31, 29}, {64, 8, 5, 3}, {0, 1}, {3, 3}},
    };
    return all;
}

}  // namespace

TEST_CASE("products by cuBLASLt follow the definition: transposed, odd sizes, with bias and relu") {
    if (library_calls_skipped()) return;
    Random random(1);
    using Sizes = std::array<std::int64_t, 3>;
    for (const auto& [m, k, n] : {Sizes{33, 65, 130}, {24, 512, 24}, {131, 29, 97}, {128, 784, 50}})
        for (int way = 0; way < 16; ++way) {
            const bool ta = way & 1, tb = way & 2, with_bias = way & 4, with_relu = way & 8;
            const Dims at = ta ? Dims{k, m} : Dims{m, k}, bt = tb ? Dims{n, k} : Dims{k, n};
            const Expr a = input(float32, at, "a"), b = input(float32, bt, "b"), bias = vector("bias");
            Expr y = dot(ta ? transpose(a) : a, tb ? transpose(b) : b);
            if (with_bias) y = y + bias;
            if (with_relu) y = relu(y);
            const Array av = random_array(float32, at, random, -1, 1),
                        bv = random_array(float32, bt, random, -1, 1),
                        cv = random_array(float32, {n}, random, -1, 1);
            const Array expected = product({av, ta}, {bv, tb}, with_bias ? &cv : nullptr, with_relu);
            std::vector<Input> inputs{a, b};
            std::vector<Array> arguments{av, bv};
            if (with_bias) inputs.push_back(bias), arguments.push_back(cv);
            const ScopedOptions scope(assuming_finite(with_relu && m % 2 == 0));
            Function f = function(inputs, y, {.device = "cuda"});
            INFO(f.report(Detail::complete));
            REQUIRE(calls_of<GemmStep>(f) == 1);
            // The first call plans, the second is captured into a graph.
            const Array first = f.call(arguments)[0], second = f.call(arguments)[0];
            CHECK(difference(first, expected, {.of_largest = 1e-5}) == "");
            CHECK(difference(second, first) == "");
        }
}

TEST_CASE("precision reaches cuBLASLt") {
    if (library_calls_skipped()) return;
    Random random(2);
    const Dims shape{64, 64};
    const Expr a = input(float32, shape, "a"), b = input(float32, shape, "b");
    const Array av = random_array(float32, shape, random, -1, 1),
                bv = random_array(float32, shape, random, -1, 1);
    const Array expected = product({av}, {bv}, nullptr, false);
    for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bf16}) {
        Function f = function({a, b}, dot(a, b), {.device = "cuda", .precision = precision});
        const Array got = f(av, bv);
        const double bound = precision == Precision::float32 ? 1e-6
                             : precision == Precision::tf32  ? 1e-3
                                                             : 1e-2;
        CHECK(difference(got, expected, {.of_largest = bound}) == "");
        // The emulated library rounds as it is told.
        if (emulated() && precision != Precision::float32)
            CHECK(difference(got, expected, {.of_largest = bound / 20}) != "");
    }
}

TEST_CASE("convolutions by cuDNN and their gradients follow the definition") {
    if (library_calls_skipped()) return;
    Random random(3);
    for (const Precision precision : {Precision::float32, Precision::tf32})
        for (const ConvLayer& l : layers()) {
            const Expr x = input(float32, l.image, "x"), w = input(float32, l.filters, "w"),
                       g = input(float32, l.output(), "g");
            const Expr y = conv2d(x, w, l.options()), cost = sum(y * g);
            const std::vector<Array> arguments{random_array(float32, l.image, random, -1, 1),
                                               random_array(float32, l.filters, random, -1, 1),
                                               random_array(float32, l.output(), random, -1, 1)};
            const ConvExpected expected = define_conv(l, arguments[0], arguments[1], arguments[2]);
            Function f = function({x, w, g}, {y, grad(cost, x), grad(cost, w)},
                                  {.device = "cuda", .precision = precision});
            INFO(f.report(Detail::complete));
            REQUIRE(calls_of<ConvStep>(f) == 3);
            const Results first = f.call(arguments), second = f.call(arguments);
            // The engines that cuDNN is fastest with round their factors, or change from run to run.
            const double bound = precision == Precision::float32 ? exact : of_rounded_factors;
            CHECK(error_of_largest(first[0], expected.y) < bound);
            CHECK(error_of_largest(first[1], expected.dx) < bound);
            CHECK(error_of_largest(first[2], expected.dw) < bound);
            for (std::size_t i = 0; i < 3; ++i) CHECK(difference(second[i], first[i]) == "");
            if (emulated() && precision == Precision::tf32)
                CHECK(error_of_largest(first[0], expected.y) > exact);
        }
}

TEST_CASE("a NaN and an infinity reach the sums that they are factors of, and at strict float32 no others") {
    if (library_calls_skipped()) return;
    Random random(7);
    for (const Precision precision : {Precision::float32, Precision::tf32}) {
        const ConvLayer l{.image = {16, 8, 24, 20}, .filters = {16, 8, 3, 3}};
        const Expr x = input(float32, l.image, "x"), w = input(float32, l.filters, "w"),
                   g = input(float32, l.output(), "g");
        const Expr y = conv2d(x, w), cost = sum(y * g);
        Array xv = random_array(float32, l.image, random, 1, 2);
        const Array wv = random_array(float32, l.filters, random, 1, 2),
                    gv = random_array(float32, l.output(), random, 1, 2);
        auto* const pixels = static_cast<float*>(xv.mutable_data());
        pixels[5 * 20 + 9] = std::numeric_limits<float>::quiet_NaN();
        pixels[(8 + 3) * 24 * 20 + 17 * 20 + 2] = std::numeric_limits<float>::infinity();
        const ConvExpected expected = define_conv(l, xv, wv, gv);
        Function f = function({x, w, g}, {y, grad(cost, w)}, {.device = "cuda", .precision = precision});
        INFO(f.report(Detail::complete));
        REQUIRE(calls_of<ConvStep>(f) == 2);
        const Results got = f(xv, wv, gv);
        int lost = 0, spread = 0, differ = 0;
        for (const std::size_t k : {0U, 1U}) {
            const auto values = got[k].view<float>();
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double right = (k == 0 ? expected.y : expected.dw)[i];
                lost += !std::isfinite(right) && std::isfinite(values[i]);
                spread += std::isfinite(right) && !std::isfinite(values[i]);
                differ += std::isnan(values[i]) != std::isnan(right);
            }
        }
        CHECK(lost == 0);
        if (precision == Precision::float32) {
            CHECK(spread == 0);
            CHECK(differ == 0);
        }
    }
}

TEST_CASE("bias, relu and channel-last images reach cuDNN") {
    if (library_calls_skipped()) return;
    Random random(4);
    const Expr x = input(float32, {16, 8, 20, 20}, "x"), v = input(float32, {16, 8, 3, 3}, "v"),
               w = input(float32, {24, 16, 3, 3}, "w"), b = vector("b");
    const Expr h = relu(conv2d(x, v) + channel(b)), y = sum(sqr(conv2d(tanh(h), w)));
    const std::vector<Expr> outputs{y, h, grad(y, v), grad(y, w), grad(y, b)};
    const std::vector<Array> arguments = {random_array(float32, {16, 8, 20, 20}, random, -1, 1),
                                          random_array(float32, {16, 8, 3, 3}, random, -1, 1),
                                          random_array(float32, {24, 16, 3, 3}, random, -1, 1),
                                          random_array(float32, {16}, random, -1, 1)};
    Function cpu = function({x, v, w, b}, outputs, {.device = "cpu"});
    const Results expected = cpu.call(arguments);
    for (const Precision precision : {Precision::float32, Precision::tf32}) {
        const ScopedOptions scope(assuming_finite(true));
        Function f = function({x, v, w, b}, outputs, {.device = "cuda", .precision = precision});
        INFO(f.report(Detail::complete));
        CHECK_THAT(f.report(Detail::complete), ContainsSubstring("+ bias, relu"));
        CHECK(calls_of<ConvStep>(f) == 5);
        const Results got = f.call(arguments);
        for (std::size_t i = 0; i < outputs.size(); ++i)
            CHECK(difference(got[i], expected[i],
                             {.of_largest = precision == Precision::float32 ? 1e-5 : 1e-2}) == "");
    }
}

TEST_CASE("the libraries' calls train in graphs, in loops and one by one") {
    if (library_calls_skipped()) return;
    struct Net {
        Shared filters, weights;
        Function step;
        explicit Net(const std::string& device) {
            Random random(5);
            const Shared images = shared(random_array(float32, {72, 3, 24, 24}, random, -1, 1), "images"),
                         first = shared(random_array(float32, {12, 3, 3, 3}, random, -1, 1), "first");
            filters = shared(random_array(float32, {16, 12, 3, 3}, random, -0.2, 0.2), "filters");
            weights = shared(random_array(float32, {16 * 20 * 20, 32}, random, -0.01, 0.01), "weights");
            const Expr i = scalar("i", int64), x = images[Slice{i * 24, (i + 1) * 24}];
            const Expr h = relu(conv2d(relu(conv2d(x, first)), filters)),
                       y = dot(reshape(h, {24, 16 * 20 * 20}), weights);
            const Expr loss = mean(sqr(y));
            const Updates updates = {{filters, filters - grad(loss, filters) * 0.01f},
                                     {weights, weights - grad(loss, weights) * 0.01f}};
            step = function({i}, {loss}, {.updates = updates, .device = device});
        }
    };
    Net cpu("cpu");
    const Results expected = cpu.step.loop(0, 3);
    std::optional<Results> first;
    for (const Options::Graphs rung : {Options::Graphs::off, Options::Graphs::step, Options::Graphs::loop}) {
        Options o = options();
        o.graphs = rung;
        const ScopedOptions scope(o);
        Net net("cuda");
        INFO(net.step.report(Detail::complete));
        CHECK(calls_of<ConvStep>(net.step) >= 2);
        CHECK(calls_of<GemmStep>(net.step) >= 1);
        const Results got = net.step.loop(0, 3);
        CHECK(difference(got[0], expected[0], {.relative = 1e-4}) == "");
        CHECK(difference(net.filters.get_value(), cpu.filters.get_value(), {.of_largest = 1e-4}) == "");
        CHECK(difference(net.weights.get_value(), cpu.weights.get_value(), {.of_largest = 1e-4}) == "");
        if (!first) first = got;
        CHECK(difference(got[0], (*first)[0]) == "");
    }
}

namespace {

// Memory of the device and a stream, for calls of the libraries without anything of ours around them.
class BareGpu {
  public:
    BareGpu() {
        require(cuda.cudaSetDevice(0));
        require(cuda.cudaStreamCreateWithFlags(&stream, cuda::stream_non_blocking));
        void* pinned = nullptr;
        require(cuda.cudaMallocHost(&pinned, most * sizeof(float)));
        pinned_ = static_cast<float*>(pinned);
    }
    ~BareGpu() {
        cuda.cudaFreeHost(pinned_);
        for (void* pointer : all_) cuda.cudaFree(pointer);
        cuda.cudaStreamDestroy(stream);
    }
    BareGpu(const BareGpu&) = delete;
    BareGpu& operator=(const BareGpu&) = delete;

    float* floats(std::size_t count, float value = 0) {
        void* pointer = nullptr;
        require(cuda.cudaMalloc(&pointer, count * sizeof(float)));
        all_.push_back(pointer);
        std::fill_n(pinned_, count, value);
        copy(pointer, pinned_, count, cuda::host_to_device);
        return static_cast<float*>(pointer);
    }
    std::vector<float> read(const float* from, std::size_t count) {
        copy(pinned_, from, count, cuda::device_to_host);
        return {pinned_, pinned_ + count};
    }

    const cuda::RuntimeTable& cuda = cuda::runtime_library().table;
    cuda::Stream stream = nullptr;

  private:
    static constexpr std::size_t most = 8192;
    static void require(cuda::Status status) { REQUIRE(status == cuda::success); }
    void copy(void* to, const void* from, std::size_t count, cuda::CopyKind kind) {
        REQUIRE(count <= most);
        require(cuda.cudaMemcpyAsync(to, from, count * sizeof(float), kind, stream));
        require(cuda.cudaStreamSynchronize(stream));
    }
    std::vector<void*> all_;
    float* pinned_ = nullptr;
};

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("cuBLASLt, emulated, insists on what was agreed on") {
    if (library_calls_skipped() || !emulated()) return;
    using namespace cuda;
    BareGpu gpu;
    const CublasLtTable& lt = cublaslt_library().table;
    LtHandle* handle = nullptr;
    REQUIRE(lt.cublasLtCreate(&handle) == 0);
    constexpr std::uint64_t n = 32;
    LtProduct* product = nullptr;
    LtLayout *layout = nullptr, *narrow = nullptr;
    LtPreference* preference = nullptr;
    REQUIRE(lt.cublasLtMatmulDescCreate(&product, lt_compute_float32, lt_float32) == 0);
    REQUIRE(lt.cublasLtMatrixLayoutCreate(&layout, lt_float32, n, n, n) == 0);
    REQUIRE(lt.cublasLtMatrixLayoutCreate(&narrow, lt_float32, n, n, n - 1) == 0);
    REQUIRE(lt.cublasLtMatmulPreferenceCreate(&preference) == 0);
    const std::uint64_t limit = n * n * sizeof(float);
    const std::uint32_t alignment = 64, odd = 3;
    const auto prefer = [&](int attribute, const void* value, std::size_t bytes) {
        return lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, value, bytes);
    };
    REQUIRE(prefer(lt_workspace_limit, &limit, sizeof limit) == 0);
    LtChoice choices[3] = {};
    int found = 0;
    const auto propose = [&](LtLayout* a, int wanted) {
        return lt.cublasLtMatmulAlgoGetHeuristic(handle, product, a, layout, layout, layout, preference,
                                                 wanted, choices, &found);
    };
    constexpr int invalid = 7, unsupported = 15;
    CHECK(propose(narrow, 1) == invalid);
    CHECK(propose(layout, 0) == invalid);
    REQUIRE(prefer(lt_alignment_a, &odd, sizeof odd) == 0);
    CHECK(propose(layout, 1) == invalid);
    for (const LtNumber operand : {lt_alignment_a, lt_alignment_b, lt_alignment_c, lt_alignment_d})
        REQUIRE(prefer(operand, &alignment, sizeof alignment) == 0);
    CHECK(propose(layout, 3) == 0);
    REQUIRE(found == 2);
    CHECK(choices[0].workspace == limit);
    CHECK(choices[1].workspace == 0);

    float *const a = gpu.floats(n * n + 16, 1), *const b = gpu.floats(n * n, 2), *const d = gpu.floats(n * n),
                 *const bias = gpu.floats(n, nan_value), *const workspace = gpu.floats(n * n);
    const float one = 1, zero = 0;
    const auto multiply = [&](const float* left, const LtAlgorithm* algorithm, std::uint64_t bytes) {
        return lt.cublasLtMatmul(handle, product, &one, left, layout, b, layout, &zero, d, layout, d, layout,
                                 algorithm, workspace, bytes, gpu.stream);
    };
    CHECK(multiply(a, nullptr, limit) == invalid);
    CHECK(multiply(a + 1, &choices[0].algorithm, limit) == invalid);
    CHECK(multiply(nullptr, &choices[0].algorithm, limit) == invalid);
    CHECK(multiply(a, &choices[0].algorithm, limit - 1) == invalid);
    CHECK(multiply(a, &choices[1].algorithm, 0) == 0);
    CHECK(gpu.read(d, n * n) == std::vector<float>(n * n, 64));
    CHECK(multiply(a + 16, &choices[0].algorithm, limit) == 0);
    gpu.read(d, n * n);

    // The choice is that of another product now.
    const std::int32_t epilogue = lt_epilogue_bias_relu, unknown = 5;
    const auto set_epilogue = [&](const std::int32_t& value) {
        return lt.cublasLtMatmulDescSetAttribute(product, lt_epilogue, &value, sizeof value);
    };
    REQUIRE(set_epilogue(unknown) == 0);
    CHECK(propose(layout, 1) == unsupported);
    REQUIRE(set_epilogue(epilogue) == 0);
    CHECK(multiply(a, &choices[0].algorithm, limit) == invalid);
    CHECK(propose(layout, 1) == 0);
    CHECK(multiply(a, &choices[0].algorithm, limit) == invalid);  // no bias yet
    REQUIRE(lt.cublasLtMatmulDescSetAttribute(product, lt_bias_pointer, &bias, sizeof bias) == 0);
    CHECK(multiply(a, &choices[0].algorithm, limit) == 0);
    // relu is max(x, 0): the NaN of the bias is gone.
    CHECK(gpu.read(d, n * n) == std::vector<float>(n * n, 0));
    CHECK(lt.cublasLtDestroy(handle) == 0);
}

TEST_CASE("cuDNN, emulated, insists on its arguments; relu keeps NaN where it is told to") {
    if (library_calls_skipped() || !emulated()) return;
    using namespace cuda;
    BareGpu gpu;
    const CudnnTable& dnn = cudnn_library().table;
    DnnHandle* handle = nullptr;
    REQUIRE(dnn.cudnnCreate(&handle) == 0);
    REQUIRE(dnn.cudnnSetStream(handle, gpu.stream) == 0);
    enum : int { bad = 2000, null = 2002, misaligned = 2003 };
    float *const x = gpu.floats(4 * 960 + 4, nan_value), *const w = gpu.floats(16 * 72, 1),
                 *const y = gpu.floats(4 * 1920, 1);
    for (const int keeps : {-1, 0, 1}) {
        Descriptors d(dnn);
        const Descriptors::D sum = d.output(10, true), gpu_text = d.device();
        const Descriptors::D graph = d.make(dnn_graph);
        const Descriptors::D operations[] = {
            d.forward(d.convolution(), d.filters(), d.image(), sum),
            d.pointwise_operation(d.pointwise(dnn_relu, keeps), sum, nullptr, d.output())};
        d.set(graph, dnn_graph_handle, dnn_handle_type, 1, &handle);
        d.set(graph, dnn_graph_operations, dnn_descriptor, 2, operations);
        d.finalize(graph);
        const Descriptors::D config =
            d.configs(d.heuristics(graph, dnn_heuristics_fallback, nullptr), 2).at(1);
        const Descriptors::D plan = d.make(dnn_plan);
        d.set(plan, dnn_plan_handle, dnn_handle_type, 1, &handle);
        d.set(plan, dnn_plan_config, config);
        d.finalize(plan);
        REQUIRE(d.status() == 0);
        CHECK(d.execute(handle, plan, d.pack({1, 2, 3}, {x, w, y})) == 0);
        const std::vector<float> values = gpu.read(y, 4 * 1920);
        CHECK(std::all_of(values.begin(), values.end(),
                          [&](float v) { return keeps == 1 ? std::isnan(v) : v == 0; }));
        CHECK(d.execute(handle, plan, d.pack({1, 2}, {x, w})) == bad);
        CHECK(d.execute(handle, plan, d.pack({1, 2, 3, 10}, {x, w, y, y})) == bad);
        CHECK(d.execute(handle, plan, d.pack({1, 2, 4}, {x, w, y})) == bad);
        CHECK(d.execute(handle, plan, d.pack({1, 2, 3}, {x, nullptr, y})) == null);
        CHECK(d.execute(handle, plan, d.pack({1, 2, 3}, {x + 1, w, y})) == misaligned);
        CHECK(d.execute(handle, graph, d.pack({1, 2, 3}, {x, w, y})) == bad);
        // A plan for a description runs nowhere; one that needs a workspace, not without.
        const Descriptors::D described = d.plan(config, gpu_text);
        CHECK(d.execute(handle, described, d.pack({1, 2, 3}, {x, w, y})) != 0);
    }
}
