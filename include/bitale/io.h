// Files: NumPy's .npy and .npz, and idx, the format of MNIST.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bitale/array.h"
#include "bitale/error.h"

#pragma GCC visibility push(default)

namespace bitale {

struct SaveOptions {
    // true: the file survives a crash of the machine right after the call. false: a crash of the program
    // only.
    bool durable = true;
};

// The most memory that a file may make its loader allocate. A header that asks for more is a FileError, and
// nothing is allocated for it.
struct LoadLimits {
    std::int64_t bytes = std::int64_t{16} << 30;  // of all arrays of the file together, decompressed
    int rank = 32;                                // of each array
};

// Reads or writes NumPy's .npy. All functions of this header throw FileError, with the user's line, the path
// and what is wrong with the file. A file must end where its header says; pipes and devices are not read.
// Saving replaces a file as a whole: a reader finds the old file or the new one, even after a crash. Links
// stay links, and a file keeps its mode; devices and pipes are written directly.
Array load_npy(const std::string& path, LoadLimits limits = {}, Where where = Where::current());
void save_npy(const std::string& path, const Array& value, SaveOptions options = {},
              Where where = Where::current());
// Reads or writes NumPy's .npz: arrays by name. A name may be any text without control characters.
std::map<std::string, Array> load_npz(const std::string& path, LoadLimits limits = {},
                                      Where where = Where::current());
void save_npz(const std::string& path, const std::map<std::string, Array>& values, SaveOptions options = {},
              Where where = Where::current());
// Reads an idx file, plain or compressed (.gz). The dtype is that of the file: uint8 for MNIST.
Array load_idx(const std::string& path, LoadLimits limits = {}, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
