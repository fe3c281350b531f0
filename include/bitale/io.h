// Files: NumPy's npy and npz, and the idx format of MNIST.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bitale/array.h"

#pragma GCC visibility push(default)

namespace bitale {

struct SaveOptions {
    bool durable = true;  // the file outlives a crash of the machine right after; off: a crash of the program
};

// What a file from a stranger may make the loader allocate. A header that asks for more is a FileError, and
// nothing is allocated for it.
struct LoadLimits {
    std::int64_t bytes = std::int64_t{16} << 30;  // of all arrays of the file together, unpacked
    int rank = 32;                                // of each array
};

// All throw FileError naming the path and what is wrong with it. Files are read as their headers say and to
// their ends: more bytes than that are an error, pipes and devices are refused. Saving replaces a file as a
// whole: whoever reads it, or whatever ends the program meanwhile, finds the old file or the new one. Links
// stay links, a file keeps its mode; devices and pipes are written directly.
Array load_npy(const std::string& path, LoadLimits limits = {});
void save_npy(const std::string& path, const Array& value, SaveOptions options = {});
// By the names of the entries, which are data of the file's author: any text without control characters.
std::map<std::string, Array> load_npz(const std::string& path, LoadLimits limits = {});
void save_npz(const std::string& path, const std::map<std::string, Array>& values, SaveOptions options = {});
// idx files, plain or gzip (.gz). The dtype is the file's own (MNIST: uint8).
Array load_idx(const std::string& path, LoadLimits limits = {});

}  // namespace bitale

#pragma GCC visibility pop
