// Work of few rows on a CPU, whose tasks are parts of a second axis: right, the parts even or not, with the
// same bits for any number of threads, and in tasks enough for many cores.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/options.h"
#include "tests/numerics/random_graph.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct FewRows {
    std::string name;
    std::vector<Expr> inputs;
    std::vector<Dims> shapes;
    Expr y;
    double near = 3e-6;  // of the largest result
};

// [h, m, k] and [h, n, k] -> [h, m, n]; [h, m, n] and [h, n, k] -> [h, m, k].
Expr of_rows(const Expr& a, const Expr& b) { return sum(expand_dims(a, 2) * expand_dims(b, 1), {3}); }
Expr of_columns(const Expr& a, const Expr& b) { return sum(expand_dims(a, 3) * expand_dims(b, 1), {2}); }

std::vector<FewRows> few_rows() {
    std::vector<FewRows> all;
    for (const std::int64_t columns : {1024, 1000, 1021}) {
        const Expr a = input(float32, {4, 300}, "a"), b = input(float32, {300, columns}, "b");
        all.push_back({fmt::format("a product of {} columns", columns),
                       {a, b},
                       {{4, 300}, {300, columns}},
                       tanh(dot(a, b)) + 1});
    }
    for (const std::int64_t rows : {256, 211}) {
        const Expr q = input(float32, {3, rows, 24}, "q"), k = input(float32, {3, rows, 24}, "k"),
                   v = input(float32, {3, rows, 24}, "v");
        const Dims shape{3, rows, 24};
        const Expr y = of_columns(softmax(of_rows(q, k)), v);
        all.push_back({fmt::format("attention of {} rows", rows), {q, k, v}, {shape, shape, shape}, y});
        const std::vector<Expr> g = grad(sum(sqr(y)), {q, k, v});
        all.push_back({fmt::format("gradients of attention of {} rows", rows),
                       {q, k, v},
                       {shape, shape, shape},
                       concatenate(g)});
    }
    for (const std::int64_t side : {200, 211}) {
        const Expr x = input(float32, {1, 2, side, side}, "x"), w = input(float32, {12, 2, 3, 3}, "w");
        for (const bool padded : {false, true})
            all.push_back({fmt::format("an image of {0} x {0}{1}", side, padded ? " with a border" : ""),
                           {x, w},
                           {{1, 2, side, side}, {12, 2, 3, 3}},
                           relu(conv2d(x, w, {.border_mode = padded ? half : valid}))});
    }
    // Windows of a part of an image: a task copies the rows that its own results need.
    const auto image = [&](const std::string& name, std::int64_t images, std::int64_t side, int size,
                           const ConvOptions& how) {
        const Expr in = input(float32, {images, 24, side, side}, "in"),
                   filters = input(float32, {32, 24, size, size}, "filters");
        const Expr h = relu(conv2d(in * 0.5 + 1, filters, how));
        const std::vector<Dims> shapes{{images, 24, side, side}, {32, 24, size, size}};
        all.push_back({"parts of images: " + name, {in, filters}, shapes, h});
        all.push_back({"gradients of parts of images: " + name,
                       {in, filters},
                       shapes,
                       flatten(grad(sum(sqr(h)), {in})[0]),
                       1e-5});
    };
    image("one", 1, 29, 3, {.border_mode = half});
    image("two, every second", 2, 31, 3, {.border_mode = 1, .subsample = 2});
    image("one, large filters", 1, 24, 7, {.border_mode = half, .filter_flip = false});
    image("one, dilated", 1, 30, 3, {.border_mode = 2, .dilation = 2});
    image("one, full", 1, 21, 5, {.border_mode = full});
    for (const std::int64_t images : {1, 4})
        for (const int pool : {2, 3}) {
            const Expr in = input(float32, {images, 64, 21, 27}, "in"),
                       filters = input(float32, {72, 64, 5, 5}, "filters");
            const Expr y = max_pool(relu(conv2d(in, filters, {.border_mode = 2})), pool, {.stride = 2});
            all.push_back({fmt::format("{} images, pooled by {}", images, pool),
                           {in, filters},
                           {{images, 64, 21, 27}, {72, 64, 5, 5}},
                           y,
                           1e-5});
        }
    // Lengths that a call tells: along these no task is cut.
    const Expr x = tensor3("x"), y = tensor3("y");
    all.push_back({"unknown lengths", {x, y}, {{2, 170, 33}, {2, 190, 33}}, softmax(of_rows(x, y)) * 2});
    all.push_back({"nothing", {x, y}, {{0, 170, 33}, {0, 190, 33}}, softmax(of_rows(x, y)) * 2});
    all.push_back({"one", {x, y}, {{1, 1, 1}, {1, 1, 1}}, softmax(of_rows(x, y)) * 2});
    return all;
}

// Results that take others of their row into account: rows are whole along that axis. Those of 14,000
// elements are sorted in memory of each task, shorter ones in its scratch.
std::vector<FewRows> walked_rows(const Dims& shape) {
    const Expr x = input(float32, shape, "x");
    const int last = static_cast<int>(shape.size()) - 1;
    const Expr sorted = sort(x, last);
    const std::vector<std::pair<std::string, Expr>> all{
        {"a scan", cumsum(x * 0.5, last)},
        {"a scan from the end", cumsum(x, last, {.exclusive = true, .reverse = true}) + 1},
        {"a sort", sorted},
        {"positions", cast(argsort(x, last, {.descending = true}), float32)},
        {"a scan of a sort", cumsum(exp(sorted), last)},
    };
    std::vector<FewRows> r;
    for (const auto& [name, y] : all)
        r.push_back({fmt::format("{} of {}", name, fmt::join(shape, " x ")), {x}, {shape}, y, 1e-4});
    return r;
}

Options with_smallest_tasks() {
    Options chosen = options();
    chosen.smallest_tasks = true;
    return chosen;
}

Array computed(const FewRows& c, const std::vector<Array>& arguments, const std::string& device, int threads,
               bool library = true) {
    Options chosen = options();
    chosen.threads = threads;
    if (!library) chosen.disabled.insert("onednn");
    const ScopedOptions scope(chosen);
    const std::vector<Input> inputs(c.inputs.begin(), c.inputs.end());
    Function f = function(inputs, {c.y}, {.device = device});
    return f.call(arguments)[0];
}

}  // namespace

TEST_CASE("few rows of much work") {
    Random random(3);
    std::vector<FewRows> all = few_rows();
    for (const Dims& shape : {Dims{2, 96, 1000}, {2, 12, 14000}, {3, 20000}, {1, 1, 40000}})
        for (FewRows& c : walked_rows(shape)) all.push_back(std::move(c));
    for (const FewRows& c : all) {
        INFO(c.name);
        std::vector<Array> arguments;
        for (const Dims& shape : c.shapes) arguments.push_back(random_array(float32, shape, random, -1, 1));
        const Array wide = computed(c, arguments, "reference", 1), one = computed(c, arguments, "cpu", 1);
        CHECK(difference(one, wide, {.of_largest = c.near}) == "");
        for (const int threads : {2, 3}) CHECK(same(computed(c, arguments, "cpu", threads), one));
        CHECK(difference(computed(c, arguments, "cpu", 2, false), wide, {.of_largest = c.near}) == "");
    }
}

TEST_CASE("tasks are parts of a second axis where rows are few") {
    Options chosen = options();
    chosen.disabled.insert("onednn");
    const ScopedOptions scope(chosen);
    int parts = 0;
    for (const FewRows& c : few_rows()) {
        const std::vector<Input> inputs(c.inputs.begin(), c.inputs.end());
        const std::string report = function(inputs, {c.y}, {.device = "cpu"}).report(Detail::complete);
        CHECK(report.find("us of one core") != std::string::npos);
        CHECK(report.find("predicted efficiency") != std::string::npos);
        parts += report.find(" of the second\n") != std::string::npos ? 1 : 0;
    }
    CHECK(parts >= 5);
}

TEST_CASE("rows that are walked or sorted are cut along other axes alone") {
    for (const Dims& shape : {Dims{2, 96, 1000}, {2, 12, 14000}, {3, 20000}, {1, 1, 40000}})
        for (const FewRows& c : walked_rows(shape)) {
            const std::string report =
                function({c.inputs[0]}, {c.y}, {.device = "cpu"}).report(Detail::complete);
            INFO(c.name << "\n" << report);
            const bool cut = report.find(" of the second\n") != std::string::npos;
            CHECK(cut == (shape.size() == 3 && shape[1] > 1));
        }
}

TEST_CASE("pooling leaves a convolution of few images its tasks of rows") {
    const auto kernels = [](std::int64_t images, std::int64_t channels, std::int64_t filters) {
        const Expr x = input(float32, {images, channels, 27, 27}, "x"),
                   w = input(float32, {filters, channels, 5, 5}, "w");
        const Expr y = max_pool(relu(conv2d(x, w, {.border_mode = 2})), 3, {.stride = 2});
        return function({x, w}, {y}, {.device = "cpu"}).kernels().size();
    };
    CHECK(kernels(4, 64, 96) == 3);   // the first of all turns the filters
    CHECK(kernels(64, 64, 96) == 2);  // each image is a task
    CHECK(kernels(4, 3, 8) == 2);     // too little work for parts
}

TEST_CASE("a new value in place is no reason for a task to read what another one has written") {
    // What is read of the variable is one element for each result, but in step with another axis than that
    // along which the new value is written.
    const std::int64_t rows = 3, side = 20;
    Random random(8);
    const Array before = random_array(float32, {rows, side, side}, random, -1, 1);
    for (const bool smallest : {false, true}) {
        const ScopedOptions scope(smallest ? with_smallest_tasks() : options());
        Shared w = shared(before, "w");
        const Expr a = exp(w), turned = transpose(a, {0, 2, 1}) + Expr(w);
        Function f = function({}, {a}, {.updates = {{w, turned}}, .device = "cpu"});
        const Array first = f()[0], after = w.get_value();
        INFO(f.report(Detail::complete));
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < side; ++j)
                for (std::int64_t k = 0; k < side; ++k) {
                    const auto at = [&](std::int64_t x, std::int64_t y) { return (i * side + x) * side + y; };
                    REQUIRE(first.at(at(j, k)) == Approx(std::exp(before.at(at(j, k)))).epsilon(1e-5));
                    REQUIRE(after.at(at(j, k)) ==
                            Approx(std::exp(before.at(at(k, j))) + before.at(at(j, k))).epsilon(1e-5));
                }
    }
}

TEST_CASE("the smallest tasks give the same bits") {
    // Made anew for each, with its random numbers from the first on.
    const auto results = [](std::uint64_t first, const Options& chosen) {
        const ScopedOptions scope(chosen);
        std::vector<Input> inputs;
        std::vector<Array> arguments;
        std::vector<Expr> outputs;
        for (std::uint64_t seed = first; seed < first + 4; ++seed) {
            GraphGenerator generator(seed, Arithmetic::smooth);
            generator.suffix = fmt::format("_{}", seed);
            const RandomGraph g = generator.generate(16);
            inputs.insert(inputs.end(), g.inputs.begin(), g.inputs.end());
            arguments.insert(arguments.end(), g.arguments.begin(), g.arguments.end());
            outputs.insert(outputs.end(), g.outputs.begin(), g.outputs.end());
        }
        return function(inputs, outputs, {.device = "cpu", .on_unused_input = OnUnused::ignore})
            .call(arguments);
    };
    for (std::uint64_t first = 21; first <= 32; first += 4) {
        const Results usual = results(first, options()), smallest = results(first, with_smallest_tasks());
        for (std::size_t k = 0; k < usual.size(); ++k) {
            INFO("seeds from " << first << ", output " << k << ": " << difference(smallest[k], usual[k]));
            CHECK(same(smallest[k], usual[k]));
        }
    }
}

TEST_CASE("few columns beside many rows and terms, as they lie and along the terms") {
    PackedCases cases(tested_device());
    Random random(17);
    for (const std::int64_t m : {9, 33, 200})
        for (const std::int64_t k : {31, 64, 530, 3000})
            for (const std::int64_t n : {1, 2, 3, 4, 5, 8}) {
                const Expr x = input(float32, Dims{m, k}, "x"), w = input(float32, Dims{k, n}, "w"),
                           turned = input(float32, Dims{n, k}, "turned"), b = input(float32, Dims{n}, "b");
                const std::vector<Array> values{random_array(float32, {m, k}, random),
                                                random_array(float32, {k, n}, random),
                                                random_array(float32, {n}, random)},
                    of_turned{values[0], random_array(float32, {n, k}, random)};
                const std::string of = fmt::format("{} x {} x {}", m, k, n);
                cases.add(of, {x, w, b}, values, tanh(dot(x, w) + b));
                cases.add(of + ", along the terms", {x, turned}, of_turned, dot(x, transpose(turned)));
                if (k < 1000 && n < 4)
                    cases.add(of + ", of a slice", {x, turned}, of_turned,
                              dot(x[Index{Slice{Expr(1), {}}, colon}], transpose(turned)) - 1);
            }
    cases.run(60);
}
