#include "tests/cuda/recording_cudnn.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace bitale::test {

using namespace cuda;

namespace {

constexpr int refused = 3000;  // CUDNN_STATUS_NOT_SUPPORTED

RecordedDescriptor& of(DnnDescriptor* d) { return *reinterpret_cast<RecordedDescriptor*>(d); }
const RecordedDescriptor& of(const DnnDescriptor* d) {
    return *reinterpret_cast<const RecordedDescriptor*>(d);
}

std::size_t bytes_of_type(int type) {
    switch (type) {
        case dnn_handle_type:
        case dnn_int64:
        case dnn_pointer:
        case dnn_descriptor: return 8;
        case dnn_boolean:
        case dnn_char: return 1;
        default: return 4;  // enumerators and floats
    }
}

void put(RecordedDescriptor& d, int attribute, int type, std::int64_t count, const void* values) {
    d.attributes[attribute] = {
        type, count,
        std::string(static_cast<const char*>(values), static_cast<std::size_t>(count) * bytes_of_type(type))};
}

// The engine that a configuration names, as the test describes it; null for an unknown one.
const RecordedEngine* engine_of(const RecordedDescriptor& config) {
    const RecordedDescriptor* engine = config.descriptor(dnn_config_engine);
    for (const RecordedEngine& e : recorded_cudnn().engines)
        if (engine && e.index == engine->number(dnn_engine_index)) return &e;
    return nullptr;
}

RecordedDescriptor& make(int kind) {
    auto& all = recorded_cudnn().all;
    all.push_back(std::make_unique<RecordedDescriptor>());
    all.back()->kind = kind;
    return *all.back();
}

void put(RecordedDescriptor& d, int attribute, std::int64_t value) {
    put(d, attribute, dnn_int64, 1, &value);
}

// A configuration as the heuristics give it.
void describe(RecordedDescriptor& config, const RecordedEngine& e) {
    RecordedDescriptor* engine = &make(dnn_engine);
    put(*engine, dnn_engine_index, e.index);
    put(config, dnn_config_engine, dnn_descriptor, 1, &engine);
    std::vector<RecordedDescriptor*> knobs;
    for (const auto& [type, value] : e.knobs) {
        RecordedDescriptor& knob = make(dnn_knob_choice);
        put(knob, dnn_knob_choice_type, dnn_knob_type, 1, &type);
        put(knob, dnn_knob_choice_value, value);
        knobs.push_back(&knob);
    }
    put(config, dnn_config_knobs, dnn_descriptor, static_cast<std::int64_t>(knobs.size()), knobs.data());
}

std::size_t version() { return 91900; }
const char* words(int status) { return status == 0 ? "no error" : "CUDNN_STATUS_NOT_SUPPORTED"; }
void last_words(char* text, std::size_t bytes) { std::strncpy(text, "as the test says", bytes); }
int create(DnnHandle** handle) {
    static char somewhere;
    *handle = reinterpret_cast<DnnHandle*>(&somewhere);
    return 0;
}
int set_stream(DnnHandle* /*handle*/, Stream /*stream*/) { return 0; }
int create_descriptor(int kind, DnnDescriptor** d) {
    *d = reinterpret_cast<DnnDescriptor*>(&make(kind));
    return 0;
}
int destroy_descriptor(DnnDescriptor* /*d*/) { return 0; }

int finalize(DnnDescriptor* raw) {
    RecordedDescriptor& d = of(raw);
    RecordedCudnn& r = recorded_cudnn();
    if (d.kind == dnn_heuristics) r.events.emplace_back("heuristics");
    if (d.kind == dnn_engine &&
        std::none_of(r.engines.begin(), r.engines.end(),
                     [&](const RecordedEngine& e) { return e.index == d.number(dnn_engine_index); }))
        return refused;
    if (d.kind == dnn_plan) {
        const RecordedEngine* engine = engine_of(*d.descriptor(dnn_plan_config));
        if (!engine || !engine->works) return refused;
        r.events.push_back("plan of " + std::to_string(engine->index));
    }
    d.finalized = true;
    return 0;
}

int set(DnnDescriptor* d, int attribute, int type, std::int64_t count, const void* values) {
    if (of(d).finalized) return refused;
    put(of(d), attribute, type, count, values);
    return 0;
}

template <class T>
int give(const std::vector<T>& list, std::int64_t room, std::int64_t* count, void* values) {
    *count = std::min(room, static_cast<std::int64_t>(list.size()));
    std::copy_n(list.begin(), *count, static_cast<T*>(values));
    return 0;
}

int get(const DnnDescriptor* raw, int attribute, int /*type*/, std::int64_t room, std::int64_t* count,
        void* values) {
    const RecordedDescriptor& d = of(raw);
    const auto& engines = recorded_cudnn().engines;
    auto** const descriptors = static_cast<RecordedDescriptor**>(values);
    switch (attribute) {
        case dnn_heuristics_results:
            *count = static_cast<std::int64_t>(engines.size());
            for (std::int64_t i = 0; i < std::min(room, *count); ++i)
                describe(*descriptors[i], engines[static_cast<std::size_t>(i)]);
            return 0;
        case dnn_config_engine:
            *count = 1;
            descriptors[0]->attributes = d.descriptor(attribute)->attributes;
            return 0;
        case dnn_config_knobs: {
            const auto at = d.attributes.find(attribute);
            if (at == d.attributes.end()) return refused;
            const RecordedDescriptor::Value& knobs = at->second;
            *count = std::min(room, knobs.count);
            for (std::int64_t i = 0; i < *count; ++i) {
                RecordedDescriptor* knob = nullptr;
                std::memcpy(&knob, knobs.bytes.data() + 8 * i, sizeof knob);
                descriptors[i]->attributes = knob->attributes;
            }
            return 0;
        }
        case dnn_engine_numerical_notes:
        case dnn_engine_behavior_notes:
            for (const RecordedEngine& e : engines)
                if (e.index == d.number(dnn_engine_index))
                    return give(attribute == dnn_engine_numerical_notes ? e.numerical : e.behavior, room,
                                count, values);
            return refused;
        case dnn_plan_workspace:
            return give<std::int64_t>({engine_of(*d.descriptor(dnn_plan_config))->workspace}, room, count,
                                      values);
        default: {
            const auto at = d.attributes.find(attribute);
            if (at == d.attributes.end()) return refused;
            *count = std::min(room, at->second.count);
            std::memcpy(values, at->second.bytes.data(),
                        static_cast<std::size_t>(*count) * bytes_of_type(at->second.type));
            return 0;
        }
    }
}

int execute(DnnHandle* /*handle*/, DnnDescriptor* plan, DnnDescriptor* /*pack*/) {
    recorded_cudnn().events.push_back(
        "run " + std::to_string(engine_of(*of(plan).descriptor(dnn_plan_config))->index));
    return 0;
}

}  // namespace

std::int64_t RecordedDescriptor::number(int attribute) const {
    const auto at = attributes.find(attribute);
    if (at == attributes.end()) return -1;
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (at->second.bytes.size() == sizeof wide) {
        std::memcpy(&wide, at->second.bytes.data(), sizeof wide);
        return wide;
    }
    std::memcpy(&narrow, at->second.bytes.data(), std::min(sizeof narrow, at->second.bytes.size()));
    return narrow;
}

const RecordedDescriptor* RecordedDescriptor::descriptor(int attribute) const {
    const auto at = attributes.find(attribute);
    if (at == attributes.end()) return nullptr;
    const RecordedDescriptor* other = nullptr;
    std::memcpy(&other, at->second.bytes.data(), sizeof other);
    return other;
}

std::vector<const RecordedDescriptor*> RecordedCudnn::of_kind(int kind) const {
    std::vector<const RecordedDescriptor*> list;
    for (const auto& d : all)
        if (d->kind == kind && d->finalized) list.push_back(d.get());
    return list;
}

RecordedCudnn& recorded_cudnn() {
    static RecordedCudnn& recorded = *new RecordedCudnn;
    return recorded;
}

const CudnnTable& recording_cudnn() {
    static const CudnnTable table{
        version,  words, last_words, create, set_stream, create_descriptor, destroy_descriptor,
        finalize, set,   get,        execute};
    recorded_cudnn() = {};
    return table;
}

}  // namespace bitale::test
