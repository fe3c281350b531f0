// Which engine of cuDNN computes a convolution: kept on disk, the same in every process, named in words. With
// functions that record what they are asked, so without cuDNN and without a GPU.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/report.h"
#include "runtime/state.h"
#include "tests/cuda/gpus.h"
#include "tests/cuda/recording_cudnn.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::cuda;
using namespace bitale::test;

namespace {

ConvShape some_shape() {
    const auto plain = [](std::array<std::int64_t, 4> shape) {
        return ConvSizes{shape, {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}};
    };
    ConvShape s;
    s.image = plain({8, 4, 10, 10});
    s.filters = plain({6, 4, 3, 3});
    s.output = plain({8, 6, 8, 8});
    s.flip = true;
    return s;
}

using Events = std::vector<std::string>;

// What cuDNN is asked by a process that computes one convolution.
Events events_of_a_process(const std::vector<RecordedEngine>& engines, const ConvShape& shape,
                           const std::string& identity = "a GPU", std::string* choice = nullptr) {
    REQUIRE(emulated_runtime().cudaSetDevice(0) == success);
    const CudnnTable& table = recording_cudnn();
    RecordedCudnn& recorded = recorded_cudnn();
    recorded.engines = engines;
    MemoryLedger ledger;
    Cudnn library(table, emulated_runtime(), ledger, EngineCache(identity),
                  [&] { recorded.events.emplace_back("NVRTC"); });
    if (choice) CHECK(library.choice(shape).empty());
    alignas(64) static float somewhere[4][16];
    for (int call = 0; call < 2; ++call)
        library.convolve(shape, {somewhere[0], somewhere[1], somewhere[2], somewhere[3]}, nullptr);
    if (choice) *choice = library.choice(shape);
    return recorded.events;
}

const RecordedEngine simple{3, {{2, 1}}}, tiled{7, {{2, 4}, {18, 1}}, {}, {}, 1 << 20},
    compiled{9, {}, {}, {dnn_note_runtime_compiled}}, on_tensor_cores{5, {}, {dnn_note_tensor_core}};

}  // namespace

TEST_CASE("another process uses the engine that the first one chose") {
    const TemporaryFolder folder;
    const ScopedOptions scope(with_cache(folder / "cache"));
    std::string choice;
    CHECK(events_of_a_process({on_tensor_cores, tiled, simple}, some_shape(), "a GPU", &choice) ==
          Events{"NVRTC", "heuristics", "plan of 7", "run 7", "run 7"});
    CHECK(choice == "cuDNN's engine 7 with knobs 2=4 18=1, 1.0 MB of workspace");
    // Whatever is proposed now. NVRTC is not opened, nobody is asked.
    CHECK(events_of_a_process({simple, tiled}, some_shape(), "a GPU", &choice) ==
          Events{"plan of 7", "run 7", "run 7"});
    CHECK_THAT(choice, ContainsSubstring("engine 7 with knobs 2=4 18=1") &&
                           ContainsSubstring("as an earlier process chose"));
    const std::vector<const RecordedDescriptor*> configs = recorded_cudnn().of_kind(dnn_engine_config);
    REQUIRE(configs.size() == 1);
    CHECK(configs[0]->attributes.at(dnn_config_knobs).count == 2);
    // Another GPU, another shape, another precision: each is a question of its own.
    const Events asked{"NVRTC", "heuristics", "plan of 3", "run 3", "run 3"};
    CHECK(events_of_a_process({simple, tiled}, some_shape(), "another GPU") == asked);
    ConvShape other = some_shape();
    other.image.strides[0] += 16;
    CHECK(events_of_a_process({simple, tiled}, other) == asked);
    other = some_shape();
    other.precision = Precision::tf32;
    CHECK(events_of_a_process({simple, tiled}, other) == asked);
}

TEST_CASE("an engine that no longer makes a plan is forgotten") {
    const TemporaryFolder folder;
    const ScopedOptions scope(with_cache(folder / "cache"));
    const Events simple_chosen{"NVRTC", "heuristics", "plan of 3", "run 3", "run 3"};
    CHECK(events_of_a_process({tiled}, some_shape()).back() == "run 7");
    RecordedEngine broken = tiled;
    broken.works = false;
    CHECK(events_of_a_process({broken, simple}, some_shape()) == simple_chosen);
    CHECK(events_of_a_process({tiled, simple}, some_shape()).front() == "plan of 3");
    // Nor is one used that is not exact enough by now, wants too much memory, or is not there.
    RecordedEngine rounded = simple;
    rounded.numerical = {dnn_note_tensor_core};
    CHECK(events_of_a_process({rounded, tiled}, some_shape()).back() == "run 7");
    RecordedEngine hungry = tiled;
    hungry.workspace = Cudnn::most_workspace + 1;
    CHECK(events_of_a_process({hungry, simple}, some_shape()).back() == "run 3");
    CHECK(events_of_a_process({tiled}, some_shape()) ==
          Events{"NVRTC", "heuristics", "plan of 7", "run 7", "run 7"});
}

TEST_CASE("NVRTC is open before cuDNN plans with an engine that it compiles") {
    const TemporaryFolder folder;
    const ScopedOptions scope(with_cache(folder / "cache"));
    std::string choice;
    CHECK(events_of_a_process({compiled}, some_shape(), "a GPU", &choice) ==
          Events{"NVRTC", "heuristics", "plan of 9", "run 9", "run 9"});
    CHECK_THAT(choice, ContainsSubstring("compiled at run time"));
    CHECK(events_of_a_process({compiled}, some_shape()) == Events{"NVRTC", "plan of 9", "run 9", "run 9"});
}

TEST_CASE("without the cache every process asks the heuristics") {
    Options without = options();
    without.cache = false;
    const ScopedOptions scope(without);
    for (int process = 0; process < 2; ++process)
        CHECK(events_of_a_process({simple}, some_shape()) ==
              Events{"NVRTC", "heuristics", "plan of 3", "run 3", "run 3"});
}

TEST_CASE("every proposal is shown, with its notes and what is against it") {
    RecordedEngine hungry = compiled, broken{4};
    hungry.workspace = 100;
    broken.works = false;
    const CudnnTable& table = recording_cudnn();
    recorded_cudnn().engines = {on_tensor_cores, hungry, broken, simple};
    const auto proposals = [&](Precision precision, std::size_t most) {
        ConvShape shape = some_shape();
        shape.precision = precision;
        std::vector<ConvProposal> list;
        CHECK(for_each_proposal(table, shape, {nullptr, "{}"}, 99, [&](ConvProposal p) {
                  list.push_back(std::move(p));
                  return list.size() < most;
              }).empty());
        return list;
    };
    // The mode for everything and that for the rest are answered alike here.
    const std::vector<ConvProposal> all = proposals(Precision::float32, 100);
    REQUIRE(all.size() == 8);
    CHECK((all[0].notes.tensor_cores && all[0].inexact && !all[0].plan));
    CHECK_THAT(all[0].refusal, ContainsSubstring("engine 5 is less exact"));
    CHECK((all[1].notes.runtime_compiled && all[1].engine.runtime_compiled && !all[1].inexact));
    CHECK(all[1].refusal == "engine 9 wants 100 bytes of workspace");
    CHECK((all[2].engine.index == 4 && !all[2].plan && !all[2].refusal.empty()));
    CHECK(all[3].engine == ConvEngine{3, false, {{2, 1}}});
    REQUIRE(all[3].plan);
    CHECK(all[3].plan->engine == all[3].engine);
    CHECK(all[3].notes == EngineNotes{});
    // Nothing is planned that nobody has looked at.
    recorded_cudnn().events.clear();
    const std::vector<ConvProposal> first = proposals(Precision::tf32, 1);
    REQUIRE(first.size() == 1);
    CHECK((first[0].plan && first[0].plan->tensor_cores));
    CHECK(recorded_cudnn().events == Events{"heuristics", "plan of 5"});
}

TEST_CASE("engines depend on the library, the GPU and the driver") {
    const std::string identity = engine_identity(recording_cudnn(), emulated_runtime(), 0);
    CHECK_THAT(identity, ContainsSubstring("91900") && ContainsSubstring("emulated GPU"));
}

TEST_CASE("cuBLASLt's algorithm is told as far as it tells") {
    REQUIRE(emulated_runtime().cudaSetDevice(0) == success);
    CublasLtTable table;
    table.cublasLtGetStatusString = [](int) { return "a status"; };
    table.cublasLtCreate = [](LtHandle**) { return 0; };
    table.cublasLtMatmulDescCreate = [](LtProduct**, int, int) { return 0; };
    table.cublasLtMatmulDescSetAttribute = [](LtProduct*, int, const void*, std::size_t) { return 0; };
    table.cublasLtMatrixLayoutCreate = [](LtLayout**, int, std::uint64_t, std::uint64_t, std::int64_t) {
        return 0;
    };
    table.cublasLtMatmulPreferenceCreate = [](LtPreference**) { return 0; };
    table.cublasLtMatmulPreferenceSetAttribute = [](LtPreference*, int, const void*, std::size_t) {
        return 0;
    };
    table.cublasLtMatmulAlgoGetHeuristic = [](LtHandle*, LtProduct*, LtLayout*, LtLayout*, LtLayout*,
                                              LtLayout*, LtPreference*, int, LtChoice* choice, int* found) {
        choice->workspace = 4 << 20;
        *found = 1;
        return 0;
    };
    table.cublasLtMatmul = [](LtHandle*, LtProduct*, const void*, const void*, LtLayout*, const void*,
                              LtLayout*, const void*, const void*, LtLayout*, void*, LtLayout*,
                              const LtAlgorithm*, void*, std::size_t, Stream) { return 0; };
    table.cublasLtMatmulAlgoConfigGetAttribute = [](const LtAlgorithm*, int attribute, void* value,
                                                    std::size_t bytes, std::size_t* written) {
        if (attribute == lt_algorithm_stages) return 15;  // CUBLAS_STATUS_NOT_SUPPORTED
        const std::int32_t number = 20 + attribute;
        std::memcpy(value, &number, *written = bytes);
        return 0;
    };
    MemoryLedger ledger;
    {
        // Its workspace counts towards the limit of the device.
        Options o = options();
        o.memory_limit = static_cast<std::int64_t>(CublasLt::workspace_bytes) - 1;
        const ScopedOptions scope(o);
        CHECK_THAT(error_of([&] { CublasLt(table, emulated_runtime(), ledger); }),
                   ContainsSubstring("workspace of cuBLASLt") && ContainsSubstring("memory_limit"));
        CHECK(ledger.now() == 0);
    }
    CublasLt library(table, emulated_runtime(), ledger);
    CHECK(ledger.now() == static_cast<std::int64_t>(CublasLt::workspace_bytes));
    const GemmShape shape{64, 48, 32};
    CHECK(library.choice(shape).empty());
    alignas(64) float somewhere[16];
    library.multiply(shape, somewhere, somewhere, nullptr, somewhere, nullptr);
    CHECK(library.choice(shape) == "cuBLASLt's algorithm 20, tile 21, split-K 22, 4.2 MB of workspace");
    CHECK(library.choice({64, 48, 33}).empty());
}

TEST_CASE("a report names what computes each call of a library, for each size") {
    if (emulator_skipped()) return;
    const Expr x = input(float32, {-1, 8, 20, 20}, "x"), w = input(float32, {16, 8, 3, 3}, "w");
    const Function f = function({x, w}, conv2d(x, w), {.device = "emulator"});
    CHECK(f.report(Detail::complete).find("computed by") ==
          std::string::npos);  // the emulator's stand-ins have none
    Backend backend = emulator_backend();
    backend.conv_algorithm = [](const ConvShape& shape) {
        return "an engine for " + std::to_string(shape.image.shape[0]) + " images";
    };
    Gpu gpu(backend, &backend, "a test's GPU", "sm_90");
    Function::State state;
    state.device = f.state().device;
    state.program = f.state().program;
    state.inputs = f.state().inputs;
    Build build;
    build.plain = f.state().plain;
    build.signature = f.state().signature;
    build.program = state.program;
    state.executable = std::make_unique<CudaRunner>(build, gpu);
    CHECK_THAT(report_of(state, Detail::complete),
               ContainsSubstring("its algorithm is chosen at the first call\n"));
    for (const std::int64_t images : {64, 48, 64})
        state.executable->run(
            std::vector<Array>{Array(float32, {images, 8, 20, 20}), Array(float32, {16, 8, 3, 3})});
    CHECK_THAT(report_of(state, Detail::complete),
               ContainsSubstring(
                   "computed by an engine for 64 images; for other sizes by an engine for 48 images\n"));
}
