// Streams of the emulator. Work that is put into a stream waits there until somebody waits for it, and runs
// in the thread that does: whoever reads a result too early sees it every time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/emulator/words.h"
#include "runtime/cuda/types.h"

namespace bitale::cuda {

constexpr Status error_invalid_value = 1, error_initialization = 3, error_invalid_device = 101,
                 error_invalid_context = 201, error_invalid_handle = 400, error_not_found = 500,
                 error_illegal_address = 700, error_launch_failure = 719, error_capture_unsupported = 900,
                 error_capture_invalidated = 901;

struct EmulatedGraph;

// What came of a piece of work.
struct Outcome {
    std::string problem;  // empty: none
    bool more = false;    // a loop that goes on: to be run again
    bool hangs = false;   // it never ends
};

// One thing to do, now or at each launch of a graph.
struct Work {
    enum class Kind : std::uint8_t { kernel, copy, set, library, event, graph, condition, host };
    Kind kind = Kind::kernel;
    std::function<Outcome()> run;
    bool host_memory = false;  // a copy that touches host memory that is not mapped
    // Of a condition: its body runs until the value of the handle is 0.
    ConditionalHandle handle = 0;
    std::shared_ptr<EmulatedGraph> body;
};

// Of running the work. What finds no memory on its way has failed, as on a GPU.
Outcome outcome_of(const Work& work);

struct EmulatedGraph {
    struct Condition {
        unsigned at_launch = 0;
        bool assigned = false;  // at each launch
    };
    std::vector<Work> nodes;  // in the order in which they run
    bool is_body = false;     // of a conditional node
    std::map<ConditionalHandle, Condition> conditions;
};

class EmulatedStream {
  public:
    explicit EmulatedStream(int device) : device_(device) {}
    int device() const { return device_; }
    // Of work that only the stream's own device does: success, or the error where this thread has chosen none
    // or another one.
    Status chosen() const;

    // Adds work, or records it while the stream is being captured.
    Status submit(Work work);
    Status synchronize();
    // Does one piece of the work. error_not_ready when there is more.
    Status query();
    // Runs what was submitted up to now, so far as it succeeds. Not an API call: never refused.
    void drain();

    Status begin_capture(std::shared_ptr<EmulatedGraph> into);
    Status end_capture(std::shared_ptr<EmulatedGraph>& graph);
    void invalidate_capture();

  private:
    Status run_one();

    static constexpr std::size_t most_waiting = 1024;
    const int device_;
    std::mutex mutex_;
    std::deque<Work> queue_;
    std::string problem_;  // of the first work that failed; nothing runs after it
    std::shared_ptr<EmulatedGraph> capture_;
    bool invalid_ = false, hangs_ = false;
};

inline EmulatedStream& stream_of(Stream stream) { return *reinterpret_cast<EmulatedStream*>(stream); }

// Kernels and graphs that were put into streams to run, of this process.
struct LaunchCount {
    std::int64_t kernels = 0, graphs = 0;
    bool operator==(const LaunchCount&) const = default;
};
LaunchCount launches_so_far();

// The error of a launch that failed, now or before.
Status launch_error();

// What a call that may wait for the GPU or change its memory returns first: success, or the error of such a
// call while this thread captures, which ends the capture; or that of a device that is broken.
Status refuse_while_capturing();

// The words of the error that the last call of this thread returned.
Words& last_problem();

// What a call of a library reads or writes in the memory of its device.
struct LibraryMemory {
    const void* begin = nullptr;
    std::int64_t bytes = 0;
    bool writes = false;
};

// Puts a call of a library, which the CPU serves, into a stream or the graph that is captured there; without
// a stream (null) it runs at once. `memory` is checked before the call and counts as written after it.
Status submit_work(Stream stream, std::vector<LibraryMemory> memory, std::function<void()> call);
// Of a call that does not tell: all memory of the device counts as written after it.
Status submit_work(Stream stream, std::function<void()> call);
// Throws DeviceError where the stream does not take it.
void submit_library_call(Stream stream, std::vector<LibraryMemory> memory, std::function<void()> call);
void submit_library_call(Stream stream, std::function<void()> call);

// Runs all that was submitted to any stream, as freeing memory does.
void drain_streams();
EmulatedStream* new_stream();  // of the device that this thread has chosen
void delete_stream(EmulatedStream* stream);

}  // namespace bitale::cuda
