#include "runtime/cuda/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <optional>
#include <thread>
#include <utility>

#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "runtime/cuda/availability.h"
#include "runtime/cuda/outside.h"
#include "runtime/memory/limit.h"
#include "runtime/outside.h"

namespace bitale::cuda {

namespace {

// Whether CUDA answers every later call with the same error: faults of kernels and of the hardware. Others
// between them are refusals of a call, as 701 and 720 of a launch that asks for too much.
bool is_final(Status status) {
    constexpr Status uncorrectable_memory = 214, uncorrectable_link = 220, contained = 226,
                     illegal_address = 700, launch_timeout = 702, context_is_destroyed = 709, assertion = 710,
                     hardware_stack = 714, launch_failure = 719, tensor_memory_leak = 721, unknown = 999;
    if (status >= hardware_stack && status <= launch_failure) return true;
    const auto all = {
        uncorrectable_memory, uncorrectable_link, contained,          illegal_address, launch_timeout,
        context_is_destroyed, assertion,          tensor_memory_leak, unknown};
    return std::find(all.begin(), all.end(), status) != all.end();
}

// Told by a thread of its own, as the one that waits may never come back.
class Warning {
  public:
    Warning(std::chrono::milliseconds patience, const LaunchWords& words)
        : thread_(outside::start_thread([this, patience, &words] {
              std::unique_lock lock(mutex_);
              if (!over_.wait_for(lock, patience, [this] { return is_over_; }))
                  warn(fmt::format("launches={}: still running after {:.1f} s: {}",
                                   options().compare_launches ? "compare" : "wait",
                                   std::chrono::duration<double>(patience).count(), words()));
          })) {
        if (!thread_) warn("the system refuses a thread: launches that do not end are not said so");
    }
    ~Warning() {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        over_.notify_one();
        if (thread_) thread_->join();
    }
    Warning(const Warning&) = delete;
    Warning& operator=(const Warning&) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable over_;
    bool is_over_ = false;
    std::optional<std::thread> thread_;  // the last member: it uses the others
};

}  // namespace

const RuntimeTable* runtime_to_destroy(Context& context) noexcept {
    if (context.is_forked()) return nullptr;
    context.select();
    return &context.runtime();
}

namespace {
constexpr std::int64_t tail = 64;
}

DeviceBlock::~DeviceBlock() { drop(); }

void DeviceBlock::drop() {
    if (data_) context_->release(data_, bytes_ + tail);
    data_ = nullptr;
    bytes_ = -1;
}

bool DeviceBlock::grow(std::int64_t bytes, Contents contents) {
    if (context_->exact_blocks ? bytes == bytes_ : bytes <= bytes_) return false;
    drop();
    data_ = context_->allocate(bytes + tail);
    bytes_ = bytes;
    const std::int64_t first = contents == Contents::zeros ? 0 : bytes;
    context_->zero(static_cast<char*>(data_) + first, bytes + tail - first);
    return true;
}

MappedWords::MappedWords(Context& context) : here_(context) {
    const RuntimeTable& runtime = context.runtime();
    context.check(mapped_memory(runtime, here_.put(), count * sizeof *there_), "cudaHostAlloc");
    std::fill_n(here(), count, 0);
    void* there = nullptr;
    context.check(runtime.cudaHostGetDevicePointer(&there, here_.get(), 0), "cudaHostGetDevicePointer");
    there_ = static_cast<std::int64_t*>(there);
}

std::int64_t MappedWords::read(std::size_t i) const { return std::atomic_ref(here()[i]).load(); }
void MappedWords::write(std::size_t i, std::int64_t value) { std::atomic_ref(here()[i]).store(value); }

Context::Context(const Backend& backend, const void* owner, std::string name)
    : backend_(backend), owner_(owner), name_(std::move(name)), ledger_(*backend.ledger) {
    enter();
    for (OwnedStream* stream : {&stream_, &capture_stream_})
        check(runtime().cudaStreamCreateWithFlags(stream->put(), stream_non_blocking),
              "cudaStreamCreateWithFlags");
    transfers_ = std::make_unique<Transfers>(*this);
}

void Context::enter() {
    if (is_forked()) throw DeviceError(fmt::format("device {} cannot be used: {}", name_, forked_words));
    check(runtime().cudaSetDevice(backend_.index), "cudaSetDevice");
}

void Context::check(Status status, std::string_view what) {
    if (status != success) fail(status, what, Suspects::earlier);
    const std::lock_guard lock(state_);
    if (!broken_.empty()) throw DeviceError(broken_);
}

// What nobody has waited for may have left the error. The oldest of those that are known comes first.
std::string Context::suspected(Suspects suspects) const {
    const std::size_t unknown = launch_count_ - waited_for_, known = std::min(unknown, launches_.size());
    if (suspects == Suspects::itself || known == 0) return "";
    std::vector<std::string> list;
    for (std::size_t k = launch_count_ - known; k < launch_count_; ++k)
        list.push_back(text_of(launches_[k % launches_.size()]));
    return fmt::format("; the fault is of {} that nobody waited for: {}{}",
                       suspects == Suspects::itself_and_earlier ? "this launch or of one of those before it"
                                                                : "one of the launches before this",
                       known < unknown ? fmt::format("{} others, then ", unknown - known) : "",
                       fmt::join(list, ", "));
}

void Context::fail(Status status, std::string_view what, Suspects suspects) {
    constexpr Status first_capture_error = 900, last_capture_error = 908;
    const std::lock_guard lock(state_);
    if (!broken_.empty()) throw DeviceError(broken_);
    const std::string reason = runtime().cudaGetErrorString(status);
    std::string words = fmt::format("{} fails: {} ({})", what, reason, runtime().cudaGetErrorName(status));
    if (status == error_out_of_memory) throw OutOfMemory(words);
    if (status >= first_capture_error && status <= last_capture_error) throw CaptureError(words);
    if (!is_final(status)) throw DeviceError(words);
    if (suspects != Suspects::itself && !running_.empty()) {
        std::vector<std::string> names, lines;
        for (const std::shared_ptr<const Program>& function : running_) {
            names.push_back(function->name);
            if (std::string known = lines_of_named_kernels(*function, reason); !known.empty())
                lines.push_back(std::move(known));
        }
        words += fmt::format(", in {}{}", names.size() > 1 ? "one of " : "", fmt::join(names, ", "));
        if (!lines.empty()) words += fmt::format("; {}", fmt::join(lines, "; "));
    }
    words += suspected(suspects);
    if (suspects != Suspects::itself && !options().wait_for_launches &&
        !(running_.empty() && launch_count_ == waited_for_))
        words +=
            "; launches=wait in BITALE_FLAGS waits after every launch and names the kernel, its phase and "
            "the user's lines";
    broken_ = fmt::format("{}; device {} is not usable any more in this process", words, name_);
    throw DeviceError(broken_);
}

bool Context::is_broken() {
    if (is_forked()) return true;
    const std::lock_guard lock(state_);
    return !broken_.empty();
}

void Context::begins(const std::shared_ptr<const Program>& function) {
    constexpr std::size_t most_names = 5;
    const std::lock_guard lock(state_);
    if (running_.size() < most_names &&
        std::find(running_.begin(), running_.end(), function) == running_.end())
        running_.push_back(function);
}

void Context::launched(Status status, Stream stream, const LaunchWords& words, const LaunchNote& note) {
    const bool runs = stream == stream_.get();
    if (status != success)
        fail(status, "launching " + words(), runs ? Suspects::itself_and_earlier : Suspects::earlier);
    if (!runs) return;
    if (!options().wait_for_launches) {
        const std::lock_guard lock(state_);
        launches_[launch_count_++ % launches_.size()] = note;
        return;
    }
    {
        const Warning late(patience, words);
        status = runtime().cudaStreamSynchronize(stream);
    }
    if (status != success) fail(status, words(), Suspects::itself);
}

void Context::library_failed(Stream stream, const std::string& what) {
    if (stream != stream_.get()) return;
    const Status status = runtime().cudaStreamQuery(stream);
    if (status == error_not_ready) return;
    if (status != success) fail(status, what, Suspects::itself_and_earlier);
    check(success, what);
}

// Those that other threads have launched meanwhile are not done. A note keeps its program alive.
void Context::waited(std::size_t launches) {
    running_.clear();
    const std::size_t kept = std::min(launch_count_, launches_.size());
    for (std::size_t k = std::max(waited_for_, launch_count_ - kept); k < launches; ++k)
        launches_[k % launches_.size()] = {};
    waited_for_ = std::max(waited_for_, launches);
}

Status Context::progress(std::string_view what) {
    const Status status = runtime().cudaStreamQuery(stream_.get());
    if (status != error_not_ready) check(status, what);
    return status;
}

void* Context::allocate(std::int64_t bytes) {
    void* block = nullptr;
    const std::int64_t limit = options().memory_limit;
    if (!ledger_.take(bytes, limit)) {
        forget_dead();
        const std::int64_t alive = ledger_.now();
        if (!ledger_.take(bytes, limit))
            throw OutOfMemory(fmt::format(
                "{} more beside the {} that are alive are {} more than memory_limit in "
                "BITALE_FLAGS allows, {}",
                bytes_text(bytes), bytes_text(alive), bytes_text(alive + bytes - limit), bytes_text(limit)));
    }
    try {
        ask_for(block, bytes);
    } catch (...) {
        ledger_.give(bytes);
        throw;
    }
    ledger_.taken();
    return block;
}

void Context::ask_for(void*& block, std::int64_t bytes) {
    Status status = device_memory(runtime(), &block, static_cast<std::size_t>(bytes));
    if (status == error_out_of_memory) {
        forget_dead();
        status = device_memory(runtime(), &block, static_cast<std::size_t>(bytes));
    }
    if (status == error_out_of_memory) {
        std::size_t free = 0, total = 0;
        runtime().cudaMemGetInfo(&free, &total);
        throw OutOfMemory(
            fmt::format("{:.1f} MB do not fit into the GPU's memory, of which {:.1f} of {:.1f} MB are "
                        "free",
                        static_cast<double>(bytes) / 1e6, static_cast<double>(free) / 1e6,
                        static_cast<double>(total) / 1e6));
    }
    check(status, "cudaMalloc");
}

// From any thread, in destructors: what fails now fails again, in words, at the next use.
void Context::release(void* block, std::int64_t bytes) {
    ledger_.give(bytes);
    if (is_broken()) return;
    select();
    runtime().cudaFree(block);
}

void Context::copy(void* to, const void* from, std::int64_t bytes, Stream stream, const LaunchWords& words,
                   const LaunchNote& note) {
    if (bytes > 0 && to != from)
        launched(
            runtime().cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), device_to_device, stream),
            stream, words, note);
}

void Context::zero(void* block, std::int64_t bytes) {
    check(runtime().cudaMemsetAsync(block, 0, static_cast<std::size_t>(bytes), stream_.get()),
          "cudaMemsetAsync");
}

void Context::synchronize() {
    // Those that are watched from now on may not have been waited for.
    std::vector<std::shared_ptr<CallCheck>> watched;
    std::size_t launches = 0;
    {
        const std::lock_guard lock(state_);
        watched.swap(watched_);
        launches = launch_count_;
    }
    check(runtime().cudaStreamSynchronize(stream_.get()), "waiting for the GPU");
    const std::lock_guard lock(state_);
    waited(launches);
    for (const std::shared_ptr<CallCheck>& call : watched) {
        if (call->copied.read(0) == 0 || call->failed) continue;
        std::int64_t words[4];
        for (std::size_t i = 0; i < 4; ++i) words[i] = call->copied.read(i);
        call->failed = true;
        if (unsettled_.empty()) unsettled_ = call->text(words);
    }
}

void Context::watch(const std::shared_ptr<CallCheck>& check) {
    const std::lock_guard lock(state_);
    if (std::find(watched_.begin(), watched_.end(), check) == watched_.end()) watched_.push_back(check);
}

void Context::settle(bool wait) {
    {
        const std::lock_guard lock(state_);
        wait = wait && !watched_.empty();
    }
    if (wait) synchronize();
    const std::lock_guard lock(state_);
    if (!unsettled_.empty()) throw IndexError(std::exchange(unsettled_, {}));
}

void Context::forget_dead() {
    std::erase_if(residents_, [](const auto& entry) { return entry.second.variable.expired(); });
}

void* Context::resident(const SharedPtr& variable) {
    Resident& r = residents_[variable.get()];
    if (r.variable.lock() != variable) {  // new, or at the address of one that is gone
        r = {this, variable.get(), variable, std::make_unique<DeviceBlock>(*this), 0};
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

void Context::wrote(const SharedPtr& variable) noexcept {
    Resident& r = residents_.find(variable.get())->second;
    r.version = ++variable->version;
    variable->home = owner_;
    // Kept by the variable itself, so it outlives none of what it names. A single pointer: std::function
    // takes no memory for it.
    variable->fetch = [r = &r] { r->context->fetch(*r->state, r->block->data()); };
}

void Context::lost(const SharedPtr& variable) noexcept {
    residents_.find(variable.get())->second.version = ++variable->version;
    variable->home = nullptr;  // the device asks too
    variable->fetch = [state = variable.get()] {
        throw DeviceError(
            fmt::format("the value of the shared variable {} is lost: a step failed after it had begun to "
                        "write new values; set_value gives the variable another one",
                        in_quotes(state->name)));
    };
}

void Context::fetch(SharedState& variable, const void* block) {
    try {
        enter();
        const NeedsGpu needs(*this);
        const Download whole{variable.data_to_write(), block, variable.value.bytes()};
        transfers_->download({&whole, 1});
    } catch (const DeviceError& e) {
        throw DeviceError(
            fmt::format("the newest value of the shared variable {} is lost with device {}: "
                        "{}; set_value gives the variable another one",
                        in_quotes(variable.name), name_, e.what()));
    }
    settle(false);
}

}  // namespace bitale::cuda
