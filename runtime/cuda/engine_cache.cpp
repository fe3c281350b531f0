#include "runtime/cuda/engine_cache.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <utility>

#include "runtime/cache/disk_cache.h"
#include "runtime/cache/sha256.h"
#include "runtime/cuda/search.h"

namespace bitale::cuda {

namespace {

std::string text_of(const ConvSizes& t) {
    return fmt::format("{}/{}", fmt::join(t.shape, ","), fmt::join(t.strides, ","));
}

std::string key_of(const std::string& identity, const ConvShape& s) {
    constexpr std::size_t digits = 32;
    const std::string text = fmt::format(
        "bitale-cudnn-1\n{}\n{} {} {} {} {} {} {} {} {} {} {}{}", identity, static_cast<int>(s.kind),
        text_of(s.image), text_of(s.filters), text_of(s.output), fmt::join(s.stride, ","),
        fmt::join(s.pad, ","), fmt::join(s.dilation, ","), s.flip, s.bias, s.relu, name_of(s.precision),
        s.groups == 1 ? "" : fmt::format(" {} groups", s.groups));
    return sha256(text).substr(0, digits);
}

// An entry: the engine's number, whether it is compiled at run time, and its knobs as TYPE=VALUE.
std::string record(const ConvEngine& engine) {
    std::string text = fmt::format("{} {}", engine.index, engine.runtime_compiled ? 1 : 0);
    for (const auto& [type, value] : engine.knobs) text += fmt::format(" {}={}", type, value);
    return text + "\n";
}

std::optional<ConvEngine> parse(const std::string& text) {
    std::istringstream words(text);
    ConvEngine engine;
    if (!(words >> engine.index >> engine.runtime_compiled)) return std::nullopt;
    int type = 0;
    char equals = 0;
    for (std::int64_t value = 0; words >> type >> equals >> value;) engine.knobs.emplace_back(type, value);
    return engine;
}

}  // namespace

std::optional<ConvEngine> EngineCache::find(const ConvShape& shape) const {
    const std::optional<DiskCache> cache = cache_in_use();
    const std::optional<std::string> text = cache ? cache->read(key_of(identity_, shape)) : std::nullopt;
    return text ? parse(*text) : std::nullopt;
}

void EngineCache::keep(const ConvShape& shape, const ConvEngine& engine) const {
    if (std::optional<DiskCache> cache = cache_in_use())
        cache->keep(key_of(identity_, shape), record(engine), record(engine));
}

std::string engine_identity(const CudnnTable& library, const RuntimeTable& runtime, int index) {
    Dl_info file{};
    dladdr(reinterpret_cast<void*>(library.cudnnGetVersion), &file);
    const auto properties = std::make_unique<DeviceProperties>();
    properties->name[0] = 0;
    runtime.cudaGetDeviceProperties(properties.get(), index);
    properties->name[sizeof properties->name - 1] = 0;
    int major = 0, minor = 0, processors = 0, driver = 0;
    runtime.cudaDeviceGetAttribute(&major, capability_major, index);
    runtime.cudaDeviceGetAttribute(&minor, capability_minor, index);
    runtime.cudaDeviceGetAttribute(&processors, multiprocessors, index);
    runtime.cudaDriverGetVersion(&driver);
    return fmt::format("{} {}\n{} {}.{} {} {}", library.cudnnGetVersion(),
                       file_identity(file.dli_fname ? file.dli_fname : ""), properties->name, major, minor,
                       processors, driver);
}

}  // namespace bitale::cuda
