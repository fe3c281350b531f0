// What errors say of a launch: the kernel or the library's call, its phase, and the lines of the user's text
// that it computes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "codegen/program.h"
#include "runtime/cuda/types.h"
#include "runtime/exec/frame.h"

namespace bitale::cuda {

// Written where a launch has failed, not before each; made of std::cref, since every launch passes some.
using LaunchWords = std::function<std::string()>;

// Of a launch that nobody has waited for yet. Small, and takes no memory: each launch leaves one.
struct LaunchNote {
    std::shared_ptr<const Program> program = nullptr;
    const Step* step = nullptr;  // of the program; null: what `name` says
    std::size_t phase = 0;       // of a kernel
    const char* name = nullptr;  // of a kernel of ours, or "a graph"
};
// "k_12ab phase 1 of train (dot at net.cpp:12)", "a graph of train (...)": with a few of the user's lines.
std::string text_of(const LaunchNote& note);

// "kernel k_12ab of train (phase 1 of 2, 18 blocks of 256 threads), which computes dot at net.cpp:12".
std::string kernel_words(const Program& program, const Step& step, std::size_t phase,
                         const LaunchConfig& config);
// "the library's matrix product [128, 784] . [784, 500] of train, which computes ...", or the convolution or
// copy that the step is.
std::string call_words(const Program& program, const Step& step, const StepSizes& sizes);
// "the graph of a step of train, which computes ...": five lines and how many more there are.
std::string graph_words(const Program& program, const char* what);

// "input "x"", "shared variable "w"", ""dot"": without its type.
std::string buffer_words(const BufferInfo& info);

// "k_12ab computes dot at net.cpp:12" for each kernel of the program that a text names; empty for none.
std::string lines_of_named_kernels(const Program& program, const std::string& text);

}  // namespace bitale::cuda
