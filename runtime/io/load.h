// The readers of file formats, of any bytes. All throw FileError, and take no more memory than the bytes
// themselves and the arrays that the limits allow.
#pragma once

#include <map>
#include <string>

#include "bitale/error.h"
#include "graph/base/border.h"
#include "runtime/io/stream.h"

namespace bitale {

// Around all of them: want of memory is OutOfMemory.
const ApiBorder& loading();

// What f does, with the user's line in front of what is wrong with a file.
template <class F>
auto with_line(Where where, F&& f) {
    return [where, &f] {
        try {
            return f();
        } catch (const FileError& e) {
            throw FileError(where, e.what());
        }
    };
}

// The array that the stream holds, to its end.
Array read_npy(Stream& stream, LoadBudget& budget);
Array read_npy(ByteSource& input, const LoadLimits& limits);
std::map<std::string, Array> read_npz(ByteSource& input, const LoadLimits& limits);
// `metadata`, if it is not null, takes the text that the file has beside its arrays, by names.
std::map<std::string, Array> read_safetensors(ByteSource& input, const LoadLimits& limits,
                                              std::map<std::string, std::string>* metadata = nullptr);
Array read_idx(ByteSource& input, const LoadLimits& limits);

}  // namespace bitale
