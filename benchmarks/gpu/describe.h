// A compiled function as JSON: its kernels and library calls, with what they compute, move and take.
#pragma once

#include <bitale/bitale.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/record.h"
#include "runtime/exec/launcher.h"

namespace bench {

// Of a workload, what the emulator runs in seconds: in a dense network still 24 rows, from which on libraries
// are called.
constexpr std::int64_t reduced_images = 64;
std::int64_t reduced_batch(const std::string& workload);

// One entry a step of the plan, in the order of Function::profile: name, title, where (lines of the text that
// it computes), by_library, bytes, flops, of a kernel its blocks, threads and resources of each entry, of a
// call what is called and why. Sizes are those of a call with this first input.
Json describe(const bitale::Function& f, const bitale::Array& input);

// Of a library, in the sizes of such a call.
struct LibraryCall {
    std::string title;
    bool convolution = false;
    bitale::GemmShape product;
    bitale::ConvShape conv;
};
std::vector<LibraryCall> library_calls(const bitale::Function& f, const bitale::Array& input);
std::string text_of(const LibraryCall& call);

}  // namespace bench
