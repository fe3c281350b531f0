// Reading NumPy's npz files: zip archives of npy files, stored or deflated.
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bitale/io.h"
#include "graph/base/text.h"
#include "runtime/io/load.h"
#include "runtime/io/save.h"

namespace bitale {

namespace {

constexpr std::uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50, end_magic = 0x06054b50,
                        end64_magic = 0x06064b50, locator64_magic = 0x07064b50;
constexpr std::uint64_t all_ones = 0xffffffff;
constexpr std::size_t end_record = 22, longest_comment = 65535, locator64_record = 20, end64_record = 56,
                      local_record = 30;
// Beyond this a directory is no list of arrays.
constexpr std::uint64_t longest_directory = std::uint64_t{64} << 20;

// Fields of a record that was read as a whole; more than there is throws FileError.
class Fields {
  public:
    Fields(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}
    std::string_view take(std::uint64_t count) {
        if (count > left()) file_error(path_, "is truncated: a record of its zip directory is too short");
        const std::string_view part = bytes_.substr(at_, count);
        at_ += count;
        return part;
    }
    std::uint64_t number(std::size_t bytes) {
        const std::string_view part = take(bytes);
        std::uint64_t x = 0;
        for (std::size_t i = bytes; i-- > 0;) x = x << 8 | static_cast<unsigned char>(part[i]);
        return x;
    }
    std::size_t left() const { return bytes_.size() - at_; }

  private:
    const std::string& path_;
    std::string_view bytes_;
    std::size_t at_ = 0;
};

struct ZipEntry {
    std::string name;
    std::uint64_t method = 0, crc = 0, packed = 0, size = 0, offset = 0;
    std::uint64_t data = 0;  // where its bytes begin
};

struct Directory {
    std::uint64_t entries = 0, offset = 0, bytes = 0;
};

// The record of more than 4 GiB, or of many entries, that stands in front of the end record.
void read_end64(ByteSource& file, std::uint64_t end, Directory& d) {
    if (end < locator64_record) return;
    const std::string locator = file.part(end - locator64_record, locator64_record, "the zip64 locator");
    Fields at(file.path(), locator);
    if (at.number(4) != locator64_magic) return;
    at.take(4);
    const std::string record = file.part(at.number(8), end64_record, "the zip64 directory");
    Fields r(file.path(), record);
    if (r.number(4) != end64_magic) file_error(file.path(), "has a damaged zip64 directory");
    r.take(28);
    d.entries = r.number(8);
    d.bytes = r.number(8);
    d.offset = r.number(8);
}

Directory find_directory(ByteSource& file) {
    if (file.size() < end_record) file_error(file.path(), "is not an npz file, or is truncated");
    // The end record is the last thing but for a comment.
    const std::uint64_t tail = std::min<std::uint64_t>(file.size(), end_record + longest_comment);
    const std::string bytes =
        file.part(file.size() - tail, static_cast<std::size_t>(tail), "the zip directory");
    for (std::size_t at = bytes.size() - end_record + 1; at-- > 0;) {
        Fields r(file.path(), std::string_view(bytes).substr(at));
        if (r.number(4) != end_magic) continue;
        r.take(6);
        Directory d;
        d.entries = r.number(2);
        d.bytes = r.number(4);
        d.offset = r.number(4);
        const std::uint64_t end = file.size() - tail + at;
        if (d.entries == 0xffff || d.bytes == all_ones || d.offset == all_ones) read_end64(file, end, d);
        if (d.offset > end || d.bytes > end - d.offset)
            file_error(file.path(),
                       "is not an npz file, or is truncated: its zip directory lies behind its end");
        if (d.bytes > longest_directory)
            file_error(file.path(), "has a zip directory of " + std::to_string(d.bytes) +
                                        " bytes, more than any list of arrays needs");
        return d;
    }
    file_error(file.path(), "is not an npz file, or is truncated: it has no zip directory");
}

ZipEntry read_entry(Fields& r, const std::string& path) {
    if (r.number(4) != central_magic) file_error(path, "has a damaged zip directory");
    ZipEntry e;
    r.take(4);
    const std::uint64_t flags = r.number(2);
    e.method = r.number(2);
    r.take(4);
    e.crc = r.number(4);
    e.packed = r.number(4);
    e.size = r.number(4);
    const std::uint64_t name = r.number(2), extra = r.number(2), comment = r.number(2);
    r.take(8);
    e.offset = r.number(4);
    e.name = std::string(r.take(name));
    if (has_control_characters(e.name))
        file_error(path, "has an entry whose name holds control characters, " + in_quotes(e.name));
    Fields x(path, r.take(extra));
    while (x.left() >= 4) {
        const std::uint64_t tag = x.number(2), length = x.number(2);
        Fields field(path, x.take(length));
        if (tag != 1) continue;
        for (std::uint64_t* number : {&e.size, &e.packed, &e.offset})
            if (*number == all_ones) *number = field.number(8);
    }
    r.take(comment);
    const std::string subject = "entry " + in_quotes(e.name);
    if ((flags & 1) != 0) file_error(path, subject + " is encrypted");
    if (e.method != 0 && e.method != Z_DEFLATED)
        file_error(path, subject + " is packed by method " + std::to_string(e.method) +
                             "; only stored and deflated ones can be read");
    if (e.method == 0 && e.packed != e.size) file_error(path, subject + " is damaged: its sizes differ");
    return e;
}

// Finds the entry's bytes behind its own header, which must agree with the directory.
void locate(ByteSource& file, ZipEntry& e, const Directory& directory) {
    const std::string damaged = "has a damaged entry " + in_quotes(e.name);
    const std::string record = file.part(e.offset, local_record, "a zip entry");
    Fields local(file.path(), record);
    if (local.number(4) != local_magic) file_error(file.path(), damaged);
    local.take(4);
    const std::uint64_t method = local.number(2);
    local.take(16);
    const std::uint64_t name = local.number(2), extra = local.number(2);
    if (method != e.method || name != e.name.size() ||
        file.part(e.offset + local_record, e.name.size(), "a zip entry") != e.name)
        file_error(file.path(), damaged + ": its header is not that of the directory");
    e.data = e.offset + local_record + name + extra;
    if (e.data > directory.offset || e.packed > directory.offset - e.data)
        file_error(file.path(), damaged + ": it reaches into the zip directory, or is truncated");
}

// Many entries over the same bytes would be a small file of any size.
void reject_overlaps(const std::string& path, const std::vector<ZipEntry>& entries) {
    std::vector<const ZipEntry*> order;
    for (const ZipEntry& e : entries) order.push_back(&e);
    std::sort(order.begin(), order.end(),
              [](const ZipEntry* a, const ZipEntry* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < order.size(); ++i)
        if (order[i]->offset < order[i - 1]->data + order[i - 1]->packed)
            file_error(path, "has entries that overlap, " + in_quotes(order[i - 1]->name) + " and " +
                                 in_quotes(order[i]->name));
}

// What an entry holds, counted and summed up on the way.
class Checked : public Stream {
  public:
    Checked(std::unique_ptr<Stream> from, const ZipEntry& e)
        : Stream(from->path()), from_(std::move(from)), entry_(e), sum_(crc32(0, nullptr, 0)) {}
    std::size_t read(void* to, std::size_t count) override {
        const std::size_t n = from_->read(to, count);
        sum_ = crc32_z(sum_, static_cast<const Bytef*>(to), n);
        seen_ += n;
        // The end is the one place where everything is known.
        if (n < count && (sum_ != entry_.crc || seen_ != entry_.size))
            file_error(path(), "is damaged: its checksum differs");
        return n;
    }
    std::uint64_t most_left() const override {
        return std::min(from_->most_left(), entry_.size - std::min(entry_.size, seen_));
    }

  private:
    std::unique_ptr<Stream> from_;
    const ZipEntry& entry_;
    uLong sum_;
    std::uint64_t seen_ = 0;
};

Array read_entry_of(ByteSource& file, const ZipEntry& e, LoadBudget& budget) {
    const std::string name = file.path() + ":" + printable(e.name);
    const std::uint64_t end = e.data + e.packed;
    Checked stream(
        e.method == 0 ? plain_stream(file, e.data, end, name) : deflate_stream(file, e.data, end, name), e);
    return read_npy(stream, budget);
}

}  // namespace

std::map<std::string, Array> read_npz(ByteSource& file, const LoadLimits& limits) {
    const Directory directory = find_directory(file);
    const std::string bytes =
        file.part(directory.offset, static_cast<std::size_t>(directory.bytes), "the zip directory");
    Fields records(file.path(), bytes);
    std::vector<ZipEntry> entries;
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
        entries.push_back(read_entry(records, file.path()));
        locate(file, entries.back(), directory);
    }
    reject_overlaps(file.path(), entries);
    LoadBudget budget(limits);
    std::map<std::string, Array> values;
    for (const ZipEntry& e : entries) {
        std::string key = e.name;
        if (key.ends_with(".npy")) key.resize(key.size() - 4);
        if (values.contains(key)) file_error(file.path(), "has two arrays of the name " + in_quotes(key));
        values.emplace(key, read_entry_of(file, e, budget));
    }
    return values;
}

std::map<std::string, Array> load_npz(const std::string& path, LoadLimits limits, Where where) {
    return loading()(with_line(where, [&] { return read_npz(*open_source(path), limits); }));
}

}  // namespace bitale
