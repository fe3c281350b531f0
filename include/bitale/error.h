// Errors that a user can cause, and the place in the user's program that they point to.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

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
    // "net.cpp:12": the file without its folder, and the line; "?" if unknown.
    std::string text() const;
};

// The base class of everything that is thrown for a cause that the user can remove. what() starts with the
// user's file and line if they are known.
class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& message) : std::runtime_error(message) {}
    Error(Where where, const std::string& message)
        : std::runtime_error(where.line ? where.text() + ": " + message : message) {}
};

// Shapes or ranks that do not fit together.
class ShapeError : public Error {
  public:
    using Error::Error;
};
// Dtypes that do not fit an operation, a variable or a file.
class TypeError : public Error {
  public:
    using Error::Error;
};
// A value out of range: a label, a row, an axis.
class IndexError : public Error {
  public:
    using Error::Error;
};
// A graph or function that cannot be built: unused, missing or duplicate inputs, disconnected gradients,
// empty expressions.
class GraphError : public Error {
  public:
    using Error::Error;
};
// The compiler of kernels (the host compiler or NVRTC) is missing or has rejected a kernel. The message names
// the source, whose folder in the system's folder for temporary files stays for a look, once for each kernel.
class CompileError : public Error {
  public:
    using Error::Error;
};
// A device is missing or has failed.
class DeviceError : public Error {
  public:
    using Error::Error;
};
// A memory limit is exceeded, or the device's memory; the message names the largest buffers.
class OutOfMemory : public Error {
  public:
    using Error::Error;
};
// A file is missing, incomplete, damaged or of another format, or cannot be written.
class FileError : public Error {
  public:
    using Error::Error;
};

// Whether what holds it was moved from, and has no new value since.
class MovedMark {
  public:
    MovedMark() = default;
    MovedMark(const MovedMark&) = default;
    MovedMark(MovedMark&& other) noexcept : is_set_(std::exchange(other.is_set_, true)) {}
    MovedMark& operator=(const MovedMark&) = default;
    MovedMark& operator=(MovedMark&& other) noexcept {  // set, where something is moved to itself
        is_set_ = other.is_set_;
        other.is_set_ = true;
        return *this;
    }
    ~MovedMark() = default;
    explicit operator bool() const { return is_set_; }
    // Throws GraphError where it is set. `what`: "a checkpoint".
    void refuse(const char* what, Where where = {}) const;

  private:
    bool is_set_ = false;
};

}  // namespace bitale

#pragma GCC visibility pop
