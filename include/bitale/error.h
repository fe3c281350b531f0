// Errors that a user can cause, and the place in the user's program that they name.
#pragma once

#include <stdexcept>
#include <string>

#include "bitale/cplusplus.h"

#pragma GCC visibility push(default)

namespace bitale {

// A file and line of the user's program. Not std::source_location: clang-tidy 14 cannot parse libstdc++'s.
struct Where {
    const char* file = "";
    unsigned line = 0;
    static constexpr Where current(const char* f = __builtin_FILE(), unsigned l = __builtin_LINE()) {
        return {f, l};
    }
    // "net.cpp:12", the file without its folders; "?" when unknown.
    std::string text() const;
};

// The base of everything that is thrown for a cause that the user can cure. what() starts with the user's
// file and line where they are known.
class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& message) : std::runtime_error(message) {}
    Error(Where where, const std::string& message)
        : std::runtime_error(where.line ? where.text() + ": " + message : message) {}
};

// Shapes or ranks that cannot fit together.
class ShapeError : public Error {
  public:
    using Error::Error;
};
// Element types that do not fit an operation, a variable or a storage.
class TypeError : public Error {
  public:
    using Error::Error;
};
// A value out of its range: a label, a row, an axis.
class IndexError : public Error {
  public:
    using Error::Error;
};
// A function that cannot be built: unused, missing or duplicate inputs, disconnected gradients.
class GraphError : public Error {
  public:
    using Error::Error;
};
// The host compiler or NVRTC is missing or refused the generated text.
class CompileError : public Error {
  public:
    using Error::Error;
};
// A device is absent or failed.
class DeviceError : public Error {
  public:
    using Error::Error;
};
// A memory limit or the device's memory is exceeded; names the biggest buffers.
class OutOfMemory : public Error {
  public:
    using Error::Error;
};
// A file is missing, truncated or of another format.
class FileError : public Error {
  public:
    using Error::Error;
};

}  // namespace bitale

#pragma GCC visibility pop
