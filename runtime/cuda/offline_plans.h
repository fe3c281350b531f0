// What can be known of a library's call without a GPU, in words for the report.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/exec/launcher.h"

namespace bitale::cuda {

// Why cuDNN cannot plan here for a GPU that is not there; empty where it can.
std::string why_no_plans_without_gpu();

// "cuDNN 9.19 plans engine 5 for an NVIDIA H100 ...", or why there is no plan. `architecture` as sm_90.
// `workspace` gets the bytes that the plan wants, where there is one.
std::string offline_plan(const ConvShape& shape, const std::string& architecture,
                         std::int64_t* workspace = nullptr);

// cuBLASLt chooses an algorithm with a handle, which needs a GPU; that it takes the description of the
// product is seen without.
std::string offline_plan(const GemmShape& shape);

}  // namespace bitale::cuda
