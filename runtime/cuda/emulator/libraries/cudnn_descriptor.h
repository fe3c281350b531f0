// Descriptors of the emulated cuDNN: values of attributes, and what finalising makes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/emulator/libraries/cudnn_engines.h"
#include "runtime/cuda/emulator/libraries/cudnn_graph.h"
#include "runtime/cuda/types.h"

namespace bitale::cuda {

struct DnnHandle {
    std::uint64_t mark = 0;
    Stream stream = nullptr;
};

}  // namespace bitale::cuda

namespace bitale::emulated {

constexpr std::uint64_t live_dnn_handle = 0xb17a1edd00000001;
inline bool is_handle(const cuda::DnnHandle* handle) { return handle && handle->mark == live_dnn_handle; }

// Numbers that Bitale itself does not use.
enum DnnMoreNumbers : int {
    dnn_knob_choice = 7,         // CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR
    dnn_double = 5,              // CUDNN_TYPE_DOUBLE
    dnn_knob_type = 9,           // CUDNN_TYPE_KNOB_TYPE
    dnn_nan_type = 10,           // CUDNN_TYPE_NAN_PROPOGATION
    dnn_int32 = 23,              // CUDNN_TYPE_INT32
    dnn_nan_is = 2,              // CUDNN_ATTR_POINTWISE_NAN_PROPAGATION
    dnn_first_clip = 3,          // CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, then the upper one and the slope
    dnn_config_knobs = 302,      // CUDNN_ATTR_ENGINECFG_KNOB_CHOICES
    dnn_config_workspace = 303,  // CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE
    dnn_plan_json = 405,         // CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION
    dnn_knob_is = 600,           // CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE
    dnn_knob_value = 601,        // CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE
    dnn_first_alpha = 754,       // CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, then the other
    dnn_graph_engines = 802,     // CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT
    dnn_engine_graph = 1300,     // CUDNN_ATTR_ENGINE_OPERATION_GRAPH
    dnn_engine_device = 1307,    // CUDNN_ATTR_ENGINE_DEVICEPROP
    dnn_device_number = 2700,    // CUDNN_ATTR_DEVICEPROP_DEVICE_ID
    dnn_device_handle = 2701,    // CUDNN_ATTR_DEVICEPROP_HANDLE
    dnn_tile_size = 2            // CUDNN_KNOB_TYPE_TILE_SIZE
};

struct Descriptor;
// cuDNN copies a descriptor when it becomes an attribute: finalising it later does not help.
struct Reference {
    std::shared_ptr<Descriptor> to;
    bool finalized = false;
};

struct Value {
    std::int64_t count = 0;
    std::vector<std::byte> bytes;
    std::vector<Reference> references;  // of descriptors, instead of bytes
};

struct Descriptor {
    int kind = 0;
    bool finalized = false;
    std::map<int, Value> values;  // by attribute

    // Made when it is finalised, as far as its kind has them.
    DnnTensor tensor;
    DnnOperation operation;
    std::map<std::int64_t, DnnTensor> tensors;  // of an operation
    std::shared_ptr<const DnnGraph> graph;      // of an operation graph, an engine, a plan
    DnnChoice choice;                           // of an engine, a configuration, a plan
    bool has_device = false;                    // of a graph or a plan: a handle, not only a description
    std::vector<std::shared_ptr<Descriptor>> results;  // of the heuristics

    bool has(int attribute) const { return values.count(attribute) > 0; }
    std::int64_t integer(int attribute, std::int64_t otherwise = 0) const;
    std::vector<std::int64_t> integers(int attribute) const;
    int number(int attribute, int otherwise = 0) const;
    double real(int attribute, double otherwise) const;
    std::string text(int attribute) const;
    template <class T>
    T* pointer(int attribute) const {
        return static_cast<T*>(raw_pointer(attribute));
    }
    // Null where it is not set.
    const Reference* reference(int attribute, std::size_t i = 0) const;

  private:
    void* raw_pointer(int attribute) const;
};

// Throw Refusal, as all of them do.
std::shared_ptr<Descriptor> make_descriptor(int kind);
void set_attribute(Descriptor& d, int attribute, int type, std::int64_t count, const void* values);
std::int64_t get_attribute(const Descriptor& d, int attribute, int type, std::int64_t room, void* values);
void finalize(Descriptor& d);

// What a caller holds.
Descriptor& descriptor_of(cuda::DnnDescriptor* held);
std::shared_ptr<Descriptor>& shared_descriptor_of(cuda::DnnDescriptor* held);
cuda::DnnDescriptor* hold(std::shared_ptr<Descriptor> descriptor);
void let_go(cuda::DnnDescriptor* held);

// Of the emulated GPU.
constexpr int emulated_capability = 900;
std::string emulated_device_text();

}  // namespace bitale::emulated
