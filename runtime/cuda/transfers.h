// Copies between the host's memory and the GPU's, through pinned memory: nobody waits for an upload, and
// what is downloaded together is waited for once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/cuda/owned.h"
#include "runtime/cuda/types.h"

namespace bitale::cuda {

class Context;

struct Download {
    void* to = nullptr;          // on the host
    const void* from = nullptr;  // on the GPU
    std::int64_t bytes = 0;
};

// In the order of the context's stream; from any thread.
class Transfers {
  public:
    static constexpr std::int64_t half_bytes = std::int64_t{2} << 20, pinned_bytes = 4 * half_bytes;

    explicit Transfers(Context& context) : context_(context) {}
    Transfers(const Transfers&) = delete;
    Transfers& operator=(const Transfers&) = delete;

    // `from` may change when it returns.
    void upload(void* to, const void* from, std::int64_t bytes);
    // All that is before it in the stream is done when it returns.
    void download(std::span<const Download> parts);
    // Takes the memory that a download of so many parts needs, so that it finds it.
    void reserve(std::size_t parts);

  private:
    struct Half {
        explicit Half(Context& context);
        char* at(std::int64_t offset) const { return static_cast<char*>(memory.get()) + offset; }

        OwnedPinnedMemory memory;
        OwnedEvent used;  // the copies from or to it are done
        bool in_use = false;
        std::vector<Download> arrived;  // from here to the host, once `used`
    };
    void wait(Half& half);
    void empty(Half& half);

    Context& context_;
    std::mutex mutex_;
    std::array<Half, 2> up_{Half(context_), Half(context_)}, down_{Half(context_), Half(context_)};
    std::size_t filling_ = 0;  // of up_
    std::int64_t filled_ = 0;
};

}  // namespace bitale::cuda
