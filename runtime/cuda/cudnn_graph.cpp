#include "runtime/cuda/cudnn_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "bitale/error.h"
#include "runtime/cuda/outside.h"

namespace bitale::cuda {

namespace {

void require(const CudnnTable& library, int status, const std::string& what) {
    if (status == 0) return;
    char words[1024] = "";
    library.cudnnGetLastErrorString(words, sizeof words);
    words[sizeof words - 1] = 0;
    throw DeviceError(fmt::format("cuDNN: {} fails: {}{}{}", what, library.cudnnGetErrorString(status),
                                  *words ? ": " : "", words));
}

std::string text_of(const ConvShape& s) {
    static const char* const kinds[] = {"a convolution", "a convolution's gradient of the image",
                                        "a convolution's gradient of the filters"};
    return fmt::format(
        "{}, image [{}], filters [{}]{}, stride {}, padding {}, dilation {}{}, {}",
        kinds[static_cast<int>(s.kind)], fmt::join(s.image.shape, ", "), fmt::join(s.filters.shape, ", "),
        s.groups == 1 ? "" : fmt::format(" in {} groups", s.groups), fmt::join(s.stride, " "),
        fmt::join(s.pad, " "), fmt::join(s.dilation, " "), s.flip ? ", flipped" : "", name_of(s.precision));
}

// The operations of a shape, and what they refer to.
class Builder {
  public:
    Builder(const CudnnTable& library, const ConvShape& shape, const DnnTarget& target)
        : library_(library), shape_(shape), target_(target) {}

    // The backend has no attribute for groups: it infers them from the channels of image and filters, for
    // both gradients too (as cuDNN 9.19 plans them).
    DnnObject graph() {
        if (shape_.image.shape[1] != shape_.groups * shape_.filters.shape[1] ||
            shape_.filters.shape[0] % shape_.groups != 0)
            throw DeviceError("the channels do not fit the groups of " + text_of(shape_));
        const bool fused = shape_.bias || shape_.relu;
        const DnnObject& image = tensor(dnn_image, shape_.image);
        const DnnObject& filters = tensor(dnn_filters, shape_.filters);
        constexpr std::int64_t first_virtual = 10;
        const DnnObject& output =
            fused ? tensor(first_virtual, shape_.output, true) : tensor(dnn_output, shape_.output);
        operations_.push_back(convolution(image, filters, output).raw());
        const DnnObject* last = &output;
        if (shape_.bias) {
            const std::int64_t k = shape_.output.shape[1];
            const DnnObject& bias = tensor(dnn_bias, {{1, k, 1, 1}, {k, 1, k, k}});
            const DnnObject& sum = shape_.relu ? tensor(first_virtual + 1, shape_.output, true)
                                               : tensor(dnn_output, shape_.output);
            operations_.push_back(pointwise(dnn_add, *last, &bias, sum).raw());
            last = &sum;
        }
        if (shape_.relu)
            operations_.push_back(
                pointwise(dnn_relu, *last, nullptr, tensor(dnn_output, shape_.output)).raw());
        DnnObject g(library_, dnn_graph);
        g.set(dnn_graph_operations, dnn_descriptor, static_cast<std::int64_t>(operations_.size()),
              operations_.data());
        if (target_.handle) g.set(dnn_graph_handle, dnn_handle_type, 1, &target_.handle);
        g.finalize("the graph of operations");
        return g;
    }

  private:
    DnnObject& keep(DnnKind kind) {
        kept_.push_back(std::make_unique<DnnObject>(library_, kind));
        return *kept_.back();
    }

    const DnnObject& tensor(std::int64_t id, const ConvSizes& sizes, bool is_virtual = false) {
        DnnObject& t = keep(dnn_tensor);
        t.set(dnn_tensor_type, dnn_data_type, dnn_float32);
        t.set(dnn_tensor_shape, {sizes.shape.begin(), sizes.shape.end()});
        t.set(dnn_tensor_strides, {sizes.strides.begin(), sizes.strides.end()});
        t.set(dnn_tensor_id, {id});
        t.set(dnn_tensor_alignment, {16});
        if (is_virtual) t.set(dnn_tensor_virtual, dnn_boolean, 1, &is_virtual);
        t.finalize("a tensor");
        return t;
    }

    const DnnObject& convolution(const DnnObject& image, const DnnObject& filters, const DnnObject& output) {
        DnnObject& c = keep(dnn_convolution);
        c.set(dnn_convolution_compute, dnn_data_type, dnn_float32);
        c.set(dnn_convolution_mode_is, dnn_convolution_mode,
              shape_.flip ? dnn_flipped_convolution : dnn_cross_correlation);
        c.set(dnn_convolution_axes, {2});
        c.set(dnn_convolution_padding_before, {shape_.pad.begin(), shape_.pad.end()});
        c.set(dnn_convolution_padding_after, {shape_.pad.begin(), shape_.pad.end()});
        c.set(dnn_convolution_dilations, {shape_.dilation.begin(), shape_.dilation.end()});
        c.set(dnn_convolution_strides, {shape_.stride.begin(), shape_.stride.end()});
        c.finalize("a convolution");
        static constexpr DnnKind kinds[] = {dnn_convolution_forward, dnn_convolution_image_gradient,
                                            dnn_convolution_filter_gradient};
        static constexpr DnnAttribute firsts[] = {dnn_forward_alpha, dnn_image_gradient_alpha,
                                                  dnn_filter_gradient_alpha};
        DnnObject& o = keep(kinds[static_cast<int>(shape_.kind)]);
        const int first = firsts[static_cast<int>(shape_.kind)];
        const float one = 1, zero = 0;
        o.set(DnnAttribute(first), dnn_float, 1, &one);
        o.set(DnnAttribute(first + 1), dnn_float, 1, &zero);
        o.set(DnnAttribute(first + 2), c);
        // In the gradient of the filters the image comes after them as well.
        o.set(DnnAttribute(first + 3), filters);
        o.set(DnnAttribute(first + 4), image);
        o.set(DnnAttribute(first + 5), output);
        o.finalize("the operation of a convolution");
        return o;
    }

    const DnnObject& pointwise(DnnNumber mode, const DnnObject& x, const DnnObject* b, const DnnObject& y) {
        DnnObject& p = keep(dnn_pointwise);
        p.set(dnn_pointwise_mode_is, dnn_pointwise_mode, mode);
        p.set(dnn_pointwise_compute, dnn_data_type, dnn_float32);
        if (mode == dnn_relu) p.set(dnn_pointwise_nan, dnn_nan_propagation, dnn_propagate_nan);
        p.finalize("a pointwise function");
        DnnObject& o = keep(dnn_pointwise_operation);
        o.set(dnn_operation_pointwise, p);
        o.set(dnn_operation_x, x);
        if (b) o.set(dnn_operation_b, *b);
        o.set(dnn_operation_y, y);
        o.finalize("a pointwise operation");
        return o;
    }

    const CudnnTable& library_;
    const ConvShape& shape_;
    const DnnTarget& target_;
    std::vector<std::unique_ptr<DnnObject>> kept_;
    std::vector<DnnDescriptor*> operations_;
};

std::vector<DnnObject> proposals(const CudnnTable& library, const DnnObject& graph, DnnNumber mode,
                                 const DnnObject* device) {
    DnnObject heuristics(library, dnn_heuristics);
    heuristics.set(dnn_heuristics_graph, graph);
    heuristics.set(dnn_heuristics_mode_is, dnn_heuristics_mode, mode);
    if (device) heuristics.set(dnn_heuristics_device, *device);
    heuristics.finalize("asking the heuristics");
    std::int64_t count = heuristics.get(dnn_heuristics_results, dnn_descriptor, 0, nullptr);
    std::vector<DnnObject> configs;
    std::vector<DnnDescriptor*> raw;
    for (std::int64_t i = 0; i < count; ++i)
        raw.push_back(configs.emplace_back(library, dnn_engine_config).raw());
    if (count > 0) count = heuristics.get(dnn_heuristics_results, dnn_descriptor, count, raw.data());
    while (static_cast<std::int64_t>(configs.size()) > count) configs.pop_back();
    return configs;
}

// An engine's configuration, and what it refers to.
struct Config {
    std::vector<DnnObject> kept;
    DnnObject config;
};

// That of an engine by its number; throws where this cuDNN has no such engine for the graph.
Config config_of(const CudnnTable& library, const DnnObject& graph, const ConvEngine& known,
                 const DnnObject* device) {
    Config c{{}, DnnObject(library, dnn_engine_config)};
    DnnObject engine(library, dnn_engine);
    engine.set(dnn_engine_graph, graph);
    engine.set(dnn_engine_index, {known.index});
    if (device) engine.set(dnn_engine_device, *device);
    engine.finalize("an engine");
    c.config.set(dnn_config_engine, engine);
    c.kept.push_back(std::move(engine));
    std::vector<DnnDescriptor*> choices;
    for (const auto& [type, value] : known.knobs) {
        DnnObject knob(library, dnn_knob_choice);
        knob.set(dnn_knob_choice_type, dnn_knob_type, type);
        knob.set(dnn_knob_choice_value, {value});
        knob.finalize("a knob");
        choices.push_back(knob.raw());
        c.kept.push_back(std::move(knob));
    }
    if (!choices.empty())
        c.config.set(dnn_config_knobs, dnn_descriptor, static_cast<std::int64_t>(choices.size()),
                     choices.data());
    c.config.finalize("an engine's configuration");
    return c;
}

std::vector<std::pair<int, std::int64_t>> knobs_of(const CudnnTable& library, const DnnObject& config) {
    constexpr std::size_t most_knobs = 64;
    std::vector<DnnObject> choices;
    std::vector<DnnDescriptor*> raw;
    for (std::size_t i = 0; i < most_knobs; ++i)
        raw.push_back(choices.emplace_back(library, dnn_knob_choice).raw());
    const std::int64_t count = config.get(dnn_config_knobs, dnn_descriptor, most_knobs, raw.data());
    std::vector<std::pair<int, std::int64_t>> knobs;
    for (std::size_t i = 0; i < std::min<std::size_t>(static_cast<std::size_t>(count), most_knobs); ++i) {
        int type = 0;
        std::int64_t value = 0;
        choices[i].get(dnn_knob_choice_type, dnn_knob_type, 1, &type);
        choices[i].get(dnn_knob_choice_value, dnn_int64, 1, &value);
        knobs.emplace_back(type, value);
    }
    return knobs;
}

struct Engine {
    std::int64_t index = 0;
    EngineNotes notes;
};

Engine engine_of(const CudnnTable& library, const DnnObject& config) {
    constexpr std::int64_t most_notes = 32;
    const DnnObject object(library, dnn_engine);
    DnnDescriptor* raw = object.raw();
    config.get(dnn_config_engine, dnn_descriptor, 1, &raw);
    Engine e;
    object.get(dnn_engine_index, dnn_int64, 1, &e.index);
    const auto notes = [&](DnnAttribute attribute, DnnType type) {
        std::vector<int> list(most_notes);
        list.resize(static_cast<std::size_t>(
            std::clamp<std::int64_t>(object.get(attribute, type, most_notes, list.data()), 0, most_notes)));
        return [list](int note) { return std::find(list.begin(), list.end(), note) != list.end(); };
    };
    const auto numerical = notes(dnn_engine_numerical_notes, dnn_numerical_note);
    e.notes.tensor_cores = numerical(dnn_note_tensor_core);
    e.notes.down_converts = numerical(dnn_note_down_convert);
    e.notes.reduced_sums = numerical(dnn_note_reduced_sum);
    e.notes.deterministic = !numerical(dnn_note_nondeterministic);
    e.notes.transforms = numerical(dnn_note_fft);
    for (int note = dnn_note_winograd; note <= dnn_note_winograd_last; ++note)
        e.notes.transforms = e.notes.transforms || numerical(note);
    e.notes.keeps_nan = numerical(dnn_note_strict_nan);
    e.notes.runtime_compiled = notes(dnn_engine_behavior_notes, dnn_behavior_note)(dnn_note_runtime_compiled);
    return e;
}

bool exact_enough(const EngineNotes& notes, Precision precision) {
    return notes.deterministic && !notes.down_converts && !notes.reduced_sums &&
           (precision != Precision::float32 || (!notes.tensor_cores && !notes.transforms));
}

// Makes plans of one shape.
class Planner {
  public:
    Planner(const CudnnTable& library, const ConvShape& shape, const DnnTarget& target,
            std::int64_t most_workspace)
        : library_(library),
          shape_(shape),
          target_(target),
          most_workspace_(most_workspace),
          builder_(library, shape, target),
          graph_(builder_.graph()) {
        if (target.handle) return;
        device_.emplace(library, dnn_device);
        device_->set(dnn_device_json, dnn_char, static_cast<std::int64_t>(target.json.size()),
                     target.json.data());
        device_->finalize("the description of a GPU");
    }

    // Throws DeviceError where the heuristics fail.
    std::vector<DnnObject> configs(DnnNumber mode) const {
        return proposals(library_, graph_, mode, device());
    }

    std::optional<ConvPlan> with(const ConvEngine& engine) {
        try {
            return proposal(config_of(library_, graph_, engine, device()).config, &engine).plan;
        } catch (const DeviceError&) {
            return std::nullopt;
        }
    }

    ConvProposal proposal(const DnnObject& config, const ConvEngine* known = nullptr) {
        ConvProposal r;
        try {
            const Engine engine = engine_of(library_, config);
            r.notes = engine.notes;
            r.inexact = !exact_enough(r.notes, shape_.precision);
            r.engine = known ? *known
                             : ConvEngine{engine.index, r.notes.runtime_compiled, knobs_of(library_, config)};
            if (r.inexact) {
                r.refusal = fmt::format("engine {} is less exact or not deterministic", engine.index);
                return r;
            }
            ConvPlan p{DnnObject(library_, dnn_plan)};
            if (target_.handle) p.plan.set(dnn_plan_handle, dnn_handle_type, 1, &target_.handle);
            if (device_) p.plan.set(dnn_plan_device, *device_);
            p.plan.set(dnn_plan_config, config);
            p.plan.finalize("a plan");
            p.plan.get(dnn_plan_workspace, dnn_int64, 1, &p.workspace);
            if (p.workspace > most_workspace_) {
                r.refusal = fmt::format("engine {} wants {} bytes of workspace", engine.index, p.workspace);
                return r;
            }
            p.engine = r.engine;
            p.tensor_cores = r.notes.tensor_cores;
            p.keeps_nan = r.notes.keeps_nan;
            r.plan = std::move(p);
        } catch (const DeviceError& e) {
            r.refusal = e.what();
        }
        return r;
    }

  private:
    const DnnObject* device() const { return device_ ? &*device_ : nullptr; }

    const CudnnTable& library_;
    const ConvShape& shape_;
    const DnnTarget& target_;
    const std::int64_t most_workspace_;
    Builder builder_;
    const DnnObject graph_;
    std::optional<DnnObject> device_;
};

}  // namespace

DnnObject::DnnObject(const CudnnTable& library, DnnKind kind) : table_(&library) {
    require(library, library.cudnnBackendCreateDescriptor(kind, &raw_), "cudnnBackendCreateDescriptor");
}

DnnObject::~DnnObject() {
    if (raw_) table_->cudnnBackendDestroyDescriptor(raw_);
}

DnnObject::DnnObject(DnnObject&& other) noexcept
    : table_(other.table_), raw_(std::exchange(other.raw_, nullptr)) {}

DnnObject& DnnObject::operator=(DnnObject&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(raw_, other.raw_);
    return *this;
}

void DnnObject::set(DnnAttribute attribute, DnnType type, std::int64_t count, const void* values) {
    require(*table_, table_->cudnnBackendSetAttribute(raw_, attribute, type, count, values),
            fmt::format("setting attribute {}", static_cast<int>(attribute)));
}

void DnnObject::set(DnnAttribute attribute, DnnType type, int value) { set(attribute, type, 1, &value); }

void DnnObject::set(DnnAttribute attribute, const std::vector<std::int64_t>& values) {
    set(attribute, dnn_int64, static_cast<std::int64_t>(values.size()), values.data());
}

void DnnObject::set(DnnAttribute attribute, const DnnObject& other) {
    set(attribute, dnn_descriptor, 1, &other.raw_);
}

std::int64_t DnnObject::get(DnnAttribute attribute, DnnType type, std::int64_t room, void* values) const {
    std::int64_t count = 0;
    require(*table_, table_->cudnnBackendGetAttribute(raw_, attribute, type, room, &count, values),
            fmt::format("reading attribute {}", static_cast<int>(attribute)));
    return count;
}

void DnnObject::finalize(const char* what) { require(*table_, table_->cudnnBackendFinalize(raw_), what); }

std::string text_of(const ConvEngine& engine) {
    std::string knobs;
    for (const auto& [type, value] : engine.knobs) knobs += fmt::format(" {}={}", type, value);
    return fmt::format("engine {}{}", engine.index, knobs.empty() ? "" : " with knobs" + knobs);
}

std::string text_of(const ConvPlan& plan) {
    return fmt::format("{}{}{}{}, {:.1f} MB of workspace", text_of(plan.engine),
                       plan.tensor_cores ? ", on tensor cores" : "",
                       plan.keeps_nan ? ", strict with NaN" : "",
                       plan.engine.runtime_compiled ? ", compiled at run time" : "",
                       static_cast<double>(plan.workspace) / 1e6);
}

std::string for_each_proposal(const CudnnTable& library, const ConvShape& shape, const DnnTarget& target,
                              std::int64_t most_workspace, const std::function<bool(ConvProposal)>& look) {
    Planner planner(library, shape, target, most_workspace);
    std::string failure;
    for (const DnnNumber mode : {dnn_heuristics_a, dnn_heuristics_fallback}) {
        std::vector<DnnObject> configs;
        try {
            configs = planner.configs(mode);
        } catch (const DeviceError& e) {
            failure = e.what();
        }
        for (const DnnObject& config : configs)
            if (!look(planner.proposal(config))) return failure;
    }
    return failure;
}

ConvPlan plan_convolution(const CudnnTable& library, const ConvShape& shape, const DnnTarget& target,
                          std::int64_t most_workspace) {
    std::optional<ConvPlan> plan;
    int proposed = 0, inexact = 0;
    std::string refusal;  // the last one
    const auto look = [&](ConvProposal p) {
        plan = std::move(p.plan);
        ++proposed;
        if (p.inexact)
            ++inexact;
        else
            refusal = p.refusal;
        return !plan;
    };
    const std::string failure = for_each_proposal(library, shape, target, most_workspace, look);
    if (plan) return std::move(*plan);
    if (!failure.empty()) refusal = failure;
    throw DeviceError(fmt::format(
        "cuDNN has no plan for {}: {} engines proposed, {} of them less exact or not deterministic{}{}; "
        "disable=cudnn in BITALE_FLAGS generates convolutions instead",
        text_of(shape), proposed, inexact, refusal.empty() ? "" : "; the last refusal: ", refusal));
}

std::optional<ConvPlan> plan_with(const CudnnTable& library, const ConvShape& shape, const DnnTarget& target,
                                  std::int64_t most_workspace, const ConvEngine& engine) {
    return Planner(library, shape, target, most_workspace).with(engine);
}

DnnObject conv_arguments(const CudnnTable& library, const ConvShape& shape, const ConvData& data,
                         void* workspace) {
    std::array<std::int64_t, 4> ids = {dnn_image, dnn_filters, dnn_output, dnn_bias};
    std::array<void*, 4> pointers = {data.image, data.filters, data.output, const_cast<void*>(data.bias)};
    const std::int64_t count = shape.bias ? 4 : 3;
    DnnObject pack(library, dnn_variant_pack);
    pack.set(dnn_pack_ids, dnn_int64, count, ids.data());
    pack.set(dnn_pack_pointers, dnn_pointer, count, pointers.data());
    pack.set(dnn_pack_workspace, dnn_pointer, 1, &workspace);
    pack.finalize("the arguments of a convolution");
    return pack;
}

void execute(const CudnnTable& library, DnnHandle* handle, const ConvShape& shape, const ConvPlan& plan,
             const ConvData& data, void* workspace, Stream stream) {
    const DnnObject pack = conv_arguments(library, shape, data, workspace);
    const auto worked = [&](int status, const char* what) {
        if (status != 0)
            throw DeviceError(fmt::format("{} fails: {}", what, library.cudnnGetErrorString(status)));
    };
    worked(library.cudnnSetStream(handle, stream), "cudnnSetStream");
    if (outside::refused(outside::Door::library)) throw DeviceError("cudnnBackendExecute fails: refused");
    worked(library.cudnnBackendExecute(handle, plan.plan.raw(), pack.raw()), "cudnnBackendExecute");
}

}  // namespace bitale::cuda
