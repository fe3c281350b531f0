// Detection by CPUID; three levels of x86-64, and aarch64 with its fixed 128-bit vectors.
#include "runtime/cpu/features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "bitale/error.h"
#include "graph/base/options.h"

namespace bitale {

namespace {

std::string model_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name"))
            if (const std::size_t colon = line.find(": "); colon != std::string::npos)
                return line.substr(colon + 2);
    return "unknown processor";
}

#if defined(__x86_64__)

struct Found {
    bool avx2 = false, fma = false, f16c = false;
    bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false, avx512cd = false;
};

Found detect() {
    Found f;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return f;
    const bool osxsave = (c >> 27 & 1) != 0;
    f.fma = (c >> 12 & 1) != 0;
    f.f16c = (c >> 29 & 1) != 0;
    unsigned low = 0, high = 0;
    if (osxsave) asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    // The system must save the registers, or using them is a fault: bits 1-2 for ymm, 5-7 for zmm and masks.
    const bool ymm = (low & 0x06) == 0x06, zmm = (low & 0xe6) == 0xe6;
    f.fma = f.fma && ymm;
    f.f16c = f.f16c && ymm;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return f;
    f.avx2 = ymm && (b >> 5 & 1) != 0;
    f.avx512f = zmm && (b >> 16 & 1) != 0;
    f.avx512dq = zmm && (b >> 17 & 1) != 0;
    f.avx512cd = zmm && (b >> 28 & 1) != 0;
    f.avx512bw = zmm && (b >> 30 & 1) != 0;
    f.avx512vl = zmm && (b >> 31 & 1) != 0;
    return f;
}

// Of the levels of x86-64, from the plain one to the widest: 0, 1, 2.
int level_of(const Found& f) {
    if (!f.avx2 || !f.fma || !f.f16c) return 0;
    return f.avx512f && f.avx512bw && f.avx512dq && f.avx512vl && f.avx512cd ? 2 : 1;
}

CpuFeatures features_of(int level) {
    CpuFeatures r;
    r.architecture = "x86-64";
    if (level >= 1) {
        r.architecture = "x86-64-v3";
        r.names = {"avx2", "fma", "f16c"};
        r.vector_bytes = 32;
    }
    if (level >= 2) {
        r.architecture = "x86-64-v4";
        r.names.insert(r.names.end(), {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"});
        r.vector_bytes = 64;
        r.vector_registers = 32;
    }
    for (const std::string& name : r.names) r.flags.push_back("-m" + name);
    if (r.vector_bytes == 64) r.flags.emplace_back("-mprefer-vector-width=512");
    return r;
}

std::vector<CpuFeatures> describe() {
    std::vector<CpuFeatures> levels;
    for (int level = level_of(detect()); level >= 0; --level) levels.push_back(features_of(level));
    return levels;
}

#else

std::vector<CpuFeatures> describe() {
    CpuFeatures r;
    r.architecture = "aarch64";
    r.names = {"neon"};
    r.vector_bytes = 16;
    r.vector_registers = 32;
    return {r};
}

#endif

// What this machine can run, the machine itself first.
const std::vector<CpuFeatures>& usable_features() {
    static const std::vector<CpuFeatures>& list = *[] {
        auto* all = new std::vector<CpuFeatures>(describe());
        const std::string model = model_name();
        for (CpuFeatures& f : *all) f.model = model;
        return all;
    }();
    return list;
}

}  // namespace

const CpuFeatures& cpu_features() { return usable_features().front(); }

const CpuFeatures& target_features() {
    const std::string& wanted = options().cpu_target;
    if (wanted == "native") return cpu_features();
    std::string possible = "native";
    for (const CpuFeatures& f : usable_features()) {
        if (f.architecture == wanted) return f;
        possible += ", " + f.architecture;
    }
    throw Error("cpu_target=" + wanted + " in BITALE_FLAGS: this machine (" + cpu_features().model +
                ") cannot run code for it; it can run " + possible);
}

}  // namespace bitale
