// The CIFAR-10 photographs, or made-up images of their shape.
#pragma once

#include "common/dataset.h"

// [n, 3, 32, 32]: 40,000 images to train on, 10,000 to validate on, 10,000 to test. Reads data_batch_1.bin to
// data_batch_5.bin and test_batch.bin of CIFAR-10's binary version from --data; throws FileError when one is
// missing or damaged. Without --data: synthetic images, a pure function of the seed.
Data load_cifar10(const Settings& settings);
