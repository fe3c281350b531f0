// The MNIST digits.
#pragma once

#include "common/dataset.h"

// Reads the four idx files, plain or gzipped; [n, 1, 28, 28]. Throws FileError.
Data load_mnist(const Settings& settings);
// The test set alone.
DataSet load_mnist_test(const Settings& settings);
