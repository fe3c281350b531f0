// DLPack: arrays from and to other libraries (NumPy, PyTorch, JAX, CuPy and others) without a copy. The
// structures are those of dlpack/dlpack.h, versions 0.2 to 1.x (https://dmlc.github.io/dlpack). Include that
// header if the program accesses their fields.
#pragma once

#include "bitale/array.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

#pragma GCC visibility push(default)

namespace bitale {

struct FromDlpack {
    bool copy_if_needed = true;  // false: Error if the memory cannot be used as it is
};
// The array of a tensor in host memory (kDLCPU or kDLCUDAHost), dense and row-major, of one of the thirteen
// dtypes. The array keeps the tensor alive: the tensor's deleter runs once, when the last copy of the array
// is destroyed, or at once if the elements were copied. Writing to the array writes a copy and leaves the
// tensor as it is. What the tensor's owner writes in the meantime is seen in the array.
//
// The memory is used as it is if it begins at a multiple of 64 bytes and the 64 bytes behind its end lie in
// the same page, because kernels read whole vectors; otherwise the elements are copied. Throws DeviceError
// for memory of another device, TypeError for another element type (several lanes, complex numbers, 4 bits),
// ShapeError for strides that leave gaps, negative lengths and lengths that overflow, and Error for null
// pointers, for other versions of DLPack, and if a copy is needed but not allowed. After an error the tensor
// still belongs to the caller.
Array from_dlpack(DLManagedTensorVersioned* tensor, FromDlpack options = {});
Array from_dlpack(DLManagedTensor* tensor, FromDlpack options = {});

// A tensor that shares the array's memory and keeps it alive until the tensor's deleter is called. It is
// marked read-only while other arrays share the elements. For a tensor that may be written, hand over the
// only copy: to_dlpack(std::move(a)).
DLManagedTensorVersioned* to_dlpack(Array value);
// The same in the form before version 1.0, which cannot say "read-only". Elements that other arrays share are
// copied.
DLManagedTensor* to_dlpack_unversioned(Array value);

}  // namespace bitale

#pragma GCC visibility pop
