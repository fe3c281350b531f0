#include "runtime/cuda/emulator/libraries/cudnn_engines.h"

#include <link.h>

#include <algorithm>
#include <string>

#include "runtime/cuda/types.h"

namespace bitale::emulated {

namespace {

using namespace cuda;

constexpr int note_strict_nan = 9;  // CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP
constexpr int tensor_cores_since = 800;
constexpr std::int64_t heuristic_tile = 12;

const std::vector<DnnEngine>& engines() {
    static const auto& all = *new std::vector<DnnEngine>{
        {.index = 0, .numerical_notes = {note_strict_nan}},
        {.index = 1, .workspace = 288},
        {.index = 2,
         .numerical_notes = {dnn_note_tensor_core},
         .least_capability = tensor_cores_since,
         .workspace = 50704,
         .arithmetic = {.mantissa_bits = tf32_mantissa_bits}},
        {.index = 3,
         .numerical_notes = {dnn_note_tensor_core, dnn_note_down_convert},
         .least_capability = tensor_cores_since,
         .arithmetic = {.mantissa_bits = bf16_mantissa_bits}},
        {.index = 4,
         .numerical_notes = {dnn_note_nondeterministic},
         .arithmetic = {.changes_from_run_to_run = true}},
        {.index = 5,
         .numerical_notes = {dnn_note_reduced_sum},
         .arithmetic = {.sum_bits = tf32_mantissa_bits}},
        {.index = 6, .workspace = std::int64_t{3} << 30},
        {.index = 7, .behavior_notes = {dnn_note_runtime_compiled}, .runtime_compiled = true},
        {.index = 8,
         .numerical_notes = {dnn_note_tensor_core, dnn_note_nondeterministic},
         .least_capability = tensor_cores_since,
         .arithmetic = {.mantissa_bits = tf32_mantissa_bits, .changes_from_run_to_run = true}},
        {.index = 9,
         .numerical_notes = {dnn_note_winograd, dnn_note_winograd_4x4},
         .arithmetic = {.transformed_tile = 4}},
        {.index = 10, .numerical_notes = {dnn_note_fft}, .arithmetic = {.transformed_tile = 16}},
    };
    return all;
}

bool is_convolution(const DnnOperation& o) {
    return o.kind == dnn_convolution_forward || o.kind == dnn_convolution_image_gradient ||
           o.kind == dnn_convolution_filter_gradient;
}

// A convolution of float32 maps in two dimensions, in groups or not; after a forward one, an addition and a
// relu.
bool is_known(const DnnGraph& graph) {
    for (const auto& [id, t] : graph.tensors)
        if (t.type != dnn_float32 || t.shape.size() != 4 || t.extent() == 0) return false;
    if (graph.operations.empty()) return false;
    const DnnOperation& first = graph.operations.front();
    if (!is_convolution(first) || first.compute != dnn_float32 || first.pad.size() != 2 ||
        first.pad != first.pad_after)
        return false;
    std::int64_t last = first.result();
    bool added = false, clipped = false;
    for (std::size_t i = 1; i < graph.operations.size(); ++i) {
        const DnnOperation& o = graph.operations[i];
        if (first.kind != dnn_convolution_forward || o.kind != dnn_pointwise_operation || o.x != last ||
            o.compute != dnn_float32 || !o.plain_clips || clipped)
            return false;
        if (o.mode == dnn_add && !added)
            added = true;
        else if (o.mode == dnn_relu)
            clipped = true;
        else
            return false;
        last = o.output;
    }
    return !graph.tensors.at(last).is_virtual;
}

}  // namespace

const DnnEngine* dnn_engine_at(int index) {
    return index >= 0 && index < dnn_engine_count ? &engines()[static_cast<std::size_t>(index)] : nullptr;
}

bool supports(const DnnEngine& engine, const DnnGraph& graph, int capability) {
    return capability >= engine.least_capability && is_known(graph);
}

std::vector<DnnChoice> proposals(const DnnGraph& graph, int mode, int capability) {
    static constexpr int by_speed[] = {3, 5, 4, 8, 2, 9, 10, 6, 7, 1, 0}, safe[] = {1, 0};
    std::vector<DnnChoice> list;
    const auto propose = [&](int index) {
        if (supports(*dnn_engine_at(index), graph, capability))
            list.push_back({index, heuristic_tile, capability});
    };
    if (mode == dnn_heuristics_fallback)
        std::for_each(std::begin(safe), std::end(safe), propose);
    else
        std::for_each(std::begin(by_speed), std::end(by_speed), propose);
    return list;
}

std::int64_t workspace_of(const DnnChoice& choice) {
    return dnn_engine_at(choice.engine)->workspace * (choice.tile == heuristic_tile ? 1 : 2);
}

void check_prerequisites(const DnnEngine& engine, bool has_device) {
    if (!engine.runtime_compiled) return;
    if (!has_device)
        throw Refusal{dnn_prerequisite_missing, "an engine that is compiled at run time needs a driver"};
    bool found = false;
    dl_iterate_phdr(
        [](dl_phdr_info* library, std::size_t, void* is_there) {
            if (std::string(library->dlpi_name).find("libnvrtc-builtins.so") != std::string::npos)
                *static_cast<bool*>(is_there) = true;
            return 0;
        },
        &found);
    if (!found) throw Refusal{dnn_prerequisite_missing, "NVRTC fails to open libnvrtc-builtins.so"};
}

}  // namespace bitale::emulated
