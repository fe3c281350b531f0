// One GPU as the executor sees it: memory, a stream, and where the shared variables are. Of the CUDA runtime
// or of the emulator, by the backend.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bitale/error.h"
#include "graph/base/memory.h"
#include "graph/base/turns.h"
#include "graph/ir/shared.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/demand.h"
#include "runtime/cuda/launch_text.h"
#include "runtime/cuda/owned.h"
#include "runtime/cuda/transfers.h"

namespace bitale::cuda {

class Context;

// A block of the GPU's memory. Kernels may read 64 bytes past its end, which are zeros: they read whole
// vectors.
class DeviceBlock {
  public:
    explicit DeviceBlock(Context& context) : context_(&context) {}
    ~DeviceBlock();
    DeviceBlock(const DeviceBlock&) = delete;
    DeviceBlock& operator=(const DeviceBlock&) = delete;

    enum class Contents : std::uint8_t { unspecified, zeros };
    // At least `bytes`; true when the block is another one, with these contents. Throws OutOfMemory.
    bool grow(std::int64_t bytes, Contents contents = Contents::unspecified);
    void drop();
    void* data() const { return data_; }
    std::int64_t bytes() const { return bytes_; }  // -1: there is none

  private:
    Context* context_;
    void* data_ = nullptr;
    std::int64_t bytes_ = -1;
};

// Host memory that the GPU reads and writes too; a few words, zero at first.
class MappedWords {
  public:
    explicit MappedWords(Context& context);

    static constexpr std::size_t count = 8;
    std::int64_t read(std::size_t i) const;
    void write(std::size_t i, std::int64_t value);
    void* here(std::size_t i) const { return here() + i; }
    void* there(std::size_t i) const { return there_ + i; }

  private:
    std::int64_t* here() const { return static_cast<std::int64_t*>(here_.get()); }

    OwnedPinnedMemory here_;
    std::int64_t* there_ = nullptr;
};

// The error word of calls that nobody has waited for: copied here in the order of the stream.
struct CallCheck {
    CallCheck(Context& context, std::function<std::string(const std::int64_t*)> words)
        : copied(context), text(std::move(words)) {}
    MappedWords copied;
    std::function<std::string(const std::int64_t* words)> text;  // of the error that the words tell
    std::atomic<bool> failed{false};  // seen; whoever launches next must clear the word on the GPU
};

// What cannot be captured; the device goes on.
class CaptureError : public DeviceError {
    using DeviceError::DeviceError;
};

class Context {
  public:
    // `owner` is the device in whose name, and under whose name, shared variables are held.
    Context(const Backend& backend, const void* owner, std::string name);
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    // Blocks are as long as what they hold, never longer: for the emulator's checks.
    bool exact_blocks = false;

    const Backend& backend() const { return backend_; }
    const RuntimeTable& runtime() const { return *backend_.runtime; }
    const std::string& name() const { return name_; }
    Stream stream() const { return stream_.get(); }
    Stream capture_stream() const { return capture_stream_.get(); }  // nothing ever runs on it

    // Whether this process is a child of the one that made the context: CUDA does not work in there.
    bool is_forked() const { return forks_so_far() != made_after_forks_; }
    // Makes the GPU that of the calling thread, as it must be for every call.
    void enter();
    // The same for destructors: does not throw, and is of no use where the GPU is broken.
    void select() noexcept {
        if (!is_forked()) runtime().cudaSetDevice(backend_.index);
    }
    // Throws OutOfMemory, CaptureError, or DeviceError. After a fault, which CUDA keeps until the process
    // ends, every further use throws the same.
    void check(Status status, std::string_view what);
    // Names a function in errors that come up before the next time anybody waits.
    void begins(const std::shared_ptr<const Program>& function);
    // After each launch, with what it returned. With launches=wait the launch is done when this returns, so
    // its fault is known to be its own; one that takes longer than `patience` is named in a warning.
    // Otherwise a fault comes up at a later launch or call, whose error names those that it may be of.
    void launched(Status status, Stream stream, const LaunchWords& words, const LaunchNote& note);
    // A library's call has failed, in words of its own. Throws where that is for a fault of the GPU.
    void library_failed(Stream stream, const std::string& what);
    std::chrono::milliseconds patience{10'000};

    void* allocate(std::int64_t bytes);
    void release(void* block, std::int64_t bytes);
    MemoryLedger& ledger() { return ledger_; }
    Transfers& transfers() { return *transfers_; }
    Demand& demand() { return demand_; }
    void upload(void* to, const void* from, std::int64_t bytes) { transfers_->upload(to, from, bytes); }
    bool is_broken();
    void copy(void* to, const void* from, std::int64_t bytes, Stream stream, const LaunchWords& words,
              const LaunchNote& note);
    void zero(void* block, std::int64_t bytes);
    void synchronize();
    // Where the work of the stream stands: success, or error_not_ready.
    Status progress(std::string_view what);

    // The call whose error word is being copied to `check` is not waited for. Its error comes up at the next
    // settle() after the GPU was waited for.
    void watch(const std::shared_ptr<CallCheck>& check);
    // Throws the error of such a call, IndexError; `wait`: after waiting for those that are being watched.
    void settle(bool wait);

    // Where the newest value of a variable is here; brought here if need be. The variable's mutex is held.
    void* resident(const SharedPtr& variable);
    // The value here is newer than the host's from now on: the version grows. After resident(); throws
    // nothing, so that a step that was launched is never lost.
    void wrote(const SharedPtr& variable) noexcept;
    // A step has failed in the middle of writing it: every use says so until it is given another value.
    void lost(const SharedPtr& variable) noexcept;

  private:
    struct Resident {
        Context* context = nullptr;
        SharedState* state = nullptr;
        std::weak_ptr<SharedState> variable;
        std::unique_ptr<DeviceBlock> block;
        std::uint64_t version = 0;
    };
    // Whose fault an error may tell of: the work that it was returned for; that or what was launched before;
    // or only the latter.
    enum class Suspects : std::uint8_t { itself, itself_and_earlier, earlier };
    [[noreturn]] void fail(Status status, std::string_view what, Suspects suspects);
    std::string suspected(Suspects suspects) const;
    void waited(std::size_t launches);  // so many of all are done
    void forget_dead();
    void ask_for(void*& block, std::int64_t bytes);
    void fetch(SharedState& variable, const void* block);

    const Backend& backend_;
    const void* owner_;
    const std::string name_;
    const int made_after_forks_ = forks_so_far();

    MemoryLedger& ledger_;
    Demand demand_;

    std::mutex state_;  // of what follows, up to `unsettled_`: values are fetched while functions run
    std::string broken_;
    std::vector<std::shared_ptr<const Program>> running_;  // functions since the GPU was last waited for
    std::array<LaunchNote, 16> launches_{};                // the last ones since then; a ring
    std::size_t launch_count_ = 0, waited_for_ = 0;
    std::vector<std::shared_ptr<CallCheck>> watched_;
    std::string unsettled_;  // the first error that was found and not thrown yet

    OwnedStream stream_{*this}, capture_stream_{*this};
    std::unique_ptr<Transfers> transfers_;
    std::map<const SharedState*, Resident> residents_;
};

}  // namespace bitale::cuda
