// libcudnn, emulated: the functions of cuDNN 9's backend that Bitale calls.
#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "runtime/cuda/emulator/libraries/cudnn_descriptor.h"
#include "runtime/cuda/emulator/libraries/submit.h"
#include "runtime/cuda/emulator/words.h"

namespace {

using namespace bitale::cuda;
using namespace bitale::emulated;

Words& last_error() {
    constinit thread_local Words words;
    return words;
}

template <class F>
int guarded(F&& f) {
    try {
        f();
        return dnn_ok;
    } catch (const Refusal& refusal) {
        last_error() = refusal.words;
        return refusal.status;
    } catch (const std::exception& e) {
        last_error() = std::string_view(e.what());
        return 4000;  // CUDNN_STATUS_INTERNAL_ERROR
    }
}

[[noreturn]] void refuse(int status, std::string words) { throw Refusal{status, std::move(words)}; }

DnnHandle& live(DnnHandle* handle) {
    if (!is_handle(handle)) refuse(dnn_bad_value, "no handle of cuDNN");
    return *handle;
}

// Where the tensors of a plan are.
std::map<std::int64_t, void*> data_of(const Descriptor& plan, const Descriptor& pack) {
    const std::vector<std::int64_t> ids = pack.integers(dnn_pack_ids);
    std::map<std::int64_t, void*> data;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        void* pointer = nullptr;
        std::memcpy(&pointer, pack.values.at(dnn_pack_pointers).bytes.data() + i * sizeof pointer,
                    sizeof pointer);
        const auto tensor = plan.graph->tensors.find(ids[i]);
        if (tensor == plan.graph->tensors.end() || tensor->second.is_virtual)
            refuse(dnn_bad_value, "the plan has no tensor " + std::to_string(ids[i]) + " to be given");
        if (!pointer) refuse(dnn_null_pointer, "tensor " + std::to_string(ids[i]) + " is null");
        if (reinterpret_cast<std::uintptr_t>(pointer) %
                static_cast<std::uintptr_t>(tensor->second.alignment) !=
            0)
            refuse(dnn_misaligned, "tensor " + std::to_string(ids[i]) + " is not aligned to " +
                                       std::to_string(tensor->second.alignment) + " bytes");
        data[ids[i]] = pointer;
    }
    for (const auto& [id, tensor] : plan.graph->tensors)
        if (!tensor.is_virtual && !data.count(id))
            refuse(dnn_bad_value, "tensor " + std::to_string(id) + " is not given");
    return data;
}

constexpr std::uintptr_t workspace_alignment = 16;

void execute(DnnHandle& handle, const Descriptor& plan, const Descriptor& pack) {
    if (plan.kind != dnn_plan || pack.kind != dnn_variant_pack)
        refuse(dnn_bad_value, "a plan and its arguments are wanted");
    if (!plan.finalized || !pack.finalized) refuse(dnn_not_finalized, "the plan or its arguments");
    if (!plan.has_device) refuse(dnn_not_supported, "the plan was made for a description of a GPU");
    std::map<std::int64_t, void*> data = data_of(plan, pack);
    auto* workspace = pack.pointer<unsigned char>(dnn_pack_workspace);
    const std::int64_t bytes = workspace_of(plan.choice);
    if (bytes > 0 && !workspace) refuse(dnn_null_pointer, "the plan needs a workspace");
    if (reinterpret_cast<std::uintptr_t>(workspace) % workspace_alignment != 0)
        refuse(dnn_misaligned, "the workspace is not aligned");
    const bool launched = submit(
        handle.stream, [graph = plan.graph, choice = plan.choice, data = std::move(data), workspace, bytes] {
            // It is ours as long as the plan runs: what others keep there is lost.
            if (bytes > 0) std::memset(workspace, 0xa5, static_cast<std::size_t>(bytes));
            compute(*graph, dnn_engine_at(choice.engine)->arithmetic, data);
        });
    if (!launched) refuse(dnn_not_launched, "the stream does not take the work");
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED std::size_t cudnnGetVersion() { return emulated_dnn_version; }
EXPORTED std::size_t cudnnGetCudartVersion() { return BITALE_EMULATED_CUDA; }

EXPORTED const char* cudnnGetErrorString(int status) {
    switch (status) {
        case dnn_ok: return "CUDNN_STATUS_SUCCESS";
        case dnn_not_initialized: return "CUDNN_STATUS_NOT_INITIALIZED";
        case dnn_other_version: return "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH";
        case dnn_bad_value: return "CUDNN_STATUS_BAD_PARAM";
        case dnn_null_pointer: return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
        case dnn_misaligned: return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
        case dnn_not_finalized: return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
        case dnn_duplicated: return "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES";
        case dnn_wrong_type: return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
        case dnn_not_supported: return "CUDNN_STATUS_NOT_SUPPORTED";
        case dnn_prerequisite_missing: return "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING";
        case dnn_no_such_kind: return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
        case dnn_not_launched: return "CUDNN_STATUS_EXECUTION_FAILED_CUDART";
        default: return "CUDNN_UNKNOWN_STATUS";
    }
}

// Of this thread, once.
EXPORTED void cudnnGetLastErrorString(char* text, std::size_t bytes) {
    if (!text || bytes == 0) return;
    const std::size_t count = std::min(bytes - 1, last_error().size());
    std::memcpy(text, last_error().c_str(), count);
    text[count] = 0;
    last_error().clear();
}

EXPORTED int cudnnCreate(DnnHandle** handle) {
    return guarded([&] {
        if (!handle) refuse(dnn_bad_value, "no place for a handle");
        if (!submit_of_runtime()) refuse(dnn_not_initialized, "there is no CUDA runtime in this process");
        *handle = new DnnHandle{live_dnn_handle, nullptr};
    });
}

EXPORTED int cudnnDestroy(DnnHandle* handle) {
    return guarded([&] {
        live(handle).mark = 0;
        delete handle;
    });
}

EXPORTED int cudnnSetStream(DnnHandle* handle, Stream stream) {
    return guarded([&] { live(handle).stream = stream; });
}

EXPORTED int cudnnBackendCreateDescriptor(int kind, DnnDescriptor** descriptor) {
    return guarded([&] {
        if (!descriptor) refuse(dnn_null_pointer, "no place for a descriptor");
        *descriptor = hold(make_descriptor(kind));
    });
}

EXPORTED int cudnnBackendDestroyDescriptor(DnnDescriptor* descriptor) {
    return guarded([&] {
        descriptor_of(descriptor);
        let_go(descriptor);
    });
}

EXPORTED int cudnnBackendFinalize(DnnDescriptor* descriptor) {
    return guarded([&] { finalize(descriptor_of(descriptor)); });
}

EXPORTED int cudnnBackendSetAttribute(DnnDescriptor* descriptor, int attribute, int type, std::int64_t count,
                                      const void* values) {
    return guarded([&] { set_attribute(descriptor_of(descriptor), attribute, type, count, values); });
}

EXPORTED int cudnnBackendGetAttribute(const DnnDescriptor* descriptor, int attribute, int type,
                                      std::int64_t room, std::int64_t* count, void* values) {
    return guarded([&] {
        const std::int64_t found = get_attribute(descriptor_of(const_cast<DnnDescriptor*>(descriptor)),
                                                 attribute, type, room, values);
        if (count) *count = found;
    });
}

EXPORTED int cudnnBackendExecute(DnnHandle* handle, DnnDescriptor* plan, DnnDescriptor* pack) {
    return guarded([&] { execute(live(handle), descriptor_of(plan), descriptor_of(pack)); });
}
