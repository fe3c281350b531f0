// Storages of the images.
#include "common/dataset.h"

#include <algorithm>

using bitale::Array;

int offset_of(const Settings& settings) { return settings.storage == "int8" ? 128 : 0; }

Array stored(const Array& pixels, const Settings& settings) {
    if (settings.storage == "uint8") return pixels;
    if (settings.storage == "float32") return pixels.as(bitale::float32);
    Array centred(bitale::int8, pixels.shape());
    const int offset = offset_of(settings);
    const auto from = pixels.view<std::uint8_t>();
    std::transform(from.begin(), from.end(), static_cast<std::int8_t*>(centred.mutable_data()),
                   [offset](std::uint8_t pixel) { return static_cast<std::int8_t>(pixel - offset); });
    return centred;
}

Array limited(const Array& all, const Settings& settings) {
    const std::int64_t count = all.shape()[0];
    return settings.limit > 0 && settings.limit < count ? all.rows(0, settings.limit) : all;
}
