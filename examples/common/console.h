// What the user sees of a training run, and what stops it.
#pragma once

#include <bitale/bitale.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/settings.h"

using Json = nlohmann::ordered_json;

// How well a network did on some images.
struct Score {
    double loss = 0, error = 0;  // mean crossentropy; the part that it got wrong
};

// While it lives, Ctrl-C and SIGTERM end the running loop after its step; a second one kills the program.
class Console {
  public:
    explicit Console(const Settings& settings);
    ~Console();
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;

    // `run` is what --json writes; epochs are judged by the images of the set named `judge`.
    void summary(const Json& run, const std::string& judge, const bitale::Parameters& params) const;
    // Loops f over that many steps. On a terminal with a line of progress.
    bitale::Results loop(bitale::Function& f, std::int64_t steps) const;
    void row(int epoch, const Score& train, const Score& judged, double seconds, std::int64_t images) const;
    void trained(const std::string& set, const Score& score) const;
    void end(const Json& run) const;
    bool interrupted() const;
    int status() const;  // of the program: 0, or 128 and the number of the signal that stopped it

  private:
    double shown(const Score& score) const;  // accuracy or error in percent

    const Settings settings_;
};
