// Whether functions can run on a GPU here.
#pragma once

#include <string>

#include "runtime/cuda/libraries.h"

namespace bitale::cuda {

// Why there is no usable GPU of this number, as one sentence with its cure; empty when there is one. Opens
// the CUDA runtime, or asks the one that is given.
std::string why_unavailable(int index = 0);
std::string why_unavailable(const Loaded<RuntimeTable>& library, int index);

// Why a child of a process that uses GPUs cannot, with the cure.
extern const char* const forked_words;

// How many the CUDA runtime finds; 0 where it finds none, for whatever reason.
int gpu_count();

// "2, cuda and cuda:1": what there is where somebody asked for more.
std::string count_of_devices(const std::string& kind, int count);

}  // namespace bitale::cuda
