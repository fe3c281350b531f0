// NVRTC: CUDA text to machine code for one architecture. Needs neither a GPU nor a driver.
#pragma once

#include <string>
#include <vector>

#include "codegen/program.h"

namespace bitale::cuda {

// What ptxas says of one entry function.
struct KernelResources {
    std::string entry;
    int registers = 0, barriers = 0;
    int stack_bytes = 0, spill_stores = 0, spill_loads = 0;  // bytes of a thread
    int shared_bytes = 0;                                    // static ones, of a block
    bool spills() const { return spill_stores > 0 || spill_loads > 0; }
};
// "24 registers, 10240 B of shared memory a block, 8 B of stack, no spills", for people.
std::string text_of(const KernelResources& resources);
std::vector<KernelResources> resources_in(const std::string& log);

struct CompiledModule {
    std::string image;  // a cubin, or PTX for an architecture that NVRTC does not know
    std::string log;
    std::vector<KernelResources> resources;
};

// Why NVRTC cannot be used here; empty when it can.
std::string nvrtc_problem();
// "13.0"; empty without NVRTC.
std::string nvrtc_version();
// Those it makes machine code for, as 75, 80 ...; ascending.
std::vector<int> nvrtc_architectures();

// What NVRTC is told, as one text.
std::string nvrtc_options(const std::string& architecture);
// `architecture` as sm_90, or compute_90 for PTX. Throws CompileError, with the lines around the first fault
// and the compiler's words, or saying why there is no NVRTC.
CompiledModule compile_cuda(const std::string& source, const std::string& architecture,
                            const std::string& name);

// One text for NVRTC: some kernels behind the program's prelude.
struct CudaUnit {
    std::string text;
    std::vector<int> kernels;  // indexes into Program::kernels
    int number = 0;            // among the units of the program
};
// As few as compile in reasonable time, since each repeats NVRTC's fixed cost; several of a large program,
// since they compile in parallel. Of Program::kernels with a CUDA text.
std::vector<CudaUnit> cuda_units(const Program& program);
// The modules of the units, compiled on as many threads as there are cores. Throws CompileError.
std::vector<CompiledModule> compile_units(const std::vector<CudaUnit>& units, const std::string& architecture,
                                          const std::string& name);

}  // namespace bitale::cuda
