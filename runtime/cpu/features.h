// What the processor can do, as far as generated code makes use of it.
#pragma once

#include <string>
#include <vector>

namespace bitale {

struct CpuFeatures {
    std::string model;               // for people: "AMD EPYC"
    std::string architecture;        // "x86-64-v4", "x86-64-v3", "x86-64", "aarch64"
    std::vector<std::string> names;  // "avx512f", ...
    std::vector<std::string> flags;  // for the host compiler: -mavx512f ...; never -march=native
    int vector_bytes = 16;
    int vector_registers = 16;
};

const CpuFeatures& cpu_features();  // of this machine

// What generated code may use: all of it, or what the option `cpu_target` leaves. Throws Error for a target
// beyond this machine, which could not run such code.
const CpuFeatures& target_features();

}  // namespace bitale
