#include "runtime/cuda/emulator/blocks.h"

#include <fmt/format.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "graph/base/check.h"

namespace bitale::cuda {

namespace {

constexpr std::size_t stack_bytes = std::size_t{64} << 10;
constexpr unsigned warp_size = 32;

struct Order {
    ThreadOrder order = ThreadOrder::ascending;
    std::mt19937_64 engine{1};

    void arrange(std::vector<unsigned>& numbers) {
        std::iota(numbers.begin(), numbers.end(), 0u);
        if (order == ThreadOrder::descending) std::reverse(numbers.begin(), numbers.end());
        if (order == ThreadOrder::random) std::shuffle(numbers.begin(), numbers.end(), engine);
    }
};
Order thread_order;

struct Fiber {
    enum class State : std::uint8_t { ready, at_barrier, at_warp_operation, done };
    ucontext_t context{};
    std::unique_ptr<char[]> stack;
    State state = State::done;
    int line = 0;
    Extent thread;
    unsigned mask = 0;            // of the warp operation it waits in
    unsigned long long word = 0;  // handed in there
};

class Block {
  public:
    std::string run(const Extent& grid, const Extent& size, const std::function<void()>& body) {
        body_ = &body;
        const unsigned threads = size.x * size.y * size.z;
        if (fibers_.size() < threads) fibers_.resize(threads);
        order_.resize(threads);
        EmulatorState& state = emulator_state();
        state.block_size = size;
        state.grid_size = grid;
        std::vector<unsigned> blocks(grid.x * grid.y * grid.z);
        thread_order.arrange(blocks);
        for (const unsigned b : blocks) {
            state.block = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
            for (unsigned t = 0; t < threads; ++t)
                start(fibers_[t], {t % size.x, t / size.x % size.y, t / size.x / size.y});
            if (std::string problem = run_block(); !problem.empty())
                return fmt::format("{} (block {}, {}, {})", problem, state.block.x, state.block.y,
                                   state.block.z);
        }
        return "";
    }

    void barrier(int line) {
        fibers_[current_].line = line;
        give_way(Fiber::State::at_barrier);
    }
    unsigned long long exchange(unsigned mask, unsigned long long word, unsigned from, int line) {
        meet(mask, word, line);
        return words_[current_ / warp_size][from % warp_size];
    }
    unsigned ballot(unsigned mask, int predicate, int line) {
        meet(mask, predicate != 0, line);
        unsigned bits = 0;
        for (unsigned lane = 0; lane < warp_size; ++lane)
            if ((mask >> lane & 1) && words_[current_ / warp_size][lane]) bits |= 1u << lane;
        return bits;
    }

  private:
    static void enter();

    void start(Fiber& f, const Extent& thread) {
        if (!f.stack) f.stack = std::make_unique<char[]>(stack_bytes);
        f.thread = thread;
        f.state = Fiber::State::ready;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get();
        f.context.uc_stack.ss_size = stack_bytes;
        f.context.uc_link = &scheduler_;
        makecontext(&f.context, &Block::enter, 0);
    }

    void give_way(Fiber::State state) {
        const unsigned self = current_;
        fibers_[self].state = state;
        swapcontext(&fibers_[self].context, &scheduler_);
    }

    void meet(unsigned mask, unsigned long long word, int line) {
        Fiber& f = fibers_[current_];
        f.mask = mask;
        f.word = word;
        f.line = line;
        give_way(Fiber::State::at_warp_operation);
    }

    std::string run_block() {
        for (;;) {
            thread_order.arrange(order_);
            bool any = false;
            for (const unsigned t : order_) {
                if (fibers_[t].state != Fiber::State::ready) continue;
                any = true;
                resume(t);
            }
            if (any) continue;
            if (std::all_of(order_.begin(), order_.end(),
                            [&](unsigned t) { return is(t, Fiber::State::done); }))
                return "";
            if (release_warps()) continue;
            if (std::string problem = release_barrier(); !problem.empty()) return problem;
        }
    }

    bool is(unsigned t, Fiber::State state) const { return fibers_[t].state == state; }

    void resume(unsigned t) {
        current_ = t;
        EmulatorState& state = emulator_state();
        state.thread = fibers_[t].thread;
        state.lane = t % warp_size;
        swapcontext(&scheduler_, &fibers_[t].context);
    }

    // True when the lanes of some warp have all met.
    bool release_warps() {
        bool any = false;
        const auto threads = static_cast<unsigned>(order_.size());
        words_.resize((threads + warp_size - 1) / warp_size);
        for (unsigned first = 0; first < threads; first += warp_size) {
            const unsigned end = std::min(first + warp_size, threads);
            for (unsigned t = first; t < end; ++t) {
                if (!is(t, Fiber::State::at_warp_operation)) continue;
                const Fiber& leader = fibers_[t];
                unsigned met = 0;
                for (unsigned other = first; other < end; ++other)
                    if (is(other, Fiber::State::at_warp_operation) && fibers_[other].line == leader.line &&
                        fibers_[other].mask == leader.mask)
                        met |= 1u << (other - first);
                const unsigned present = end - first == warp_size ? ~0u : (1u << (end - first)) - 1;
                if (met != (leader.mask & present)) continue;
                for (unsigned other = first; other < end; ++other) {
                    if (!(met >> (other - first) & 1)) continue;
                    words_[first / warp_size][other - first] = fibers_[other].word;
                    fibers_[other].state = Fiber::State::ready;
                }
                any = true;
                break;
            }
        }
        return any;
    }

    std::string release_barrier() {
        int line = 0;
        for (const unsigned t : order_) {
            if (!is(t, Fiber::State::at_barrier))
                return is(t, Fiber::State::done)
                           ? fmt::format("thread {} has ended, others wait at a barrier or a warp operation",
                                         t)
                           : fmt::format("the lanes of thread {}'s warp never meet (line {})", t,
                                         fibers_[t].line);
            if (line != 0 && fibers_[t].line != line)
                return fmt::format("threads of a block wait at different barriers (lines {} and {})", line,
                                   fibers_[t].line);
            line = fibers_[t].line;
        }
        for (const unsigned t : order_) fibers_[t].state = Fiber::State::ready;
        return "";
    }

    const std::function<void()>* body_ = nullptr;
    std::vector<Fiber> fibers_;
    std::vector<unsigned> order_;
    std::vector<std::array<unsigned long long, warp_size>> words_;
    ucontext_t scheduler_{};
    unsigned current_ = 0;
};

// One per thread of the host; kept for its stacks.
Block& block_of_thread() {
    thread_local Block block;
    return block;
}

void Block::enter() {
    Block& block = block_of_thread();
    (*block.body_)();
    block.fibers_[block.current_].state = Fiber::State::done;
}

}  // namespace

void set_thread_order(ThreadOrder order, std::uint64_t seed) {
    thread_order.order = order;
    thread_order.engine.seed(seed);
}

EmulatorState& emulator_state() {
    thread_local EmulatorState state = [] {
        EmulatorState s;
        s.barrier = [](int line) { block_of_thread().barrier(line); };
        s.exchange = [](unsigned mask, unsigned long long word, unsigned from, int line) {
            return block_of_thread().exchange(mask, word, from, line);
        };
        s.ballot = [](unsigned mask, int predicate, int line) {
            return block_of_thread().ballot(mask, predicate, line);
        };
        return s;
    }();
    return state;
}

std::string run_blocks(const Extent& grid, const Extent& block, const std::function<void()>& body) {
    return block_of_thread().run(grid, block, body);
}

}  // namespace bitale::cuda
