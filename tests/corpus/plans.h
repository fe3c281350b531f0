// The plan of a graph for a device that need not be there, as text in which nothing depends on the machine:
// what is stored, how it is grouped and scheduled, and the kernels.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/target.h"
#include "tests/corpus/corpus.h"

namespace bitale::corpus {

struct Plan {
    // Without lines of the user's text and with kernels numbered, so that texts of two commits can be
    // compared.
    std::string storage;               // what becomes of each value, and why
    std::string nests;                 // what each value is computed by
    std::string groups;                // which values share a kernel
    std::string schedule;              // steps, their tasks and notes, and the buffers between them
    std::string helpers;               // what kernels share
    std::vector<std::string> copies;   // arguments and variables that are in memory in a second form as well
    std::vector<std::string> kernels;  // distinct ones, in order of their first launch
    std::int64_t nodes = 0;            // of the graph as the user wrote it
    std::int64_t launches = 0;         // phases of kernels, calls of libraries and copies, of a call
    std::int64_t text_bytes = 0;       // of the kernels, without comments
    std::int64_t arena_bytes = 0;      // for the lengths of the arguments
    double milliseconds = 0;           // of a core, for validation, rules and code generation
};

// "cpu" is one core's view of a machine with AVX-512 and a library of matrix products, "cpu-alone" the same
// without that library, "cuda:sm_90" a GPU with its libraries.
const std::vector<std::pair<std::string, Target>>& targets();

// Under options of its own: nothing that BITALE_FLAGS says matters.
Plan plan_of(const Graph& graph, const Target& target);

}  // namespace bitale::corpus
