// Maps of pixels whose colours lie interleaved: few neighbours that are computed in different ways, or from
// other colours of the same pixel.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Picture {
    Expr bytes, x, shade, matrix, offset;
    std::vector<Input> inputs() const { return {bytes, x, shade, matrix, offset}; }
};

Picture picture(std::int64_t height, std::int64_t width, std::int64_t colours, bool known) {
    const std::int64_t h = known ? height : -1, w = known ? width : -1;
    return {input(uint8, Dims{h, w, colours}, "bytes"), input(float32, Dims{h, w, colours}, "x"),
            input(float32, Dims{h, w}, "shade"), input(float32, Dims{colours, colours}, "matrix"),
            input(float32, Dims{colours}, "offset")};
}

Expr as_bytes(const Expr& x) { return cast(clip(x, 0, 255), uint8); }

// Each colour from all of them, with factors of its own.
Expr mixed(const Expr& x, int colours, bool bytes) {
    std::vector<Expr> mixes;
    for (int k = 0; k < colours; ++k) {
        Expr mix = cast(x[{colon, colon, k}], float32) * 0.5F;
        for (int j = 0; j < colours; ++j)
            if (j != k) mix = mix + cast(x[{colon, colon, j}], float32) * (0.25F * static_cast<float>(j + 1));
        mixes.push_back(bytes ? as_bytes(mix) : mix);
    }
    return stack(mixes, 2);
}

std::vector<Expr> maps_of(const Picture& p, int colours) {
    const Expr wide = cast(p.bytes, float32), shade = expand_dims(p.shade, 2);
    return {as_bytes(dot(wide, p.matrix) + p.offset),
            dot(p.x, p.matrix) + p.offset,
            mixed(p.bytes, colours, true),
            mixed(p.x, colours, false),
            flip(p.bytes, 2),
            flip(p.x, 2) + p.x,
            (wide / 255 - p.offset) / (abs(p.offset) + 1),
            exp(p.x - shade),
            softmax(p.x),
            where(shade > 0, p.x, p.offset),
            shade * p.offset,
            cast(p.bytes, int32) * 3 + cast(expand_dims(p.bytes[{colon, colon, 0}], 2), int32),
            p.x > shade,
            cast(p.x, float64) * cast(p.offset, float64),
            concatenate({p.x[{colon, colon, Slice{0, 1}}], exp(p.x)}, 2),
            p.x * cast(range(0, colours), float32)};
}

}  // namespace

TEST_CASE("maps of pixels whose colours are interleaved") {
    Random random(61);
    for (const int colours : {1, 2, 3, 4, 5})
        for (const auto& [height, width] :
             std::vector<std::pair<int, int>>{{1, 1}, {3, 40}, {5, 67}, {2, 300}})
            for (const bool known : {true, false}) {
                INFO(height << " x " << width << " x " << colours << (known ? ", known" : ", unknown"));
                const Picture p = picture(height, width, colours, known);
                const std::vector<Expr> all = maps_of(p, colours);
                const std::vector<Array> values{random_array(uint8, {height, width, colours}, random, 0, 255),
                                                random_array(float32, {height, width, colours}, random),
                                                random_array(float32, {height, width}, random),
                                                random_array(float32, {colours, colours}, random),
                                                random_array(float32, {colours}, random)};
                const Results got = function(p.inputs(), all, {.device = tested_device()}).call(values),
                              expected = function(p.inputs(), all, {.device = "reference"}).call(values);
                for (std::size_t k = 0; k < all.size(); ++k) {
                    INFO("map " << k);
                    CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}) == "");
                }
            }
}
