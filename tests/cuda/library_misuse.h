// Descriptors of cuDNN for tests that misuse them: made of parts, any of which can be wrong or left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/tables.h"

namespace bitale::test {

// The status of the first call that was refused; 0 while none was.
class Descriptors {
  public:
    explicit Descriptors(const cuda::CudnnTable& library) : library_(library) {}
    ~Descriptors();
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;

    using D = cuda::DnnDescriptor*;
    D make(int kind);
    int set(D d, int attribute, int type, std::int64_t count, const void* values);
    int set(D d, int attribute, const std::vector<std::int64_t>& values);
    int set(D d, int attribute, int type, int value);
    int set(D d, int attribute, D value);
    int finalize(D d);
    int get(D d, int attribute, int type, std::int64_t room, std::int64_t* count, void* values);

    struct Tensor {
        std::vector<std::int64_t> shape{4, 8, 10, 12}, strides{960, 120, 12, 1};
        std::int64_t id = 1, alignment = 16;
        bool is_virtual = false;
        int without = -1;  // this attribute
        bool finalized = true;
    };
    D tensor(const Tensor& t);
    D image() { return tensor({}); }
    D filters() { return tensor({.shape = {16, 8, 3, 3}, .strides = {72, 9, 3, 1}, .id = 2}); }
    D output(std::int64_t id = 3, bool is_virtual = false) {
        return tensor({{4, 16, 10, 12}, {1920, 120, 12, 1}, id, 16, is_virtual});
    }
    D bias(std::int64_t channels = 16) {
        return tensor({{1, channels, 1, 1}, {channels, 1, channels, channels}, 4});
    }

    struct Convolution {
        std::vector<std::int64_t> pad{1, 1}, stride{1, 1}, dilation{1, 1};
        std::int64_t axes = 2;
        int mode = 1, without = -1;
        bool finalized = true;
    };
    D convolution(const Convolution& c);
    D convolution() { return convolution({}); }
    // `first` is its attribute of alpha; `without`: 0 to 5, the part that is left out.
    D operation(int kind, int first, D convolution, D filters, D image, D output, int without = -1);
    D forward(D convolution, D filters, D image, D output, int without = -1) {
        return operation(cuda::dnn_convolution_forward, cuda::dnn_forward_alpha, convolution, filters, image,
                         output, without);
    }
    D pointwise(int mode, int nan = -1);
    D pointwise_operation(D function, D x, D b, D y);  // null parts are left out
    D graph(const std::vector<D>& operations);
    D plain_graph() { return graph({forward(convolution(), filters(), image(), output())}); }
    D device();
    D heuristics(D graph, int mode, D device);
    std::vector<D> configs(D heuristics, std::int64_t most);
    D plan(D config, D device);
    D pack(const std::vector<std::int64_t>& ids, const std::vector<void*>& pointers);

    int execute(cuda::DnnHandle* handle, D plan, D pack);

    int status() const { return status_; }

  private:
    int seen(int status);

    const cuda::CudnnTable& library_;
    std::vector<D> all_;
    int status_ = 0;
};

// That of an H100, as JSON.
std::string described_gpu();

}  // namespace bitale::test
