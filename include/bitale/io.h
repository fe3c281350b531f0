// Files: NumPy's npy and npz, and the idx format of MNIST.
#pragma once

#include <map>
#include <string>

#include "bitale/array.h"

namespace bitale {

struct SaveOptions {
    bool durable = true;  // the file outlives a crash of the machine right after; off: a crash of the program
};

// All throw FileError naming the path and what is wrong with it. Saving replaces a file as a whole: whoever
// reads it, or whatever ends the program meanwhile, finds the old file or the new one. Links stay links, a
// file keeps its mode; devices and pipes are written directly.
Array load_npy(const std::string& path);
void save_npy(const std::string& path, const Array& value, SaveOptions options = {});
std::map<std::string, Array> load_npz(const std::string& path);
void save_npz(const std::string& path, const std::map<std::string, Array>& values, SaveOptions options = {});
// idx files, plain or gzip (.gz). The dtype is the file's own (MNIST: uint8).
Array load_idx(const std::string& path);

}  // namespace bitale
