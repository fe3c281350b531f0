// Streams, events, pinned memory and loaded kernels of a GPU, destroyed with their owner.
#pragma once

#include <utility>

#include "runtime/cuda/tables.h"
#include "runtime/cuda/types.h"

namespace bitale::cuda {

class Context;

// The runtime, with the context's GPU chosen for the calling thread; null in a child of the process that made
// the context, where CUDA must not be called.
const RuntimeTable* runtime_to_destroy(Context& context) noexcept;

// `Destroy`: the function of the runtime, a member of RuntimeTable. On a GPU that is broken it refuses, and
// CUDA frees everything when the process ends.
template <class Handle, auto Destroy>
class Owned {
  public:
    explicit Owned(Context& context) : context_(&context) {}
    Owned(Owned&& other) noexcept
        : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}
    Owned& operator=(Owned&&) = delete;
    ~Owned() {
        if (!handle_) return;
        if (const RuntimeTable* runtime = runtime_to_destroy(*context_)) (runtime->*Destroy)(handle_);
    }

    Handle get() const { return handle_; }
    // Where a function of the runtime writes the handle that it makes; once.
    Handle* put() { return &handle_; }

  private:
    Context* context_;
    Handle handle_ = nullptr;
};

using OwnedStream = Owned<Stream, &RuntimeTable::cudaStreamDestroy>;
using OwnedEvent = Owned<Event, &RuntimeTable::cudaEventDestroy>;
using OwnedLibrary = Owned<Library, &RuntimeTable::cudaLibraryUnload>;
using OwnedPinnedMemory = Owned<void*, &RuntimeTable::cudaFreeHost>;

}  // namespace bitale::cuda
