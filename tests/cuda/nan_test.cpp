// A NaN in a hidden layer stays a NaN: on every device, and in what libraries are asked to compute. A
// training that diverges must show it.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "codegen/pipeline.h"
#include "graph/base/options.h"
#include "ops/rules/phases.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/target.h"
#include "runtime/exec/device.h"
#include "runtime/state.h"
#include "tests/cuda/recording_cudnn.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

Options assuming_finite() {
    Options o = options();
    o.assume_finite = true;
    return o;
}

// What the libraries of products and of convolutions apply to their results.
struct Epilogue {
    bool bias = false, relu = false;
};
std::vector<Epilogue> calls_of(const Program& program) {
    std::vector<Epilogue> list;
    for (const Step& step : program.body.steps) {
        if (const auto* gemm = std::get_if<GemmStep>(&step.operation))
            list.push_back({gemm->call.bias, gemm->call.relu});
        if (const auto* conv = std::get_if<ConvStep>(&step.operation))
            list.push_back({conv->call.bias, conv->call.relu});
    }
    return list;
}

// The oracle last.
std::vector<std::string> devices() {
    std::vector<std::string> names{"cpu", "emulator"};
    for (const DeviceStatus& d : device_list())
        if (d.name == "cuda" && d.available) names.push_back(d.name);
    // tests/CMakeLists.txt has these cases a second time with CUDA's emulated libraries: cuBLASLt's relu
    // makes 0 of a NaN there too.
    if (options().cuda_home.find("emulated_cuda") != std::string::npos) REQUIRE(names.size() == 3);
    names.emplace_back("reference");
    return names;
}

// Two dense layers and the gradients through both; large enough for libraries.
struct Dense {
    Expr x = input(float32, {70, 96}, "x"), w = input(float32, {96, 80}, "w"), b = vector("b"),
         v = input(float32, {80, 64}, "v"), c = vector("c");
    Expr hidden = relu(dot(x, w) + b), y = relu(dot(hidden, v) + c);
    Function function_on(const std::string& device) const {
        const Expr loss = sum(sqr(y));
        return function({x, w, b, v, c},
                        {sum(y, {1}), grad(loss, w), grad(loss, b), grad(loss, v), grad(loss, x)},
                        {.device = device});
    }
};

// Two convolutions with bias and relu.
struct Convolutions {
    Expr x = input(float32, {16, 8, 20, 20}, "x"), v = input(float32, {16, 8, 3, 3}, "v"),
         w = input(float32, {16, 16, 3, 3}, "w"), b = vector("b"), c = vector("c");
    Expr hidden = relu(conv2d(x, v) + channel(b)), y = relu(conv2d(hidden, w) + channel(c));
    Function function_on(const std::string& device) const {
        const Expr loss = sum(sqr(y));
        return function({x, v, w, b, c}, {sum(y, {1, 2, 3}), grad(loss, v), grad(loss, w), grad(loss, b)},
                        {.device = device});
    }
};

int count_of_nan(const Array& a) {
    int count = 0;
    for (std::int64_t i = 0; i < a.size(); ++i) count += std::isnan(a.at(i));
    return count;
}

// What cuBLASLt was told of a product: attributes and their values.
std::map<int, int>& told() {
    static std::map<int, int>& it = *new std::map<int, int>;
    return it;
}
int keep_attribute(cuda::LtProduct* /*product*/, int attribute, const void* value, std::size_t bytes) {
    int number = 0;
    if (bytes == sizeof number) std::memcpy(&number, value, bytes);
    told()[attribute] = number;
    return 0;
}
cuda::CublasLtTable recording_cublaslt() {
    cuda::CublasLtTable t;
    t.cublasLtMatmulDescCreate = [](cuda::LtProduct**, int, int) { return 0; };
    t.cublasLtMatrixLayoutCreate = [](cuda::LtLayout**, int, std::uint64_t, std::uint64_t, std::int64_t) {
        return 0;
    };
    t.cublasLtMatmulDescSetAttribute = keep_attribute;
    told().clear();
    return t;
}

Program program_for(const Function& f, const Target& target) {
    Graph graph = *f.state().plain;
    optimize(graph);
    return generate(graph, target);
}

}  // namespace

// `lost`: the image of the minibatch with a NaN in it.
template <class Net>
void check_devices(const Net& net, const std::vector<Array>& arguments, std::int64_t lost) {
    Function oracle = net.function_on("reference");
    const Results expected = oracle.call(arguments);
    CHECK(count_of_nan(expected[0]) == 1);
    CHECK(std::isnan(expected[0].at(lost)));
    for (const std::string& device : devices()) {
        INFO(device);
        Function f = net.function_on(device);
        const Results got = f.call(arguments);
        // NaN in the same places, elsewhere the same numbers.
        for (std::size_t k = 0; k < expected.size(); ++k) {
            INFO("result " << k);
            CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}) == "");
        }
    }
}

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("a NaN in a hidden dense layer is a NaN on every device, and its gradients are the same") {
    if (emulator_skipped()) return;
    Random random(3);
    std::vector<Array> arguments = {
        random_array(float32, {70, 96}, random, -1, 1), random_array(float32, {96, 80}, random, -1, 1),
        random_array(float32, {80}, random, -1, 1), random_array(float32, {80, 64}, random, -1, 1),
        random_array(float32, {64}, random, -1, 1)};
    static_cast<float*>(arguments[0].mutable_data())[5 * 96 + 7] = not_a_number;
    check_devices(Dense(), arguments, 5);
}

TEST_CASE("a NaN behind a convolution is a NaN on every device, and its gradients are the same") {
    if (emulator_left_out()) return;
    Random random(4);
    std::vector<Array> arguments = {random_array(float32, {16, 8, 20, 20}, random, -1, 1),
                                    random_array(float32, {16, 8, 3, 3}, random, -1, 1),
                                    random_array(float32, {16, 16, 3, 3}, random, -1, 1),
                                    random_array(float32, {16}, random, -1, 1),
                                    random_array(float32, {16}, random, -1, 1)};
    static_cast<float*>(arguments[0].mutable_data())[9 * 8 * 400 + 777] = not_a_number;
    check_devices(Convolutions(), arguments, 9);
}

// Its gradient is another matter: sums over winners alone pass over products with zero, as the rules for
// pooling may.
TEST_CASE("a NaN reaches the result of pooling on every device") {
    if (emulator_left_out()) return;
    Random random(6);
    std::vector<Array> arguments = {random_array(float32, {8, 8, 20, 20}, random, -1, 1),
                                    random_array(float32, {16, 8, 3, 3}, random, -1, 1),
                                    random_array(float32, {16}, random, -1, 1)};
    static_cast<float*>(arguments[0].mutable_data())[3 * 8 * 400 + 777] = not_a_number;
    const Expr x = input(float32, {8, 8, 20, 20}, "x"), w = input(float32, {16, 8, 3, 3}, "w"),
               b = vector("b");
    const Expr y = sum(max_pool(relu(conv2d(x, w) + channel(b)), 2), {1, 2, 3});
    for (const std::string& device : devices()) {
        INFO(device);
        Function f = function({x, w, b}, y, {.device = device});
        const Array sums = f.call(arguments);
        CHECK(count_of_nan(sums) == 1);
        CHECK(std::isnan(sums.at(3)));
    }
}

TEST_CASE("a training that diverges says so on every device") {
    if (emulator_skipped()) return;
    for (const std::string& device : devices()) {
        INFO(device);
        Random random(5);
        const Shared w = shared(random_array(float32, {64, 64}, random, -1, 1), "w"),
                     v = shared(random_array(float32, {64, 64}, random, -1, 1), "v"),
                     b = shared(Array(float32, {64}), "b");
        const Expr x = input(float32, {64, 64}, "x");
        const Expr loss = mean(sqr(dot(relu(dot(x, w) + b), v)));
        Function step = function({x}, loss,
                                 {.updates = {{w, w - 1e15f * grad(loss, w)},
                                              {b, b - 1e15f * grad(loss, b)},
                                              {v, v - 1e15f * grad(loss, v)}},
                                  .device = device});
        const Array images = random_array(float32, {64, 64}, random, -1, 1);
        double last = 0;
        for (int i = 0; i < 6; ++i) last = double(step(images));
        CHECK(std::isnan(last));
    }
}

TEST_CASE("relu is left to generated code where a library's loses a NaN, unless numbers are finite") {
    const auto report = [](const Function& f) { return f.report(Detail::complete); };
    if (emulator_skipped()) return;
    const Convolutions convolutions;
    const Dense dense;
    for (const bool finite : {false, true}) {
        const ScopedOptions scope(finite ? assuming_finite() : options());
        for (const bool products : {true, false}) {
            if (products && !gemm_library().present) continue;
            const Function f =
                products ? dense.function_on("emulator") : convolutions.function_on("emulator");
            INFO(report(f));
            const std::vector<Epilogue> calls = calls_of(*f.state().program);
            REQUIRE(calls.size() >= 2);
            int biases = 0;
            for (const auto& [bias, relu] : calls) {
                biases += bias;
                CHECK(relu == (bias && finite));
            }
            CHECK(biases == 2);
            CHECK_THAT(report(f),
                       ContainsSubstring(finite ? "whose bias and relu the library applies"
                                                : "whose bias the library adds; relu is generated, because "
                                                  "the library's would turn a NaN into 0"));
        }
    }
}

TEST_CASE("what a target says of each library's relu decides") {
    const Function dense = Dense().function_on("null"), convolutions = Convolutions().function_on("null");
    const auto fused = [](const Program& program) {
        int count = 0;
        for (const Epilogue& call : calls_of(program)) count += call.relu;
        return count;
    };
    Target target = cuda::target_of("sm_90");
    CHECK(!target.gemm_relu_keeps_nan);
    CHECK(!target.conv_relu_keeps_nan);
    CHECK(fused(program_for(dense, target)) == 0);
    CHECK(fused(program_for(convolutions, target)) == 0);
    target.gemm_relu_keeps_nan = true;
    CHECK(fused(program_for(dense, target)) == 2);
    CHECK(fused(program_for(convolutions, target)) == 0);
    target.gemm_relu_keeps_nan = false;
    target.conv_relu_keeps_nan = true;
    CHECK(fused(program_for(dense, target)) == 0);
    CHECK(fused(program_for(convolutions, target)) == 2);
    target.conv_relu_keeps_nan = false;
    target.assume_finite = true;
    CHECK(fused(program_for(dense, target)) == 2);
    CHECK(fused(program_for(convolutions, target)) == 2);
}

TEST_CASE("cuBLASLt is asked for relu only where numbers are assumed to be finite") {
    for (const bool finite : {false, true}) {
        Target target = cuda::target_of("sm_90");
        target.assume_finite = finite;
        int epilogues = 0;
        const Program program = program_for(Dense().function_on("null"), target);
        for (const Epilogue& call : calls_of(program)) {
            if (!call.bias) continue;
            const cuda::CublasLtTable table = recording_cublaslt();
            GemmShape shape{70, 80, 96};
            shape.bias = call.bias;
            shape.relu = call.relu;
            const float bias[80] = {};
            cuda::describe_product(table, shape, bias);
            CHECK(told().at(cuda::lt_epilogue) ==
                  (finite ? cuda::lt_epilogue_bias_relu : cuda::lt_epilogue_bias));
            ++epilogues;
        }
        CHECK(epilogues == 2);
    }
}

// Where the relu is fused, cuDNN is told so at least, as far as it listens: the attribute is deprecated, and
// its text of a graph does not have it.
TEST_CASE("cuDNN's relu is asked to propagate NaN") {
    const cuda::CudnnTable& table = recording_cudnn();
    recorded_cudnn().engines = {{1}};
    ConvShape shape;
    shape.image = {{8, 4, 10, 10}, {400, 100, 10, 1}};
    shape.filters = {{6, 4, 3, 3}, {36, 9, 3, 1}};
    shape.output = {{8, 6, 8, 8}, {384, 64, 8, 1}};
    shape.bias = shape.relu = true;
    cuda::plan_convolution(table, shape, {nullptr, "{}"}, 0);
    int relus = 0, sums = 0;
    for (const RecordedDescriptor* d : recorded_cudnn().of_kind(cuda::dnn_pointwise)) {
        const bool relu = d->number(cuda::dnn_pointwise_mode_is) == cuda::dnn_relu;
        (relu ? relus : sums) += 1;
        CHECK(d->number(cuda::dnn_pointwise_nan) == (relu ? cuda::dnn_propagate_nan : -1));
        if (relu) CHECK(d->attributes.at(cuda::dnn_pointwise_nan).type == cuda::dnn_nan_propagation);
    }
    CHECK(relus == 1);
    CHECK(sums == 1);
}
