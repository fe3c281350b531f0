#include "runtime/cuda/transfers.h"

#include <algorithm>
#include <cstring>

#include "runtime/cuda/context.h"
#include "runtime/cuda/outside.h"

namespace bitale::cuda {

namespace {

constexpr std::int64_t alignment = 64;
std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

Transfers::Half::Half(Context& context) : memory(context), used(context) {
    const RuntimeTable& runtime = context.runtime();
    context.check(locked_memory(runtime, memory.put(), static_cast<std::size_t>(half_bytes)),
                  "cudaMallocHost");
    context.check(runtime.cudaEventCreateWithFlags(used.put(), event_without_timing),
                  "cudaEventCreateWithFlags");
}

void Transfers::wait(Half& half) {
    if (half.in_use) context_.check(context_.runtime().cudaEventSynchronize(half.used.get()), "a copy");
    half.in_use = false;
}

void Transfers::upload(void* to, const void* from, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const RuntimeTable& runtime = context_.runtime();
    for (std::int64_t done = 0; done < bytes;) {
        if (filled_ >= half_bytes) {
            Half& full = up_[filling_];
            context_.check(runtime.cudaEventRecord(full.used.get(), context_.stream()), "cudaEventRecord");
            full.in_use = true;
            filling_ = 1 - filling_;
            filled_ = 0;
            wait(up_[filling_]);
        }
        char* staged = up_[filling_].at(filled_);
        const std::int64_t part = std::min(bytes - done, half_bytes - filled_);
        std::memcpy(staged, static_cast<const char*>(from) + done, static_cast<std::size_t>(part));
        context_.check(
            runtime.cudaMemcpyAsync(static_cast<char*>(to) + done, staged, static_cast<std::size_t>(part),
                                    host_to_device, context_.stream()),
            "copying to the GPU");
        filled_ += aligned(part);
        done += part;
    }
}

void Transfers::empty(Half& half) {
    for (const Download& d : half.arrived) std::memcpy(d.to, d.from, static_cast<std::size_t>(d.bytes));
    half.arrived.clear();
}

void Transfers::reserve(std::size_t parts) {
    const std::lock_guard lock(mutex_);
    for (Half& half : down_) half.arrived.reserve(parts + 1);  // a part that began in the half before
}

void Transfers::download(std::span<const Download> parts) {
    const std::lock_guard lock(mutex_);
    const RuntimeTable& runtime = context_.runtime();
    for (Half& half : down_) half.arrived.clear();  // of a download that failed
    std::size_t filling = 0;
    std::int64_t filled = 0;
    for (const Download& d : parts)
        for (std::int64_t done = 0; done < d.bytes;) {
            if (filled >= half_bytes) {
                Half& full = down_[filling];
                context_.check(runtime.cudaEventRecord(full.used.get(), context_.stream()),
                               "cudaEventRecord");
                full.in_use = true;
                filling = 1 - filling;
                filled = 0;
                wait(down_[filling]);
                empty(down_[filling]);
            }
            Half& half = down_[filling];
            const std::int64_t part = std::min(d.bytes - done, half_bytes - filled);
            context_.check(
                runtime.cudaMemcpyAsync(half.at(filled), static_cast<const char*>(d.from) + done,
                                        static_cast<std::size_t>(part), device_to_host, context_.stream()),
                "copying from the GPU");
            half.arrived.push_back({static_cast<char*>(d.to) + done, half.at(filled), part});
            filled += aligned(part);
            done += part;
        }
    context_.synchronize();
    for (Half& half : down_) {
        half.in_use = false;
        empty(half);
    }
}

}  // namespace bitale::cuda
