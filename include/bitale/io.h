// Files: NumPy's npy and npz, and the idx format of MNIST.
#pragma once

#include <map>
#include <string>

#include "bitale/array.h"

namespace bitale {

// All throw FileError naming the path and what is wrong with it.
Array load_npy(const std::string& path);
void save_npy(const std::string& path, const Array& value);
std::map<std::string, Array> load_npz(const std::string& path);
void save_npz(const std::string& path, const std::map<std::string, Array>& values);
// idx files, plain or gzip (.gz). The dtype is the file's own (MNIST: uint8).
Array load_idx(const std::string& path);

}  // namespace bitale
