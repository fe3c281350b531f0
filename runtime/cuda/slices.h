// A loop that runs without the host is cut into launches that take so long at most, by the time that its
// steps took before; each has one step at least. So who waits for the GPU without a word, as a library of the
// same process, waits for no more than that.
#pragma once

#include <chrono>

namespace bitale::cuda {

std::chrono::nanoseconds longest_launch();
// Of the whole process; for tests.
void set_longest_launch(std::chrono::nanoseconds time);

}  // namespace bitale::cuda
