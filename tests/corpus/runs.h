// The graphs of the corpus computed on the cpu device, and checksums of what comes out.
#pragma once

#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/corpus/corpus.h"

namespace bitale::corpus {

struct Computed {
    std::string name;           // "result loss", "new w_conv"
    std::vector<Array> values;  // of each call
};

// Two calls where the graph has updates, else one. With generated products whatever `options` say: a
// library's bits are those of its version.
std::vector<Computed> run(const Graph& graph, Options options);

// 64 bits over dtype, shape and every byte of all values: FNV-1a.
std::string checksum(const std::vector<Array>& values);

// A line for each result and new value: graph, what, type, checksum.
std::string checksum_lines(const std::string& graph, const std::vector<Computed>& computed);

}  // namespace bitale::corpus
