// Writing of npy and npz files, piece by piece: no array is copied.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bitale/array.h"
#include "graph/base/atomic_file.h"

namespace bitale {

// Whether a name can be that of an entry of an npz file.
bool has_control_characters(const std::string& name);

// `zip64_from`: sizes, offsets and numbers of entries from here on are written in the fields of 64 bits that
// zip has beside those of 32; tests lower it.
void write_npz(AtomicFile& file, const std::map<std::string, Array>& values,
               std::uint64_t zip64_from = 0xffffffff);

}  // namespace bitale
