// A GPU without Bitale's executor: the tables of functions, compilers and libraries that the device uses, one
// by one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpu/clocks.h"
#include "runtime/cuda/backend.h"

namespace bench {

class Machine;

// Memory of the GPU, freed at the end of its life.
class Block {
  public:
    Block(Machine& machine, std::size_t bytes);
    ~Block();
    Block(Block&& other) noexcept;
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    void* data() const { return data_; }
    float* floats() const { return static_cast<float*>(data_); }

  private:
    Machine* machine_;
    void* data_ = nullptr;
};

class Machine {
  public:
    // "cuda", "cuda:1", "emulator". Throws bitale::DeviceError where there is none, with the reason.
    explicit Machine(const std::string& device);
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    const bitale::cuda::Backend& backend() const { return backend_; }
    const bitale::cuda::RuntimeTable& runtime() const { return *backend_.runtime; }
    // Throw NotHere where the driver or the runtime has none.
    const bitale::cuda::GraphTable& graphs() const;
    const bitale::cuda::LoopTable& loops() const;

    bool emulated() const { return emulated_; }  // times say nothing then
    int index() const { return index_; }
    const std::string& name() const { return name_; }
    int attribute(int number) const;  // 0 where the runtime does not know it
    bitale::cuda::Stream stream() const { return stream_; }

    // Throws bitale::DeviceError unless the status is success.
    void require(bitale::cuda::Status status, const char* what) const;
    // Of one argument, a struct NAME_arguments. Compiled and loaded at the first question.
    bitale::cuda::KernelFunction kernel(const std::string& name, const std::string& text);
    void launch(bitale::cuda::KernelFunction kernel, std::int64_t blocks, int threads, const void* arguments,
                bitale::cuda::Stream stream);
    void launch(bitale::cuda::KernelFunction kernel, std::int64_t blocks, int threads,
                const void* arguments) {
        launch(kernel, blocks, threads, arguments, stream_);
    }
    void upload(void* to, const void* from, std::size_t bytes);
    void download(void* to, const void* from, std::size_t bytes);
    void fill(void* block, int byte, std::size_t bytes);
    void wait();
    // Readings are taken between measurements.
    Clocks& clocks() { return clocks_; }
    // Of what `work` puts into the stream, by events around it.
    double seconds(const std::function<void()>& work);
    // Why nothing more can be had from the GPU; empty while it works.
    std::string gone() const;

    // Told the name of a kernel before its launch, unless the last one was of the same: what to blame for a
    // fault, and for a launch that never ends.
    std::function<void(const std::string&)> on_launch = {};

    Block block(const std::vector<float>& values);
    std::vector<float> floats(const Block& block, std::size_t count);

  private:
    bitale::cuda::Backend backend_;
    Clocks clocks_{nullptr, 0};
    int index_ = 0;
    bool emulated_ = false;
    std::string name_, target_, launched_;
    bitale::cuda::Stream stream_ = nullptr;
    static constexpr std::size_t pinned_bytes = std::size_t{1} << 20;
    void* pinned_ = nullptr;
    bitale::cuda::Event begins_ = nullptr, ends_ = nullptr;
    std::map<std::string, bitale::cuda::KernelFunction> kernels_;
};

// Seconds of a unit of work, of which `run` does so many; in rounds of a tenth of a second, once times have
// settled. `reduced`: one round of one unit.
double settled_seconds(Machine& machine, bool reduced, Json& result,
                       const std::function<double(std::int64_t)>& run);

// The middle of what `measure` returns in so many rounds, after one that does not count.
double median_of(int rounds, const std::function<double()>& measure);

}  // namespace bench
