// What cuDNN and cuBLASLt refuse: the emulated libraries refuse it too, with the status that cuDNN 9.19 and
// cuBLASLt 13.1 were seen to return. Runs on whichever libraries are found; asks the real ones nothing that
// they are known to let pass or to crash on.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bitale/error.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/libraries.h"
#include "tests/cuda/library_misuse.h"
#include "tests/support/catch.h"

using namespace bitale;
using namespace bitale::cuda;
using bitale::test::Descriptors;
using D = Descriptors::D;

namespace {

// cudnnStatus_t
enum : int {
    fine = 0,
    not_initialized = 1001,
    bad = 2000,
    null = 2002,
    not_finalized = 2004,
    twice = 2009,
    wrong_type = 2010,
    unsupported = 3000,
    no_memory = 4003
};

bool emulated(const std::string& path) { return path.find("/emulated_cuda/") != std::string::npos; }

constexpr std::size_t seen_version = 91900;

bool library_misuse_skipped() {
    const std::string sanitizers = BITALE_SANITIZE;
    std::string reason;
    if (!cudnn_library().present)
        reason = "no cuDNN: " + cudnn_library().problem;
    else if (!sanitizers.empty() && !emulated(cudnn_library().path))
        reason = "cuDNN is not run under sanitizers";
    else if (!emulated(cudnn_library().path) && cudnn_library().table.cudnnGetVersion() != seen_version)
        reason = "what this version of cuDNN refuses is not known here";
    if (reason.empty()) return false;
    std::printf("SKIPPED: %s\n", reason.c_str());
    WARN("SKIPPED: " << reason);
    return true;
}

enum class Asked : std::uint8_t {
    both,
    emulated  // the real one lets it pass, or crashes
};
struct Misuse {
    const char* name;
    int status;
    std::function<void(Descriptors&)> run;
    Asked asked = Asked::both;
};

void check(const std::vector<Misuse>& cases) {
    const bool real = !emulated(cudnn_library().path);
    for (const Misuse& c : cases) {
        if (real && c.asked == Asked::emulated) continue;
        Descriptors d(cudnn_library().table);
        c.run(d);
        INFO(c.name);
        char words[1024] = "";
        cudnn_library().table.cudnnGetLastErrorString(words, sizeof words);
        INFO(words);
        CHECK(d.status() == c.status);
        // Only the emulated one says something about every refusal.
        if (!real && c.status != fine) CHECK(std::string(words) != "");
    }
}

Misuse tensor(const char* name, int status, const Descriptors::Tensor& t, Asked asked = Asked::both) {
    return {name, status, [t](Descriptors& d) { d.tensor(t); }, asked};
}
Misuse convolution(const char* name, int status, const Descriptors::Convolution& c,
                   Asked asked = Asked::both) {
    return {name, status, [c](Descriptors& d) { d.convolution(c); }, asked};
}
Misuse setting(const char* name, int status, int kind, int attribute, int type, std::int64_t count,
               Asked asked = Asked::both) {
    return {name, status,
            [=](Descriptors& d) {
                const std::int64_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
                d.set(d.make(kind), attribute, type, count, ones);
            },
            asked};
}
Misuse reading(const char* name, int status, int attribute, int type, std::int64_t room) {
    return {name, status, [=](Descriptors& d) {
                std::int64_t count = 0, values[8] = {};
                d.get(d.image(), attribute, type, room, &count, values);
            }};
}

}  // namespace

TEST_CASE("misused tensors and descriptors of cuDNN are refused") {
    if (library_misuse_skipped()) return;
    check({
        {"an unknown kind", no_memory, [](Descriptors& d) { d.make(99); }},
        {"no descriptor", null, [](Descriptors& d) { d.finalize(nullptr); }},
        tensor("a tensor", fine, {}),
        tensor("without type", bad, {.without = dnn_tensor_type}, Asked::emulated),
        tensor("without shape", bad, {.without = dnn_tensor_shape}),
        tensor("without strides", bad, {.without = dnn_tensor_strides}),
        tensor("without id", bad, {.without = dnn_tensor_id}, Asked::emulated),
        tensor("without alignment", bad, {.without = dnn_tensor_alignment}),
        tensor("alignment 0", bad, {.alignment = 0}),
        tensor("alignment 6", bad, {.alignment = 6}),
        tensor("a negative length", bad, {.shape = {4, -1, 10, 12}}),
        tensor("a negative stride", bad, {.strides = {960, 120, 12, -1}}),
        tensor("fewer strides", bad, {.strides = {960, 120, 12}}),
        {"finalised twice", bad, [](Descriptors& d) { d.finalize(d.image()); }},
        {"set when finalised", bad, [](Descriptors& d) { d.set(d.image(), dnn_tensor_id, {7}); }},
        setting("nine lengths", bad, dnn_tensor, dnn_tensor_shape, dnn_int64, 9, Asked::emulated),
        setting("no lengths", bad, dnn_tensor, dnn_tensor_shape, dnn_int64, 0),
        setting("lengths as floats", wrong_type, dnn_tensor, dnn_tensor_shape, dnn_float, 4),
        setting("two types", bad, dnn_tensor, dnn_tensor_type, dnn_data_type, 2),
        setting("type as an integer", wrong_type, dnn_tensor, dnn_tensor_type, dnn_int64, 1),
        setting("virtual as an integer", wrong_type, dnn_tensor, dnn_tensor_virtual, dnn_int64, 1),
        setting("two ids", bad, dnn_tensor, dnn_tensor_id, dnn_int64, 2),
        setting("an attribute of others", bad, dnn_tensor, dnn_convolution_compute, dnn_data_type, 1),
        setting("an unknown attribute", bad, dnn_tensor, 99999, dnn_int64, 1),
        reading("a shape", fine, dnn_tensor_shape, dnn_int64, 8),
        reading("with little room", fine, dnn_tensor_shape, dnn_int64, 2),
        reading("with negative room", bad, dnn_tensor_shape, dnn_int64, -1),
        reading("as floats", wrong_type, dnn_tensor_shape, dnn_float, 4),
        reading("an attribute of others", bad, dnn_convolution_compute, dnn_data_type, 1),
        {"read when not finalised", not_initialized,
         [](Descriptors& d) {
             std::int64_t count = 0, id = 0;
             d.get(d.tensor({.finalized = false}), dnn_tensor_id, dnn_int64, 1, &count, &id);
         }},
    });
}

TEST_CASE("misused convolutions and operations of cuDNN are refused") {
    if (library_misuse_skipped()) return;
    const auto forward = [](const char* name, int status, Descriptors::Tensor image,
                            Descriptors::Tensor filters, Descriptors::Tensor output) {
        return Misuse{name, status, [=](Descriptors& d) {
                          d.forward(d.convolution(), d.tensor(filters), d.tensor(image), d.tensor(output));
                      }};
    };
    const Descriptors::Tensor x, w{.shape = {16, 8, 3, 3}, .strides = {72, 9, 3, 1}, .id = 2},
        y{.shape = {4, 16, 10, 12}, .strides = {1920, 120, 12, 1}, .id = 3};
    const auto other = [](Descriptors::Tensor t, std::vector<std::int64_t> shape) {
        t.shape = std::move(shape);
        return t;
    };
    const auto without = [](int i, int status) {
        return Misuse{"without a part", status, [i](Descriptors& d) {
                          d.forward(d.convolution(), d.filters(), d.image(), d.output(), i);
                      }};
    };
    check({
        convolution("a convolution", fine, {}),
        convolution("without dilations", bad, {.without = dnn_convolution_dilations}),
        convolution("without strides", bad, {.without = dnn_convolution_strides}),
        convolution("without axes", bad, {.without = dnn_convolution_axes}),
        convolution("without padding", bad, {.without = dnn_convolution_padding_before}, Asked::emulated),
        convolution("without a type", bad, {.without = dnn_convolution_compute}, Asked::emulated),
        convolution("without a mode", bad, {.without = dnn_convolution_mode_is}, Asked::emulated),
        convolution("an unknown mode", bad, {.mode = 2}, Asked::emulated),
        convolution("stride 0", bad, {.stride = {0, 0}}),
        convolution("a negative stride", bad, {.stride = {-1, 1}}),
        convolution("dilation 0", bad, {.dilation = {0, 1}}),
        convolution("negative padding", bad, {.pad = {-1, 0}}),
        convolution("one stride for two axes", bad, {.stride = {1}}),
        convolution("no axes", bad, {.axes = 0}),
        convolution("seven axes", bad, {.axes = 7}),
        setting("mode of another type", wrong_type, dnn_convolution, dnn_convolution_mode_is, dnn_data_type,
                1),
        setting("type as an integer", wrong_type, dnn_convolution, dnn_convolution_compute, dnn_int64, 1),
        forward("a forward convolution", fine, x, w, y),
        without(0, fine),  // alpha is 1 by itself
        without(1, fine),
        without(2, bad),
        without(3, bad),
        without(4, bad),
        without(5, bad),
        forward("a result too wide", bad, x, w, other(y, {4, 16, 10, 13})),
        forward("a result of other channels", bad, x, w, other(y, {4, 15, 10, 12})),
        forward("a result of other images", bad, x, w, other(y, {5, 16, 10, 12})),
        forward("filters of other channels", bad, x, other(w, {16, 7, 3, 3}), y),
        forward("filters larger than images", bad, x, other(w, {16, 8, 13, 3}), y),
        forward("an image not finalised", bad, {.finalized = false}, w, y),
        {"a convolution not finalised", bad,
         [](Descriptors& d) {
             d.forward(d.convolution({.finalized = false}), d.filters(), d.image(), d.output());
         }},
        {"a tensor finalised too late", bad,
         [](Descriptors& d) {
             const D late = d.tensor({.finalized = false}), o = d.make(dnn_convolution_forward);
             d.set(o, dnn_forward_alpha + 2, d.convolution());
             d.set(o, dnn_forward_alpha + 3, d.filters());
             d.set(o, dnn_forward_alpha + 4, late);
             d.set(o, dnn_forward_alpha + 5, d.output());
             d.finalize(late);
             d.finalize(o);
         }},
        {"a tensor for a convolution", bad,
         [](Descriptors& d) { d.forward(d.image(), d.filters(), d.image(), d.output()); }},
        {"a convolution for a tensor", bad,
         [](Descriptors& d) { d.forward(d.convolution(), d.filters(), d.convolution(), d.output()); },
         Asked::emulated},
        {"no descriptor", bad,
         [](Descriptors& d) { d.set(d.make(dnn_convolution_forward), dnn_forward_alpha + 4, nullptr); }},
        setting("alpha as an integer", bad, dnn_convolution_forward, dnn_forward_alpha, dnn_int64, 1),
        setting("two alphas", bad, dnn_convolution_forward, dnn_forward_alpha, dnn_float, 2),
        {"the gradient of a result too wide", bad,
         [=](Descriptors& d) {
             d.operation(dnn_convolution_image_gradient, dnn_image_gradient_alpha, d.convolution(),
                         d.filters(), d.image(), d.tensor(other(y, {4, 16, 10, 13})));
         }},
        {"an addition without a second tensor", bad,
         [](Descriptors& d) {
             d.pointwise_operation(d.pointwise(dnn_add), d.output(10), nullptr, d.output());
         }},
        {"a function of nothing", bad,
         [](Descriptors& d) { d.pointwise_operation(d.pointwise(dnn_relu), nullptr, nullptr, d.output()); }},
        {"no function", bad,
         [](Descriptors& d) { d.pointwise_operation(nullptr, d.output(10), nullptr, d.output()); }},
        {"a bias of other length", bad,
         [](Descriptors& d) {
             d.pointwise_operation(d.pointwise(dnn_add), d.output(10), d.bias(15), d.output());
         },
         Asked::emulated},
        {"propagation of NaN on", fine, [](Descriptors& d) { d.pointwise(dnn_relu, 1); }},
        {"propagation of NaN off", fine, [](Descriptors& d) { d.pointwise(dnn_relu, 0); }},
        {"propagation of NaN neither", bad, [](Descriptors& d) { d.pointwise(dnn_relu, 2); },
         Asked::emulated},
        setting("propagation of NaN as a truth value", bad, dnn_pointwise, 2, dnn_boolean, 1),
    });
}

TEST_CASE("groups of channels that do not fit are refused, in both gradients too") {
    if (library_misuse_skipped()) return;
    const struct {
        const char* name;
        std::int64_t channels, filters, results;
        int status;
    } shapes[] = {
        {"two groups", 4, 16, 16, fine},
        {"a filter for each channel", 1, 8, 8, fine},
        {"two filters for each channel", 1, 16, 16, fine},
        {"channels that are no multiple", 3, 16, 16, bad},
        {"more channels than the image has", 16, 16, 16, bad},
        {"no channels", 0, 16, 16, bad},
        {"an odd number of filters for two groups", 4, 15, 15, bad},
        {"fewer filters than groups", 1, 4, 4, bad},
        {"results of one group only", 4, 16, 8, bad},
    };
    const std::pair<DnnKind, int> kinds[] = {{dnn_convolution_forward, dnn_forward_alpha},
                                             {dnn_convolution_image_gradient, dnn_image_gradient_alpha},
                                             {dnn_convolution_filter_gradient, dnn_filter_gradient_alpha}};
    for (const auto& [kind, first] : kinds)
        for (const auto& s : shapes)
            check({{s.name, s.status, [=, kind = kind, first = first](Descriptors& d) {
                        const D filters = d.tensor({.shape = {s.filters, s.channels, 3, 3},
                                                    .strides = {s.channels * 9, 9, 3, 1},
                                                    .id = 2}),
                                output = d.tensor(
                                    {{4, s.results, 10, 12}, {s.results * 120, 120, 12, 1}, 3, 16, false});
                        d.graph({d.operation(kind, first, d.convolution(), filters, d.image(), output)});
                    }}});
}

TEST_CASE("misused graphs, heuristics, plans and arguments of cuDNN are refused") {
    if (library_misuse_skipped()) return;
    static float memory[3][64];
    const std::vector<void*> pointers{memory[0], memory[1], memory[2]};
    check({
        {"a graph", fine, [](Descriptors& d) { d.plain_graph(); }},
        {"an empty graph", bad, [](Descriptors& d) { d.graph({}); }},
        {"an operation not finalised", not_finalized,
         [](Descriptors& d) { d.graph({d.make(dnn_convolution_forward)}); }},
        {"no operation", null, [](Descriptors& d) { d.graph({nullptr}); }},
        {"an operation twice", bad,
         [](Descriptors& d) {
             const D o = d.forward(d.convolution(), d.filters(), d.image(), d.output());
             d.graph({o, o});
         }},
        {"a tensor for an operation", bad, [](Descriptors& d) { d.graph({d.image()}); }, Asked::emulated},
        {"a virtual tensor that nothing writes", bad,
         [](Descriptors& d) {
             d.graph({d.pointwise_operation(d.pointwise(dnn_relu), d.output(10, true), nullptr, d.output())});
         },
         Asked::emulated},
        {"an id twice", twice,
         [](Descriptors& d) { d.graph({d.forward(d.convolution(), d.filters(), d.image(), d.output(1))}); },
         Asked::emulated},
        {"operations in reverse", fine,
         [](Descriptors& d) {
             const D sum = d.output(10, true);
             d.graph({d.pointwise_operation(d.pointwise(dnn_relu), sum, nullptr, d.output()),
                      d.forward(d.convolution(), d.filters(), d.image(), sum)});
         }},
        {"a handle that is none", null,
         [](Descriptors& d) {
             const void* const none = nullptr;
             d.set(d.make(dnn_graph), dnn_graph_handle, dnn_handle_type, 1, &none);
         }},
        {"the description of a GPU", fine, [](Descriptors& d) { d.device(); }},
        {"a description that is no JSON", bad,
         [](Descriptors& d) {
             const D gpu = d.make(dnn_device);
             d.set(gpu, dnn_device_json, dnn_char, 8, "nonsense");
             d.finalize(gpu);
         }},
        {"a description that says nothing", bad,
         [](Descriptors& d) {
             const D gpu = d.make(dnn_device);
             d.set(gpu, dnn_device_json, dnn_char, 2, "{}");
             d.finalize(gpu);
         }},
        {"heuristics without a graph", bad,
         [](Descriptors& d) { d.heuristics(nullptr, dnn_heuristics_a, d.device()); }},
        {"heuristics of a graph not finalised", not_finalized,
         [](Descriptors& d) { d.heuristics(d.make(dnn_graph), dnn_heuristics_a, d.device()); }},
        {"heuristics of an unknown mode", bad,
         [](Descriptors& d) { d.heuristics(d.plain_graph(), 7, d.device()); }, Asked::emulated},
        {"heuristics without a GPU", null,
         [](Descriptors& d) { d.heuristics(d.plain_graph(), dnn_heuristics_a, nullptr); }, Asked::emulated},
        {"an engine without a graph", null,
         [](Descriptors& d) {
             const D engine = d.make(dnn_engine);
             d.set(engine, dnn_engine_index, std::vector<std::int64_t>{0});  // not a null descriptor
             d.finalize(engine);
         }},
        {"an engine that there is not", unsupported,
         [](Descriptors& d) {
             constexpr int engine_graph = 1300, engine_device = 1307;
             const D engine = d.make(dnn_engine);
             d.set(engine, engine_graph, d.plain_graph());
             d.set(engine, engine_device, d.device());
             d.set(engine, dnn_engine_index, {9999});
             d.finalize(engine);
         }},
        {"an engine read into a tensor", bad,
         [](Descriptors& d) {
             const D config = d.configs(d.heuristics(d.plain_graph(), dnn_heuristics_a, d.device()), 1).at(0);
             D to = d.make(dnn_tensor);
             std::int64_t count = 0;
             d.get(config, dnn_config_engine, dnn_descriptor, 1, &count, &to);
         }},
        {"notes of an engine not finalised", not_initialized,
         [](Descriptors& d) {
             int notes[32];
             std::int64_t count = 0;
             d.get(d.make(dnn_engine), dnn_engine_numerical_notes, dnn_numerical_note, 32, &count, notes);
         }},
        {"a configuration without an engine", not_finalized,
         [](Descriptors& d) { d.finalize(d.make(dnn_engine_config)); }, Asked::emulated},
        {"a plan without a configuration", not_finalized,
         [](Descriptors& d) { d.plan(nullptr, d.device()); }},
        {"a plan of a configuration not finalised", not_finalized,
         [](Descriptors& d) { d.plan(d.make(dnn_engine_config), d.device()); }},
        {"a plan's workspace set", unsupported,
         [](Descriptors& d) { d.set(d.make(dnn_plan), dnn_plan_workspace, {1}); }},
        {"a workspace of a plan not finalised", not_initialized,
         [](Descriptors& d) {
             std::int64_t count = 0, bytes = 0;
             d.get(d.make(dnn_plan), dnn_plan_workspace, dnn_int64, 1, &count, &bytes);
         }},
        {"arguments", fine,
         [=](Descriptors& d) {
             d.pack({1, 2, 3}, pointers);
         }},
        {"more ids than pointers", bad,
         [=](Descriptors& d) {
             d.pack({1, 2, 3, 4}, pointers);
         }},
        {"no ids", bad, [=](Descriptors& d) { d.pack({}, pointers); }},
        {"no pointers", bad,
         [](Descriptors& d) {
             d.pack({1, 2, 3}, {});
         }},
        {"the same id twice", twice,
         [=](Descriptors& d) {
             d.pack({1, 2, 2}, pointers);
         },
         Asked::emulated},
        setting("pointers as integers", unsupported, dnn_variant_pack, dnn_pack_pointers, dnn_int64, 3),
        setting("two workspaces", bad, dnn_variant_pack, dnn_pack_workspace, dnn_pointer, 2),
        {"a plan run without a handle", bad,
         [=](Descriptors& d) {
             const D gpu = d.device(),
                     config = d.configs(d.heuristics(d.plain_graph(), dnn_heuristics_fallback, gpu), 1).at(0),
                     plan = d.plan(config, gpu), pack = d.pack({1, 2, 3}, pointers);
             d.execute(nullptr, plan, pack);
         }},
    });
}

TEST_CASE("a plan survives its text") {
    if (library_misuse_skipped()) return;
    constexpr int json = 405;  // CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION
    Descriptors d(cudnn_library().table);
    const D gpu = d.device();
    const D made =
        d.plan(d.configs(d.heuristics(d.plain_graph(), dnn_heuristics_fallback, gpu), 1).at(0), gpu);
    std::int64_t bytes = 0, count = 0, workspace = 0, again = -1;
    d.get(made, json, dnn_char, 0, &bytes, nullptr);
    std::string text(static_cast<std::size_t>(bytes), ' ');
    d.get(made, json, dnn_char, bytes, &count, text.data());
    REQUIRE(d.status() == fine);
    CHECK_THAT(text, ContainsSubstring("engineId"));
    // Whether relu keeps NaN is not in it.
    CHECK_THAT(text, !ContainsSubstring("nan"));
    const D restored = d.make(dnn_plan);
    d.set(restored, json, dnn_char, bytes, text.data());
    d.set(restored, dnn_plan_device, gpu);
    d.finalize(restored);
    d.get(made, dnn_plan_workspace, dnn_int64, 1, &count, &workspace);
    d.get(restored, dnn_plan_workspace, dnn_int64, 1, &count, &again);
    CHECK(d.status() == fine);
    CHECK(again == workspace);
    const D broken = d.make(dnn_plan);
    d.set(broken, json, dnn_char, 4, "oops");
    d.set(broken, dnn_plan_device, gpu);
    CHECK(d.finalize(broken) == bad);
}

TEST_CASE("of the engines that the emulated cuDNN proposes, only exact and deterministic ones are taken") {
    if (library_misuse_skipped()) return;
    if (!emulated(cudnn_library().path)) return;
    const CudnnTable& library = cudnn_library().table;
    ConvShape s;
    s.image = {{4, 8, 10, 12}, {960, 120, 12, 1}};
    s.filters = {{16, 8, 3, 3}, {72, 9, 3, 1}};
    s.output = {{4, 16, 8, 10}, {1280, 80, 10, 1}};
    const DnnTarget target{nullptr, test::described_gpu()};
    const auto engine = [&](std::int64_t most_workspace) {
        return plan_convolution(library, s, target, most_workspace);
    };
    for (const auto kind :
         {ConvCall::Kind::forward, ConvCall::Kind::image_gradient, ConvCall::Kind::filter_gradient})
        for (const bool fused : {false, true}) {
            if (fused && kind != ConvCall::Kind::forward) continue;
            s.kind = kind;
            s.bias = s.relu = fused;
            s.precision = Precision::float32;
            // Eight come before it or want too much: of less exact factors or sums, of changing results, of
            // three gigabytes, of a driver.
            const ConvPlan exact = engine(Cudnn::most_workspace);
            CHECK(!exact.tensor_cores);
            CHECK(exact.workspace == 288);
            CHECK(engine(287).workspace == 0);
            s.precision = Precision::tf32;
            const ConvPlan rounded = engine(Cudnn::most_workspace);
            CHECK(rounded.tensor_cores);
            CHECK(rounded.workspace == 50704);
        }
}

TEST_CASE("misused descriptors of cuBLASLt are refused") {
    const bool sanitized = !std::string(BITALE_SANITIZE).empty() && !emulated(cublaslt_library().path);
    if (!cublaslt_library().present || sanitized) {
        std::printf("SKIPPED: no cuBLASLt: %s\n", cublaslt_library().problem.c_str());
        return;
    }
    const CublasLtTable& library = cublaslt_library().table;
    constexpr int invalid = 7, uninitialised = 1;
    LtProduct* product = nullptr;
    LtPreference* preference = nullptr;
    LtLayout* layout = nullptr;
    REQUIRE(library.cublasLtMatmulDescCreate(&product, lt_compute_float32, lt_float32) == 0);
    REQUIRE(library.cublasLtMatmulPreferenceCreate(&preference) == 0);
    REQUIRE(library.cublasLtMatrixLayoutCreate(&layout, lt_float32, 4, 4, 4) == 0);
    CHECK(library.cublasLtMatmulDescCreate(nullptr, lt_compute_float32, lt_float32) == invalid);
    CHECK(library.cublasLtMatmulPreferenceCreate(nullptr) == invalid);
    CHECK(library.cublasLtMatrixLayoutCreate(nullptr, lt_float32, 4, 4, 4) == invalid);
    CHECK(library.cublasLtCreate(nullptr) == invalid);
    CHECK(library.cublasLtDestroy(nullptr) == invalid);
    const std::uint64_t value = 1;
    const auto set = [&](int attribute, std::size_t bytes) {
        return library.cublasLtMatmulDescSetAttribute(product, attribute, &value, bytes);
    };
    for (const int attribute : {int{lt_transpose_a}, int{lt_transpose_b}, int{lt_epilogue}}) {
        CHECK(set(attribute, 4) == 0);
        CHECK(set(attribute, 8) == invalid);
        CHECK(set(attribute, 0) == invalid);
        CHECK(library.cublasLtMatmulDescSetAttribute(product, attribute, nullptr, 4) == invalid);
    }
    CHECK(set(lt_bias_pointer, 8) == 0);
    CHECK(set(lt_bias_pointer, 4) == invalid);
    for (const int unknown : {9, 999, -1}) CHECK(set(unknown, 4) == invalid);
    CHECK(library.cublasLtMatmulDescSetAttribute(nullptr, lt_epilogue, &value, 4) == invalid);
    const auto prefer = [&](int attribute, std::size_t bytes) {
        return library.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, bytes);
    };
    CHECK(prefer(lt_workspace_limit, 8) == 0);
    CHECK(prefer(lt_workspace_limit, 4) == invalid);
    CHECK(prefer(lt_alignment_a, 4) == 0);
    CHECK(prefer(lt_alignment_a, 8) == invalid);
    for (const int unknown : {2, 99}) CHECK(prefer(unknown, 4) == invalid);
    CHECK(library.cublasLtMatmulPreferenceSetAttribute(nullptr, lt_alignment_a, &value, 4) == invalid);
    LtChoice choice{};
    int found = 0;
    CHECK(library.cublasLtMatmulAlgoGetHeuristic(nullptr, product, layout, layout, layout, layout, preference,
                                                 1, &choice, &found) == uninitialised);
    const float one = 1, zero = 0;
    alignas(16) float data[16] = {};
    CHECK(library.cublasLtMatmul(nullptr, product, &one, data, layout, data, layout, &zero, data, layout,
                                 data, layout, &choice.algorithm, nullptr, 0, nullptr) == uninitialised);
    CHECK(library.cublasLtMatmulDescDestroy(product) == 0);
    CHECK(library.cublasLtMatmulPreferenceDestroy(preference) == 0);
    CHECK(library.cublasLtMatrixLayoutDestroy(layout) == 0);
}
