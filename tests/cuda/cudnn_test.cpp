// cuDNN has exact and deterministic plans for the convolutions of the example networks, on GPUs that are not
// here: it plans for a description of a GPU. Needs cuDNN 9.8 or newer, but neither a GPU nor a driver.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "bitale/error.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/gpu_models.h"
#include "runtime/cuda/libraries.h"
#include "runtime/cuda/offline_plans.h"
#include "tests/support/catch.h"

using namespace bitale;
using namespace bitale::cuda;

namespace {

// CTest shows a test whose output has this as skipped.
bool cudnn_plans_skipped() {
    const std::string sanitizers = BITALE_SANITIZE;
    std::string reason;
    if (!sanitizers.empty())
        reason = "cuDNN is not run under sanitizers";
    else if (!cudnn_library().present)
        reason = "no cuDNN: " + cudnn_library().problem;
    else
        reason = why_no_plans_without_gpu();
    if (reason.empty()) return false;
    std::printf("SKIPPED: %s\n", reason.c_str());
    WARN("SKIPPED: " << reason);
    return true;
}

ConvSizes plain(std::array<std::int64_t, 4> shape) {
    return {shape, {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}};
}
ConvSizes channel_last(std::array<std::int64_t, 4> shape) {
    return {shape, {shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3], shape[1]}};
}

struct Layer {
    const char* name;
    std::int64_t images, channels, size, filters, kernel, pad;
};
const Layer layers_to_plan[] = {
    {"second of keras' network, 32 -> 64, 3x3", 128, 32, 26, 64, 3, 0},
    {"16 -> 64, 5x5", 100, 16, 32, 64, 5, 0},
    {"64 -> 256, 5x5", 100, 64, 12, 256, 5, 0},
    {"3 -> 16, 5x5", 100, 3, 32, 16, 5, 0},
    {"64 -> 64, 3x3, padded", 128, 64, 32, 64, 3, 1},
};

ConvShape shape_of(const Layer& l, ConvCall::Kind kind, ConvSizes (*order)(std::array<std::int64_t, 4>)) {
    const std::int64_t out = l.size + 2 * l.pad - l.kernel + 1;
    ConvShape s;
    s.kind = kind;
    s.image = order({l.images, l.channels, l.size, l.size});
    s.filters = order({l.filters, l.channels, l.kernel, l.kernel});
    s.output = order({l.images, l.filters, out, out});
    s.pad = {l.pad, l.pad};
    s.flip = true;  // as conv2d does by default
    return s;
}

struct Part {
    const char* name;
    ConvCall::Kind kind;
    bool bias = false, relu = false;
};
const Part parts[] = {{"forward", ConvCall::Kind::forward},
                      {"forward + bias", ConvCall::Kind::forward, true},
                      {"forward + bias + relu", ConvCall::Kind::forward, true, true},
                      {"image gradient", ConvCall::Kind::image_gradient},
                      {"filter gradient", ConvCall::Kind::filter_gradient}};

}  // namespace

TEST_CASE("exact, deterministic plans for the layers of the examples, on four generations of GPUs") {
    if (cudnn_plans_skipped()) return;
    for (const GpuModel& gpu : gpu_models())
        for (const Layer& layer : layers_to_plan)
            for (const Part& part : parts) {
                ConvShape s = shape_of(layer, part.kind, plain);
                s.bias = part.bias;
                s.relu = part.relu;
                INFO(gpu.name << ": " << layer.name << ", " << part.name);
                const ConvPlan plan = plan_convolution(
                    cudnn_library().table, s, {nullptr, description_for_cudnn(gpu)}, Cudnn::most_workspace);
                CHECK(plan.plan.raw() != nullptr);
                CHECK(!plan.tensor_cores);
                CHECK(plan.workspace <= Cudnn::most_workspace);
                std::printf("%s: %s, %s: engine %lld%s, %.1f MB of workspace\n", gpu.name, layer.name,
                            part.name, static_cast<long long>(plan.engine.index),
                            plan.engine.runtime_compiled ? " (compiled at run time)" : "",
                            static_cast<double>(plan.workspace) / 1e6);
            }
}

TEST_CASE("an engine that was chosen makes the same plan again") {
    if (cudnn_plans_skipped()) return;
    for (const GpuModel& gpu : gpu_models())
        for (const Part& part : parts) {
            ConvShape s = shape_of(layers_to_plan[0], part.kind, plain);
            s.bias = part.bias;
            s.relu = part.relu;
            const DnnTarget target{nullptr, description_for_cudnn(gpu)};
            INFO(gpu.name << ": " << part.name);
            const ConvPlan first = plan_convolution(cudnn_library().table, s, target, Cudnn::most_workspace);
            const std::optional<ConvPlan> again =
                plan_with(cudnn_library().table, s, target, Cudnn::most_workspace, first.engine);
            REQUIRE(again);
            CHECK(text_of(*again) == text_of(first));
            CHECK(again->engine == first.engine);
            ConvEngine unknown = first.engine;
            unknown.index = 12345;
            CHECK(!plan_with(cudnn_library().table, s, target, Cudnn::most_workspace, unknown));
            CHECK(!plan_with(cudnn_library().table, s, target, -1, first.engine));
        }
}

TEST_CASE("tensor cores are used where rounded factors are asked for") {
    if (cudnn_plans_skipped()) return;
    for (const GpuModel& gpu : gpu_models())
        for (const auto order : {plain, channel_last}) {
            int with_tensor_cores = 0;
            for (const Part& part : parts) {
                ConvShape s = shape_of(layers_to_plan[4], part.kind, order);
                s.bias = part.bias;
                s.relu = part.relu;
                s.precision = Precision::tf32;
                INFO(gpu.name << ": " << part.name);
                with_tensor_cores +=
                    plan_convolution(cudnn_library().table, s, {nullptr, description_for_cudnn(gpu)},
                                     Cudnn::most_workspace)
                        .tensor_cores;
            }
            CHECK(with_tensor_cores == (gpu.architecture < 80 ? 0 : 5));  // a T4 has none for float32
        }
}

TEST_CASE("strides, dilations and padding have plans too") {
    if (cudnn_plans_skipped()) return;
    for (const GpuModel& gpu : gpu_models())
        for (const Part& part : parts) {
            ConvShape s;
            s.kind = part.kind;
            s.image = plain({32, 12, 27, 31});
            s.filters = plain({20, 12, 3, 3});
            s.stride = {1, 2};
            s.dilation = {2, 2};
            s.pad = {4, 4};
            s.output = plain({32, 20, 31, 18});
            s.bias = part.bias;
            s.relu = part.relu;
            INFO(gpu.name << ": " << part.name);
            CHECK(plan_convolution(cudnn_library().table, s, {nullptr, description_for_cudnn(gpu)},
                                   Cudnn::most_workspace)
                      .plan.raw() != nullptr);
        }
}

TEST_CASE("groups of channels have exact plans, without an attribute that says how many there are") {
    if (cudnn_plans_skipped()) return;
    struct Groups {
        std::int64_t channels, size, filters, kernel, groups, stride;
    };
    for (const GpuModel& gpu : gpu_models())
        for (const Groups& l : {Groups{64, 32, 64, 3, 2, 1},
                                {64, 32, 64, 3, 4, 1},
                                {256, 14, 256, 3, 32, 2},
                                {12, 27, 20, 5, 4, 3},
                                {64, 16, 64, 3, 64, 1}})
            for (const Part& part : parts) {
                const std::int64_t out = (l.size - l.kernel) / l.stride + 1;
                ConvShape s;
                s.kind = part.kind;
                s.image = plain({32, l.channels, l.size, l.size});
                s.filters = plain({l.filters, l.channels / l.groups, l.kernel, l.kernel});
                s.output = plain({32, l.filters, out, out});
                s.stride = {l.stride, l.stride};
                s.groups = l.groups;
                s.bias = part.bias;
                s.relu = part.relu;
                INFO(gpu.name << ": " << l.channels << " channels in " << l.groups << " groups, "
                              << part.name);
                const ConvPlan plan = plan_convolution(
                    cudnn_library().table, s, {nullptr, description_for_cudnn(gpu)}, Cudnn::most_workspace);
                CHECK(plan.plan.raw() != nullptr);
                CHECK(!plan.tensor_cores);
                std::printf("%s: %lld channels in %lld groups, %s: %s\n", gpu.name,
                            static_cast<long long>(l.channels), static_cast<long long>(l.groups), part.name,
                            text_of(plan).c_str());
            }
    ConvShape wrong = shape_of(layers_to_plan[0], ConvCall::Kind::forward, plain);
    wrong.groups = 2;  // filters of all 32 channels
    CHECK_THROWS_WITH(
        plan_convolution(cudnn_library().table, wrong, {nullptr, description_for_cudnn(gpu_models().front())},
                         Cudnn::most_workspace),
        ContainsSubstring("the channels do not fit the groups of a convolution, image [128, 32, "
                          "26, 26], filters [64, 32, 3, 3] in 2 groups"));
}

TEST_CASE("the arguments of a convolution are accepted") {
    if (cudnn_plans_skipped()) return;
    ConvShape s = shape_of(layers_to_plan[0], ConvCall::Kind::forward, plain);
    alignas(64) static float somewhere[4][16];
    for (const bool bias : {false, true}) {
        s.bias = bias;
        const ConvData data{somewhere[0], somewhere[1], somewhere[2], bias ? somewhere[3] : nullptr};
        CHECK(conv_arguments(cudnn_library().table, s, data, nullptr).raw() != nullptr);
        CHECK(conv_arguments(cudnn_library().table, s, data, somewhere[3]).raw() != nullptr);
    }
}

TEST_CASE("cuBLASLt accepts the description of every product") {
    const std::string sanitizers = BITALE_SANITIZE;
    if (!sanitizers.empty() || !cublaslt_library().present) {
        WARN("no cuBLASLt here: " << cublaslt_library().problem);
        return;
    }
    const float bias[64] = {};
    for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bf16})
        for (int flags = 0; flags < 16; ++flags) {
            GemmShape s{
                33,       64, 50, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0,
                precision};
            const LtDescription d = describe_product(cublaslt_library().table, s, bias);
            CHECK((d.product && d.a && d.b && d.c));
        }
}

TEST_CASE("a convolution without a plan is named, with the way out") {
    if (cudnn_plans_skipped()) return;
    ConvShape s = shape_of(layers_to_plan[0], ConvCall::Kind::forward, plain);
    try {
        plan_convolution(cudnn_library().table, s, {nullptr, description_for_cudnn(*model_for("sm_90"))}, -1);
        FAIL("a plan with less than no workspace");
    } catch (const DeviceError& e) {
        CHECK_THAT(e.what(), ContainsSubstring("[128, 32, 26, 26]") && ContainsSubstring("workspace") &&
                                 ContainsSubstring("disable=cudnn in BITALE_FLAGS"));
    }
    s.stride = {0, 0};
    CHECK_THROWS_WITH(
        plan_convolution(cudnn_library().table, s, {nullptr, description_for_cudnn(*model_for("sm_90"))},
                         Cudnn::most_workspace),
        ContainsSubstring("cuDNN: "));
}

TEST_CASE("an architecture is planned for as the newest known GPU that is not newer") {
    CHECK(model_for("sm_70") == nullptr);
    CHECK(std::string(model_for("sm_75")->name) == "Tesla T4");
    CHECK(model_for("sm_89")->architecture == 80);
    CHECK(model_for("sm_90")->architecture == 90);
    CHECK(model_for("sm_100")->architecture == 90);
    CHECK(model_for("sm_121")->architecture == 120);
}
