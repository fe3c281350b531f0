// Which attributes each kind of descriptor has, and setting and reading them.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "runtime/cuda/emulator/libraries/cudnn_descriptor.h"

namespace bitale::cuda {

struct DnnDescriptor {
    std::shared_ptr<emulated::Descriptor> is;
};

}  // namespace bitale::cuda

namespace bitale::emulated {

namespace {

using namespace cuda;

// CUDNN_DIM_MAX; and any number of tensors.
constexpr std::int64_t most_dimensions = 8, many = 1024, most_text = std::int64_t{1} << 24;
constexpr int real = -1;  // float or double
constexpr int any_operation = -1;

struct Rule {
    int attribute, type;
    std::int64_t most = 1;
    enum { both, only_read, only_set } use = both;
    int kind = 0;  // of a descriptor that is its value
};

constexpr Rule pointwise_rules[] = {{dnn_pointwise_mode_is, dnn_pointwise_mode},
                                    {dnn_pointwise_compute, dnn_data_type},
                                    {dnn_nan_is, dnn_nan_type},
                                    {dnn_first_clip, real},
                                    {dnn_first_clip + 1, real},
                                    {dnn_first_clip + 2, real}};
constexpr Rule convolution_rules[] = {{dnn_convolution_compute, dnn_data_type},
                                      {dnn_convolution_mode_is, dnn_convolution_mode},
                                      {dnn_convolution_dilations, dnn_int64, most_dimensions},
                                      {dnn_convolution_strides, dnn_int64, most_dimensions},
                                      {dnn_convolution_padding_after, dnn_int64, most_dimensions},
                                      {dnn_convolution_padding_before, dnn_int64, most_dimensions},
                                      {dnn_convolution_axes, dnn_int64}};
constexpr Rule engine_rules[] = {{dnn_engine_graph, dnn_descriptor, 1, Rule::both, dnn_graph},
                                 {dnn_engine_index, dnn_int64},
                                 {dnn_engine_numerical_notes, dnn_numerical_note, many, Rule::only_read},
                                 {dnn_engine_behavior_notes, dnn_behavior_note, many, Rule::only_read},
                                 {dnn_engine_device, dnn_descriptor, 1, Rule::both, dnn_device}};
constexpr Rule config_rules[] = {{dnn_config_engine, dnn_descriptor, 1, Rule::both, dnn_engine},
                                 {dnn_config_knobs, dnn_descriptor, many, Rule::both, dnn_knob_choice},
                                 {dnn_config_workspace, dnn_int64, 1, Rule::only_read}};
constexpr Rule heuristics_rules[] = {
    {dnn_heuristics_mode_is, dnn_heuristics_mode},
    {dnn_heuristics_graph, dnn_descriptor, 1, Rule::both, dnn_graph},
    {dnn_heuristics_results, dnn_descriptor, many, Rule::only_read, dnn_engine_config},
    {dnn_heuristics_device, dnn_descriptor, 1, Rule::both, dnn_device}};
constexpr Rule plan_rules[] = {{dnn_plan_handle, dnn_handle_type},
                               {dnn_plan_config, dnn_descriptor, 1, Rule::both, dnn_engine_config},
                               {dnn_plan_workspace, dnn_int64, 1, Rule::only_read},
                               {dnn_plan_json, dnn_char, most_text},
                               {dnn_plan_device, dnn_descriptor, 1, Rule::both, dnn_device}};
constexpr Rule knob_rules[] = {{dnn_knob_is, dnn_knob_type}, {dnn_knob_value, dnn_int64}};

// alpha, beta, convolution, filters, image, output.
constexpr std::array<Rule, 6> operation_rules(int first) {
    return {{{first, real},
             {first + 1, real},
             {first + 2, dnn_descriptor, 1, Rule::only_set, dnn_convolution},
             {first + 3, dnn_descriptor, 1, Rule::only_set, dnn_tensor},
             {first + 4, dnn_descriptor, 1, Rule::only_set, dnn_tensor},
             {first + 5, dnn_descriptor, 1, Rule::only_set, dnn_tensor}}};
}
constexpr auto forward_rules = operation_rules(dnn_forward_alpha),
               image_gradient_rules = operation_rules(dnn_image_gradient_alpha),
               filter_gradient_rules = operation_rules(dnn_filter_gradient_alpha);
constexpr Rule pointwise_operation_rules[] = {
    {dnn_operation_pointwise, dnn_descriptor, 1, Rule::only_set, dnn_pointwise},
    {dnn_operation_x, dnn_descriptor, 1, Rule::only_set, dnn_tensor},
    {dnn_operation_b, dnn_descriptor, 1, Rule::only_set, dnn_tensor},
    {dnn_operation_y, dnn_descriptor, 1, Rule::only_set, dnn_tensor},
    {dnn_first_alpha, real},
    {dnn_first_alpha + 1, real}};
constexpr Rule graph_rules[] = {{dnn_graph_handle, dnn_handle_type},
                                {dnn_graph_operations, dnn_descriptor, many, Rule::only_set, any_operation},
                                {dnn_graph_engines, dnn_int64, 1, Rule::only_read}};
constexpr Rule pack_rules[] = {{dnn_pack_ids, dnn_int64, many},
                               {dnn_pack_pointers, dnn_pointer, many},
                               {dnn_pack_workspace, dnn_pointer}};
constexpr Rule tensor_rules[] = {{dnn_tensor_alignment, dnn_int64},
                                 {dnn_tensor_type, dnn_data_type},
                                 {dnn_tensor_shape, dnn_int64, most_dimensions},
                                 {dnn_tensor_strides, dnn_int64, most_dimensions},
                                 {dnn_tensor_id, dnn_int64},
                                 {dnn_tensor_virtual, dnn_boolean}};
constexpr Rule device_rules[] = {{dnn_device_number, dnn_int32},
                                 {dnn_device_handle, dnn_handle_type},
                                 {dnn_device_json, dnn_char, most_text}};

std::optional<std::span<const Rule>> rules_of(int kind) {
    switch (kind) {
        case dnn_pointwise: return pointwise_rules;
        case dnn_convolution: return convolution_rules;
        case dnn_engine: return engine_rules;
        case dnn_engine_config: return config_rules;
        case dnn_heuristics: return heuristics_rules;
        case dnn_plan: return plan_rules;
        case dnn_knob_choice: return knob_rules;
        case dnn_convolution_forward: return forward_rules;
        case dnn_convolution_image_gradient: return image_gradient_rules;
        case dnn_convolution_filter_gradient: return filter_gradient_rules;
        case dnn_pointwise_operation: return pointwise_operation_rules;
        case dnn_graph: return graph_rules;
        case dnn_variant_pack: return pack_rules;
        case dnn_tensor: return tensor_rules;
        case dnn_device: return device_rules;
        default: return std::nullopt;
    }
}

const Rule& rule_of(const Descriptor& d, int attribute) {
    const std::span<const Rule> rules = *rules_of(d.kind);
    for (const Rule& r : rules)
        if (r.attribute == attribute) return r;
    throw Refusal{dnn_bad_value, "descriptors of kind " + std::to_string(d.kind) + " have no attribute " +
                                     std::to_string(attribute)};
}

bool is_operation(int kind) {
    return kind == dnn_convolution_forward || kind == dnn_convolution_image_gradient ||
           kind == dnn_convolution_filter_gradient || kind == dnn_pointwise_operation;
}

std::size_t size_of(int type) {
    switch (type) {
        case dnn_boolean:
        case dnn_char: return 1;
        case dnn_int64:
        case dnn_double:
        case dnn_pointer:
        case dnn_handle_type:
        case dnn_descriptor: return 8;
        default: return 4;  // float, int32 and every enumeration
    }
}

bool fits(const Rule& rule, int type) {
    return rule.type == real ? type == dnn_float || type == dnn_double : type == rule.type;
}

std::string text_of(const Descriptor& d, const Rule& rule) {
    return "attribute " + std::to_string(rule.attribute) + " of a descriptor of kind " +
           std::to_string(d.kind);
}

int status_of_wrong_type(int kind) {
    if (kind == dnn_variant_pack) return dnn_not_supported;
    return kind == dnn_pointwise || is_operation(kind) || kind == dnn_graph ? dnn_bad_value : dnn_wrong_type;
}

void set_references(Descriptor& d, const Rule& rule, std::int64_t count, const void* values, Value& value) {
    for (std::int64_t i = 0; i < count; ++i) {
        DnnDescriptor* const held = static_cast<DnnDescriptor* const*>(values)[i];
        if (!held)
            throw Refusal{d.kind == dnn_graph ? dnn_null_pointer : dnn_bad_value,
                          text_of(d, rule) + " is null"};
        const std::shared_ptr<Descriptor>& it = held->is;
        if (rule.kind == any_operation ? !is_operation(it->kind) : it->kind != rule.kind)
            throw Refusal{dnn_bad_value, text_of(d, rule) + " cannot be of kind " + std::to_string(it->kind)};
        value.references.push_back({it, it->finalized});
    }
}

// What is read of a descriptor's own, and not as it was set.
std::optional<std::vector<std::byte>> computed(const Descriptor& d, int attribute) {
    const auto bytes = [](const void* from, std::size_t count) {
        const auto* first = static_cast<const std::byte*>(from);
        return std::vector<std::byte>(first, first + count);
    };
    const auto integer = [&](std::int64_t value) { return bytes(&value, sizeof value); };
    const auto notes = [&](const std::vector<int>& list) {
        return bytes(list.data(), list.size() * sizeof(int));
    };
    const auto text = [&](const std::string& t) { return bytes(t.data(), t.size()); };
    switch (attribute) {
        case dnn_engine_numerical_notes: return notes(dnn_engine_at(d.choice.engine)->numerical_notes);
        case dnn_engine_behavior_notes: return notes(dnn_engine_at(d.choice.engine)->behavior_notes);
        case dnn_engine_index: return integer(d.choice.engine);
        case dnn_config_workspace:
        case dnn_plan_workspace: return integer(workspace_of(d.choice));
        case dnn_graph_engines: return integer(dnn_engine_count);
        case dnn_plan_json: return text(plan_text(*d.graph, d.choice));
        case dnn_device_json:
            return text(d.has(dnn_device_json) ? d.text(dnn_device_json) : emulated_device_text());
        default: return std::nullopt;
    }
}

// Descriptors that are read go into those of the caller.
std::int64_t get_references(const Descriptor& d, const Rule& rule, std::int64_t room, void* values) {
    std::vector<std::shared_ptr<Descriptor>> all = d.results;
    if (rule.attribute != dnn_heuristics_results) {
        all.clear();
        if (const auto it = d.values.find(rule.attribute); it != d.values.end())
            for (const Reference& r : it->second.references) all.push_back(r.to);
    }
    if (room == 0 || !values) return static_cast<std::int64_t>(all.size());
    const std::int64_t count = std::min(room, static_cast<std::int64_t>(all.size()));
    for (std::int64_t i = 0; i < count; ++i) {
        DnnDescriptor* const to = static_cast<DnnDescriptor**>(values)[i];
        if (!to) throw Refusal{dnn_null_pointer, text_of(d, rule) + " is read into a null descriptor"};
        if (to->is->kind != rule.kind)
            throw Refusal{dnn_bad_value, text_of(d, rule) + " is read into a descriptor of kind " +
                                             std::to_string(to->is->kind)};
    }
    for (std::int64_t i = 0; i < count; ++i)
        static_cast<DnnDescriptor**>(values)[i]->is = all[static_cast<std::size_t>(i)];
    return count;
}

template <class T>
T element(const Value& value, std::size_t i) {
    T it{};
    std::memcpy(&it, value.bytes.data() + i * sizeof it, sizeof it);
    return it;
}

}  // namespace

std::int64_t Descriptor::integer(int attribute, std::int64_t otherwise) const {
    return has(attribute) ? element<std::int64_t>(values.at(attribute), 0) : otherwise;
}

std::vector<std::int64_t> Descriptor::integers(int attribute) const {
    std::vector<std::int64_t> list;
    if (has(attribute))
        for (std::int64_t i = 0; i < values.at(attribute).count; ++i)
            list.push_back(element<std::int64_t>(values.at(attribute), static_cast<std::size_t>(i)));
    return list;
}

int Descriptor::number(int attribute, int otherwise) const {
    return has(attribute) ? element<int>(values.at(attribute), 0) : otherwise;
}

double Descriptor::real(int attribute, double otherwise) const {
    if (!has(attribute)) return otherwise;
    const Value& v = values.at(attribute);
    return v.bytes.size() == sizeof(float) ? static_cast<double>(element<float>(v, 0))
                                           : element<double>(v, 0);
}

std::string Descriptor::text(int attribute) const {
    if (!has(attribute)) return "";
    const Value& v = values.at(attribute);
    std::string text(reinterpret_cast<const char*>(v.bytes.data()), v.bytes.size());
    while (!text.empty() && text.back() == 0) text.pop_back();
    return text;
}

void* Descriptor::raw_pointer(int attribute) const {
    return has(attribute) ? element<void*>(values.at(attribute), 0) : nullptr;
}

const Reference* Descriptor::reference(int attribute, std::size_t i) const {
    const auto it = values.find(attribute);
    return it != values.end() && i < it->second.references.size() ? &it->second.references[i] : nullptr;
}

std::shared_ptr<Descriptor> make_descriptor(int kind) {
    if (!rules_of(kind)) throw Refusal{dnn_no_such_kind, "no descriptors of kind " + std::to_string(kind)};
    auto d = std::make_shared<Descriptor>();
    d->kind = kind;
    return d;
}

void set_attribute(Descriptor& d, int attribute, int type, std::int64_t count, const void* values) {
    if (d.finalized) throw Refusal{dnn_bad_value, "the descriptor is finalised: its attributes are set"};
    const Rule& rule = rule_of(d, attribute);
    if (rule.use == Rule::only_read) throw Refusal{dnn_not_supported, text_of(d, rule) + " can only be read"};
    if (!fits(rule, type))
        throw Refusal{status_of_wrong_type(d.kind),
                      text_of(d, rule) + " is not of type " + std::to_string(type)};
    if (count <= 0 || count > rule.most)
        throw Refusal{is_operation(d.kind) && rule.type == dnn_descriptor && count > 0 ? dnn_not_supported
                                                                                       : dnn_bad_value,
                      text_of(d, rule) + " has 1 to " + std::to_string(rule.most) + " elements, not " +
                          std::to_string(count)};
    if (!values) throw Refusal{dnn_bad_value, text_of(d, rule) + ": no elements"};
    Value value;
    value.count = count;
    if (rule.type == dnn_descriptor)
        set_references(d, rule, count, values, value);
    else
        value.bytes.assign(
            static_cast<const std::byte*>(values),
            static_cast<const std::byte*>(values) + static_cast<std::size_t>(count) * size_of(type));
    if (rule.type == dnn_handle_type) {
        const auto* handle = element<const DnnHandle*>(value, 0);
        if (!handle) throw Refusal{dnn_null_pointer, text_of(d, rule) + " is null"};
        if (!is_handle(handle)) throw Refusal{dnn_bad_value, text_of(d, rule) + " is no handle"};
    }
    d.values[attribute] = std::move(value);
}

std::int64_t get_attribute(const Descriptor& d, int attribute, int type, std::int64_t room, void* values) {
    if (!d.finalized) throw Refusal{dnn_not_initialized, "the descriptor is not finalised"};
    if (d.kind == dnn_pointwise)
        throw Refusal{dnn_not_supported, "attributes of pointwise functions cannot be read"};
    const Rule& rule = rule_of(d, attribute);
    if (rule.use == Rule::only_set) throw Refusal{dnn_not_supported, text_of(d, rule) + " cannot be read"};
    if (!fits(rule, type))
        throw Refusal{dnn_wrong_type, text_of(d, rule) + " is not of type " + std::to_string(type)};
    if (values && room < 0) throw Refusal{dnn_bad_value, "room for a negative number of elements"};
    if (rule.type == dnn_descriptor) return get_references(d, rule, room, values);
    std::optional<std::vector<std::byte>> bytes = computed(d, attribute);
    if (!bytes) {
        const auto it = d.values.find(attribute);
        if (it == d.values.end()) throw Refusal{dnn_bad_value, text_of(d, rule) + " was not set"};
        bytes = it->second.bytes;
    }
    const std::size_t size = size_of(type);
    const auto all = static_cast<std::int64_t>(bytes->size() / size);
    if (room <= 0 || !values) return all;
    const std::int64_t count = std::min(room, all);
    std::copy_n(bytes->begin(), static_cast<std::size_t>(count) * size, static_cast<std::byte*>(values));
    return count;
}

std::shared_ptr<Descriptor>& shared_descriptor_of(DnnDescriptor* held) {
    if (!held) throw Refusal{dnn_null_pointer, "the descriptor is null"};
    return held->is;
}
Descriptor& descriptor_of(DnnDescriptor* held) { return *shared_descriptor_of(held); }

DnnDescriptor* hold(std::shared_ptr<Descriptor> descriptor) {
    return new DnnDescriptor{std::move(descriptor)};
}
void let_go(DnnDescriptor* held) { delete held; }

}  // namespace bitale::emulated
