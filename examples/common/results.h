// What a training run has to report.
#pragma once

#include <bitale/bitale.h>

#include <string>
#include <vector>

#include "common/settings.h"

struct EpochResult {
    int epoch = 0;
    double seconds = 0;  // of training alone
    double train_loss = 0, train_error = 0, test_loss = 0, test_error = 0;
};

struct RunResults {
    Settings settings{};
    std::string device{};
    double compile_seconds = 0;
    std::size_t kernels = 0;      // kernels and library calls of one training step
    std::int64_t data_bytes = 0;  // of the training images
    std::int64_t peak_bytes = 0;  // of the larger function: buffers and the shared variables it uses
    std::vector<EpochResult> epochs{};

    // Writes everything as JSON. Throws FileError.
    void write(const std::string& path) const;
};
