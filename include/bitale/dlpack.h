// DLPack: arrays in and out of other libraries (NumPy, PyTorch, JAX, CuPy ...) without a copy. The structures
// are those of dlpack/dlpack.h, versions 0.2 to 1.x (https://dmlc.github.io/dlpack): include that header
// where a program looks into them.
#pragma once

#include "bitale/array.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

#pragma GCC visibility push(default)

namespace bitale {

struct FromDlpack {
    bool copy_if_needed = true;  // false: an Error where the memory cannot be used as it is
};
// The array of a tensor in host memory (kDLCPU or kDLCUDAHost), dense and row-major, of one of the thirteen
// element types. The array keeps the tensor alive: its deleter runs once, when the last copy of the array
// ends, or at once if the elements were copied. Writing to the array writes a copy and leaves the tensor as
// it is; what the tensor's owner writes meanwhile is seen in the array.
//
// Memory is used as it is if it begins at a multiple of 64 bytes and the 64 bytes behind its end lie in the
// same page, for kernels read in whole vectors; else elements are copied. Throws DeviceError for another
// device, TypeError for another element type (several lanes, complex numbers, 4 bits), ShapeError for strides
// that leave gaps, negative lengths and lengths that cannot be counted, Error for null pointers, other
// versions and `copy_if_needed`. After an error the tensor still belongs to the caller.
Array from_dlpack(DLManagedTensorVersioned* tensor, FromDlpack options = {});
Array from_dlpack(DLManagedTensor* tensor, FromDlpack options = {});

// A tensor that shares the array's memory and keeps it alive until its deleter is called. It is marked
// read-only while others hold the array's elements: hand over the only copy, to_dlpack(std::move(a)), for one
// that may be written.
DLManagedTensorVersioned* to_dlpack(Array value);
// The form before version 1.0, which cannot say read-only: elements that others hold are copied.
DLManagedTensor* to_dlpack_unversioned(Array value);

}  // namespace bitale

#pragma GCC visibility pop
