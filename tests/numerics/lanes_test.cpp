// Maps whose reads cross the vector lanes, axes that run as one, and pooling of short rows, against the
// oracle.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("transposes of every element size, ragged ones too") {
    PackedCases cases(tested_device());
    Random random(5);
    for (const DType dtype : {float32, uint8, float64, int32, float16})
        for (const Dims& shape :
             {Dims{1, 1}, Dims{8, 8}, Dims{16, 16}, Dims{17, 9}, Dims{33, 70}, Dims{100, 37}}) {
            const Expr known = input(dtype, shape, "known"), x = matrix("x", dtype);
            const Array values = random_array(dtype, shape, random, 0, 100);
            const std::string name = fmt::format("{} {}", text_of(shape), name_of(dtype));
            cases.add("transpose of " + name, {known}, {values}, transpose(known));
            cases.add("transpose of unknown lengths " + name, {x}, {values}, transpose(x));
            cases.add("with itself " + name, {known}, {values},
                      dot(cast(known, float32), ones_like(cast(transpose(known), float32))));
        }
    cases.run();
}

TEST_CASE("transposes of what no cache holds") {
    // Whole lines of a cache, rows that begin within one, sides that leave tiles over.
    for (const DType dtype : {float32, int32})
        for (const Dims& shape :
             {Dims{2048, 2048}, Dims{2064, 2050}, Dims{1, 4100, 1025}, Dims{9, 520, 960}}) {
            Dims batched = shape;
            if (batched.size() == 2) batched.insert(batched.begin(), 1);
            const std::int64_t count = batched[0], height = batched[1], width = batched[2];
            Array values(dtype, shape);
            auto* from = static_cast<std::uint32_t*>(values.mutable_data());
            for (std::int64_t k = 0; k < values.size(); ++k)
                from[k] = static_cast<std::uint32_t>(k) % 8388593;
            const Expr x = input(dtype, shape, "x");
            Function f = function({x}, shape.size() == 2 ? transpose(x) : transpose(x, {0, 2, 1}),
                                  {.device = tested_device()});
            const Array got = f(values);
            const auto* to = static_cast<const std::uint32_t*>(got.data());
            std::int64_t wrong = 0;
            for (std::int64_t b = 0; b < count; ++b)
                for (std::int64_t i = 0; i < height; ++i)
                    for (std::int64_t j = 0; j < width; ++j)
                        wrong += to[(b * width + j) * height + i] != from[(b * height + i) * width + j];
            INFO(text_of(shape) << " " << name_of(dtype));
            CHECK(wrong == 0);
        }
}

TEST_CASE("maps of what no cache holds") {
    // One axis, rows that end within a line of a cache, rows longer and shorter than a block, every width.
    for (const DType dtype : {uint8, int16, float32, float64})
        for (const Dims& rows : {Dims{1, 1}, Dims{1037, 0}, Dims{5003, 0}, Dims{0, 517}}) {
            const std::int64_t total = (19 << 20) / bytes_of(dtype);
            const Dims shape = rows[1] == 1   ? Dims{total + 3}
                               : rows[1] == 0 ? Dims{total / rows[0] + 1, rows[0]}
                                              : Dims{total / rows[1] + 1, rows[1]};
            Array values(uint8, shape);
            auto* from = static_cast<std::uint8_t*>(values.mutable_data());
            for (std::int64_t k = 0; k < values.size(); ++k) from[k] = static_cast<std::uint8_t>(k * 7 % 113);
            const Expr x = input(uint8, shape, "x");
            const Expr plain = cast(x, dtype) + cast(5, dtype);
            Function f = function(
                {x}, shape.size() == 1 ? plain : plain - cast(max(x, {1}, {.keepdims = true}), dtype),
                {.device = tested_device()});
            const Array got = f(values);
            std::int64_t wrong = 0;
            const std::int64_t length = shape.back();
            for (std::int64_t first = 0; first < values.size(); first += length) {
                int most = 0;
                if (shape.size() > 1)
                    for (std::int64_t k = first; k < first + length; ++k) most = std::max<int>(most, from[k]);
                for (std::int64_t k = first; k < first + length; ++k) {
                    const int expected = from[k] + 5 - most;
                    wrong += got.at(k) != (dtype == uint8 ? static_cast<std::uint8_t>(expected) : expected);
                }
            }
            INFO(text_of(shape) << " " << name_of(dtype));
            CHECK(wrong == 0);
        }
}

TEST_CASE("axes in another order, with arithmetic on the way and rows chosen at run time") {
    PackedCases cases(tested_device());
    Random random(6);
    for (const Dims& shape : {Dims{3, 10, 14, 14}, Dims{2, 16, 5, 9}, Dims{1, 9, 1, 33}, Dims{0, 8, 8, 8}}) {
        const Expr x = input(float32, shape, "x"), b = input(float32, Dims{shape[1]}, "b"),
                   last = input(float32, Dims{shape[0], shape[2], shape[3], shape[1]}, "last");
        const Array values = random_array(float32, shape, random, -2, 2),
                    bias = random_array(float32, Dims{shape[1]}, random, -1, 1),
                    other = random_array(float32, {shape[0], shape[2], shape[3], shape[1]}, random, -2, 2);
        const std::string name = text_of(shape);
        cases.add("channels last " + name, {x}, {values}, relu(transpose(x, {0, 2, 3, 1})));
        cases.add("channels first " + name, {last}, {other}, exp(transpose(last, {0, 3, 1, 2})));
        cases.add("both " + name, {x, last}, {values, other}, x * 2.0 + transpose(last, {0, 3, 1, 2}));
        cases.add("bias " + name, {x, b}, {values, bias}, relu(x + channel(b)));
        cases.add("reversed " + name, {x}, {values}, transpose(x, {3, 2, 1, 0}));
        cases.add("a slice " + name, {x}, {values}, transpose(x, {0, 1, 3, 2})[{colon, Slice{1, 7}}]);
    }
    const Expr rows = lvector("rows"), table = input(float32, {20, 12, 18}, "table");
    cases.add("gathered", {rows, table},
              {Array(std::vector<std::int64_t>{3, 19, 0}), random_array(float32, {20, 12, 18}, random)},
              transpose(table[rows], {0, 2, 1}));
    cases.run();
}

TEST_CASE("axes in another order, of rows that are not everywhere") {
    PackedCases cases(tested_device());
    Random random(9);
    for (const Dims& shape : {Dims{3, 8, 31, 9}, Dims{2, 16, 33, 8}, Dims{4, 5, 7, 11}}) {
        const std::int64_t n = shape[0];
        const Dims rows{n + 3, shape[3], shape[1], shape[2]};
        const Expr last = input(float32, shape, "last"), x = input(float32, rows, "x");
        const std::vector<Expr> inputs{last, x};
        const std::vector<Array> values = {random_array(float32, shape, random, -2, 2),
                                           random_array(float32, rows, random, -2, 2)};
        const Expr first = transpose(last, {0, 3, 1, 2});
        const auto some = [&](int before, double outside) {
            return pad(first, {{before, 3 - before}, {0, 0}, {0, 0}, {0, 0}}, outside);
        };
        const std::string name = text_of(shape);
        cases.add("rows before and after " + name, inputs, values, x + some(1, 0));
        cases.add("other numbers outside " + name, inputs, values, x * some(0, 3) - some(0, -1));
        cases.add("other rows " + name, inputs, values, x + some(3, 0) * some(1, 2));
        cases.add("joined " + name, inputs, values, tanh(concatenate({first * 0.5, x}))[Slice{1, n + 2}]);
        cases.add("gradient " + name, inputs, values, grad(weighted(x * some(1, 2)), last));
    }
    cases.run();
}

TEST_CASE("pairs of rows that share elements, of rows chosen at run time") {
    PackedCases cases(tested_device());
    Random random(8);
    for (const DType dtype : {float32, float64})
        for (const std::int64_t half_of : {1, 8, 9, 40}) {
            const std::int64_t rows = 2 * half_of;
            const Expr x = input(dtype, {rows, 2}, "x"), order = lvector("order");
            const Array values = random_array(dtype, {rows, 2}, random, -2, 2),
                        numbers = random_array(int64, {rows}, random, 0, static_cast<double>(rows - 1));
            const Expr chosen = x * gather(x, order);
            const std::string name = fmt::format("{} of {} {}", "pairs", rows, name_of(dtype));
            cases.add("both of a row " + name, {x, order}, {values, numbers},
                      transpose(reshape(chosen, {2, rows})));
            cases.add("beside others " + name, {x, order}, {values, numbers},
                      chosen + transpose(reshape(chosen, {2, rows})));
            cases.add("gradient " + name, {x, order}, {values, numbers},
                      grad(weighted(transpose(reshape(chosen, {2, rows}))), x));
        }
    cases.run();
}

TEST_CASE("pooling of short rows: ties, infinities and NaN, forward and backward") {
    PackedCases cases(tested_device());
    Random random(7);
    struct Shape2 {
        Dims shape;
        int window, stride, pad;
    };
    const std::vector<Shape2> shapes = {
        {{2, 3, 28, 28}, 2, 2, 0}, {{2, 2, 28, 28}, 4, 4, 0}, {{1, 2, 28, 28}, 4, 2, 0},
        {{2, 1, 29, 29}, 3, 2, 0}, {{1, 3, 24, 24}, 2, 2, 0}, {{1, 1, 9, 11}, 2, 2, 0},
        {{2, 2, 15, 34}, 2, 2, 1}, {{1, 2, 7, 130}, 2, 2, 0}, {{1, 1, 4, 4}, 4, 4, 0}};
    for (const Shape2& s : shapes) {
        Array values = random_array(float32, s.shape, random, -3, 3);
        auto* x = static_cast<float*>(values.mutable_data());
        for (std::int64_t i = 0; i < values.size(); ++i) {
            x[i] = std::round(x[i]);  // many ties
            if (i % 53 == 0) x[i] = -std::numeric_limits<float>::infinity();
            if (i % 97 == 0) x[i] = std::numeric_limits<float>::quiet_NaN();
        }
        if (s.shape[2] == 9)
            for (std::int64_t i = 0; i < values.size(); ++i) x[i] = -std::numeric_limits<float>::infinity();
        const Expr known = input(float32, s.shape, "known"), any = tensor4("any");
        const PoolOptions options{.stride = Size2(s.stride), .pad = Size2(s.pad)};
        const std::string name = fmt::format("{} {}/{}", text_of(s.shape), s.window, s.stride);
        for (const Expr& of : {known, any}) {
            const Expr y = max_pool(of, s.window, options);
            cases.add("pool " + name, {of}, {values}, y);
            // The gradient of a weighted sum goes to the winners alone.
            cases.add("winners " + name, {of}, {values}, grad(weighted(y), of));
        }
    }
    cases.run();
}
