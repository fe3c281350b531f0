#include "bitale/dlpack.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "graph/base/border.h"
#include "graph/ir/array_bytes.h"
#include "graph/ir/borrowed.h"
#include "graph/ir/dlpack_abi.h"

namespace bitale {

namespace {

const ApiBorder exchanging("for a tensor of DLPack");

constexpr std::uintptr_t page = 4096;  // the smallest there is

std::string device_text(DLDevice device) {
    const std::int32_t type = device.device_type;
    const std::string name = type == dlpack::cuda           ? "kDLCUDA"
                             : type == dlpack::rocm         ? "kDLROCM"
                             : type == dlpack::cuda_managed ? "kDLCUDAManaged"
                                                            : "device type";
    return name + " (" + std::to_string(type) + "), number " + std::to_string(device.device_id);
}

DType dtype_from(DLDataType type) {
    const std::string what = "code " + std::to_string(type.code) + ", " + std::to_string(type.bits) +
                             " bits, " + std::to_string(type.lanes) + " lanes";
    if (type.lanes == 1) {
        for (int i = 0; i < dtype_count; ++i) {
            const auto dtype = static_cast<DType>(i);
            const std::uint8_t code = dtype == DType::boolean      ? dlpack::boolean
                                      : dtype == DType::bfloat16   ? dlpack::bfloat
                                      : is_float(dtype)            ? dlpack::floating
                                      : is_unsigned_integer(dtype) ? dlpack::unsigned_integer
                                                                   : dlpack::integer;
            if (code == type.code && bits_of(dtype) == type.bits) return dtype;
        }
    }
    throw TypeError("from_dlpack: no element type of Bitale is that of the tensor: " + what +
                    (type.code == dlpack::complex ? " (complex numbers)" : "") +
                    "; convert it before, to float32, say");
}

DLDataType dtype_to(DType dtype) {
    const dlpack::Code code = dtype == DType::boolean      ? dlpack::boolean
                              : dtype == DType::bfloat16   ? dlpack::bfloat
                              : is_float(dtype)            ? dlpack::floating
                              : is_unsigned_integer(dtype) ? dlpack::unsigned_integer
                                                           : dlpack::integer;
    return {code, static_cast<std::uint8_t>(bits_of(dtype)), 1};
}

Dims shape_from(const DLTensor& tensor) {
    if (tensor.ndim < 0 || tensor.ndim > 64)
        throw ShapeError("from_dlpack: the tensor has " + std::to_string(tensor.ndim) + " axes");
    if (tensor.ndim > 0 && !tensor.shape)
        throw Error("from_dlpack: the tensor has " + std::to_string(tensor.ndim) + " axes, and no shape");
    return {tensor.shape, tensor.shape + tensor.ndim};
}

void require_dense(const DLTensor& tensor, const Dims& shape) {
    if (!tensor.strides || count_of(shape) == 0) return;
    std::int64_t dense = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        if (shape[i] != 1 && tensor.strides[i] != dense)
            throw ShapeError("from_dlpack: the tensor of shape " + text_of(shape) +
                             " is not dense and row-major: its strides are " +
                             text_of(Dims(tensor.strides, tensor.strides + tensor.ndim)) +
                             "; hand over a contiguous copy");
        dense *= shape[i];
    }
}

// Kernels read whole vectors, up to 64 bytes past the end: what lies in the page of the last element can be
// read.
bool usable_as_it_is(const void* data, std::int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    (void)data, (void)bytes;
    return false;  // these bytes are not the tensor's, and AddressSanitizer says so
#else
    const auto first = reinterpret_cast<std::uintptr_t>(data),
               end = first + static_cast<std::uintptr_t>(bytes);
    return bytes == 0 || (first % 64 == 0 && (end - 1) / page == (end + 63) / page);
#endif
}

template <class Managed>
Array taken(Managed* managed, FromDlpack options) {
    const DLTensor& tensor = managed->dl_tensor;
    if (tensor.device.device_type != dlpack::cpu && tensor.device.device_type != dlpack::cuda_host)
        throw DeviceError("from_dlpack: the tensor is on " + device_text(tensor.device) +
                          "; copy it to host memory (kDLCPU) first");
    const DType dtype = dtype_from(tensor.dtype);
    Dims shape = shape_from(tensor);
    const std::int64_t bytes = bytes_of(dtype, shape);
    require_dense(tensor, shape);
    if (bytes && !tensor.data)
        throw Error("from_dlpack: the tensor takes " + std::to_string(bytes) +
                    " bytes, and the pointer to them is null");
    std::uintptr_t begin = 0, end = 0;
    if (bytes &&
        (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data), tensor.byte_offset, &begin) ||
         __builtin_add_overflow(begin, static_cast<std::uintptr_t>(bytes) + 64, &end)))
        throw Error("from_dlpack: byte_offset " + std::to_string(tensor.byte_offset) +
                    " leads out of the address space");
    char* data = bytes ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
    if (dtype == DType::boolean) {
        const char* wrong = std::find_if(data, data + bytes, [](char c) { return c != 0 && c != 1; });
        if (wrong != data + bytes)
            throw TypeError("from_dlpack: element " + std::to_string(wrong - data) +
                            " of a boolean tensor is neither 0 nor 1");
    }
    const auto give_back = [managed] {
        if (managed->deleter) managed->deleter(managed);
    };
    if (!usable_as_it_is(data, bytes) || !bytes) {
        if (bytes && !options.copy_if_needed)
            throw Error(
                "from_dlpack: the memory of the tensor must be copied, and copy_if_needed is false: it "
                "does not begin at a multiple of 64 bytes, or no 64 bytes can be read behind its end");
        Array copy(dtype, std::move(shape));
        if (bytes) std::memcpy(copy.mutable_data(), data, static_cast<std::size_t>(bytes));
        give_back();
        return copy;
    }
    // Whatever fails before there is an array must not call the deleter.
    const auto armed = std::make_shared<bool>(false);
    std::shared_ptr<void> storage(data, BorrowedMemory{[give_back, armed] {
                                      if (*armed) give_back();
                                  }});
    Array array = Array::adopt(dtype, std::move(shape), std::move(storage));
    *armed = true;
    return array;
}

template <class Managed>
struct Lent {
    explicit Lent(Array value) : array(std::move(value)), shape(array.shape()), strides(shape.size(), 1) {
        for (std::size_t i = strides.size(); i-- > 1;)
            strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
        managed.dl_tensor.data = const_cast<void*>(array.data());
        managed.dl_tensor.device = {dlpack::cpu, 0};
        managed.dl_tensor.ndim = array.rank();
        managed.dl_tensor.dtype = dtype_to(array.dtype());
        managed.dl_tensor.shape = shape.data();
        managed.dl_tensor.strides = strides.data();
        managed.manager_ctx = this;
        managed.deleter = [](Managed* self) { delete static_cast<Lent*>(self->manager_ctx); };
    }
    Array array;
    Dims shape, strides;
    Managed managed{};
};

}  // namespace

Array from_dlpack(DLManagedTensorVersioned* tensor, FromDlpack options) {
    if (!tensor) throw Error("from_dlpack: the tensor is null");
    if (tensor->version.major != 1)
        throw Error("from_dlpack: the tensor is of DLPack version " + std::to_string(tensor->version.major) +
                    "." + std::to_string(tensor->version.minor) + ", and Bitale reads versions 1.x");
    return exchanging([&] { return taken(tensor, options); });
}

Array from_dlpack(DLManagedTensor* tensor, FromDlpack options) {
    if (!tensor) throw Error("from_dlpack: the tensor is null");
    return exchanging([&] { return taken(tensor, options); });
}

DLManagedTensorVersioned* to_dlpack(Array value) {
    return exchanging([&] {
        const bool shared = ArrayMemory::is_shared(value);
        auto lent = std::make_unique<Lent<DLManagedTensorVersioned>>(std::move(value));
        lent->managed.version = {1, 1};
        lent->managed.flags = shared ? dlpack::read_only : 0;
        return &lent.release()->managed;
    });
}

DLManagedTensor* to_dlpack_unversioned(Array value) {
    value.mutable_data();
    return exchanging([&] {
        auto lent = std::make_unique<Lent<DLManagedTensor>>(std::move(value));
        return &lent.release()->managed;
    });
}

}  // namespace bitale
