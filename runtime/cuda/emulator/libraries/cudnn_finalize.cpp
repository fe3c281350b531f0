// What the emulated cuDNN checks when a descriptor is finalised.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/cuda/emulator/libraries/cudnn_descriptor.h"

namespace bitale::emulated {

namespace {

using namespace cuda;

void check(bool right, const std::string& words, int status = dnn_bad_value) {
    if (!right) throw Refusal{status, words};
}

// CUDNN_DATA_..., bytes of an element; 0 where there is none of that number.
std::int64_t element_bytes(int type) {
    switch (type) {
        case 0:
        case 4:
        case 19: return 4;
        case 1:
        case 10:
        case 20: return 8;
        case 2:
        case 9: return 2;
        case 3:
        case 6:
        case 11:
        case 12:
        case 13:
        case 15: return 1;
        default: return 0;
    }
}

void finalize_tensor(Descriptor& d) {
    DnnTensor& t = d.tensor;
    for (const int attribute :
         {dnn_tensor_type, dnn_tensor_shape, dnn_tensor_strides, dnn_tensor_id, dnn_tensor_alignment})
        check(d.has(attribute), "a tensor without attribute " + std::to_string(attribute));
    t.type = d.number(dnn_tensor_type);
    t.id = d.integer(dnn_tensor_id);
    t.alignment = d.integer(dnn_tensor_alignment);
    t.shape = d.integers(dnn_tensor_shape);
    t.strides = d.integers(dnn_tensor_strides);
    t.is_virtual = d.has(dnn_tensor_virtual) && d.values.at(dnn_tensor_virtual).bytes[0] != std::byte{0};
    check(t.shape.size() == t.strides.size(), "a tensor of " + std::to_string(t.shape.size()) +
                                                  " dimensions with " + std::to_string(t.strides.size()) +
                                                  " strides");
    for (std::size_t i = 0; i < t.shape.size(); ++i)
        check(t.shape[i] >= 0 && t.strides[i] >= 0, "a tensor with a negative length or stride");
    const std::int64_t bytes = element_bytes(t.type);
    check(bytes > 0, "no elements of type " + std::to_string(t.type));
    check(t.alignment > 0 && t.alignment % bytes == 0, "an alignment of " + std::to_string(t.alignment) +
                                                           " bytes, which elements of " +
                                                           std::to_string(bytes) + " cannot have");
}

void finalize_pointwise(Descriptor& d) {
    for (const int attribute : {dnn_pointwise_mode_is, dnn_pointwise_compute})
        check(d.has(attribute), "a pointwise function without attribute " + std::to_string(attribute));
    const int nan = d.number(dnn_nan_is);
    check(nan == 0 || nan == 1, "CUDNN_ATTR_POINTWISE_NAN_PROPAGATION is 0 or 1");
}

void finalize_convolution(Descriptor& d) {
    for (int attribute = dnn_convolution_compute; attribute <= dnn_convolution_axes; ++attribute)
        check(d.has(attribute), "a convolution without attribute " + std::to_string(attribute));
    const std::int64_t axes = d.integer(dnn_convolution_axes), most_axes = 6;
    check(axes > 0 && axes <= most_axes, "a convolution along " + std::to_string(axes) + " axes");
    const auto values = [&](int attribute, std::int64_t least) {
        const std::vector<std::int64_t> list = d.integers(attribute);
        check(static_cast<std::int64_t>(list.size()) == axes,
              "attribute " + std::to_string(attribute) + " of a convolution has " +
                  std::to_string(list.size()) + " elements for " + std::to_string(axes) + " axes");
        for (const std::int64_t v : list)
            check(v >= least,
                  "attribute " + std::to_string(attribute) + " of a convolution is " + std::to_string(v));
    };
    values(dnn_convolution_dilations, 1);
    values(dnn_convolution_strides, 1);
    values(dnn_convolution_padding_before, 0);
    values(dnn_convolution_padding_after, 0);
    const int mode = d.number(dnn_convolution_mode_is);
    check(mode == dnn_flipped_convolution || mode == dnn_cross_correlation, "no such mode of convolution");
}

const Descriptor& part(const Descriptor& d, int attribute) {
    const Reference* r = d.reference(attribute);
    check(r != nullptr, "an operation without attribute " + std::to_string(attribute));
    check(r->finalized, "attribute " + std::to_string(attribute) + " of an operation is not finalised");
    return *r->to;
}

std::int64_t add_tensor(Descriptor& d, const Descriptor& tensor) {
    const auto [it, is_new] = d.tensors.emplace(tensor.tensor.id, tensor.tensor);
    check(is_new || it->second == tensor.tensor,
          "two tensors have the id " + std::to_string(tensor.tensor.id), dnn_duplicated);
    return tensor.tensor.id;
}

void finalize_convolution_operation(Descriptor& d) {
    const int first = d.kind == dnn_convolution_forward          ? dnn_forward_alpha
                      : d.kind == dnn_convolution_image_gradient ? dnn_image_gradient_alpha
                                                                 : dnn_filter_gradient_alpha;
    const Descriptor &c = part(d, first + 2), &filters = part(d, first + 3), &image = part(d, first + 4),
                     &output = part(d, first + 5);
    const DnnTensor &w = filters.tensor, &x = image.tensor, &y = output.tensor;
    const auto axes = static_cast<std::size_t>(c.integer(dnn_convolution_axes));
    check(x.shape.size() == axes + 2 && w.shape.size() == axes + 2 && y.shape.size() == axes + 2,
          "a convolution along " + std::to_string(axes) + " axes of tensors of other dimensions");
    check(y.shape[0] == x.shape[0], "images and results differ in number");
    check(
        w.shape[1] > 0 && x.shape[1] > 0 && x.shape[1] % w.shape[1] == 0,
        "images of " + std::to_string(x.shape[1]) + " channels and filters of " + std::to_string(w.shape[1]));
    const std::int64_t groups = x.shape[1] / w.shape[1];
    check(w.shape[0] % groups == 0,
          std::to_string(w.shape[0]) + " filters for " + std::to_string(groups) + " groups of channels");
    check(y.shape[1] == w.shape[0], "results of " + std::to_string(y.shape[1]) + " channels by " +
                                        std::to_string(w.shape[0]) + " filters");
    DnnOperation& o = d.operation;
    o.pad = c.integers(dnn_convolution_padding_before);
    o.pad_after = c.integers(dnn_convolution_padding_after);
    o.stride = c.integers(dnn_convolution_strides);
    o.dilation = c.integers(dnn_convolution_dilations);
    for (std::size_t a = 0; a < axes; ++a) {
        const std::int64_t left =
            x.shape[2 + a] + o.pad[a] + o.pad_after[a] - (w.shape[2 + a] - 1) * o.dilation[a] - 1;
        check(left >= 0 && y.shape[2 + a] == left / o.stride[a] + 1,
              "a result of length " + std::to_string(y.shape[2 + a]) + " along axis " + std::to_string(a) +
                  " of a convolution of " + std::to_string(x.shape[2 + a]) + " by " +
                  std::to_string(w.shape[2 + a]));
    }
    o.kind = d.kind;
    o.alpha = d.real(first, 1);
    o.beta = d.real(first + 1, 0);
    o.flipped = c.number(dnn_convolution_mode_is) == dnn_flipped_convolution;
    o.compute = c.number(dnn_convolution_compute);
    o.image = add_tensor(d, image);
    o.filters = add_tensor(d, filters);
    o.output = add_tensor(d, output);
}

void finalize_pointwise_operation(Descriptor& d) {
    const Descriptor &p = part(d, dnn_operation_pointwise), &x = part(d, dnn_operation_x),
                     &y = part(d, dnn_operation_y);
    DnnOperation& o = d.operation;
    o.kind = d.kind;
    o.mode = p.number(dnn_pointwise_mode_is);
    o.compute = p.number(dnn_pointwise_compute);
    o.keeps_nan = p.number(dnn_nan_is) == 1;
    o.plain_clips =
        p.real(dnn_first_clip, 0) == 0 && !p.has(dnn_first_clip + 1) && p.real(dnn_first_clip + 2, 0) == 0;
    o.alpha = d.real(dnn_first_alpha, 1);
    o.alpha2 = d.real(dnn_first_alpha + 1, 1);
    o.has_b = o.mode == dnn_add;
    o.x = add_tensor(d, x);
    o.output = add_tensor(d, y);
    // Lengths of 1 are repeated.
    const auto broadcasts = [&](const Descriptor& from) {
        check(from.tensor.shape.size() == y.tensor.shape.size(), "tensors of different dimensions");
        for (std::size_t i = 0; i < y.tensor.shape.size(); ++i)
            check(from.tensor.shape[i] == y.tensor.shape[i] || from.tensor.shape[i] == 1,
                  "lengths " + std::to_string(from.tensor.shape[i]) + " and " +
                      std::to_string(y.tensor.shape[i]) + " in a pointwise operation");
    };
    broadcasts(x);
    if (!o.has_b) {
        check(!d.reference(dnn_operation_b), "a function of one tensor with a second");
        return;
    }
    const Descriptor& b = part(d, dnn_operation_b);
    broadcasts(b);
    o.b = add_tensor(d, b);
}

void finalize_graph(Descriptor& d) {
    const auto it = d.values.find(dnn_graph_operations);
    check(it != d.values.end(), "a graph without operations");
    DnnGraph graph;
    for (const Reference& r : it->second.references) {
        check(r.finalized, "an operation of the graph is not finalised", dnn_not_finalized);
        graph.operations.push_back(r.to->operation);
        for (const auto& [id, tensor] : r.to->tensors) {
            const auto [known, is_new] = graph.tensors.emplace(id, tensor);
            check(is_new || known->second == tensor, "two tensors have the id " + std::to_string(id),
                  dnn_duplicated);
        }
    }
    check_graph(graph);
    d.graph = std::make_shared<const DnnGraph>(std::move(graph));
    d.has_device = d.has(dnn_graph_handle);
}

const Descriptor& finalized(const Descriptor& d, int attribute, int status_of_none) {
    const Reference* r = d.reference(attribute);
    check(r != nullptr, "attribute " + std::to_string(attribute) + " is not set", status_of_none);
    check(r->finalized, "attribute " + std::to_string(attribute) + " is not finalised", dnn_not_finalized);
    return *r->to;
}

// Of the GPU: the description, or the one of a handle.
int capability_of(const Descriptor& d, int attribute, bool has_handle) {
    if (d.reference(attribute)) return finalized(d, attribute, dnn_bad_value).choice.capability;
    check(has_handle, "neither a handle nor the description of a GPU", dnn_null_pointer);
    return emulated_capability;
}

std::shared_ptr<Descriptor> config_of(const std::shared_ptr<const DnnGraph>& graph, const DnnChoice& choice) {
    auto engine = make_descriptor(dnn_engine), config = make_descriptor(dnn_engine_config),
         knob = make_descriptor(dnn_knob_choice);
    engine->graph = graph;
    engine->choice = config->choice = choice;
    const int type = dnn_tile_size;
    set_attribute(*knob, dnn_knob_is, dnn_knob_type, 1, &type);
    set_attribute(*knob, dnn_knob_value, dnn_int64, 1, &choice.tile);
    engine->finalized = config->finalized = knob->finalized = true;
    config->graph = graph;
    config->values[dnn_config_engine] = {1, {}, {{engine, true}}};
    config->values[dnn_config_knobs] = {1, {}, {{knob, true}}};
    return config;
}

void finalize_heuristics(Descriptor& d) {
    const Descriptor& graph = finalized(d, dnn_heuristics_graph, dnn_bad_value);
    check(d.has(dnn_heuristics_mode_is), "heuristics without a mode");
    const int mode = d.number(dnn_heuristics_mode_is), modes = 4;
    check(mode >= 0 && mode < modes, "no heuristics of mode " + std::to_string(mode));
    const int capability = capability_of(d, dnn_heuristics_device, graph.has_device);
    for (const DnnChoice& choice : proposals(*graph.graph, mode, capability))
        d.results.push_back(config_of(graph.graph, choice));
}

void finalize_engine(Descriptor& d) {
    const Descriptor& graph = finalized(d, dnn_engine_graph, dnn_null_pointer);
    const std::int64_t index = d.integer(dnn_engine_index, -1);
    const DnnEngine* engine = index < dnn_engine_count ? dnn_engine_at(static_cast<int>(index)) : nullptr;
    check(engine != nullptr, "no engine " + std::to_string(index), dnn_not_supported);
    d.choice = {engine->index, 0, capability_of(d, dnn_engine_device, graph.has_device)};
    check(supports(*engine, *graph.graph, d.choice.capability),
          "engine " + std::to_string(index) + " does not compute this graph", dnn_not_supported);
    d.graph = graph.graph;
}

void finalize_config(Descriptor& d) {
    const Descriptor& engine = finalized(d, dnn_config_engine, dnn_not_finalized);
    d.choice = engine.choice;
    d.graph = engine.graph;
    for (std::size_t i = 0; const Reference* knob = d.reference(dnn_config_knobs, i); ++i) {
        check(knob->finalized, "the choice of a knob is not finalised", dnn_not_finalized);
        check(knob->to->number(dnn_knob_is) == dnn_tile_size, "the engine has no such knob",
              dnn_not_supported);
        d.choice.tile = knob->to->integer(dnn_knob_value);
    }
}

void finalize_plan(Descriptor& d) {
    d.has_device = d.has(dnn_plan_handle);
    const int capability = d.has(dnn_plan_json) || d.reference(dnn_plan_config)
                               ? capability_of(d, dnn_plan_device, d.has_device)
                               : 0;
    if (d.has(dnn_plan_json)) {
        DnnGraph graph;
        read_plan(d.text(dnn_plan_json), graph, d.choice);
        check(d.choice.capability == capability, "the plan was made for another GPU", dnn_other_version);
        check(dnn_engine_at(d.choice.engine) != nullptr, "the plan has an unknown engine");
        d.graph = std::make_shared<const DnnGraph>(std::move(graph));
        d.values[dnn_plan_config] = {1, {}, {{config_of(d.graph, d.choice), true}}};
    } else {
        const Descriptor& config = finalized(d, dnn_plan_config, dnn_not_finalized);
        d.choice = config.choice;
        d.graph = config.graph;
        check(d.choice.capability == capability, "the engine was chosen for another GPU", dnn_not_supported);
    }
    check_prerequisites(*dnn_engine_at(d.choice.engine), d.has_device);
}

void finalize_pack(Descriptor& d) {
    std::vector<std::int64_t> ids = d.integers(dnn_pack_ids);
    check(!ids.empty() && d.has(dnn_pack_pointers), "arguments without ids or pointers");
    check(d.values.at(dnn_pack_pointers).count == static_cast<std::int64_t>(ids.size()),
          std::to_string(ids.size()) + " ids for " + std::to_string(d.values.at(dnn_pack_pointers).count) +
              " pointers");
    std::sort(ids.begin(), ids.end());
    check(std::adjacent_find(ids.begin(), ids.end()) == ids.end(), "an id twice", dnn_duplicated);
}

void finalize_device(Descriptor& d) {
    const std::string text = d.has(dnn_device_json) ? d.text(dnn_device_json) : emulated_device_text();
    check(d.has(dnn_device_json) || d.has(dnn_device_handle), "a GPU without description or handle",
          dnn_not_initialized);
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    check(json.is_object(), "the description of a GPU is no JSON object");
    for (const char* needed :
         {"maxGridSize", "maxBlockSize", "regsPerBlock", "multiProcessorCount", "warpSize",
          "maxSharedMemoryPerBlock", "deviceVer", "driverVer", "totalGlobalMem"})
        check(json.contains(needed), std::string("the description of a GPU lacks ") + needed);
    check(json["deviceVer"].is_number_integer(), "deviceVer is no number");
    d.choice.capability = json["deviceVer"];
}

void finalize_knob(Descriptor& d) {
    check(d.has(dnn_knob_is) && d.has(dnn_knob_value), "the choice of a knob without knob or value");
}

}  // namespace

std::string emulated_device_text() {
    return R"({"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,"deviceName":"emulated GPU",)"
           R"("totalGlobalMem":85024112640,"maxGridSize":[2147483647,65535,65535],)"
           R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":8,)"
           R"("smClockRateKHz":1000000,"memClockRateKHz":1000000,"l2CacheSize":4194304,"warpSize":32,)"
           R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":49152,)"
           R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
           R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
           R"("supportCoopLaunch":1})";
}

void finalize(Descriptor& d) {
    check(!d.finalized, "the descriptor is finalised already");
    switch (d.kind) {
        case dnn_tensor: finalize_tensor(d); break;
        case dnn_pointwise: finalize_pointwise(d); break;
        case dnn_convolution: finalize_convolution(d); break;
        case dnn_pointwise_operation: finalize_pointwise_operation(d); break;
        case dnn_graph: finalize_graph(d); break;
        case dnn_heuristics: finalize_heuristics(d); break;
        case dnn_engine: finalize_engine(d); break;
        case dnn_engine_config: finalize_config(d); break;
        case dnn_plan: finalize_plan(d); break;
        case dnn_variant_pack: finalize_pack(d); break;
        case dnn_device: finalize_device(d); break;
        case dnn_knob_choice: finalize_knob(d); break;
        default: finalize_convolution_operation(d);
    }
    d.finalized = true;
}

}  // namespace bitale::emulated
