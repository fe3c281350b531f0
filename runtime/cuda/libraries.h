// The libraries of CUDA, each opened when it is first asked for.
#pragma once

#include <string>
#include <vector>

#include "runtime/cuda/search.h"
#include "runtime/cuda/tables.h"

namespace bitale::cuda {

template <class Table>
struct Loaded {
    bool present = false;
    Table table;
    std::string path;                           // of the library
    std::string problem;                        // why it is not present
    std::vector<std::string> passed_over = {};  // files that were there and did not serve, with the reasons
};

// The first that has the functions and that the driver takes; where there is a driver and it takes none, the
// first that has the functions.
// Whether a process that this one was forked from had asked the CUDA runtime for GPUs: the driver has started
// there, and works in none of its children.
bool began_in_parent();
const Loaded<RuntimeTable>& runtime_library();
const Loaded<GraphTable>& graph_library();  // of the same file
const Loaded<LoopTable>& loop_library();
// Where there is a GPU, those of CUDA's major version that its runtime has.
const Loaded<NvrtcTable>& nvrtc_library();
const LibraryName& nvrtc_name();  // how it is looked for
const Loaded<CublasLtTable>& cublaslt_library();
const Loaded<CudnnTable>& cudnn_library();
const Loaded<CusolverTable>& cusolver_library();
const Loaded<NcclTable>& nccl_library();
const Loaded<DriverTable>& driver_library();

// "; passed over: ..." of a library, or nothing.
std::string passed_over_text(const std::vector<std::string>& list);

// Opens all of them: the name of each, and its version and path or why it is absent. For bitale-info.
struct LibraryStatus {
    std::string name, text;
};
std::vector<LibraryStatus> library_list();

}  // namespace bitale::cuda
