// What the user sees of a training run, and Ctrl-C.
#pragma once

#include <bitale/bitale.h>

#include <functional>
#include <vector>

#include "common/results.h"
#include "common/settings.h"

// While it lives, Ctrl-C ends the running loop after its step; a second Ctrl-C kills the program.
class Console {
  public:
    explicit Console(const Settings& settings);
    ~Console();
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;

    void summary(const RunResults& run, const std::vector<bitale::Shared>& params) const;
    // Calls run, which loops f over that many steps. On a terminal with a progress bar.
    bitale::Results watch(bitale::Function& f, std::int64_t steps,
                          const std::function<bitale::Results()>& run) const;
    void row(const EpochResult& epoch, std::int64_t images) const;
    void scores(const std::vector<SetResult>& trained) const;
    void end(const RunResults& run) const;
    bool interrupted() const;

  private:
    double shown(const Score& score) const;  // accuracy or error in percent

    const Settings settings_;
};
