// Checkpoints: variables and numbers by name, saved and loaded as a whole.
#include "bitale/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"
#include "ops/dsl/build.h"
#include "ops/train/schedules.h"
#include "runtime/io/json_reader.h"
#include "runtime/io/load.h"
#include "runtime/io/save.h"

namespace bitale {

namespace {

using Entry = Checkpoint::Entry;
using Values = std::map<std::string, Array>;
using Texts = std::map<std::string, std::string>;

constexpr const char* metadata_entry = "__metadata__";

// What f gives of a handle, with the user's line in front where it was moved from.
template <class F>
decltype(auto) of_handle(Where where, F&& f) {
    try {
        return f();
    } catch (const GraphError& e) {
        throw GraphError(where, e.what());
    }
}

const ApiBorder listing("for a checkpoint"), restoring("to load a checkpoint; nothing has changed");

std::string text_of(DType dtype, const Dims& shape) {
    return std::string(name_of(dtype)) + " " + bitale::text_of(shape);
}

std::string made_at(Where where) { return where.line ? " (made at " + where.text() + ")" : ""; }

// ---- The formats

enum class Format : std::uint8_t { npz, safetensors };

Format format_of(const std::string& path) {
    if (path.ends_with(".npz")) return Format::npz;
    if (path.ends_with(".safetensors")) return Format::safetensors;
    file_error(path, "has the ending of no format of checkpoints; name it .npz or .safetensors");
}

// The same bytes as elements of another dtype of that width.
Array as_bytes_of(const Array& a, DType dtype) {
    Array r(dtype, a.shape());
    if (a.bytes() > 0) std::memcpy(r.mutable_data(), a.data(), static_cast<std::size_t>(a.bytes()));
    return r;
}

// The names of the types of packed variables, with which the text of a layout begins.
bool is_layout(const std::string& text) {
    for (const StorageType type : {uint1, uint2, uint4, int4, StorageType(uint8), StorageType(int8)})
        if (text.starts_with(name_of(type) + " [")) return true;
    return false;
}

// Values and layouts as what npz can hold: what it has no name for as bytes of which the metadata tell more.
Values named_for_npz(const std::string& path, Values values, Texts layouts) {
    for (auto& [name, value] : values) {
        if (value.dtype() != DType::bfloat16) continue;
        layouts.emplace(name, name_of(value.dtype()));
        value = as_bytes_of(value, DType::uint16);
    }
    if (layouts.empty()) return values;
    std::string text;
    for (const auto& [name, layout] : layouts)
        text += (text.empty() ? "{" : ",") + json_string(path, name) + ":" + json_string(path, layout);
    text += "}";
    values.emplace(metadata_entry, std::vector<std::uint8_t>(text.begin(), text.end()));
    return values;
}

// What a file has: arrays, and the layouts of those that are bytes of packed variables.
struct Contents {
    Values values;
    Texts layouts;
};

Contents contents_of_npz(const std::string& path, Values values) {
    Contents r{std::move(values), {}};
    const auto found = r.values.find(metadata_entry);
    if (found == r.values.end()) return r;
    if (found->second.dtype() != DType::uint8) file_error(path, "has an entry __metadata__ that is no text");
    const std::span<const std::uint8_t> bytes = found->second.view<std::uint8_t>();
    const std::string text(bytes.begin(), bytes.end());
    JsonReader reader(path, text, "entry __metadata__");
    reader.expect('{');
    for (bool first = true; reader.more(first, '}');) {
        const std::string name = reader.string();
        reader.expect(':');
        const std::string dtype = reader.string();
        const auto value = r.values.find(name);
        const bool is_there = value != r.values.end() && name != metadata_entry;
        if (is_there && is_layout(dtype) && value->second.dtype() == DType::uint8) {
            r.layouts.emplace(name, dtype);
            continue;
        }
        if (!is_there || dtype != name_of(DType::bfloat16) || value->second.dtype() != DType::uint16)
            file_error(path, "names the dtype " + in_quotes(dtype) + " for " + in_quotes(name) +
                                 ", which is no uint16 that could be bfloat16");
        value->second = as_bytes_of(value->second, DType::bfloat16);
    }
    reader.finish();
    r.values.erase(metadata_entry);
    return r;
}

Contents contents_of_safetensors(const std::string& path, const LoadLimits& limits) {
    Contents r;
    Texts texts;
    r.values = loading()([&] { return read_safetensors(*open_source(path), limits, &texts); });
    for (const auto& [name, text] : texts) {
        const auto value = r.values.find(name);
        if (value != r.values.end() && value->second.dtype() == DType::uint8 && is_layout(text))
            r.layouts.emplace(name, text);
    }
    return r;
}

// ---- What fits

// The lines of a message that lists everything, however much a file may have.
class Problems {
  public:
    void add(const std::string& line) {
        constexpr int most = 50;
        if (++count_ <= most) text_ += "\n  " + line;
        if (count_ == most + 1) text_ += "\n  ... and more";
    }
    bool none() const { return count_ == 0; }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
    int count_ = 0;
};

// An entry as it is now: dtype, shape and where it comes from.
std::string described(const Entry& e) {
    if (!e.layout.empty()) return e.layout + made_at(e.variable.state()->where);
    if (!e.variable.state()) return text_of(e.dtype, {}) + made_at(e.where);
    return text_of(e.variable.dtype(), e.variable.shape()) + made_at(e.variable.state()->where);
}

// `layout` is that of the file, if it has one for these bytes.
void compare(const Entry& e, const Array& value, const std::string& layout, Problems& problems) {
    const std::string in_file =
        (layout.empty() ? text_of(value.dtype(), value.shape()) : printable(layout)) + " in the file";
    if (e.array) return;
    if (e.layout != layout) {
        problems.add("another layout: " + in_quotes(e.name) + " is " + described(e) + ", and " + in_file);
        return;
    }
    const bool is_variable = e.variable.state() != nullptr;
    const DType dtype = is_variable ? e.variable.dtype() : e.dtype;
    const Dims shape = is_variable ? e.variable.shape() : Dims{};
    if (dtype != value.dtype() || shape != value.shape())
        problems.add(std::string(dtype != value.dtype() ? "another dtype: " : "another shape: ") +
                     in_quotes(e.name) + " is " + described(e) + ", and " + in_file);
    else if (e.is_seed && value.item<std::uint64_t>() != e.seed)
        problems.add("another seed: " + in_quotes(e.name) + " is " + std::to_string(e.seed) +
                     made_at(e.where) + ", and " + std::to_string(value.item<std::uint64_t>()) +
                     " in the file");
}

Array value_of(const Entry& e) {
    if (e.variable.state()) return e.variable.get_value();
    if (e.array) return *e.array;
    Array number(e.dtype, {});
    std::memcpy(number.mutable_data(), e.is_seed ? &e.seed : e.number,
                static_cast<std::size_t>(number.bytes()));
    return number;
}

std::vector<Checkpoint::Entry> entries_of(const std::string& name, const RandomStream& stream, Where where) {
    return {{.name = name + ".counter", .where = where, .variable = stream.counter()},
            {.name = name + ".seed",
             .where = where,
             .dtype = DType::uint64,
             .is_seed = true,
             .seed = stream.seed()}};
}

}  // namespace

Checkpoint::Part::Part(const Shared& variable, Where where) {
    listing([&] { add(variable, where); });
}

Checkpoint::Part::Part(const std::vector<Shared>& variables, Where where) {
    listing([&] {
        for (const Shared& variable : variables) add(variable, where);
    });
}

Checkpoint::Part::Part(const Parameters& parameters, Where where)
    : Part(of_handle(where, [&]() -> const std::vector<Shared>& { return parameters; }), where) {}

Checkpoint::Part::Part(const Updates& updates, Where where) {
    listing([&] {
        updates.require_present(where);
        Nodes values;
        for (const Update& u : updates) {
            add(u.target, where);
            values.push_back(u.value.node());
        }
        for (const NodePtr& node : topological(values)) {
            if (!node->op->draws && node->op != step_count_op()) continue;
            if (const SharedPtr counter = shared_of(node->inputs.back())) add(Shared(counter), where);
        }
    });
}

Checkpoint::Part::Part(const RandomStream& stream, Where where) {
    listing([&] {
        const std::string name = stream.counter().name(where);
        entries_ = entries_of(name.substr(0, name.rfind('.')), stream, where);
    });
}

Checkpoint::Part::Part(const std::string& name, const RandomStream& stream, Where where) {
    listing([&] {
        (void)stream.counter().name(where);
        entries_ = entries_of(name, stream, where);
    });
}

Checkpoint::Part::Part(const StepCounter& steps, Where where) : Part(steps.counter(), where) {}

Checkpoint::Part::Part(const PackedShared& variable, Where where) {
    listing([&] {
        add(of_handle(where, [&]() -> const Shared& { return variable.packed(); }), where);
        entries_.back().layout = variable.layout();
        for (const Shared* numbers : {&variable.scale(), &variable.offset()})
            if (numbers->state()) add(*numbers, where);
    });
}

Checkpoint::Part::Part(std::string name, Array& array, Where where) {
    listing([&] { entries_.push_back({.name = std::move(name), .where = where, .array = &array}); });
}

Checkpoint::Part::Part(std::string name, void* number, DType dtype, Where where) {
    listing([&] {
        entries_.push_back({.name = std::move(name), .where = where, .number = number, .dtype = dtype});
    });
}

void Checkpoint::Part::add(const Shared& variable, Where where) {
    entries_.push_back({.name = variable.name(where), .where = where, .variable = variable});
}

Checkpoint::Checkpoint(std::initializer_list<Part> parts) {
    listing([&] {
        // A stream that is named here has that name, whatever updates call its counter.
        std::unordered_map<const SharedState*, std::string> own_names;
        for (const Part& part : parts) part.mark_.refuse("a part of a checkpoint");
        for (const Part& part : parts)
            for (const Entry& e : part.entries_)
                if (e.variable.state() && e.name != e.variable.name())
                    own_names.emplace(e.variable.state().get(), e.name);
        std::unordered_set<const SharedState*> seen;
        std::map<std::string, Where> names;
        const auto line_of = [](const Entry& e) {
            return e.variable.state() ? e.variable.state()->where : e.where;
        };
        for (const Part& part : parts)
            for (Entry e : part.entries_) {
                if (e.variable.state() && !seen.insert(e.variable.state().get()).second) continue;
                if (const auto own = own_names.find(e.variable.state().get()); own != own_names.end())
                    e.name = own->second;
                if (e.name.empty())
                    throw GraphError(e.where, "a checkpoint holds the variable made at " + line_of(e).text() +
                                                  ", which has no name; name it when it is made");
                if (has_control_characters(e.name) || e.name == metadata_entry)
                    throw GraphError(e.where,
                                     "no entry of a checkpoint can have the name " + in_quotes(e.name));
                if (const auto [at, fresh] = names.emplace(e.name, line_of(e)); !fresh)
                    throw GraphError(e.where, "two entries of a checkpoint have the name " +
                                                  in_quotes(e.name) + ", made at " + at->second.text() +
                                                  " and at " + line_of(e).text() +
                                                  "; give each a name of its own");
                entries_.push_back(std::move(e));
            }
    });
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint, SaveOptions options,
                     Where where) {
    saving()(with_line(where, [&] {
        const Format format = format_of(path);
        Values values;
        Texts layouts;
        for (const Entry& e : checkpoint.entries(where)) {
            values.emplace(e.name, value_of(e));
            if (!e.layout.empty()) layouts.emplace(e.name, e.layout);
        }
        if (format == Format::npz) {
            save_npz(path, named_for_npz(path, std::move(values), std::move(layouts)), options, {});
            return;
        }
        check_safetensors_names(path, values);
        AtomicFile file(path, options.durable);
        write_safetensors(file, path, values, layouts);
        file.commit();
    }));
}

LoadedCheckpoint load_checkpoint(const std::string& path, const Checkpoint& checkpoint,
                                 LoadCheckpointOptions options, Where where) {
    return restoring(with_line(where, [&] {
        (void)checkpoint.entries(where);
        const Format format = format_of(path);
        auto [values, layouts] = format == Format::npz
                                     ? contents_of_npz(path, load_npz(path, options.limits, {}))
                                     : contents_of_safetensors(path, options.limits);
        LoadedCheckpoint loaded;
        Problems problems;
        // What is set at the end, when nothing can fail any more.
        struct Found {
            const Entry* entry;
            Array* value;
            std::list<Array> next{};  // of a variable
        };
        std::vector<Found> found;
        std::set<std::string> known;
        for (const Entry& e : checkpoint.entries(where)) {
            known.insert(e.name);
            const auto at = values.find(e.name);
            if (at == values.end()) {
                loaded.missing.push_back(e.name);
                if (options.strict)
                    problems.add("missing in the file: " + in_quotes(e.name) + ", " +
                                 (e.array ? "an array" + made_at(e.where) : described(e)));
                continue;
            }
            const auto layout = layouts.find(e.name);
            compare(e, at->second, layout == layouts.end() ? std::string() : layout->second, problems);
            found.push_back({&e, &at->second});
        }
        for (const auto& [name, value] : values) {
            if (known.contains(name)) continue;
            loaded.surplus.push_back(name);
            if (options.strict)
                problems.add("surplus in the file: " + in_quotes(name) + ", " +
                             text_of(value.dtype(), value.shape()));
        }
        if (!problems.none())
            file_error(path,
                       "does not fit what it is loaded into, and nothing has changed:" + problems.text() +
                           (options.strict && (!loaded.missing.empty() || !loaded.surplus.empty())
                                ? "\n{.strict = false} leaves alone what is missing and passes over "
                                  "what is surplus"
                                : ""));
        for (Found& f : found)
            if (f.entry->variable.state()) f.next.push_back(*f.value);
        for (Found& f : found) {
            const Entry& e = *f.entry;
            if (SharedState* state = e.variable.state().get()) {
                const WritingValue writing(*state);
                state->take_value(f.next);
                state->fetch = nullptr;
                ++state->version;
            } else if (e.array) {
                *e.array = std::move(*f.value);
            } else if (!e.is_seed) {
                std::memcpy(e.number, f.value->data(), static_cast<std::size_t>(f.value->bytes()));
            }
        }
        return loaded;
    }));
}

}  // namespace bitale
