// Storages of the images.
#include "common/dataset.h"

#include <optional>

using bitale::Array;

namespace {

std::optional<bitale::StorageType> few_bits(const Settings& settings) {
    for (const bitale::StorageType type : {bitale::uint1, bitale::uint2, bitale::uint4})
        if (settings.storage == bitale::name_of(type)) return type;
    return std::nullopt;
}

}  // namespace

int offset_of(const Settings& settings) { return settings.storage == "int8" ? 128 : 0; }

Array stored(const Array& pixels, const Settings& settings) {
    if (settings.storage == "uint8" || few_bits(settings)) return pixels;
    if (settings.storage == "float32") return pixels.as(bitale::float32);
    return (pixels.as(bitale::int16) - offset_of(settings)).as(bitale::int8);
}

StoredImages on_device(const Array& images, const std::string& name, const Settings& settings) {
    if (const std::optional<bitale::StorageType> type = few_bits(settings)) {
        const bitale::PackedShared levels =
            bitale::shared(images, {.storage = *type, .scale = 255.0F / type->most(), .name = name});
        return {.whole = {}, .few = levels, .bytes = levels.bytes()};
    }
    return {.whole = bitale::shared(images, name), .few = {}, .bytes = images.bytes()};
}

Array limited(const Array& all, const Settings& settings) {
    return settings.limit > 0 ? all.slice(0, 0, settings.limit) : all;
}
