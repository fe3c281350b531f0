// The printer: kernel IR to C++ for a CPU or to CUDA C++. It decides nothing; equal IR gives equal text.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel/ir.h"
#include "codegen/print/dialect.h"

namespace bitale {

struct ReadingNotes;

struct PrintedKernel {
    std::string body;                   // every phase's function; NAME stands as "KERNEL" until named by hash
    std::vector<Int> sizes;             // what to pass as the int64 parameters, in order
    std::vector<std::string> suffixes;  // of the entries: "", "_finish"
};

// With `reading`, for people, and the same to a compiler.
PrintedKernel print_kernel(const KernelIR& kernel, Dialect dialect, const ReadingNotes* reading = nullptr);

const char* c_type(DType dtype);  // "f32", "u8"

}  // namespace bitale
