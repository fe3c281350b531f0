// What the user sees of a training run, and what stops it.
#pragma once

#include <bitale/bitale.h>

#include <vector>

#include "common/results.h"
#include "common/settings.h"

// While it lives, Ctrl-C and SIGTERM end the running loop after its step; a second one kills the program.
class Console {
  public:
    explicit Console(const Settings& settings);
    ~Console();
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;

    void summary(const RunResults& run, const std::vector<bitale::Shared>& params) const;
    // Loops f over that many steps. On a terminal with a line of progress.
    bitale::Results loop(bitale::Function& f, std::int64_t steps) const;
    void row(const EpochResult& epoch, std::int64_t images) const;
    void scores(const std::vector<SetResult>& trained) const;
    void end(const RunResults& run) const;
    void report(const bitale::Function& f) const;
    bool interrupted() const;
    int status() const;  // of the program: 0, or 128 and the number of the signal that stopped it

  private:
    double shown(const Score& score) const;  // accuracy or error in percent

    const Settings settings_;
};
