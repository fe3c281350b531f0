// The MNIST digits.
#pragma once

#include <bitale/bitale.h>

#include "common/settings.h"

struct Mnist {
    bitale::Array train_images, test_images;  // [n, 1, 28, 28] of the storage's dtype: pixel - offset
    bitale::Array train_labels, test_labels;  // uint8 [n]
    int offset = 0;                           // 128 for int8, else 0
};

// Reads the four idx files, plain or gzipped. Throws FileError.
Mnist load_mnist(const Settings& settings);
