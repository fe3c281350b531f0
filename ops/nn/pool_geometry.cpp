#include "ops/nn/pool_geometry.h"

namespace bitale {

PoolGeometry PoolGeometry::of(const Attributes& attributes) {
    const auto pair = [&](const char* name) {
        const auto& list = attributes.get<std::vector<std::int64_t>>(name);
        BITALE_CHECK(list.size() == 2, std::string("a pooling's ") + name + " has a height and a width");
        return std::array<std::int64_t, 2>{list[0], list[1]};
    };
    return {pair("window"), pair("stride"), pair("pad")};
}

Attributes PoolGeometry::attributes() const {
    const auto list = [](const std::array<std::int64_t, 2>& pair) {
        return std::vector<std::int64_t>(pair.begin(), pair.end());
    };
    return {{"window", list(window)}, {"stride", list(stride)}, {"pad", list(pad)}};
}

Int PoolGeometry::output_length(int axis, const Int& input) const {
    const auto i = static_cast<std::size_t>(axis);
    return floordiv(input + 2 * pad[i] - window[i], stride[i]) + 1;
}

}  // namespace bitale
