// Who needs a GPU without waiting for the device's turn: a value is fetched, memory is given back. All that
// waits for the one stream; so a loop that runs there, for as long as it likes, has to know.
#pragma once

#include <cstddef>
#include <mutex>

namespace bitale::cuda {

class Context;
class MappedWords;

class Demand {
  public:
    // Whether somebody needs the GPU now.
    bool is_there() {
        const std::lock_guard lock(mutex_);
        return number_ > 0;
    }

  private:
    friend class NeedsGpu;
    friend class LoopInStream;

    std::mutex mutex_;
    int number_ = 0;
    MappedWords* words_ = nullptr;  // of the loop that is in the stream, with the word that ends it
    std::size_t stop_ = 0;
};

// While it lives, loops on the GPU end after the turn at hand; of no use in a child of the process that uses
// the GPU.
class NeedsGpu {
  public:
    explicit NeedsGpu(Context& context);
    ~NeedsGpu();
    NeedsGpu(const NeedsGpu&) = delete;
    NeedsGpu& operator=(const NeedsGpu&) = delete;

  private:
    Demand* demand_ = nullptr;
};

// Around the launch of a loop: its word is 0 where nobody needs the GPU, and 1 from then on.
class LoopInStream {
  public:
    LoopInStream(Context& context, MappedWords& words, std::size_t stop);
    ~LoopInStream();
    LoopInStream(const LoopInStream&) = delete;
    LoopInStream& operator=(const LoopInStream&) = delete;

  private:
    Demand& demand_;
};

}  // namespace bitale::cuda
