// The tuner of autotune=on: compiles the ways in which a value can be computed, runs them, and remembers
// which was fastest.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "codegen/target.h"
#include "codegen/tune/tuner.h"
#include "runtime/exec/device.h"

namespace bitale {

// What happened, for the report of a function.
struct TuningNotes {
    int measured = 0, remembered = 0, waiting = 0, failed = 0;
    int compiler_runs = 0;
    std::string problems;  // sentences, each once
};
std::string text_of(const TuningNotes& notes);

class Autotuner : public Tuner {
  public:
    // `numbers` of symbols that are known, by id: all of them at a call, none before. A question about
    // lengths that are not known gets the answer of the estimates, and counts as waiting.
    Autotuner(Device& device, const Target& target, std::map<std::uint64_t, std::int64_t> numbers);

    Answer choose(const Question& question) override;
    const TuningNotes& notes() const { return notes_; }

  private:
    Answer measured(const Question& question, const std::string& key,
                    const std::map<std::uint64_t, std::int64_t>& numbers);
    void complain(const std::string& sentence);

    Device& device_;
    const Target target_;
    const std::map<std::uint64_t, std::int64_t> numbers_;
    const std::string identity_;
    std::map<std::string, Answer> answers_;  // by excerpt: the same one for as long as a function is built
    TuningNotes notes_;
};

}  // namespace bitale
