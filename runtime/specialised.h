// Functions that are compiled for the lengths of their calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bitale/function.h"
#include "graph/base/turns.h"
#include "graph/ir/graph.h"

namespace bitale {

// An axis of an input whose length only a call tells. A trailing one, or a leading one that is told apart by
// whether it has one row: a single image leaves cores without work unless its own rows are shared out.
struct FreeLength {
    std::size_t input = 0, axis = 0;
    std::uint64_t symbol = 0;
    bool is_leading() const { return axis == 0; }
};

// Those of a graph as the user wrote it: not known, not given by the equalities of lengths, and of some
// consequence. With `single_rows`, leading axes of functions that have such trailing ones too.
std::vector<FreeLength> free_lengths(const Graph& graph, bool single_rows);

// The versions of one function: each is a compiled state for some numbers of the free lengths, as if the
// inputs had been declared so. A call's version depends on its lengths alone.
class Specialised {
  public:
    using Version = std::shared_ptr<Function::State>;

    // `function` has everything but an executable, and owns this.
    Specialised(const Function::State& function, std::vector<FreeLength> free);

    class Held;  // the version of a call
    // For these shapes. Throws GraphError, ShapeError, CompileError.
    Version of_shapes(const ExampleShapes& shapes);
    // The one that was asked for last, or null.
    Version latest() const;
    // Lets all go that are not for these arguments, where memory is wanted; whether there were any.
    bool keep_only_of(std::span<const Array> arguments);

    std::string missing() const;  // which lengths are not known, as a sentence
    std::string report(Detail detail) const;
    const std::vector<Kernel>& kernels() const;
    std::vector<Profile::Row> profile() const;
    std::int64_t arena_bytes() const;
    // What compiling versions has taken, of those too that are gone.
    double compile_seconds() const { return seconds_.load(); }
    int compiler_runs() const { return runs_.load(); }
    void add_cost(double seconds, int compiler_runs);

    static constexpr std::size_t most_versions = 16;

  private:
    // Of free_, in that order.
    using Lengths = std::vector<std::int64_t>;
    static constexpr std::int64_t no_single_row = -2;  // of leading axes
    using Numbers = std::map<std::uint64_t, std::int64_t>;
    struct Entry {
        Lengths lengths;
        std::vector<Dims> shapes;  // of the arguments for inputs_, -1 for any length
        Version version;
        std::atomic<std::uint64_t> used{0};
        // Calls that found it as the latest. They say so first and then ask whether it is gone, as who lets
        // it go says so first and then asks for calls.
        std::atomic<int> calls{0};
        std::atomic<bool> is_gone{false};
    };
    struct Shown {
        std::weak_ptr<const Function::State> version;
        const void* list = nullptr;  // its own
        std::unique_ptr<const std::vector<Kernel>> kernels;
    };

    template <class Matches>
    Version find(const Matches& matches) const;
    Version find(const Lengths& lengths) const;
    std::optional<Lengths> lengths_of_latest() const;
    void use(Entry* entry) const;
    std::vector<Dims> shapes_of(const Lengths& lengths) const;
    bool fits(const Entry& entry, std::span<const Array> arguments) const;
    Entry* entered(std::span<const Array> arguments);
    Version of_call(std::span<const Array> arguments);
    Version made(const Lengths& lengths, const Numbers& known, const Numbers& for_tuning);
    Version compiled(const Lengths& lengths, const Numbers& for_tuning) const;
    bool insert(std::unique_ptr<Entry> entry);
    void let_go(std::unique_ptr<Entry>& entry);
    Version taken_from_the_gone();
    void sweep();
    void leave(Entry& entry);
    void warn_of_many(const std::string& lengths);
    std::vector<Version> kept() const;
    [[noreturn]] void refuse(const std::string& what) const;

    const Function::State& function_;
    const std::vector<FreeLength> free_;
    std::vector<std::size_t> inputs_;  // that have some

    mutable TurnLock table_;  // for a look, or for a change of the entries
    std::vector<std::unique_ptr<Entry>> entries_;
    // Without a version from the end of the last call of it on; the rest, some hundred bytes, stays for those
    // who have just read latest_.
    std::vector<std::unique_ptr<Entry>> gone_;
    mutable std::atomic<Entry*> latest_{nullptr};
    mutable std::atomic<std::uint64_t> clock_{0};

    mutable TurnLock making_;  // held while a version is compiled, and for what follows
    bool warned_ = false;
    std::atomic<double> seconds_{0};
    std::atomic<int> runs_{0};

    mutable TurnLock showing_;
    mutable std::vector<Shown> shown_;  // lists of kernels that users may look at
};

// For the lengths of a call, compiled where it is not there; whoever wants the same one meanwhile waits. The
// version lives as long as this. Throws what a call with wrong arguments throws, and CompileError.
class Specialised::Held {
  public:
    Held(Specialised& all, std::span<const Array> arguments)
        : all_(all), entry_(all.entered(arguments)), version_(entry_ ? nullptr : all.of_call(arguments)) {}
    ~Held() {
        if (entry_) all_.leave(*entry_);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    Function::State& state() const { return entry_ ? *entry_->version : *version_; }

  private:
    Specialised& all_;
    Entry* const entry_;
    const Version version_;
};

}  // namespace bitale
