// DLPack's structures, version 1.1, by its documentation (https://dmlc.github.io/dlpack/latest/c_api.html).
// Only for our own sources: the names are those of dlpack/dlpack.h, which programs may include.
#pragma once

#include <cstdint>

struct DLDevice {
    std::int32_t device_type;
    std::int32_t device_id;
};

struct DLDataType {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct DLTensor {
    void* data;
    DLDevice device;
    std::int32_t ndim;
    DLDataType dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements; null: row-major
    std::uint64_t byte_offset;
};

struct DLManagedTensor {
    DLTensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(DLManagedTensor*);
};

struct DLPackVersion {
    std::uint32_t major;
    std::uint32_t minor;
};

struct DLManagedTensorVersioned {
    DLPackVersion version;  // of another major version, only these three may be looked at
    void* manager_ctx;
    void (*deleter)(DLManagedTensorVersioned*);
    std::uint64_t flags;
    DLTensor dl_tensor;
};

namespace bitale::dlpack {

enum Device : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, rocm = 10, cuda_managed = 13 };
enum Code : std::uint8_t {
    integer = 0,
    unsigned_integer = 1,
    floating = 2,
    bfloat = 4,
    complex = 5,
    boolean = 6
};
constexpr std::uint64_t read_only = 1, is_copied = 2;

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 &&
              sizeof(DLManagedTensorVersioned) == 80);

}  // namespace bitale::dlpack
