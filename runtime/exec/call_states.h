// What the calls of one function need while they run: each at a time has a state of its own.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace bitale {

// One state is always there. More are made when calls overlap, so there are never more than calls have run at
// once; those that are out of use for a while are dropped by the calls of others.
template <class State>
class CallStates {
    struct alignas(128) Place {
        std::atomic<bool> taken{false};
        std::unique_ptr<State> state;
        std::uint32_t uses = 0, uses_before = 0;  // so far, and when somebody looked last
    };

  public:
    explicit CallStates(std::function<std::unique_ptr<State>()> make) : make_(std::move(make)) {
        add()->state = make_();
        give_back(*places_[0]);
    }
    CallStates(const CallStates&) = delete;
    CallStates& operator=(const CallStates&) = delete;

    // A state for one call.
    class Claim {
      public:
        explicit Claim(CallStates& states) : place_(states.claim()) {}
        ~Claim() { give_back(place_); }
        Claim(const Claim&) = delete;
        Claim& operator=(const Claim&) = delete;
        State* operator->() const { return place_.state.get(); }

      private:
        Place& place_;
    };

    // How long a state has to be out of use before it is dropped.
    std::chrono::nanoseconds patience = std::chrono::seconds(1);

    static constexpr std::uint32_t uses_between_looks = 256;

  private:
    static constexpr std::size_t most = 128;  // whoever comes then waits for one of them

    static bool take(Place& place) {
        return !place.taken.load(std::memory_order_relaxed) &&
               !place.taken.exchange(true, std::memory_order_acquire);
    }
    static void give_back(Place& place) { place.taken.store(false, std::memory_order_release); }

    Place& claim() {
        // A thread gets what it had before, which is still in its cache, unless another one took that.
        static thread_local std::size_t last = 0;
        for (;;) {
            const std::size_t count = count_.load(std::memory_order_acquire);
            Place* empty = nullptr;
            std::size_t number = last < count ? last : 0;
            for (std::size_t i = 0; i < count; ++i, number = number + 1 < count ? number + 1 : 0) {
                Place& place = *places_[number].load(std::memory_order_relaxed);
                if (!take(place)) continue;
                if (place.state) {
                    if (empty) give_back(*empty);
                    last = number;
                    if (++place.uses % uses_between_looks == 0 && count > 1) drop_unused();
                    return place;
                }
                if (empty)
                    give_back(place);
                else
                    empty = &place;
            }
            if (!empty) empty = add();
            if (empty) return made(*empty);
            std::this_thread::yield();
        }
    }

    Place& made(Place& place) {
        try {
            place.state = make_();
        } catch (...) {
            give_back(place);
            throw;
        }
        return place;
    }

    Place* add() {
        const std::lock_guard lock(mutex_);
        const std::size_t count = count_.load(std::memory_order_relaxed);
        if (count == most) return nullptr;
        owned_.push_back(std::make_unique<Place>());
        Place* const place = owned_.back().get();
        place->taken.store(true, std::memory_order_relaxed);
        places_[count].store(place, std::memory_order_relaxed);
        count_.store(count + 1, std::memory_order_release);
        return place;
    }

    void drop_unused() {
        const std::lock_guard lock(mutex_);
        const auto now = std::chrono::steady_clock::now();
        if (now - looked_ < patience) return;
        looked_ = now;
        for (const std::unique_ptr<Place>& place : owned_) {
            if (!take(*place)) continue;
            if (place->uses == place->uses_before) place->state.reset();
            place->uses_before = place->uses;
            give_back(*place);
        }
    }

    const std::function<std::unique_ptr<State>()> make_;
    std::array<std::atomic<Place*>, most> places_{};
    std::atomic<std::size_t> count_{0};
    std::mutex mutex_;  // of what follows
    std::vector<std::unique_ptr<Place>> owned_;
    std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

}  // namespace bitale
