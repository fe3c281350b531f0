// Variables of few bits an element: values, bytes and messages, and what kernels compute from them on every
// device, against loops in float64.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

const std::vector<StorageType> types{uint1, uint2, uint4, int4, uint8, int8};

std::vector<std::string> devices() { return {tested_device(), "emulator", "reference"}; }

// Numbers that the type holds, its least and its greatest among them, in the dtype of its values.
Array numbers(StorageType type, const Dims& shape, std::uint64_t seed) {
    Array a(int16, shape);
    auto* to = static_cast<std::int16_t*>(a.mutable_data());
    const auto count = static_cast<std::uint64_t>(type.most() - type.least() + 1);
    for (std::int64_t i = 0; i < a.size(); ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t level = i == 0 ? 0 : i == 1 ? count - 1 : (seed >> 33) % count;
        to[i] = static_cast<std::int16_t>(type.least() + static_cast<int>(level));
    }
    return a.as(type.is_signed() ? int8 : uint8);
}

bool close(double got, double expected, double magnitude) {
    return std::abs(got - expected) <= 4e-6 * (std::abs(expected) + magnitude);
}

}  // namespace

TEST_CASE("values of few bits come back as they went in") {
    for (const StorageType type : types)
        for (const Dims& shape : {Dims{}, Dims{1}, Dims{7}, Dims{16}, Dims{1000}, Dims{3, 1}, Dims{3, 5},
                                  Dims{4, 28}, Dims{2, 3, 5, 7}, Dims{5, 1, 14, 28}, Dims{2, 8, 6, 6},
                                  Dims{1, 1, 1, 9}, Dims{0}, Dims{4, 0}, Dims{0, 8}}) {
            INFO(name_of(type) << " " << text_of(shape));
            const Array value = numbers(type, shape, 1), other = numbers(type, shape, 2);
            PackedShared x = shared(value, {.storage = type, .name = "x"});
            CHECK(same(x.get_value(), value));
            CHECK(x.shape() == shape);
            CHECK(x.dtype() == value.dtype());
            CHECK(Expr(x).dtype() == value.dtype());
            CHECK(Expr(x).shape_text() == text_of(shape));
            CHECK(x.bytes() == x.packed().get_value().bytes());
            x.set_value(other.as(int64));
            CHECK(same(x.get_value(), other));
            // No better packing leaves the rows of the first axis whole.
            const std::int64_t rows = shape.size() > 1 ? shape[0] : 1;
            const std::int64_t of_row = rows ? count_of(shape) / std::max<std::int64_t>(rows, 1) : 0;
            CHECK(x.bytes() >= rows * ((of_row * type.bits() + 7) / 8));
            if (of_row * type.bits() % 8 == 0 && (of_row & (of_row - 1)) == 0)
                CHECK(x.bytes() == rows * of_row * type.bits() / 8);
        }
}

TEST_CASE("MNIST's images take a half, a quarter and an eighth of their bytes") {
    const Array images(uint8, {6, 1, 28, 28});
    CHECK(shared(images, {.storage = uint4}).layout() == "uint4 [6, 1, 28, 28] in planes [1, 1, 2, 1]");
    CHECK(shared(images, {.storage = uint4}).bytes() == 6 * 392);
    CHECK(shared(images, {.storage = uint2}).bytes() == 6 * 196);
    CHECK(shared(images, {.storage = uint1}).layout() == "uint1 [6, 1, 28, 28] in planes [1, 1, 4, 2]");
    CHECK(shared(images, {.storage = uint1}).bytes() == 6 * 98);
    CHECK(shared(images.reshaped({6, 784}), {.storage = uint1}).bytes() == 6 * 98);
    CHECK(shared(images, {.storage = uint8}).bytes() == 6 * 784);
}

TEST_CASE("the bits of a byte are where the header says") {
    const Array six(std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 6});
    CHECK(same(shared(six, {.storage = uint4}).packed().get_value(),
               Array(std::vector<std::uint8_t>{0x41, 0x52, 0x63, 0xa7, 0xb8, 0xc9}, {2, 3})));
    // Negative numbers as two's complements; the last byte of a row has one element.
    const Array five(std::vector<std::int8_t>{-8, -1, 0, 7, 1}, {1, 5});
    CHECK(same(shared(five, {.storage = int4}).packed().get_value(),
               Array(std::vector<std::uint8_t>{0x78, 0x1f, 0x00}, {1, 3})));
    // Four planes of rows and two of columns: plane 2 * (row / 1) + column / 2.
    std::vector<std::uint8_t> bits(16, 0);
    bits[1 * 4 + 3] = 1;
    bits[3 * 4 + 1] = 1;
    const PackedShared x = shared(Array(bits, {1, 1, 4, 4}), {.storage = uint1});
    CHECK(x.layout() == "uint1 [1, 1, 4, 4] in planes [1, 1, 4, 2]");
    CHECK(same(x.packed().get_value(), Array(std::vector<std::uint8_t>{0, 1 << 3 | 1 << 6}, {1, 1, 1, 2})));
}

TEST_CASE("a scale and an offset give the nearest number, for all or for each channel") {
    const Array value(std::vector<float>{0, 0.24F, 0.26F, 0.75F, 7.5F, 7.7F, 3.25F, -0.2F}, {2, 4});
    PackedShared x = shared(value, {.storage = uint4, .scale = 0.5, .name = "x"});
    CHECK(same(x.get_value(), Array(std::vector<float>{0, 0, 0.5F, 1, 7.5F, 7.5F, 3, 0}, {2, 4})));
    CHECK(x.dtype() == float32);
    CHECK(x.scale().name() == "x.scale");
    CHECK(!x.offset().state());

    const Array levels(std::vector<std::uint8_t>{0, 85, 128, 255}, {4, 1});
    CHECK(same(shared(levels, {.storage = uint2, .scale = 85}).get_value(),
               Array(std::vector<float>{0, 85, 170, 255}, {4, 1})));
    CHECK(same(shared(levels, {.storage = int8, .offset = 128}).get_value(), levels.as(float32)));

    const Array scales(std::vector<float>{0.5F, 2}, {2, 1}), offsets(std::vector<float>{-1, 10}, {2, 1});
    const Array two(std::vector<double>{-1, 0.3, 6.5, 10, 13, 40.5}, {1, 2, 3});
    CHECK(same(shared(two, {.storage = uint4, .scale = scales, .offset = offsets}).get_value(),
               Array(std::vector<float>{-1, 0.5F, 6.5F, 10, 14, 40}, {1, 2, 3})));
}

TEST_CASE("kernels read elements of few bits in place, whatever the index") {
    for (const std::string& device : devices()) {
        const Expr i = lscalar("i"), chosen = lvector("chosen");
        std::vector<Expr> outputs;
        std::vector<Array> values;
        const Dims shape{9, 3, 6, 5};
        for (const StorageType type : types) {
            values.push_back(numbers(type, shape, 3));
            const Expr x = shared(values.back(), {.storage = type, .name = "x"});
            const Expr y = cast(x, float32);
            for (const Expr& e : {x, y[chosen] * 2 - 1, sum(y[Slice{i * 4, (i + 1) * 4}], {1, 3}),
                                  x[{colon, colon, Slice{1, 6, 2}}], flip(transpose(x, {0, 2, 3, 1}), 2),
                                  max(x, {2, 3}), flatten(y, 2)[{colon, Slice{7, 71}}]})
                outputs.push_back(e);
        }
        Function f = function({i, chosen}, outputs, {.name = "reads", .device = device});
        for (const std::int64_t batch : {0, 2}) {
            const std::vector<std::int64_t> rows{8, 0, 3, 3};
            const Results got = f(batch, Array(rows));
            const std::int64_t first = batch * 4, count = std::min<std::int64_t>(4, 9 - first);
            for (std::size_t t = 0; t < types.size(); ++t) {
                INFO(device << " " << name_of(types[t]));
                const auto at = [&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
                    return values[t].at(((n * 3 + c) * 6 + y) * 5 + x);
                };
                const auto result = [&](std::size_t e) { return got[t * 7 + e]; };
                const Array gathered = result(1), sums = result(2), part = result(3), turned = result(4),
                            largest = result(5), flat = result(6);
                CHECK(same(result(0), values[t]));
                REQUIRE(gathered.shape() == Dims{4, 3, 6, 5});
                REQUIRE(sums.shape() == Dims{count, 6});
                REQUIRE(part.shape() == Dims{9, 3, 3, 5});
                REQUIRE(turned.shape() == Dims{9, 6, 5, 3});
                REQUIRE(flat.shape() == Dims{9, 64});
                int wrong = 0;
                for (std::int64_t n = 0; n < 9; ++n)
                    for (std::int64_t c = 0; c < 3; ++c) {
                        double most = -1000;
                        for (std::int64_t y = 0; y < 6; ++y)
                            for (std::int64_t x = 0; x < 5; ++x) {
                                most = std::max(most, at(n, c, y, x));
                                wrong += turned.at(((n * 6 + y) * 5 + 4 - x) * 3 + c) != at(n, c, y, x);
                                if (y % 2 == 1)
                                    wrong += part.at(((n * 3 + c) * 3 + y / 2) * 5 + x) != at(n, c, y, x);
                                const std::int64_t k = (c * 6 + y) * 5 + x;
                                if (k >= 7 && k < 71) wrong += flat.at(n * 64 + k - 7) != at(n, c, y, x);
                                if (n < 4)
                                    wrong += gathered.at(((n * 3 + c) * 6 + y) * 5 + x) !=
                                             2 * at(rows[static_cast<std::size_t>(n)], c, y, x) - 1;
                            }
                        wrong += largest.at(n * 3 + c) != most;
                    }
                for (std::int64_t n = 0; n < count; ++n)
                    for (std::int64_t y = 0; y < 6; ++y) {
                        double total = 0;
                        for (std::int64_t c = 0; c < 3; ++c)
                            for (std::int64_t x = 0; x < 5; ++x) total += at(first + n, c, y, x);
                        wrong += sums.at(n * 6 + y) != total;
                    }
                CHECK(wrong == 0);
            }
        }
    }
}

TEST_CASE("products and convolutions of quantised rows, with a scale for each channel") {
    constexpr std::int64_t n = 7, c = 3, h = 8, w = 9, filters = 4, units = 5, k = c * h * w;
    const Array filter = uniform_values({filters, c, 3, 3}, -1, 1, 5),
                matrix = uniform_values({k, units}, -1, 1, 6);
    const Array scales(std::vector<float>{0.25F, 3, 0.01F}, {c, 1, 1}),
        offsets(std::vector<float>{1, -2, 0.5F}, {c, 1, 1});
    const std::vector<std::int64_t> rows{6, 2, 2, 0, 5};
    const auto count = static_cast<std::int64_t>(rows.size());
    for (const std::string& device : devices()) {
        const Expr chosen = lvector("chosen");
        const Shared weights = shared(filter, "weights"), dense = shared(matrix, "dense");
        std::vector<Expr> outputs;
        std::vector<Array> values;
        for (const StorageType type : types) {
            const Array codes = numbers(type, {n, c, h, w}, 9);
            PackedShared x = shared(Array(float32, {n, c, h, w}) + offsets,
                                    {.storage = type, .scale = scales, .offset = offsets, .name = "x"});
            x.set_value(codes.as(float32) * scales + offsets);
            values.push_back(x.get_value());
            CHECK(same(values.back(), codes.as(float32) * scales + offsets));
            const Expr batch = x[chosen];
            outputs.insert(outputs.end(),
                           {batch, conv2d(batch, weights, {.border_mode = half, .filter_flip = false}),
                            dot(flatten(batch, 2), dense), mean(batch, {0, 2, 3})});
        }
        Function f = function({chosen}, outputs, {.name = "quantised", .device = device});
        const Results got = f(Array(rows));
        for (std::size_t t = 0; t < types.size(); ++t) {
            INFO(device << " " << name_of(types[t]));
            const auto at = [&](std::int64_t b, std::int64_t ch, std::int64_t y, std::int64_t x) -> double {
                if (y < 0 || y >= h || x < 0 || x >= w) return 0;
                return values[t].at(((rows[static_cast<std::size_t>(b)] * c + ch) * h + y) * w + x);
            };
            const Array images = got[t * 4], maps = got[t * 4 + 1], products = got[t * 4 + 2],
                        means = got[t * 4 + 3];
            REQUIRE(maps.shape() == Dims{count, filters, h, w});
            REQUIRE(products.shape() == Dims{count, units});
            int wrong = 0;
            for (std::int64_t b = 0; b < count; ++b)
                for (std::int64_t o = 0; o < filters; ++o)
                    for (std::int64_t y = 0; y < h; ++y)
                        for (std::int64_t x = 0; x < w; ++x) {
                            double total = 0, size = 0;
                            for (std::int64_t ch = 0; ch < c; ++ch)
                                for (std::int64_t v = 0; v < 3; ++v)
                                    for (std::int64_t u = 0; u < 3; ++u) {
                                        const double term = at(b, ch, y + v - 1, x + u - 1) *
                                                            filter.at(((o * c + ch) * 3 + v) * 3 + u);
                                        total += term;
                                        size += std::abs(term);
                                    }
                            wrong += !close(maps.at(((b * filters + o) * h + y) * w + x), total, size);
                        }
            for (std::int64_t b = 0; b < count; ++b)
                for (std::int64_t o = 0; o < units; ++o) {
                    double total = 0, size = 0;
                    for (std::int64_t j = 0; j < k; ++j) {
                        const double term = at(b, j / (h * w), j / w % h, j % w) * matrix.at(j * units + o);
                        wrong += o == 0 && images.at(b * k + j) != at(b, j / (h * w), j / w % h, j % w);
                        total += term;
                        size += std::abs(term);
                    }
                    wrong += !close(products.at(b * units + o), total, size);
                }
            for (std::int64_t ch = 0; ch < c; ++ch) {
                double total = 0, size = 0;
                for (std::int64_t b = 0; b < count; ++b)
                    for (std::int64_t y = 0; y < h; ++y)
                        for (std::int64_t x = 0; x < w; ++x) {
                            total += at(b, ch, y, x);
                            size += std::abs(at(b, ch, y, x));
                        }
                const double points = count * h * w;
                wrong += !close(means.at(ch), total / points, size / points);
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("a convolution of rows that are looked up reads a copy of them with its border") {
    constexpr std::int64_t n = 9, c = 2, h = 6, w = 7, filters = 16;
    const Array images = uniform_values({n, c, h, w}, -1, 1, 1),
                filter = uniform_values({filters, c, 3, 3}, -1, 1, 2);
    const std::vector<std::int64_t> rows{8, 1, 1, 4};
    for (const std::string& device : devices()) {
        const Expr chosen = lvector("chosen");
        const Expr y = conv2d(shared(images, "images")[chosen], shared(filter, "filter"),
                              {.border_mode = half, .filter_flip = false});
        Function f = function({chosen}, y, {.device = device});
        const Array got = f(Array(rows));
        if (device == std::string("cpu"))
            CHECK_THAT(f.report(Detail::complete), ContainsSubstring("staged gather"));
        int wrong = 0;
        for (std::size_t b = 0; b < rows.size(); ++b)
            for (std::int64_t o = 0; o < filters; ++o)
                for (std::int64_t i = 0; i < h; ++i)
                    for (std::int64_t j = 0; j < w; ++j) {
                        double total = 0;
                        for (std::int64_t k = 0; k < c * 9; ++k) {
                            const std::int64_t v = i + k / 3 % 3 - 1, u = j + k % 3 - 1;
                            if (v < 0 || v >= h || u < 0 || u >= w) continue;
                            total +=
                                images.at(((rows[b] * c + k / 9) * h + v) * w + u) * filter.at(o * c * 9 + k);
                        }
                        const auto at = ((static_cast<std::int64_t>(b) * filters + o) * h + i) * w + j;
                        wrong += !close(got.at(at), total, 1);
                    }
        INFO(device);
        CHECK(wrong == 0);
    }
}

TEST_CASE("training on packed images is training on the values that they stand for") {
    constexpr std::int64_t n = 20;
    const Array codes = numbers(uint4, {n, 2, 6, 6}, 11);
    std::vector<std::int32_t> classes(n);
    for (std::size_t j = 0; j < classes.size(); ++j) classes[j] = static_cast<std::int32_t>(j % 3);
    for (const std::string& device : devices()) {
        const auto losses = [&](bool packed, std::int64_t micro_batch) {
            const Expr i = lscalar("i");
            const Expr x = input(float32, {-1, 2, 6, 6}, "x"), y = ivector("y");
            const Shared order = shared(permutation(n, 1), "order"),
                         labels = shared(Array(classes), "labels");
            const Expr rows = order[Slice{i * 8, (i + 1) * 8}];
            PackedShared few = shared(codes, {.storage = uint4, .scale = 17, .name = "images"});
            few.set_value(codes.as(float32) * 17);
            const Shared whole = shared(few.get_value(), "images");
            const Shared w = shared(glorot_uniform({3, 2, 3, 3}, 2), "w"),
                         v = shared(glorot_uniform({12, 3}, 3), "v");
            const Expr h = max_pool(conv2d((x - mean(x)) / 128, w), 2);
            const Expr loss = mean(softmax_crossentropy(dot(flatten(h, 2), v), y));
            Function step = function({i}, {loss},
                                     {.updates = sgd(loss, {w, v}, 0.1),
                                      .givens = {{x, packed ? few[rows] : whole[rows]}, {y, labels[rows]}},
                                      .device = device,
                                      .micro_batch = micro_batch});
            std::vector<double> all = step.loop(0, 2)[0].to_vector<double>();
            all.push_back(step(std::int64_t{2}));  // a partial batch
            return all;
        };
        INFO(device);
        const std::vector<double> expected = losses(false, 0);
        for (const std::int64_t micro_batch : {0, 3}) {
            const std::vector<double> got = losses(true, micro_batch);
            for (std::size_t j = 0; j < got.size(); ++j) CHECK(got[j] == Approx(expected[j]).epsilon(2e-5));
        }
    }
}

TEST_CASE("no copy of packed elements is stored, wide or narrow") {
    for (const StorageType type : types) {
        INFO(name_of(type));
        const PackedShared x = shared(numbers(type, {64, 1, 28, 28}, 1), {.storage = type, .name = "images"});
        const Shared w = shared(glorot_uniform({4, 1, 3, 3}, 1), "w"),
                     v = shared(glorot_uniform({784, 10}, 2), "v");
        const Expr i = lscalar("i");
        const Expr batch = cast(x[Slice{i * 32, (i + 1) * 32}], float32),
                   pixels = (batch - mean(batch)) / 128;
        Function f = function({i}, {sum(max_pool(conv2d(pixels, w), 2), {2, 3}), dot(flatten(pixels, 2), v)},
                              {.device = "cpu"});
        f(std::int64_t{1});
        for (const MemoryPlan::Buffer& b : f.memory_plan().buffers) {
            INFO(b.name << " " << text_of(b.shape) << " " << b.reason);
            const bool own = b.kind == MemoryPlan::Kind::shared || b.kind == MemoryPlan::Kind::workspace;
            CHECK((own || b.bytes < 32 * 784));
        }
    }
}

TEST_CASE("a packed variable can be replaced between calls, and its scale differentiated") {
    PackedShared x =
        shared(Array(std::vector<std::uint8_t>{1, 2, 3}), {.storage = uint2, .scale = 2, .name = "x"});
    Function f = function({}, {sum(x), grad(sum(Expr(x) * Expr(x)), Expr(x.scale()))});
    CHECK(f()[0].at(0) == 6);  // 0, 2 and 4: halves become the even number
    x.set_value(Array(std::vector<int>{6, 0, 2}));
    const Results r = f();
    CHECK(r[0].at(0) == 8);
    CHECK(r[1].at(0) == Approx(2 * (3 * 6 + 1 * 2)));
    Shared scale = x.scale();
    scale.set_value(Array(0.5F));
    CHECK(f()[0].at(0) == 2);
    CHECK(same(x.get_value(), Array(std::vector<float>{1.5F, 0, 0.5F})));
}

TEST_CASE("what is out of range names the value, its place and a cure, and changes nothing") {
    PackedShared x = shared(Array(uint8, {2, 3}), {.storage = uint4, .name = "images"});
    const Array value(std::vector<std::int32_t>{0, 15, 3, 1, 16, -2}, {2, 3});
    const std::string wide = message_of<IndexError>([&] { x.set_value(value); });
    CHECK_THAT(wide, ContainsSubstring("packed_test.cpp:") &&
                         ContainsSubstring(
                             "the packed variable \"images\", uint4 [2, 3], made at packed_test.cpp:") &&
                         ContainsSubstring("the value 16 at [1, 1] is out of range: uint4 holds 0 to 15; "));
    CHECK_THAT(wide, ContainsSubstring("{.scale = 1.2, .offset = -2} holds all of this value"));
    CHECK(same(x.get_value(), Array(uint8, {2, 3})));
    // The cure is one.
    CHECK_NOTHROW(shared(value, {.storage = uint4, .scale = 1.2, .offset = -2}));

    CHECK_THAT(message_of<IndexError>([&] { shared(value, {.storage = int4}); }),
               ContainsSubstring("the value 15 at [0, 1] is out of range: int4 holds -8 to 7"));
    const Array floats(std::vector<float>{0, 1, std::numeric_limits<float>::quiet_NaN()});
    CHECK_THAT(
        message_of<IndexError>([&] { shared(floats, {.storage = uint1, .scale = 1}); }),
        ContainsSubstring("the value nan at [2] is out of range: uint1 of scale 1 and offset 0 holds 0 to 1; "
                          "no scale holds NaN or infinities; replace them before"));
    CHECK_THAT(
        message_of<TypeError>([&] { shared(floats, {.storage = uint4}); }),
        ContainsSubstring("it holds integers, the value is float32; give a scale, as in {.storage = uint4, "
                          ".scale = 0.1}, or convert it, as in value.as(uint8)"));
    CHECK_THAT(
        message_of<ShapeError>([&] {
            x.set_value(Array(uint8, {3, 2}));
        }),
        ContainsSubstring("the value has the shape [3, 2]; a shape is fixed when the variable is created"));
    CHECK_THAT(
        message_of<TypeError>([&] { shared(value, {.storage = float32}); }),
        ContainsSubstring("elements are stored as uint1, uint2, uint4, int4, uint8 or int8, not as float32"));
    CHECK_THAT(message_of<IndexError>([&] { shared(value, {.storage = uint4, .scale = 0}); }),
               ContainsSubstring("the scale is 0 at element 0; it must be finite and not 0"));
    CHECK_THAT(message_of<ShapeError>([&] {
                   shared(value, {.storage = uint4, .scale = Array{1.F, 2.F}});
               }),
               ContainsSubstring("the scale of shape [2] does not broadcast to it"));
    CHECK_THAT(message_of<GraphError>([&] { PackedShared().get_value(); }),
               ContainsSubstring("an empty packed variable is used"));
    CHECK_THAT(message_of<TypeError>([&] { grad(sum(cast(x, float32)), Expr(x)); }),
               ContainsSubstring("there is no gradient with respect to"));
}
