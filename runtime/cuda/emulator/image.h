// Kernels for the emulator as a caller of CUDA hands them over: an address without a length.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace bitale::cuda {

// The shared object in an image: one itself, as machine code of a GPU would be, or what emulated_ptx() made.
// Nothing for anything else.
std::optional<std::string> object_in_image(const void* image);

// A text in the place of PTX: it names the entries, and holds the object in hexadecimal digits.
std::string emulated_ptx(const std::string& object, const std::vector<std::string>& entries,
                         const std::string& target);

}  // namespace bitale::cuda
