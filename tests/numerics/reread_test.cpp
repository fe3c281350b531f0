// Values that a task reads in its own row, with padding above all, and in other rows of the same kernel:
// copies in scratch hold no more than the task's rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

const ConvOptions same_size{.border_mode = half};
const Dims images{4, 3, 6, 5}, filters{3, 3, 3, 3}, matrix_shape{6, 7};

// What a form is of: images as they are stored and as floats, filters, labels of images.
struct Operands {
    Expr x, w, v, order;
};
using Form = std::function<Expr(const Operands&)>;

Expr cost_of(const Expr& y) { return sum(sqr(y) * 0.125 + y * cos(y)); }

const std::vector<std::pair<std::string, Form>>& forms() {
    static const std::vector<std::pair<std::string, Form>> list = {
        {"flipped", [](const Operands& o) { return conv2d(o.x, o.w, same_size) + flip(o.x, 0); }},
        {"one row", [](const Operands& o) { return conv2d(o.x, o.w, same_size) + o.x[1]; }},
        {"permuted", [](const Operands& o) { return conv2d(o.x, o.w, same_size) + gather(o.x, o.order); }},
        {"turned",
         [](const Operands& o) {
             return conv2d(o.x, o.w, same_size) +
                    reshape(transpose(o.x, {1, 0, 2, 3}), {images.begin(), images.end()});
         }},
        {"two convolutions",
         [](const Operands& o) {
             return conv2d(o.x, o.w, same_size) + conv2d(flip(o.x, 0), o.v, same_size);
         }},
        {"relu and pooling",
         [](const Operands& o) {
             return max_pool(relu(conv2d(o.x, o.w, same_size) + flip(o.x, 0)), Size2(2, 2));
         }},
        {"a border of another value",
         [](const Operands& o) {
             return conv2d(o.x, o.w, same_size) + conv2d(pad(o.x, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}, 2), o.v) +
                    max_pool(o.x, Size2(3, 3), {.stride = Size2(1, 1), .pad = Size2(1, 1)});
         }},
        {"padded",
         [](const Operands& o) {
             return conv2d(pad(o.x, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}), o.w) + flip(o.x, 0);
         }},
        {"computed",
         [](const Operands& o) {
             const Expr h = tanh(o.x * 0.5) * 2;
             return conv2d(h, o.w, same_size) + flip(h, 0);
         }},
        {"of a hidden layer",
         [](const Operands& o) {
             const Expr h = relu(conv2d(o.x, o.v, same_size));
             return conv2d(h, o.v, same_size) - gather(h, o.order);
         }},
        {"loss of a hidden layer",
         [](const Operands& o) {
             const Expr h = relu(conv2d(o.x, o.v, same_size));
             return mean(sqr(conv2d(h, o.v, same_size) - gather(h, o.order)));
         }},
        {"more images than there are",
         [](const Operands& o) {
             const Expr more = pad(o.x, {{0, 3}, {0, 0}, {1, 1}, {1, 1}});
             return conv2d(more, o.w);
         }},
        {"images of two",
         [](const Operands& o) {
             return conv2d(concatenate({o.x, o.x * 2 + 1}), o.w, same_size);
         }},
        {"itself", [](const Operands& o) { return conv2d(o.x, o.x, same_size); }},
        {"filters of the image",
         [](const Operands& o) {
             return conv2d(o.x, o.x[{Slice{1, 3}, colon, Slice{1, 4}, Slice{0, 3}}], same_size);
         }},
    };
    return list;
}

// Of matrices: rows are read with a border of columns, and elsewhere.
const std::vector<std::pair<std::string, Form>>& matrix_forms() {
    static const std::vector<std::pair<std::string, Form>> list = {
        {"flipped",
         [](const Operands& o) {
             return dot(pad(o.x, {{0, 0}, {1, 1}}), o.w) + flip(o.x, 0);
         }},
        {"one row",
         [](const Operands& o) {
             return dot(pad(o.x, {{0, 0}, {1, 1}}), o.w) + o.x[1];
         }},
        {"permuted",
         [](const Operands& o) {
             return dot(pad(o.x, {{0, 0}, {1, 1}}), o.w) + gather(o.x, o.order);
         }},
        {"more rows",
         [](const Operands& o) {
             return dot(pad(o.x, {{0, 3}, {1, 1}}), o.w);
         }},
        {"rows of two",
         [](const Operands& o) {
             return dot(pad(concatenate({o.x, flip(o.x, 1)}), {{0, 0}, {1, 1}}), o.w);
         }},
        {"with itself", [](const Operands& o) { return dot(o.x, transpose(o.x)); }},
        {"padded with itself",
         [](const Operands& o) {
             return dot(pad(o.x, {{0, 0}, {1, 1}}), transpose(pad(o.x, {{0, 0}, {1, 1}})));
         }},
        {"with itself, computed",
         [](const Operands& o) {
             const Expr h = sqrt(sqr(o.x) + 1);
             return dot(h, transpose(h));
         }},
    };
    return list;
}

enum class Lengths : std::uint8_t { known, rows_unknown, unknown };

Dims declared(const Dims& shape, Lengths lengths) {
    Dims d = shape;
    if (lengths != Lengths::known) d[0] = -1;
    if (lengths == Lengths::unknown) d.assign(d.size(), -1);
    return d;
}

// Gradients of these stand for those of all.
bool trains(const std::string& name) {
    return name == "flipped" || name == "loss of a hidden layer" || name == "of a hidden layer" ||
           name == "itself" || name == "padded with itself";
}

bool wants_known(const std::string& name) { return name == "itself" || name == "filters of the image"; }

// Each form, and gradients to what is trained.
void check(const std::string& device, DType dtype, Lengths lengths) {
    const bool wide = dtype == DType::float64;
    const DType real = wide ? DType::float64 : DType::float32;
    PackedCases cases(device, wide ? 1e-10 : 1e-4);
    Random random(5);
    const auto as_floats = [&](const Expr& x) {
        return is_float(x.dtype()) ? x : (cast(x, DType::float32) - 120) / 100;
    };
    const auto add = [&](const std::string& name, const Form& form, const Dims& of, const Dims& factor) {
        const bool bytes = dtype == DType::uint8;
        const Lengths here =
            wants_known(name) && lengths == Lengths::unknown ? Lengths::rows_unknown : lengths;
        const Expr x = input(dtype, declared(of, wants_known(name) ? Lengths::known : here), "x"),
                   w = input(real, factor, "w"), v = input(real, factor, "v"),
                   order = input(DType::int64, Dims{of[0]}, "order");
        const std::vector<Expr> inputs{x, w, v, order};
        const std::vector<Array> values = {
            random_array(dtype, of, random, bytes ? 0 : -1, bytes ? 255 : 1),
            random_array(real, factor, random, -0.5, 0.5), random_array(real, factor, random, -0.5, 0.5),
            random_array(DType::int64, {of[0]}, random, 0, static_cast<double>(of[0] - 1))};
        const Expr y = form({as_floats(x), w, v, order});
        const std::string full = fmt::format("{} of {}", name, bitale::name_of(dtype));
        cases.add(full, inputs, values, y);
        if (!trains(name) || lengths == Lengths::unknown || bytes) return;
        for (const Expr& wrt : {x, name.ends_with("hidden layer") ? v : w}) {
            try {
                cases.add("gradient of " + full, inputs, values, grad(cost_of(y), wrt));
            } catch (const GraphError&) {  // "itself" has no filters
            }
        }
    };
    for (const auto& [name, form] : forms()) add(name, form, images, filters);
    for (const auto& [name, form] : matrix_forms())
        add(name, form, matrix_shape, {matrix_shape[1] + 2, matrix_shape[1]});
    cases.run();
}

}  // namespace

TEST_CASE("values that are read with a border and in other rows") {
    check(tested_device(), DType::float32, Lengths::rows_unknown);
    check(tested_device(), DType::float64, Lengths::known);
}

TEST_CASE("values that are read with a border and in other rows, of bytes and of unknown lengths") {
    check(tested_device(), DType::uint8, Lengths::rows_unknown);
    check(tested_device(), DType::float32, Lengths::unknown);
}

TEST_CASE("values that are read with a border and in other rows, with mode=fast_compile") {
    Options o = options();
    o.mode = Options::Mode::fast_compile;
    const ScopedOptions scope(o);
    check(tested_device(), DType::float32, Lengths::rows_unknown);
}

TEST_CASE("values that are read with a border and in other rows, on the emulator") {
    if (!emulator_left_out()) check("emulator", DType::float32, Lengths::rows_unknown);
}

TEST_CASE("a shared variable that is read with a border and in other rows keeps both") {
    // 3 x 3 windows of ones around each place, and the other image.
    std::vector<double> numbers;
    for (int i = 0; i < 18; ++i) numbers.push_back(i * i % 7);
    const Shared x = shared(Array(numbers, {2, 1, 3, 3}).as(DType::float32), "x");
    const Expr y = conv2d(x, ones({1, 1, 3, 3}), same_size) + flip(x, 0);
    const Array got = function({}, {y}, {.device = tested_device()}).call(std::vector<Array>{})[0];
    for (int n = 0; n < 2; ++n)
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) {
                double expected = numbers[static_cast<std::size_t>((1 - n) * 9 + r * 3 + c)];
                for (int i = std::max(0, r - 1); i <= std::min(2, r + 1); ++i)
                    for (int j = std::max(0, c - 1); j <= std::min(2, c + 1); ++j)
                        expected += numbers[static_cast<std::size_t>(n * 9 + i * 3 + j)];
                CHECK(got.at(n * 9 + r * 3 + c) == expected);
            }
}

TEST_CASE("sums over rows of images that a convolution reads with a border are of all their elements") {
    // Widths and heights with which blocks of a sum begin in the middle of a row, or behind several.
    const std::vector<Dims> shapes{
        {3, 7, 3, 128}, {2, 3, 5, 40}, {5, 2, 9, 24}, {2, 4, 2, 96}, {1, 1, 31, 33}};
    Random random(31);
    std::vector<Input> inputs;
    std::vector<Expr> outputs;
    std::vector<Array> values;
    for (const Dims& shape : shapes)
        for (const bool known : {true, false}) {
            const std::string name = fmt::format("x{}", inputs.size());
            const Expr x = known ? input(float32, {shape.begin(), shape.end()}, name)
                                 : input(float32, {-1, shape[1], shape[2], shape[3]}, name);
            inputs.emplace_back(x);
            values.push_back(random_array(float32, shape, random, 0, 2));
            const Expr y = tanh(x);
            const Expr w = constant(random_array(float32, {2, shape[1], 2, 3}, random));
            outputs.insert(outputs.end(),
                           {sum(y, {1, 2, 3}), max(y * y, {2, 3}), conv2d(y, w, same_size), y});
        }
    Function f = function(inputs, outputs, {.device = tested_device(), .specialise = false});
    const Results got = f.call(values);
    for (std::size_t k = 0; k < values.size(); ++k) {
        const Dims& shape = values[k].shape();
        const std::int64_t of_image = shape[1] * shape[2] * shape[3], of_channel = shape[2] * shape[3];
        for (std::int64_t n = 0; n < shape[0]; ++n) {
            double total = 0;
            for (std::int64_t c = 0; c < shape[1]; ++c) {
                double most = 0;
                for (std::int64_t i = 0; i < of_channel; ++i) {
                    const double y = std::tanh(values[k].at(n * of_image + c * of_channel + i));
                    total += y;
                    most = std::max(most, y * y);
                }
                CHECK(got[4 * k + 1].at(n * shape[1] + c) == Approx(most).epsilon(1e-6));
            }
            CHECK(got[4 * k].at(n) == Approx(total).epsilon(1e-5));
        }
    }
}
