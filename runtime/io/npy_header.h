// The header of an npy file: a dictionary in Python's notation, by its grammar.
#pragma once

#include <string>
#include <string_view>

#include "bitale/array.h"

namespace bitale {

struct NpyHeader {
    DType dtype = DType::float32;
    bool big_endian = false;
    bool fortran_order = false;  // the first axis is stored fastest
    Dims shape;
};

// Throws FileError, naming the path, for whatever is not such a dictionary of `descr`, `fortran_order` and
// `shape`, each once and nothing else, with a dtype that an Array can hold.
NpyHeader parse_npy_header(const std::string& path, std::string_view text);

}  // namespace bitale
