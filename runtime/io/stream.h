// Bytes from front to end: a part of an ByteSource as it is, or unpacked on the way, a piece at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bitale/array.h"
#include "bitale/io.h"
#include "runtime/io/byte_source.h"

namespace bitale {

class Stream {
  public:
    explicit Stream(std::string path) : path_(std::move(path)) {}
    virtual ~Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Fewer bytes than asked for only at the end. Throws FileError for damaged data.
    virtual std::size_t read(void* to, std::size_t count) = 0;
    // More bytes than this cannot follow.
    virtual std::uint64_t most_left() const = 0;
    // All of them, or FileError "is truncated".
    void take(void* to, std::size_t count, const char* what);
    std::string take(std::size_t count, const char* what);
    // FileError unless this is the end.
    void finish(const char* what);
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Bytes [from, to) of the input. An `input` must outlive its streams.
std::unique_ptr<Stream> plain_stream(ByteSource& input, std::uint64_t from, std::uint64_t to,
                                     std::string name);
// The same unpacked: one deflate stream without a header.
std::unique_ptr<Stream> deflate_stream(ByteSource& input, std::uint64_t from, std::uint64_t to,
                                       std::string name);
// A whole file: gzip, of one or more members, or whatever else as it is.
std::unique_ptr<Stream> file_stream(ByteSource& input);

// Bytes of arrays that may still be read from one file.
class LoadBudget {
  public:
    explicit LoadBudget(const LoadLimits& limits) : limits_(limits), left_(limits.bytes) {}
    // An array of this type and shape, without elements yet. Throws FileError where it has too many axes,
    // lengths that no array can have, more bytes than the limits allow or than the stream can hold.
    Array array(DType dtype, const Dims& shape, const Stream& stream);
    // FileError where there are more axes than the limits allow.
    void check_rank(std::size_t rank, const Stream& stream) const;

  private:
    LoadLimits limits_;
    std::int64_t left_;
};

// Of booleans, whatever is not 0 is true in a file; a bool of C++ is 0 or 1. Other dtypes stay.
void normalize_booleans(Array& a);

// Other orders of bytes and of axes: what the array was read as, put right.
void swap_bytes(Array& a);

}  // namespace bitale
