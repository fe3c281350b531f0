// The routine "eigh" on a CPU: by LAPACK, opened at run time, or by our own code (runtime/cpu/eigensystem.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cpu/pool.h"
#include "runtime/exec/launcher.h"

namespace bitale {

// LAPACK with 32-bit integers, as Fortran has it: texts are followed by their lengths at the end.
template <class T>
using Syevd = void (*)(const char* job, const char* triangle, const std::int32_t* n, T* a,
                       const std::int32_t* row, T* values, T* work, const std::int32_t* work_count,
                       std::int32_t* integers, const std::int32_t* integer_count, std::int32_t* info,
                       std::size_t job_length, std::size_t triangle_length);
struct Lapack {
    bool present = false;
    std::string name;  // "libopenblas.so.0 (OpenBLAS 0.3.21 ...)", or why there is none
    Syevd<float> ssyevd = nullptr;
    Syevd<double> dsyevd = nullptr;
};
// The first of these files that has both functions.
Lapack open_lapack(const std::vector<std::string>& files);
// OpenBLAS or MKL, looked for at the first call. Not the LAPACK of Netlib: our own code is faster than that.
const Lapack& lapack_library();

// a [matrices, n, n] -> result [matrices, n + 1, n], as of the op eigh, of the shape's dtype; `workspace` is
// as codegen/library/routine.cpp plans it. Where the library refuses or fails, our own code computes the
// matrix. False where that does not converge.
bool eigh(Pool& pool, const RoutineShape& shape, const void* a, void* result, void* workspace,
          const Lapack& lapack = lapack_library());

}  // namespace bitale
