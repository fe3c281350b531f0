#include "runtime/cuda/cubins.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "bitale/error.h"
#include "codegen/print/comments.h"
#include "graph/base/options.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cache/sha256.h"
#include "runtime/cuda/libraries.h"
#include "runtime/cuda/search.h"
#include "runtime/cuda/targets.h"

namespace bitale::cuda {

namespace {

constexpr std::size_t key_digits = 32;

std::string key_of(const std::string& text) { return sha256(text).substr(0, key_digits); }

// What decides which file is opened.
std::string record_key() {
    std::string text = "bitale-nvrtc-1\n";
    for (const std::string& path : library_candidates(nvrtc_name())) text += path + "\n";
    const char* loader = std::getenv("LD_LIBRARY_PATH");
    return key_of(text + (loader ? loader : ""));
}

// A record: the path that was opened, then its identity, the version, and the architectures.
struct Record {
    std::string path, file, version;
    std::vector<int> architectures;

    std::string text() const {
        std::string s = path + "\n" + file + "\n" + version + "\n";
        for (const int a : architectures) s += std::to_string(a) + " ";
        return s;
    }
    static std::optional<Record> parse(const std::string& text) {
        Record r;
        std::istringstream lines(text);
        if (!std::getline(lines, r.path) || !std::getline(lines, r.file) || !std::getline(lines, r.version))
            return std::nullopt;
        for (int a = 0; lines >> a;) r.architectures.push_back(a);
        return r;
    }
    NvrtcIdentity identity() const { return {file + " " + version, version, architectures}; }
};

// An entry: the length of the image, the image, and the compiler's log.
std::string packed(const CompiledModule& module) {
    const std::uint64_t bytes = module.image.size();
    std::string entry(sizeof bytes, '\0');
    std::memcpy(entry.data(), &bytes, sizeof bytes);
    return entry + module.image + module.log;
}

std::optional<CompiledModule> unpacked(const std::string& entry) {
    std::uint64_t bytes = 0;
    if (entry.size() < sizeof bytes) return std::nullopt;
    std::memcpy(&bytes, entry.data(), sizeof bytes);
    if (bytes > entry.size() - sizeof bytes) return std::nullopt;
    CompiledModule module;
    module.image = entry.substr(sizeof bytes, bytes);
    module.log = entry.substr(sizeof bytes + bytes);
    module.resources = resources_in(module.log);
    return module;
}

std::size_t kernels_of(const std::vector<CudaUnit>& units) {
    std::size_t count = 0;
    for (const CudaUnit& unit : units) count += unit.kernels.size();
    return count;
}

}  // namespace

std::optional<NvrtcIdentity> known_nvrtc(NvrtcProblem problem) {
    std::optional<DiskCache> cache = cache_in_use();
    const std::string key = cache ? record_key() : "", newest = key_of("bitale-nvrtc-newest-1");
    const auto record_at = [&](const std::string& at) {
        const std::optional<std::string> text = cache ? cache->read(at) : std::nullopt;
        return text ? Record::parse(*text) : std::nullopt;
    };
    std::optional<Record> known = record_at(key);
    if (known && file_identity(known->path) == known->file) return known->identity();
    if (!problem().empty()) {
        // It is gone, or the cache came from another machine: what it compiled is still good.
        if (!known) known = record_at(newest);
        return known ? std::optional(known->identity()) : std::nullopt;
    }
    Record record;
    // The loader's full path: the one we gave may be a bare name.
    Dl_info file{};
    if (dladdr(reinterpret_cast<void*>(nvrtc_library().table.nvrtcVersion), &file) != 0 && file.dli_fname)
        record.path = file.dli_fname;
    record.file = file_identity(record.path);
    record.version = nvrtc_version();
    record.architectures = nvrtc_architectures();
    if (cache && !record.file.empty())
        for (const std::string& at : {key, newest}) cache->keep(at, record.text(), record.text());
    return record.identity();
}

std::vector<int> known_architectures() {
    const std::optional<NvrtcIdentity> known = known_nvrtc();
    return known ? known->architectures : std::vector<int>{};
}

NvrtcIdentity nvrtc_identity() {
    if (std::optional<NvrtcIdentity> known = known_nvrtc()) return *std::move(known);
    throw CompileError("CUDA kernels cannot be compiled without NVRTC: " + nvrtc_problem());
}

std::string machine_target(const std::string& architecture) {
    return targets_for(architecture, nvrtc_identity().architectures).front();
}

CompiledUnits find_or_compile(const std::vector<CudaUnit>& units, const std::string& architecture,
                              const std::string& name, NvrtcProblem problem) {
    std::optional<DiskCache> cache = cache_in_use();
    const std::optional<NvrtcIdentity> nvrtc = units.empty() ? std::nullopt : known_nvrtc(problem);
    const std::string identity = nvrtc ? nvrtc->text : "";
    CompiledUnits result;
    result.modules.resize(units.size());
    std::vector<CudaUnit> missing;
    std::vector<std::size_t> places;
    std::vector<std::string> keys;
    for (std::size_t u = 0; u < units.size(); ++u) {
        // Lines and the file's name are in the machine code where it tells them.
        std::string key =
            key_of("bitale-cubin-2\n" + identity + "\n" + nvrtc_options(architecture) + "\n" +
                   (options().debug_lines ? fmt::format("{} {}\n", name, units[u].number) + units[u].text
                                          : without_comments(units[u].text)));
        const std::optional<std::string> entry = cache && nvrtc ? cache->read(key) : std::nullopt;
        if (std::optional<CompiledModule> module = entry ? unpacked(*entry) : std::nullopt) {
            result.modules[u] = std::move(*module);
            continue;
        }
        missing.push_back(units[u]);
        places.push_back(u);
        keys.push_back(std::move(key));
    }
    if (const std::string words = missing.empty() ? "" : problem(); !words.empty())
        throw CompileError(fmt::format(
            "{} of the {} kernels of function {} are not in the cache for {}, and there is no NVRTC to "
            "compile them "
            "({}); install NVRTC, or bring along the cache folder of a machine that has run the function",
            kernels_of(missing), kernels_of(units), name, architecture, words));
    std::vector<CompiledModule> compiled = compile_units(missing, architecture, name);
    for (std::size_t m = 0; m < compiled.size(); ++m) {
        if (cache) cache->keep(keys[m], packed(compiled[m]), missing[m].text);
        result.modules[places[m]] = std::move(compiled[m]);
    }
    result.compiler_runs = static_cast<int>(missing.size());
    return result;
}

}  // namespace bitale::cuda
