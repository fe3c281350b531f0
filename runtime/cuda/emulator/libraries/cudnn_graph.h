// What a graph of cuDNN's backend says, as plain values: tensors by their ids, operations on them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bitale::emulated {

// cudnnStatus_t. Which of them a mistake earns was seen with cuDNN 9.19.
enum DnnStatus : int {
    dnn_ok = 0,
    dnn_not_initialized = 1001,
    dnn_other_version = 1003,
    dnn_bad_value = 2000,
    dnn_null_pointer = 2002,
    dnn_misaligned = 2003,
    dnn_not_finalized = 2004,
    dnn_duplicated = 2009,
    dnn_wrong_type = 2010,
    dnn_not_supported = 3000,
    dnn_prerequisite_missing = 3008,
    dnn_no_such_kind = 4003,
    dnn_not_launched = 5003
};

// Thrown inside of the library; its functions return the status and keep the words.
struct Refusal {
    int status = dnn_bad_value;
    std::string words;
};

constexpr std::size_t emulated_dnn_version = 91900;

struct DnnTensor {
    std::int64_t id = 0, alignment = 0;
    int type = 0;
    bool is_virtual = false;
    std::vector<std::int64_t> shape, strides;
    bool operator==(const DnnTensor&) const = default;
    // Elements from the first to the last.
    std::int64_t extent() const;
};

struct DnnOperation {
    int kind = 0;  // of its descriptor
    // A convolution: image, filters and output of both gradients too. A pointwise operation: x, b, output.
    std::int64_t image = 0, filters = 0, output = 0, x = 0, b = 0;
    bool has_b = false;
    double alpha = 1, beta = 0, alpha2 = 1;
    bool flipped = false;  // CUDNN_CONVOLUTION, not CUDNN_CROSS_CORRELATION
    std::vector<std::int64_t> pad, pad_after, stride, dilation;
    int compute = 0;
    int mode = 0;             // of a pointwise operation
    bool keeps_nan = false;   // CUDNN_PROPAGATE_NAN
    bool plain_clips = true;  // no other limits or slopes of relu
    std::int64_t result() const;
    std::vector<std::int64_t> operands() const;  // what it reads
};

struct DnnGraph {
    std::map<std::int64_t, DnnTensor> tensors;
    std::vector<DnnOperation> operations;  // each after those whose results it reads
};

// Throws Refusal where the operations do not form a graph; sorts them.
void check_graph(DnnGraph& graph);

// A plan as text, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION. As in cuDNN 9.19, relu's attribute of NaN is
// not in it.
struct DnnChoice {
    int engine = 0;
    std::int64_t tile = 0;  // its only knob
    int capability = 0;     // of the GPU, times 100
};
std::string plan_text(const DnnGraph& graph, const DnnChoice& choice);
// Throws Refusal.
void read_plan(const std::string& text, DnnGraph& graph, DnnChoice& choice);

}  // namespace bitale::emulated
