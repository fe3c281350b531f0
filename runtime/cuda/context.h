// One GPU as the executor sees it: memory, a stream, copies, and where the shared variables are. Of the CUDA
// runtime or of the emulator, by the table.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "graph/ir/node.h"
#include "graph/ir/shared.h"
#include "runtime/cuda/tables.h"

namespace bitale::cuda {

class Context;

// A block of the GPU's memory; 64 bytes past the end may be read.
class DeviceBlock {
  public:
    explicit DeviceBlock(Context& context) : context_(&context) {}
    ~DeviceBlock();
    DeviceBlock(const DeviceBlock&) = delete;
    DeviceBlock& operator=(const DeviceBlock&) = delete;

    // At least `bytes`; true when the block is another one, whose contents are unspecified. Throws
    // OutOfMemory.
    bool grow(std::int64_t bytes);
    void* data() const { return data_; }

  private:
    Context* context_;
    void* data_ = nullptr;
    std::int64_t bytes_ = -1;
};

class Context {
  public:
    // `owner` is the device in whose name shared variables are held.
    Context(const RuntimeTable& runtime, const void* owner);
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    // Blocks are as long as what they hold, never longer: for the emulator's checks.
    bool exact_blocks = false;

    const RuntimeTable& runtime() const { return runtime_; }
    Stream stream() const { return stream_; }
    // Throws OutOfMemory or DeviceError; after the latter, which CUDA keeps until the process ends, every
    // further use throws the same.
    void check(Status status, const char* what);

    void* allocate(std::int64_t bytes);
    void release(void* block);
    // Finished when they return: through pinned memory.
    void upload(void* to, const void* from, std::int64_t bytes);
    void download(void* to, const void* from, std::int64_t bytes);
    void copy(void* to, const void* from, std::int64_t bytes);  // in the order of the stream
    void zero(void* block, std::int64_t bytes);
    void synchronize();

    // Where the newest value of a variable is here; brought here if need be. The variable's mutex is held.
    void* resident(const SharedPtr& variable);
    // The value here is newer than the host's from now on: the version grows.
    void wrote(const SharedPtr& variable);

  private:
    struct Resident {
        std::weak_ptr<SharedState> variable;
        std::unique_ptr<DeviceBlock> block;
        std::uint64_t version = 0;
    };
    void forget_dead();

    static constexpr std::int64_t staging_bytes = std::int64_t{4} << 20;
    const RuntimeTable& runtime_;
    const void* owner_;
    Stream stream_ = nullptr;
    std::mutex transfer_;  // of the staging memory: values are fetched while other functions run
    void* staging_ = nullptr;
    std::string broken_;
    std::map<const SharedState*, Resident> residents_;
};

}  // namespace bitale::cuda
