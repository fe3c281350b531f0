#include "runtime/cuda/emulator/stream.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <set>
#include <thread>
#include <utility>

#include "bitale/error.h"
#include "runtime/cuda/emulator/checks.h"
#include "runtime/cuda/emulator/devices.h"
#include "runtime/cuda/emulator/faults.h"
#include "runtime/cuda/emulator/memory.h"

namespace bitale::cuda {

namespace {

struct Streams {
    std::mutex mutex;
    std::set<EmulatedStream*> all;
};
Streams& streams() {
    static Streams& s = *new Streams;
    return s;
}

thread_local EmulatedStream* captured_here = nullptr;
std::atomic<std::int64_t> kernel_launches{0}, graph_launches{0};

}  // namespace

Outcome outcome_of(const Work& work) {
    try {
        return work.run();
    } catch (const std::bad_alloc&) {
        return {"out of memory"};
    }
}

Status EmulatedStream::chosen() const {
    if (chosen_device() == no_device) return error_invalid_device;
    return chosen_device() == device_ ? success : error_invalid_handle;
}

Status EmulatedStream::submit(Work work) {
    const std::lock_guard lock(mutex_);
    if (!capture_) {
        if (!problem_.empty()) {
            last_problem() = problem_;
            return launch_error();
        }
        if (device_is_broken()) return launch_error();
        if (work.kind == Work::Kind::kernel) ++kernel_launches;
        if (work.kind == Work::Kind::graph) ++graph_launches;
        queue_.push_back(std::move(work));
        // What goes wrong now is seen by whoever comes next.
        if (streams_run_at_once())
            while (!queue_.empty() && !hangs_ && run_one() == success) {
            }
        return queue_.size() > most_waiting ? run_one() : success;
    }
    if (invalid_) return error_capture_invalidated;
    const bool refused = work.kind == Work::Kind::event || work.kind == Work::Kind::graph ||
                         (capture_->is_body && work.host_memory);
    if (refused) {
        invalid_ = true;
        return error_capture_unsupported;
    }
    invalid_ = true;  // should there be no memory for the node
    capture_->nodes.push_back(std::move(work));
    invalid_ = false;
    return success;
}

// Of a graph with a loop, one turn of the loop.
Status EmulatedStream::run_one() {
    if (hangs_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return success;
    }
    if (!queue_.empty() && problem_.empty()) {
        Outcome outcome = outcome_of(queue_.front());
        problem_ = std::move(outcome.problem);
        hangs_ = outcome.hangs;
        if (!outcome.more && !outcome.hangs) queue_.pop_front();
    }
    if (problem_.empty()) return device_is_broken() ? launch_error() : success;
    queue_.clear();
    last_problem() = problem_;
    return launch_error();
}

Status EmulatedStream::synchronize() {
    const std::lock_guard lock(mutex_);
    if (capture_) {
        invalid_ = true;
        return error_capture_unsupported;
    }
    Status status = run_one();
    while (status == success && !queue_.empty()) status = run_one();
    return status;
}

Status EmulatedStream::query() {
    const std::lock_guard lock(mutex_);
    if (capture_) {
        invalid_ = true;
        return error_capture_unsupported;
    }
    const Status status = run_one();
    return status == success && !queue_.empty() ? error_not_ready : status;
}

void EmulatedStream::drain() {
    const std::lock_guard lock(mutex_);
    while (!queue_.empty())
        if (run_one() != success) return;
}

Status EmulatedStream::begin_capture(std::shared_ptr<EmulatedGraph> into) {
    const std::lock_guard lock(mutex_);
    if (capture_ || captured_here) return error_capture_unsupported;
    capture_ = std::move(into);
    invalid_ = false;
    captured_here = this;
    return success;
}

Status EmulatedStream::end_capture(std::shared_ptr<EmulatedGraph>& graph) {
    const std::lock_guard lock(mutex_);
    if (!capture_ || captured_here != this) return error_invalid_value;
    captured_here = nullptr;
    graph = std::exchange(capture_, nullptr);
    return invalid_ ? error_capture_invalidated : success;
}

void EmulatedStream::invalidate_capture() {
    const std::lock_guard lock(mutex_);
    invalid_ = true;
}

LaunchCount launches_so_far() { return {kernel_launches, graph_launches}; }

Status launch_error() { return device_is_broken() ? error_illegal_address : error_launch_failure; }

Status refuse_while_capturing() {
    if (device_is_broken()) return launch_error();
    if (!captured_here) return success;
    captured_here->invalidate_capture();
    return error_capture_unsupported;
}

Words& last_problem() {
    constinit thread_local Words problem;
    return problem;
}

namespace {

int device_behind(Stream stream) {
    return stream ? reinterpret_cast<EmulatedStream*>(stream)->device() : chosen_device();
}

}  // namespace

Status submit_work(Stream stream, std::function<void()> call) {
    const int device = device_behind(stream);
    return submit_work(stream, {}, [device, call = std::move(call)] {
        call();
        mark_device_written(device);
    });
}

Status submit_work(Stream stream, std::vector<LibraryMemory> memory, std::function<void()> call) {
    const int device = device_behind(stream);
    Work work;
    work.kind = Work::Kind::library;
    work.run = [device, memory = std::move(memory), call = std::move(call)]() -> Outcome {
        for (const LibraryMemory& m : memory) {
            if (m.bytes == 0) continue;
            if (const int owner = device_of(m.begin); owner != no_device && owner != device)
                return {fmt::format("a library on device {} is given memory of device {}", device, owner)};
            const std::string gap = m.writes ? "" : unwritten_in(m.begin, static_cast<std::size_t>(m.bytes));
            if (!gap.empty() && emulator_checks())
                return {"a library reads " + gap + ", which nobody has written"};
        }
        try {
            call();
        } catch (const std::exception& e) {
            return {e.what()};
        }
        for (const LibraryMemory& m : memory)
            if (m.writes) mark_written(m.begin, static_cast<std::size_t>(m.bytes));
        return {};
    };
    if (stream) return reinterpret_cast<EmulatedStream*>(stream)->submit(std::move(work));
    last_problem() = work.run().problem;
    return last_problem().empty() ? success : launch_error();
}

void submit_library_call(Stream stream, std::function<void()> call) {
    if (submit_work(stream, std::move(call)) != success)
        throw DeviceError("the emulator does not take a call of a library: " +
                          std::string(last_problem().c_str()));
}

void submit_library_call(Stream stream, std::vector<LibraryMemory> memory, std::function<void()> call) {
    if (submit_work(stream, std::move(memory), std::move(call)) != success)
        throw DeviceError("the emulator does not take a call of a library: " +
                          std::string(last_problem().c_str()));
}

void drain_streams() {
    Streams& s = streams();
    const std::lock_guard lock(s.mutex);
    for (EmulatedStream* stream : s.all) stream->drain();
}

EmulatedStream* new_stream() {
    Streams& s = streams();
    const std::lock_guard lock(s.mutex);
    auto stream = std::make_unique<EmulatedStream>(chosen_device());
    s.all.insert(stream.get());
    return stream.release();
}

void delete_stream(EmulatedStream* stream) {
    stream->drain();
    Streams& s = streams();
    const std::lock_guard lock(s.mutex);
    s.all.erase(stream);
    delete stream;
}

}  // namespace bitale::cuda
