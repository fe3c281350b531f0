// The GPUs that the emulator shows: as many as the option emulator_devices says. Their memories lie apart,
// and no kernel of one reaches that of another.
#pragma once

#include <string>

namespace bitale::cuda {

int emulated_devices();

// Why there is none of this number, as one sentence with its cure; empty when there is one.
std::string why_not_emulated(int index);

// As CUDA has it: once a process has called one of its functions, none works in a process that is forked from
// it. begin_emulator() is such a call, and says whether it works.
bool begin_emulator();
bool emulator_began_in_parent();

// The device of a thread is a thing of the thread: whoever forgets to choose is told.
constexpr int no_device = -1;
int& chosen_device();

}  // namespace bitale::cuda
