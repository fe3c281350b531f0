#include "tests/fuzz/targets.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "bitale/error.h"
#include "graph/base/options.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cache/sha256.h"
#include "runtime/exec/program_io.h"
#include "runtime/io/load.h"
#include "runtime/tune/choices.h"
#include "tests/support/temporary.h"

namespace bitale::fuzz {

namespace {

// Small, so that a header that claims much costs little, and large enough for every seed.
constexpr LoadLimits limits{.bytes = 1 << 20, .rank = 32};

void require(bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
}

void check(const Array& a) {
    require(a.bytes() <= limits.bytes && a.rank() <= limits.rank, "an array beyond the limits");
    if (a.dtype() != DType::boolean) return;
    const auto* bytes = static_cast<const unsigned char*>(a.data());
    require(std::all_of(bytes, bytes + a.size(), [](unsigned char b) { return b <= 1; }),
            "a boolean that is neither 0 nor 1");
}

bool idx(std::string_view bytes) {
    try {
        check(read_idx(*memory_source("x.idx", bytes), limits));
        return true;
    } catch (const FileError&) {
        return false;
    }
}

bool npy(std::string_view bytes) {
    try {
        check(read_npy(*memory_source("x.npy", bytes), limits));
        return true;
    } catch (const FileError&) {
        return false;
    }
}

bool npz(std::string_view bytes) {
    try {
        std::int64_t all = 0;
        for (const auto& [name, value] : read_npz(*memory_source("x.npz", bytes), limits)) {
            check(value);
            all += value.bytes();
            require(name.find('\n') == std::string::npos, "a name with a line end");
        }
        require(all <= limits.bytes, "arrays beyond the limits");
        return true;
    } catch (const FileError&) {
        return false;
    }
}

bool read_as_safetensors(std::string_view bytes) {
    try {
        std::int64_t all = 0;
        for (const auto& [name, value] : read_safetensors(*memory_source("x.safetensors", bytes), limits)) {
            check(value);
            all += value.bytes();
            require(name.find('\n') == std::string::npos, "a name with a line end");
        }
        require(all <= limits.bytes, "arrays beyond the limits");
        return true;
    } catch (const FileError&) {
        return false;
    }
}

bool safetensors(std::string_view bytes) {
    const bool accepted = read_as_safetensors(bytes);
    // Once more with the length of the header that it seems to have: else most changes end at the length.
    constexpr std::size_t before = 8;
    const std::size_t end = bytes.rfind('}');
    if (end == std::string_view::npos || end < before) return accepted;
    std::string repaired(bytes);
    for (std::size_t i = 0; i < before; ++i)
        repaired[i] = static_cast<char>((end + 1 - before) >> (8 * i) & 0xff);
    return read_as_safetensors(repaired) || accepted;
}

bool program(std::string_view bytes) {
    try {
        const std::string json = program_to_json(program_from_json(std::string(bytes), limits));
        require(program_to_json(program_from_json(json, limits)) == json,
                "a program that is another one when read again");
        return true;
    } catch (const FileError&) {
        return false;
    }
}

// BITALE_FLAGS, and behind a line end BITALE_DEBUG.
bool flags(std::string_view bytes) {
    const std::string text(bytes.substr(0, bytes.find('\n')));
    const std::string debug(bytes.size() > text.size() ? bytes.substr(text.size() + 1) : "");
    try {
        const Options o = parse_options(text.c_str(), debug.empty() ? nullptr : debug.c_str(), nullptr);
        require(o.debug >= 0 && o.debug <= 6 && o.emulator_devices >= 1, "an option out of its range");
        return true;
    } catch (const Error&) {
        return false;
    }
}

// In memory, where a folder is.
const char* parent() { return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; }

bool cache(std::string_view bytes) {
    static const test::TemporaryFolder folder(parent());
    static const DiskCache cache(folder.path(), 1 << 20);
    static const std::string key(32, 'a');
    const std::string path = folder.path() + "/" + key + ".so";
    std::ofstream(path, std::ios::binary) << bytes;
    const std::optional<std::string> object = cache.read(key);
    require(cache.find(key).has_value() == object.has_value(), "an entry that is found and cannot be read");
    if (!object) return false;
    // The seal holds the object's checksum and the key.
    const std::string_view seal = bytes.substr(object->size());
    require(bytes.substr(0, object->size()) == *object, "an object that is not in its file");
    require(seal.find(sha256(*object)) != std::string_view::npos && seal.find(key) != std::string_view::npos,
            "an object without its seal");
    return true;
}

bool choices(std::string_view bytes) {
    bool accepted = false;
    for (const std::vector<Way>& ways :
         {std::vector<Way>{Way::library, Way::generated}, std::vector<Way>{Way::winners, Way::all_places}}) {
        const std::optional<Choice> choice = parse_choice(std::string(bytes), ways);
        if (!choice) continue;
        accepted = true;
        require(std::find(ways.begin(), ways.end(), choice->chosen) != ways.end(), "a choice of no such way");
        const std::optional<Choice> again = parse_choice(text_of(*choice), ways);
        require(again && again->chosen == choice->chosen && text_of(*again) == text_of(*choice),
                "a choice that is another one when read again");
    }
    return accepted;
}

}  // namespace

const std::vector<Target>& targets() {
    static const auto& list = *new std::vector<Target>{
        {"idx", idx},         {"npy", npy},     {"npz", npz},     {"safetensors", safetensors},
        {"program", program}, {"flags", flags}, {"cache", cache}, {"choices", choices}};
    return list;
}

const Target* target_named(std::string_view name) {
    for (const Target& target : targets())
        if (name == target.name) return &target;
    return nullptr;
}

std::vector<std::string> corpus_of(const std::string& folder) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> inputs;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return inputs;
}

}  // namespace bitale::fuzz
