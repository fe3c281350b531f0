// Runs a Program on host memory, for several calls at once.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/exec/call_state.h"
#include "runtime/exec/call_states.h"
#include "runtime/exec/device.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

class RegionRunner : public Executable {
  public:
    // `launcher` makes one for each call at a time.
    RegionRunner(Build build, std::function<std::unique_ptr<Launcher>()> launcher, int compiler_runs);

    std::vector<Array> run(std::span<const Array> arguments) override {
        const CallStates<CallState>::Claim state(states_);
        return states_.with_room([&] { return state->run(arguments); });
    }
    std::vector<Array> loop(const LoopCall& call) override {
        const CallStates<CallState>::Claim state(states_);
        return state->loop(call, states_);
    }
    void drop_arena() override {
        const CallStates<CallState>::Claim state(states_);
        state->drop_arena();
    }
    OwnMemory own_memory(const Program& program, const Frame& frame, const Frame* before) const override {
        return own_memory_of(program, frame, before, *launcher_());
    }
    MemoryLedger* ledger() const override { return &host_ledger(); }
    std::vector<std::int64_t> last_symbols() const override { return last_symbols_.get(); }
    std::int64_t arena_bytes() const override { return arenas_.most(); }
    int compiler_runs() const override { return compiler_runs_; }
    std::vector<Profile::Row> profile() const override;

    CallStates<CallState>& states() { return states_; }

  private:
    const Build build_;
    const int compiler_runs_;
    Meters meters_;
    ArenaBytes arenas_;
    LastSymbols last_symbols_;
    const std::function<std::unique_ptr<Launcher>()> launcher_;
    CallStates<CallState> states_;
    // Calls of other functions may need the room.
    const IdleMemory idle_{[this] { states_.for_each_idle([](CallState& state) { state.drop_arena(); }); }};
};

}  // namespace bitale
