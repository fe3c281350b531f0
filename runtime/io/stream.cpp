// Reading and unpacking by pieces; what a header may ask for.
#include "runtime/io/stream.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace bitale {

namespace {

class PlainStream : public Stream {
  public:
    PlainStream(ByteSource& input, std::uint64_t from, std::uint64_t to, std::string name)
        : Stream(std::move(name)), input_(input), at_(from), end_(to) {}
    std::size_t read(void* to, std::size_t count) override {
        const std::size_t n =
            input_.read_at(at_, to, static_cast<std::size_t>(std::min<std::uint64_t>(count, end_ - at_)));
        at_ += n;
        return n;
    }
    std::uint64_t most_left() const override { return end_ - at_; }

  private:
    ByteSource& input_;
    std::uint64_t at_, end_;
};

class Inflating : public Stream {
  public:
    Inflating(ByteSource& input, std::uint64_t from, std::uint64_t to, std::string name, bool gzip)
        : Stream(std::move(name)),
          packed_(input, from, to, path()),
          gzip_(gzip),
          block_(std::size_t{64} << 10) {
        if (inflateInit2(&z_, gzip ? 16 + MAX_WBITS : -MAX_WBITS) != Z_OK)
            file_error(path(), "cannot be unpacked: zlib has no memory");
    }
    ~Inflating() override { inflateEnd(&z_); }
    Inflating(const Inflating&) = delete;
    Inflating& operator=(const Inflating&) = delete;

    std::size_t read(void* to, std::size_t count) override {
        std::size_t done = 0;
        while (done < count && !finished_) {
            if (z_.avail_in == 0) refill();
            // zlib counts in 32 bits.
            const std::size_t most = std::min<std::size_t>(count - done, std::size_t{1} << 30);
            z_.next_out = static_cast<Bytef*>(to) + done;
            z_.avail_out = static_cast<uInt>(most);
            if (z_.avail_in == 0) file_error(path(), "is truncated: its compressed data ends too early");
            const int status = inflate(&z_, Z_NO_FLUSH);
            done += most - z_.avail_out;
            if (status == Z_STREAM_END)
                end_member();
            else if (status != Z_OK)
                file_error(path(), std::string("is damaged: ") + (z_.msg  ? z_.msg
                                                                  : gzip_ ? "no valid gzip stream"
                                                                          : "no deflate stream"));
        }
        return done;
    }
    // Deflate makes at most 1032 bytes of one.
    std::uint64_t most_left() const override {
        const std::uint64_t packed = packed_.most_left() + z_.avail_in;
        constexpr std::uint64_t ratio = 1032, held = std::uint64_t{64} << 10;
        return packed > std::numeric_limits<std::uint64_t>::max() / (2 * ratio) ? packed
                                                                                : packed * ratio + held;
    }

  private:
    void refill() {
        z_.next_in = block_.data();
        z_.avail_in = static_cast<uInt>(packed_.read(block_.data(), block_.size()));
    }
    void end_member() {
        if (z_.avail_in == 0) refill();
        if (z_.avail_in == 0)
            finished_ = true;
        else if (gzip_)
            inflateReset(&z_);
        else
            file_error(path(), "is damaged: bytes follow its compressed data");
    }

    PlainStream packed_;
    bool gzip_, finished_ = false;
    std::vector<Bytef> block_;
    z_stream z_{};
};

}  // namespace

void Stream::take(void* to, std::size_t count, const char* what) {
    if (const std::size_t n = read(to, count); n != count)
        file_error(path_, "is truncated: " + std::string(what) + " needs " + std::to_string(count) +
                              " bytes, " + std::to_string(n) + " are left");
}

std::string Stream::take(std::size_t count, const char* what) {
    std::string bytes(count, '\0');
    take(bytes.data(), count, what);
    return bytes;
}

void Stream::finish(const char* what) {
    char more = 0;
    if (read(&more, 1) != 0) file_error(path_, std::string("is damaged: bytes are left over behind ") + what);
}

std::unique_ptr<Stream> plain_stream(ByteSource& input, std::uint64_t from, std::uint64_t to,
                                     std::string name) {
    return std::make_unique<PlainStream>(input, from, to, std::move(name));
}

std::unique_ptr<Stream> deflate_stream(ByteSource& input, std::uint64_t from, std::uint64_t to,
                                       std::string name) {
    return std::make_unique<Inflating>(input, from, to, std::move(name), false);
}

std::unique_ptr<Stream> file_stream(ByteSource& input) {
    unsigned char first[2] = {};
    if (input.read_at(0, first, sizeof first) == sizeof first && first[0] == 0x1f && first[1] == 0x8b)
        return std::make_unique<Inflating>(input, 0, input.size(), input.path(), true);
    return plain_stream(input, 0, input.size(), input.path());
}

void LoadBudget::check_rank(std::size_t rank, const Stream& stream) const {
    if (rank > static_cast<std::size_t>(std::max(limits_.rank, 0)))
        file_error(stream.path(), "holds an array of rank " + std::to_string(rank) + ", above the limit of " +
                                      std::to_string(limits_.rank) + "; pass a larger LoadLimits::rank");
}

Array LoadBudget::array(DType dtype, const Dims& shape, const Stream& stream) {
    check_rank(shape.size(), stream);
    // An array without elements has strides all the same.
    std::int64_t bytes = bytes_of(dtype);
    bool empty = false;
    for (const std::int64_t d : shape) {
        if (d < 0 || __builtin_mul_overflow(bytes, std::max<std::int64_t>(d, 1), &bytes))
            file_error(stream.path(), "has an absurd shape, " + text_of(shape));
        empty |= d == 0;
    }
    if (empty) bytes = 0;
    if (static_cast<std::uint64_t>(bytes) > stream.most_left())
        file_error(stream.path(), "is truncated: its array of shape " + text_of(shape) + " needs " +
                                      std::to_string(bytes) + " bytes, at most " +
                                      std::to_string(stream.most_left()) + " are left");
    if (bytes > left_)
        file_error(stream.path(), "holds more than " + std::to_string(limits_.bytes) +
                                      " bytes of arrays, the limit; pass a larger LoadLimits::bytes");
    left_ -= bytes;
    return Array(dtype, shape);
}

void normalize_booleans(Array& a) {
    if (a.dtype() != DType::boolean) return;
    auto* bytes = static_cast<unsigned char*>(a.mutable_data());
    std::transform(bytes, bytes + a.size(), bytes,
                   [](unsigned char c) { return static_cast<unsigned char>(c != 0); });
}

void swap_bytes(Array& a) {
    const auto width = static_cast<std::size_t>(bytes_of(a.dtype()));
    if (width == 1) return;
    auto* p = static_cast<char*>(a.mutable_data());
    for (std::int64_t i = 0; i < a.size(); ++i, p += width) std::reverse(p, p + width);
}

}  // namespace bitale
