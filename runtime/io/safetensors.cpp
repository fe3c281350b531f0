// The safetensors format: 8 bytes with the length of a header, the header as JSON, the bytes of the arrays.
//   header  = "{" [ member { "," member } ] "}", spaces behind it
//   member  = name ":" array | "__metadata__" ":" "{" [ string ":" string { "," string ":" string } ] "}"
//   array   = "{" "dtype" ":" string "," "shape" ":" "[" numbers "]" "," "data_offsets" ":" "[" from, to "]"
//   "}"
// with the three keys in any order; numbers and strings as JSON has them. The arrays follow each other
// without gaps, little-endian.
#include <algorithm>
#include <array>
#include <set>

#include "bitale/checkpoint.h"
#include "graph/base/text.h"
#include "runtime/io/json_reader.h"
#include "runtime/io/load.h"
#include "runtime/io/save.h"

namespace bitale {

namespace {

// A hundred thousand arrays have such a header.
constexpr std::uint64_t longest_safetensors_header = std::uint64_t{16} << 20;
constexpr std::uint64_t length_bytes = 8;
constexpr const char* metadata = "__metadata__";

struct NamedDType {
    std::string_view name;
    DType dtype;
};
constexpr std::array<NamedDType, dtype_count> dtypes = {{{"BOOL", DType::boolean},
                                                         {"I8", DType::int8},
                                                         {"I16", DType::int16},
                                                         {"I32", DType::int32},
                                                         {"I64", DType::int64},
                                                         {"U8", DType::uint8},
                                                         {"U16", DType::uint16},
                                                         {"U32", DType::uint32},
                                                         {"U64", DType::uint64},
                                                         {"F16", DType::float16},
                                                         {"BF16", DType::bfloat16},
                                                         {"F32", DType::float32},
                                                         {"F64", DType::float64}}};

std::string_view name_in_file(DType dtype) {
    return std::find_if(dtypes.begin(), dtypes.end(), [&](const NamedDType& d) { return d.dtype == dtype; })
        ->name;
}

struct HeaderEntry {
    std::string name;
    DType dtype = DType::float32;
    Dims shape{};
    std::uint64_t from = 0, to = 0;  // of the bytes behind the header
};

class Header {
  public:
    Header(const std::string& path, std::string_view text, const LoadBudget& budget, const Stream& stream,
           std::map<std::string, std::string>* metadata)
        : path_(path),
          reader_(path, text, "safetensors header"),
          budget_(budget),
          stream_(stream),
          metadata_(metadata) {}

    std::vector<HeaderEntry> run() {
        std::vector<HeaderEntry> entries;
        std::set<std::string> names;
        reader_.expect('{');
        for (bool first = true; reader_.more(first, '}');) {
            std::string name = reader_.string();
            if (has_control_characters(name))
                file_error(path_, "has an entry whose name holds control characters, " + in_quotes(name));
            if (!names.insert(name).second) file_error(path_, "has two entries " + in_quotes(name));
            reader_.expect(':');
            if (name == metadata)
                read_metadata();
            else
                entries.push_back(array(std::move(name)));
        }
        reader_.finish();
        return entries;
    }

  private:
    void read_metadata() {
        reader_.expect('{');
        for (bool first = true; reader_.more(first, '}');) {
            std::string name = reader_.string();
            reader_.expect(':');
            std::string text = reader_.string();
            if (metadata_) metadata_->emplace(std::move(name), std::move(text));
        }
    }

    HeaderEntry array(std::string name) {
        HeaderEntry e{.name = std::move(name)};
        bool has_dtype = false, has_shape = false, has_offsets = false;
        const auto once = [&](bool& has, const char* key) {
            if (std::exchange(has, true)) reader_.fail(std::string("two ") + key);
        };
        reader_.expect('{');
        for (bool first = true; reader_.more(first, '}');) {
            const std::string key = reader_.string();
            reader_.expect(':');
            if (key == "dtype") {
                once(has_dtype, "dtype");
                e.dtype = dtype(e.name);
            } else if (key == "shape") {
                once(has_shape, "shape");
                shape(e);
            } else if (key == "data_offsets") {
                once(has_offsets, "data_offsets");
                reader_.expect('[');
                e.from = reader_.number();
                reader_.expect(',');
                e.to = reader_.number();
                reader_.expect(']');
            } else {
                reader_.fail("the unknown key " + in_quotes(key));
            }
        }
        if (!has_dtype || !has_shape || !has_offsets)
            reader_.fail("an entry " + in_quotes(e.name) + " without dtype, shape or data_offsets");
        return e;
    }

    DType dtype(const std::string& name) {
        const std::string text = reader_.string();
        const auto* const found =
            std::find_if(dtypes.begin(), dtypes.end(), [&](const NamedDType& d) { return d.name == text; });
        if (found == dtypes.end())
            file_error(path_, "holds elements of type " + in_quotes(text) + " in " + in_quotes(name) +
                                  ", which no bitale dtype can hold");
        return found->dtype;
    }

    void shape(HeaderEntry& e) {
        reader_.expect('[');
        for (bool first = true; reader_.more(first, ']');) {
            const std::uint64_t length = reader_.number();
            if (length > static_cast<std::uint64_t>(INT64_MAX))
                file_error(path_, "has an absurd shape, with the length " + std::to_string(length));
            e.shape.push_back(static_cast<std::int64_t>(length));
            budget_.check_rank(e.shape.size(), stream_);
        }
    }

    const std::string& path_;
    JsonReader reader_;
    const LoadBudget& budget_;
    const Stream& stream_;
    std::map<std::string, std::string>* metadata_;  // may be null
};

std::uint64_t little_endian_length(std::string_view bytes) {
    std::uint64_t x = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) x = x << 8 | static_cast<unsigned char>(bytes[i]);
    return x;
}

// Each byte behind the header belongs to one array: otherwise a small file could have any size.
void require_in_a_row(const std::string& path, const std::vector<HeaderEntry>& entries, std::uint64_t bytes) {
    std::vector<const HeaderEntry*> order;
    for (const HeaderEntry& e : entries) {
        if (e.from > e.to || e.to > bytes)
            file_error(path, "is truncated or damaged: its entry " + in_quotes(e.name) + " is at bytes " +
                                 std::to_string(e.from) + " to " + std::to_string(e.to) + " of " +
                                 std::to_string(bytes));
        order.push_back(&e);
    }
    std::sort(order.begin(), order.end(), [](const HeaderEntry* a, const HeaderEntry* b) {
        return std::pair(a->from, a->to) < std::pair(b->from, b->to);
    });
    std::uint64_t at = 0;
    for (const HeaderEntry* e : order) {
        if (e->from < at) file_error(path, "has entries that overlap, of which one is " + in_quotes(e->name));
        if (e->from > at)
            file_error(path, "has bytes in front of " + in_quotes(e->name) + " that belong to no entry");
        at = e->to;
    }
    if (at != bytes) file_error(path, "is damaged: bytes are left over behind its arrays");
}

Array read_entry(ByteSource& input, const HeaderEntry& e, std::uint64_t data, LoadBudget& budget) {
    const std::unique_ptr<Stream> stream =
        plain_stream(input, data + e.from, data + e.to, input.path() + ":" + printable(e.name));
    Array a = budget.array(e.dtype, e.shape, *stream);
    stream->take(a.mutable_data(), static_cast<std::size_t>(a.bytes()), "the array");
    stream->finish("the array");
    normalize_booleans(a);
    return a;
}

}  // namespace

std::map<std::string, Array> read_safetensors(ByteSource& input, const LoadLimits& limits,
                                              std::map<std::string, std::string>* metadata_text) {
    if (input.size() < length_bytes) file_error(input.path(), "is no safetensors file, or truncated");
    const std::uint64_t length =
        little_endian_length(input.part(0, length_bytes, "the length of the safetensors header"));
    if (length > longest_safetensors_header)
        file_error(input.path(), "is no safetensors file: its header would have " + std::to_string(length) +
                                     " bytes, more than any list of arrays needs");
    const std::string text =
        input.part(length_bytes, static_cast<std::size_t>(length), "the safetensors header");
    const std::uint64_t data = length_bytes + length;
    LoadBudget budget(limits);
    const std::unique_ptr<Stream> all = plain_stream(input, data, input.size(), input.path());
    const std::vector<HeaderEntry> entries = Header(input.path(), text, budget, *all, metadata_text).run();
    require_in_a_row(input.path(), entries, input.size() - data);
    std::map<std::string, Array> values;
    for (const HeaderEntry& e : entries) values.emplace(e.name, read_entry(input, e, data, budget));
    return values;
}

void check_safetensors_names(const std::string& path, const std::map<std::string, Array>& values) {
    for (const auto& [name, value] : values) {
        if (has_control_characters(name))
            file_error(path, "cannot be written: the name " + in_quotes(name) + " holds control characters");
        if (name == metadata)
            file_error(path, std::string("cannot be written: no array can have the name ") + metadata);
        json_string(path, name);
    }
}

void write_safetensors(AtomicFile& file, const std::string& path, const std::map<std::string, Array>& values,
                       const std::map<std::string, std::string>& metadata_text) {
    // The widest elements first: then all lie at multiples of their width.
    std::vector<const std::pair<const std::string, Array>*> order;
    for (const auto& entry : values) order.push_back(&entry);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
        return bits_of(a->second.dtype()) > bits_of(b->second.dtype());
    });
    std::string header = "{", texts;
    for (const auto& [name, text] : metadata_text)
        texts += (texts.empty() ? "" : ",") + json_string(path, name) + ":" + json_string(path, text);
    if (!texts.empty()) header += json_string(path, metadata) + ":{" + texts + "}";
    std::uint64_t at = 0;
    for (const auto* entry : order) {
        const Array& value = entry->second;
        std::string shape;
        for (const std::int64_t length : value.shape())
            shape += (shape.empty() ? "" : ",") + std::to_string(length);
        const std::uint64_t to = at + static_cast<std::uint64_t>(value.bytes());
        header += (header.size() > 1 ? "," : "") + json_string(path, entry->first) + ":{\"dtype\":\"" +
                  std::string(name_in_file(value.dtype())) + "\",\"shape\":[" + shape +
                  "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(to) + "]}";
        at = to;
    }
    header += "}";
    header.append((length_bytes - header.size() % length_bytes) % length_bytes, ' ');
    if (header.size() > longest_safetensors_header)
        file_error(path, "cannot be written: its header would have " + std::to_string(header.size()) +
                             " bytes; save it in several files");
    std::string length;
    for (std::uint64_t i = 0; i < length_bytes; ++i)
        length += static_cast<char>(header.size() >> (8 * i) & 0xff);
    file.write(length);
    file.write(header);
    for (const auto* entry : order) {
        const Array& value = entry->second;
        file.write({static_cast<const char*>(value.data()), static_cast<std::size_t>(value.bytes())});
    }
}

std::map<std::string, Array> load_safetensors(const std::string& path, LoadLimits limits, Where where) {
    return loading()(with_line(where, [&] { return read_safetensors(*open_source(path), limits); }));
}

void save_safetensors(const std::string& path, const std::map<std::string, Array>& values,
                      SaveOptions options, Where where) {
    saving()(with_line(where, [&] {
        check_safetensors_names(path, values);
        AtomicFile file(path, options.durable);
        write_safetensors(file, path, values);
        file.commit();
    }));
}

}  // namespace bitale
