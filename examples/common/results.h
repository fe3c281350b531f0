// What a training run has to report.
#pragma once

#include <bitale/bitale.h>

#include <string>
#include <vector>

#include "common/settings.h"

// How well a network did on some images.
struct Score {
    double loss = 0, error = 0;  // mean crossentropy; the part that it got wrong
};

struct EpochResult {
    int epoch = 0;
    double seconds = 0;  // of training alone
    Score train{};       // collected while training
    Score judged{};      // afterwards, on the set that the epochs are judged by
};

struct SetResult {
    std::string set;
    Score score{};
};

struct RunResults {
    Settings settings{};
    std::string source{};  // of the images, where there is a choice
    std::string device{};
    double compile_seconds = 0;
    std::size_t kernels = 0;      // launches of one training step: kernels and library calls
    std::int64_t data_bytes = 0;  // of the training images
    std::int64_t peak_bytes = 0;  // of a call of the larger function, as its memory plan counts
    std::string judge{};          // "test" or "valid": the set that the epochs are judged by
    std::vector<EpochResult> epochs{};
    std::vector<SetResult> trained{};  // every set with the trained parameters, where there is a valid set

    // Writes everything as JSON. Throws FileError.
    void write(const std::string& path) const;
};
