#include "runtime/cuda/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bitale/error.h"

namespace bitale::cuda {

DeviceBlock::~DeviceBlock() {
    if (data_) context_->release(data_);
}

bool DeviceBlock::grow(std::int64_t bytes) {
    if (context_->exact_blocks ? bytes == bytes_ : bytes <= bytes_) return false;
    if (data_) context_->release(data_);
    data_ = nullptr;
    bytes_ = -1;
    data_ = context_->allocate(bytes + 64);
    bytes_ = bytes;
    return true;
}

Context::Context(const RuntimeTable& runtime, const void* owner) : runtime_(runtime), owner_(owner) {
    check(runtime_.cudaSetDevice(0), "cudaSetDevice");
    check(runtime_.cudaStreamCreateWithFlags(&stream_, stream_non_blocking), "cudaStreamCreateWithFlags");
    check(runtime_.cudaMallocHost(&staging_, static_cast<std::size_t>(staging_bytes)), "cudaMallocHost");
}

void Context::check(Status status, const char* what) {
    if (!broken_.empty()) throw DeviceError(broken_);
    if (status == success) return;
    const std::string words = fmt::format("{} fails: {} ({})", what, runtime_.cudaGetErrorString(status),
                                          runtime_.cudaGetErrorName(status));
    if (status == error_out_of_memory) throw OutOfMemory(words);
    broken_ = words + "; this device is not usable any more in this process";
    throw DeviceError(words);
}

void* Context::allocate(std::int64_t bytes) {
    void* block = nullptr;
    Status status = runtime_.cudaMalloc(&block, static_cast<std::size_t>(bytes));
    if (status == error_out_of_memory) {
        forget_dead();
        status = runtime_.cudaMalloc(&block, static_cast<std::size_t>(bytes));
    }
    if (status == error_out_of_memory) {
        std::size_t free = 0, total = 0;
        runtime_.cudaMemGetInfo(&free, &total);
        throw OutOfMemory(
            fmt::format("{:.1f} MB do not fit into the GPU's memory, of which {:.1f} of {:.1f} MB are "
                        "free",
                        static_cast<double>(bytes) / 1e6, static_cast<double>(free) / 1e6,
                        static_cast<double>(total) / 1e6));
    }
    check(status, "cudaMalloc");
    return block;
}

void Context::release(void* block) {
    if (broken_.empty()) runtime_.cudaFree(block);
}

void Context::upload(void* to, const void* from, std::int64_t bytes) {
    const std::lock_guard lock(transfer_);
    for (std::int64_t done = 0; done < bytes; done += staging_bytes) {
        const auto part = static_cast<std::size_t>(std::min(bytes - done, staging_bytes));
        std::memcpy(staging_, static_cast<const char*>(from) + done, part);
        check(
            runtime_.cudaMemcpyAsync(static_cast<char*>(to) + done, staging_, part, host_to_device, stream_),
            "copying to the GPU");
        synchronize();  // the staging memory is used again
    }
}

void Context::download(void* to, const void* from, std::int64_t bytes) {
    const std::lock_guard lock(transfer_);
    for (std::int64_t done = 0; done < bytes; done += staging_bytes) {
        const auto part = static_cast<std::size_t>(std::min(bytes - done, staging_bytes));
        check(runtime_.cudaMemcpyAsync(staging_, static_cast<const char*>(from) + done, part, device_to_host,
                                       stream_),
              "copying from the GPU");
        synchronize();
        std::memcpy(static_cast<char*>(to) + done, staging_, part);
    }
}

void Context::copy(void* to, const void* from, std::int64_t bytes) {
    if (bytes > 0 && to != from)
        check(runtime_.cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), device_to_device, stream_),
              "copying on the GPU");
}

void Context::zero(void* block, std::int64_t bytes) {
    check(runtime_.cudaMemsetAsync(block, 0, static_cast<std::size_t>(bytes), stream_), "cudaMemsetAsync");
}

void Context::synchronize() { check(runtime_.cudaStreamSynchronize(stream_), "a kernel"); }

void Context::forget_dead() {
    std::erase_if(residents_, [](const auto& entry) { return entry.second.variable.expired(); });
}

void* Context::resident(const SharedPtr& variable) {
    Resident& r = residents_[variable.get()];
    if (r.variable.lock() != variable) {  // new, or at the address of one that is gone
        r = {variable, std::make_unique<DeviceBlock>(*this), 0};
        try {
            r.block->grow(variable->value.bytes());
        } catch (...) {
            residents_.erase(variable.get());
            throw;
        }
    }
    if (r.version != variable->version) {
        upload(r.block->data(), variable->value.data(), variable->value.bytes());
        r.version = variable->version;
    }
    return r.block->data();
}

void Context::wrote(const SharedPtr& variable) {
    Resident& r = residents_.at(variable.get());
    r.version = ++variable->version;
    variable->home = owner_;
    // Kept by the variable itself, so it outlives none of what it names.
    variable->fetch = [this, state = variable.get(), block = r.block.get()] {
        download(state->value.mutable_data(), block->data(), state->value.bytes());
    };
}

}  // namespace bitale::cuda
