// What the calls of one function need while they run: each at a time has a state of its own.
#pragma once

#include <time.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

#include "bitale/error.h"
#include "graph/base/turns.h"

namespace bitale {

// One state is always there. More are made when calls overlap, as many as there are: who comes has locks, and
// waits for nobody. Those that are out of use for a while are dropped by calls and loops, or at once where
// memory does not suffice.
template <class State>
class CallStates {
    struct alignas(128) Place {
        std::atomic<std::uint32_t> taken{0};  // 0, or here()
        std::unique_ptr<State> state;
        std::int64_t used = 0;  // when a call ended, where there were several
    };

  public:
    explicit CallStates(std::function<std::unique_ptr<State>()> make) : make_(std::move(make)) {
        give_back(made(add()));
    }
    CallStates(const CallStates&) = delete;
    CallStates& operator=(const CallStates&) = delete;

    // A state for one call.
    class Claim {
      public:
        explicit Claim(CallStates& states) : states_(states), place_(states.claim()) {}
        ~Claim() {
            if (states_.alive() > 1) place_.used = now();
            give_back(place_);
        }
        Claim(const Claim&) = delete;
        Claim& operator=(const Claim&) = delete;
        State* operator->() const { return place_.state.get(); }

      private:
        CallStates& states_;
        Place& place_;
    };

    int alive() const { return alive_.load(std::memory_order_relaxed); }

    // Drops those that have been out of use for a while. For a call that has one.
    void tidy() {
        if (alive() < 2) return;
        const std::int64_t time = now(), wait = patience.count();
        if (time - looked_.load(std::memory_order_relaxed) < wait) return;
        looked_.store(time, std::memory_order_relaxed);
        drop_unused(time - wait);
    }

    // `work` of a call that has one; again, where memory does not suffice, without those that have none.
    template <class Work>
    auto with_room(Work&& work) {
        try {
            return work();
        } catch (const OutOfMemory&) {
            if (!drop_unused(now())) throw;
        } catch (const std::bad_alloc&) {
            if (!drop_unused(now())) throw;
        }
        return work();
    }

    // `f` of each state that no call has, which none gets meanwhile.
    template <class F>
    void for_each_idle(F&& f) {
        const std::uint32_t by = here();
        for (std::size_t n = 0; n < count_.load(std::memory_order_acquire); ++n) {
            Place& place = at(n);
            if (!take(place, by)) continue;
            if (place.state) f(*place.state);
            give_back(place);
        }
    }

    // How long a state has to be out of use before it is dropped.
    std::chrono::nanoseconds patience = std::chrono::seconds(1);

  private:
    // Of this process: in the child of a fork, states of loops that paused in its parent are free.
    static std::uint32_t here() { return static_cast<std::uint32_t>(forks_so_far()) + 1; }
    static bool take(Place& place, std::uint32_t by) {
        std::uint32_t taken = place.taken.load(std::memory_order_relaxed);
        return taken != by && place.taken.compare_exchange_strong(taken, by, std::memory_order_acquire,
                                                                  std::memory_order_relaxed);
    }
    static void give_back(Place& place) { place.taken.store(0, std::memory_order_release); }

    // In nanoseconds, to a few milliseconds: calls ask for it.
    static std::int64_t now() {
        timespec t{};
        clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    }

    // Block b has 2^b places.
    static std::size_t block_of(std::size_t number) {
        return static_cast<std::size_t>(std::bit_width(number + 1)) - 1;
    }
    Place& at(std::size_t number) {
        const std::size_t block = block_of(number);
        return blocks_[block].load(std::memory_order_relaxed)[number + 1 - (std::size_t{1} << block)];
    }

    Place& claim() {
        // A thread gets what it had before, which is still in its cache, unless another one took that.
        static thread_local std::size_t last = 0;
        const std::size_t count = count_.load(std::memory_order_acquire);
        const std::uint32_t by = here();
        Place* empty = nullptr;
        std::size_t number = last < count ? last : 0;
        for (std::size_t i = 0; i < count; ++i, number = number + 1 < count ? number + 1 : 0) {
            Place& place = at(number);
            if (!take(place, by)) continue;
            if (place.state) {
                if (empty) give_back(*empty);
                last = number;
                tidy();
                return place;
            }
            if (empty)
                give_back(place);
            else
                empty = &place;
        }
        return made(empty ? *empty : add());
    }

    Place& made(Place& place) {
        try {
            place.state = with_room(make_);
        } catch (...) {
            give_back(place);
            throw;
        }
        alive_.fetch_add(1, std::memory_order_relaxed);
        looked_.store(now(), std::memory_order_relaxed);
        return place;
    }

    // A new place, taken.
    Place& add() {
        const std::lock_guard lock(mutex_);
        const std::size_t number = count_.load(std::memory_order_relaxed), block = block_of(number);
        if (!blocks_[block].load(std::memory_order_relaxed))
            blocks_[block].store(new Place[std::size_t{1} << block], std::memory_order_relaxed);
        Place& place = at(number);
        place.taken.store(here(), std::memory_order_relaxed);
        count_.store(number + 1, std::memory_order_release);
        return place;
    }

    bool drop_unused(std::int64_t since) {
        const std::lock_guard lock(mutex_);
        const std::uint32_t by = here();
        bool any = false;
        for (std::size_t n = 0; n < count_.load(std::memory_order_relaxed); ++n) {
            Place& place = at(n);
            if (!take(place, by)) continue;
            if (place.state && place.used <= since) {
                place.state.reset();
                alive_.fetch_sub(1, std::memory_order_relaxed);
                any = true;
            }
            give_back(place);
        }
        return any;
    }

    const std::function<std::unique_ptr<State>()> make_;
    struct Blocks : std::array<std::atomic<Place*>, 48> {  // more places than an address space holds
        ~Blocks() {
            for (std::atomic<Place*>& block : *this) delete[] block.load(std::memory_order_relaxed);
        }
    };
    Blocks blocks_{};
    std::atomic<std::size_t> count_{0};
    std::atomic<int> alive_{0};
    std::atomic<std::int64_t> looked_{0};
    std::mutex mutex_;  // of who adds places, or drops what is in them
};

}  // namespace bitale
