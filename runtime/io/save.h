// Writing of npy, npz and safetensors files, piece by piece: no array is copied.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bitale/array.h"
#include "graph/base/atomic_file.h"
#include "graph/base/border.h"

namespace bitale {

// Around all of it: want of memory is OutOfMemory.
const ApiBorder& saving();

// Whether a name can be that of an entry of an npz file.
bool has_control_characters(const std::string& name);

// `zip64_from`: sizes, offsets and numbers of entries from here on are written in the fields of 64 bits that
// zip has beside those of 32; tests lower it.
void write_npz(AtomicFile& file, const std::map<std::string, Array>& values,
               std::uint64_t zip64_from = 0xffffffff);

// FileError, before there is a file, for names that the format cannot have.
void check_safetensors_names(const std::string& path, const std::map<std::string, Array>& values);
// `metadata` is text by names, as the format has it.
void write_safetensors(AtomicFile& file, const std::string& path, const std::map<std::string, Array>& values,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace bitale
