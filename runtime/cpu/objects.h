// From the kernels of a Program to callable functions: translation units, cache, compiler, loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/program.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/loaded.h"

namespace bitale {

using KernelEntry = void (*)(void* const* buffers, const std::int64_t* sizes, std::int64_t first,
                             std::int64_t last);

// One file for the compiler: some kernels behind the program's prelude.
struct TranslationUnit {
    std::string text;
    std::vector<int> kernels;               // indexes into Program::kernels
    std::size_t after_prelude = 0;          // where the text of the kernels begins, on a line of its own
    std::string subject = {};               // its kernels and their function, for messages
    std::vector<std::string> entries = {};  // the functions of its kernels
};
// The kernels in units of balanced length: several, because they compile in parallel; few, because each
// repeats the fixed cost of a file. Depends on the program alone, so that the cache serves any machine.
std::vector<TranslationUnit> translation_units(const Program& program);

struct LoadedKernels {
    std::vector<std::vector<KernelEntry>> entries;  // of each kernel, one per phase
    std::vector<LoadedObjects::Use> objects;        // the entries are there while these are
    int compiler_runs = 0;
    int from_disk = 0, from_memory = 0;  // units that needed no compiler
};
// `where`: of the function. Throws CompileError.
LoadedKernels load_kernels(const Program& program, const HostCompiler& compiler, int parallel,
                           Where where = {});

}  // namespace bitale
