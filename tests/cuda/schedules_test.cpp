// Schedules made for GPUs: what each is chosen for, that it looks as it should, and that it computes, in any
// order of threads, the bits of the cpu device at sizes that do not fit its blocks.
#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "runtime/cuda/emulator/blocks.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::cuda;
using namespace bitale::test;

namespace {

struct ScheduleGraphs {
    std::vector<Expr> inputs;
    std::vector<Array> arguments;
    std::vector<std::string> names;
    std::vector<Expr> outputs;

    Expr input(const std::string& name, const Array& value) {
        Expr x = bitale::input(value.dtype(), value.shape(), name);
        inputs.push_back(x);
        arguments.push_back(value);
        return x;
    }
    void add(const std::string& name, const Expr& y) {
        names.push_back(name);
        outputs.push_back(y);
    }
    Function on(const std::string& device) const {
        std::vector<Input> all(inputs.begin(), inputs.end());
        // A library sums in an order of its own, and devices choose what it computes by costs of their own.
        Options generated = options();
        generated.disabled.insert("onednn");
        const ScopedOptions scope(generated);
        return function(all, outputs, {.name = "schedules", .device = device});
    }
};

void check_same_bits(const ScheduleGraphs& graphs) {
    const Results expected = graphs.on("cpu").call(graphs.arguments);
    Function f = graphs.on("emulator");
    for (const ThreadOrder order : {ThreadOrder::ascending, ThreadOrder::descending, ThreadOrder::random}) {
        const InOrder scope(order);
        const Results got = f.call(graphs.arguments);
        for (std::size_t i = 0; i < graphs.names.size(); ++i) {
            INFO(graphs.names[i]);
            CHECK(difference(got[i], expected[i]) == "");
        }
    }
}

std::string source_of(const Function& f) {
    std::string all;
    for (const Kernel& k : f.kernels()) all += k.source;
    return all;
}

std::string text_of_dims(const Dims& dims) {
    std::string s;
    for (const std::int64_t n : dims) s += (s.empty() ? "" : "x") + std::to_string(n);
    return s;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("maps move 16 bytes at a time, whatever the tail") {
    if (emulator_skipped()) return;
    ScheduleGraphs graphs;
    Random random(1);
    for (const std::int64_t n : {1, 3, 4, 255, 1025, 4099}) {
        const std::string size = std::to_string(n);
        const Expr x = graphs.input("x" + size, random_array(float32, {n}, random)),
                   b = graphs.input("b" + size, random_array(uint8, {n}, random, 0, 255)),
                   d = graphs.input("d" + size, random_array(float64, {n}, random));
        graphs.add("float32 " + size, x * 2 + 1);
        graphs.add("bytes to float32 " + size, (cast(b, float32) - 128) / 128);
        graphs.add("bytes " + size, b + b);
        graphs.add("float64 " + size, d * cast(x, float64));
        graphs.add("chain " + size, tanh(x) * exp(x));
        if (n > 4) graphs.add("slice " + size, x[Slice{1, n - 1}] * 3);
    }
    check_same_bits(graphs);
    const std::string text = source_of(graphs.on("emulator"));
    CHECK(has(text, "b_fetch<4>"));
    CHECK(has(text, "b_fetch<16>"));  // bytes alone
    CHECK(has(text, "b_fetch<2>"));   // float64
}

TEST_CASE("lanes of reductions are threads") {
    if (emulator_left_out()) return;
    ScheduleGraphs graphs;
    Random random(2);
    for (const std::int64_t n : {17, 700, 20000, 70001}) {
        const Expr x = graphs.input("x" + std::to_string(n), random_array(float32, {n}, random)),
                   b = graphs.input("b" + std::to_string(n), random_array(int8, {n}, random, -128, 127));
        graphs.add("sum " + std::to_string(n), sum(x));
        graphs.add("max " + std::to_string(n), max(x));
        graphs.add("mean of bytes " + std::to_string(n), mean(cast(b, float32)));
        graphs.add("sum of bytes " + std::to_string(n), sum(b));
    }
    for (const Dims& shape : {Dims{3, 40}, Dims{70, 300}, Dims{300, 70}, Dims{5000, 12}, Dims{2, 9000}}) {
        const std::string size = std::to_string(shape[0]) + "x" + std::to_string(shape[1]);
        const Expr x = graphs.input("m" + size, random_array(float32, shape, random));
        graphs.add("rows " + size, sum(x, {1}));
        graphs.add("columns " + size, sum(x, {0}));
        graphs.add("smallest of rows " + size, min(x, {1}));
        graphs.add("best of rows " + size, argmax(x, {1}));
        graphs.add("softmax " + size, softmax(x));
        graphs.add("of centred rows " + size, mean(sqr(x - mean(x, {1}, {.keepdims = true})), {1}));
    }
    // Ties: of equal candidates the first one is the best, whichever lanes have them.
    for (const Dims& shape : {Dims{3, 64}, Dims{40, 257}, Dims{2, 1000}, Dims{300, 70}}) {
        const std::string size = std::to_string(shape[0]) + "x" + std::to_string(shape[1]);
        for (const DType dtype : {int32, uint8, float64}) {
            const Array few = random_array(int32, shape, random, -1, 2).as(dtype);
            const Expr x = graphs.input(std::string(name_of(dtype)) + size, few);
            graphs.add("first best " + size, argmax(x, {1}));
            graphs.add("first least " + size, argmin(x, {1}));
            graphs.add("first of all " + size, argmax(x));
            graphs.add("of columns " + size, argmax(x, {0}));
            graphs.add("of guarded rows " + size, argmax(pad(x, {{0, 0}, {5, 2}}), {1}));
        }
    }
    check_same_bits(graphs);
    CHECK(has(source_of(graphs.on("emulator")), "b_other_lane("));
}

TEST_CASE("a few long rows have a warp each") {
    if (emulator_left_out()) return;
    ScheduleGraphs graphs;
    Random random(5);
    for (const std::int64_t columns : {64, 65, 95, 97, 127, 128, 129, 1000}) {
        const std::string size = std::to_string(columns);
        const Expr x = graphs.input("x" + size, random_array(float32, {21, columns}, random));
        graphs.add("softmax " + size, softmax(x));
        graphs.add("norm " + size, x / sqrt(sum(sqr(x), {1}, {.keepdims = true}) + 1));
        graphs.add("product " + size, prod(x * 0.5 + 1, {1}));
        graphs.add("all " + size, max(x, {0, 1}));
    }
    check_same_bits(graphs);
    CHECK(std::regex_search(source_of(graphs.on("emulator")), std::regex(R"(b_other_lane\(p\d+, 16\))")));
}

TEST_CASE("transposes go through shared memory") {
    if (emulator_left_out()) return;
    ScheduleGraphs graphs;
    Random random(3);
    for (const Dims& shape : {Dims{32, 32}, Dims{33, 65}, Dims{100, 31}, Dims{17, 16}}) {
        const std::string size = std::to_string(shape[0]) + "x" + std::to_string(shape[1]);
        const Expr x = graphs.input("x" + size, random_array(float32, shape, random)),
                   y = graphs.input("y" + size, random_array(float32, {shape[1], shape[0]}, random)),
                   b = graphs.input("b" + size, random_array(uint8, shape, random, 0, 255));
        graphs.add("plain " + size, transpose(x));
        graphs.add("with a sum " + size, transpose(x) * 2 + y);
        graphs.add("of bytes " + size, cast(transpose(b), float32) / 255);
    }
    const Expr x = graphs.input("images", random_array(float32, {3, 5, 20, 24}, random));
    graphs.add("channels last", transpose(x, {0, 2, 3, 1}));
    graphs.add("columns first", transpose(x, {3, 0, 1, 2}) + 1);
    // A reshape makes one axis of those that the transpose moves, and of others beside them.
    const Expr stack = graphs.input("stack", random_array(float32, {6, 40, 36}, random));
    graphs.add("rows of all", reshape(transpose(stack, {0, 2, 1}), {6 * 36, 40}));
    graphs.add("rows of pairs", reshape(transpose(stack, {0, 2, 1}), {3, 72, 40}) * 2);
    graphs.add("moved twice", reshape(transpose(stack, {2, 0, 1}), {18, 12, 40}));
    graphs.add("last axes", reshape(transpose(stack, {1, 0, 2}), {40, 6 * 36}));
    check_same_bits(graphs);
    ScheduleGraphs merged;
    merged.add("rows of all",
               reshape(transpose(merged.input("x", random_array(float32, {4, 32, 64}, random)), {0, 2, 1}),
                       {256, 32}));
    CHECK(has(merged.on("emulator").report(Detail::complete), "tiles of 32 x 32 elements"));
    ScheduleGraphs one;
    one.add("transpose", transpose(one.input("x", random_array(float32, {64, 64}, random))));
    CHECK(has(source_of(one.on("emulator")), ", 1056, "));  // 32 lines of 33
    CHECK(
        has(one.on("emulator").report(Detail::complete), "tiles of 32 x 32 elements through shared memory"));
}

TEST_CASE("thin products keep a result in each thread") {
    if (emulator_left_out()) return;
    ScheduleGraphs graphs;
    Random random(4);
    for (const std::int64_t depth : {50, 64, 100, 300}) {
        for (const std::int64_t columns : {3, 10, 16}) {
            const std::string size = std::to_string(depth) + "x" + std::to_string(columns);
            const Expr x = graphs.input("x" + size, random_array(float32, {37, depth}, random)),
                       b = graphs.input("b" + size, random_array(uint8, {37, depth}, random, 0, 255)),
                       w = graphs.input("w" + size, random_array(float32, {depth, columns}, random)),
                       v = graphs.input("v" + size, random_array(float32, {37, columns}, random));
            graphs.add("product " + size, dot(x, w));
            graphs.add("of bytes " + size, dot((cast(b, float32) - 128) / 128, w));
            graphs.add("whole rows " + size, log_softmax(dot(relu(x), w) + 1));
            graphs.add("gradient " + size, dot(transpose(x), v));
        }
    }
    check_same_bits(graphs);
}

TEST_CASE("all threads load for the places of extremes in columns") {
    if (emulator_skipped()) return;
    ScheduleGraphs graphs;
    Random random(8);
    for (const Dims& shape : {Dims{50, 3}, Dims{700, 9}, Dims{300, 200}, Dims{1030, 1}}) {
        const std::string size = text_of_dims(shape);
        for (const DType dtype : {float32, int8, float64}) {
            const std::string name = std::string(name_of(dtype)) + " " + size;
            const Expr ties = graphs.input("t " + name, random_array(int32, shape, random, -1, 2).as(dtype)),
                       special = graphs.input("s " + name, special_array(dtype, shape, random, 0));
            graphs.add("first best " + name, argmax(ties, {0}));
            graphs.add("first least " + name, argmin(ties, {0}));
            graphs.add("special " + name, argmax(special, {0}));
        }
    }
    const Expr z = graphs.input("z", random_array(int32, {60, 4, 11}, random, -9, 9));
    graphs.add("of two axes", argmax(z, {0, 2}));
    graphs.add("of computed ones", argmin(cast(z, float32) * 2 - 1, {0}));
    check_same_bits(graphs);
    CHECK(has(source_of(graphs.on("emulator")), "B_SHARED(i8"));
}

TEST_CASE("thin products of one kernel take turns in shared memory") {
    if (emulator_left_out()) return;
    for (const int layers : {2, 4, 7}) {
        INFO(layers << " layers");
        Random random(static_cast<std::uint64_t>(layers));
        ScheduleGraphs graphs;
        Expr h = graphs.input("x", random_array(float32, {32, 48}, random));
        const Expr u = graphs.input("u", random_array(float32, {48, 48}, random, -0.2, 0.2));
        for (int i = 0; i < layers; ++i) h = tanh(dot(h, u));
        graphs.add("h", h);
        check_same_bits(graphs);
        const std::string source = source_of(graphs.on("emulator"));
        int at_zero = 0;
        for (std::size_t at = source.find(", 0);"); at != std::string::npos;
             at = source.find(", 0);", at + 1))
            at_zero += source.rfind("B_SHARED(", at) > source.rfind('\n', at);
        CHECK(at_zero >= layers);
    }
}

TEST_CASE("large products are computed in tiles") {
    if (emulator_left_out()) return;
    ScheduleGraphs graphs;
    Random random(8);
    // float64, which no library takes.
    for (const Dims& size : {Dims{64, 64, 64}, Dims{130, 33, 50}, Dims{300, 100, 17}, Dims{65, 40, 200}}) {
        const std::string name = text_of_dims(size);
        const Expr a = graphs.input("a" + name, random_array(float64, {size[0], size[1]}, random)),
                   b = graphs.input("b" + name, random_array(float64, {size[1], size[2]}, random)),
                   bytes =
                       graphs.input("bytes" + name, random_array(uint8, {size[0], size[1]}, random, 0, 255));
        graphs.add("product " + name, dot(a, b));
        graphs.add("with its neighbours " + name, tanh(dot(relu(a + 1), b) * 0.1));
        graphs.add("of bytes " + name, dot((cast(bytes, float64) - 128) / 128, b));
    }
    const Expr x = graphs.input("x", random_array(float64, {3, 6, 15, 14}, random)),
               w = graphs.input("w", random_array(float64, {20, 6, 5, 3}, random));
    graphs.add("convolution", relu(conv2d(x, w)));
    graphs.add("padded convolution", conv2d(x, w, {.border_mode = half}));
    graphs.add("its gradient", grad(sum(sqr(conv2d(x, w, {.border_mode = half}))), x));
    check_same_bits(graphs);
    CHECK(has(graphs.on("emulator").report(Detail::complete), "tiles of 64 x 64 results, 4 x 4 a thread"));
}

TEST_CASE("convolutions compute several channels in one thread") {
    if (emulator_left_out()) return;
    ScheduleGraphs graphs;
    Random random(5);
    PoolOptions overlapping;
    overlapping.stride = Size2(2);
    const Expr bytes = graphs.input("bytes", random_array(uint8, {3, 1, 28, 28}, random, 0, 255)),
               w = graphs.input("w", random_array(float32, {10, 1, 3, 3}, random)),
               x = graphs.input("x", random_array(float32, {2, 6, 13, 11}, random)),
               v = graphs.input("v", random_array(float32, {8, 6, 5, 5}, random));
    const Expr pixels = (cast(bytes, float32) - 100) / 128;
    const Expr pooled = max_pool(conv2d(pixels, w, {.border_mode = half}), 2);
    graphs.add("convolution of bytes and pooling", relu(pooled));
    const Expr cost = sum(relu(pooled));
    graphs.add("its gradient", grad(cost, w));
    graphs.add("convolution", conv2d(x, v));
    graphs.add("its gradients", grad(sum(sqr(conv2d(x, v, {.subsample = 2}))), x));
    graphs.add("for the filters", grad(sum(sqr(conv2d(x, v))), v));
    graphs.add("overlapping pooling", max_pool(x, 3, overlapping));
    graphs.add("and its gradient", grad(sum(sqr(max_pool(x, 3, overlapping))), x));
    check_same_bits(graphs);
}

TEST_CASE("maps are computed some rows at a time, large ones some channels at a time") {
    if (emulator_left_out()) return;
    ScheduleGraphs graphs;
    Random random(9);
    const Expr bytes = graphs.input("bytes", random_array(uint8, {3, 3, 32, 32}, random, 0, 255)),
               w = graphs.input("w", random_array(float32, {24, 3, 5, 5}, random)),
               b = graphs.input("b", random_array(float32, {24}, random));
    const Expr pixels = (cast(bytes, float32) - 120) / 64;
    const Expr pooled = relu(max_pool(conv2d(pixels, w), 4) + channel(b));
    graphs.add("pooled", pooled);
    graphs.add("gradient", grad(sum(sqr(pooled)), w));
    graphs.add("padded, not pooled", relu(conv2d(pixels, w, {.border_mode = half}) + channel(b)));
    check_same_bits(graphs);
    CHECK(has(graphs.on("emulator").report(Detail::complete), "1 of 28 of the second"));
    ScheduleGraphs large;  // more than is worth a launch of its own for the pooling
    const Expr many = large.input("many", random_array(uint8, {90, 1, 32, 32}, random, 0, 255)),
               thin = large.input("thin", random_array(float32, {24, 1, 1, 1}, random));
    large.add("pooled", relu(max_pool(conv2d(cast(many, float32) / 64, thin), 4)));
    check_same_bits(large);
    CHECK(has(large.on("emulator").report(Detail::complete), "of 24 of the second"));
    // Partial results of all lanes leave no room for rows beside them.
    ScheduleGraphs wide;
    const Expr x = wide.input("x", random_array(float64, {40, 1, 28, 28}, random)),
               v = wide.input("v", random_array(float64, {50, 1, 3, 3}, random));
    wide.add("many filters", grad(sum(sqr(max_pool(conv2d((x - mean(x)) / 3, v), 2))), v));
    check_same_bits(wide);
}

TEST_CASE("old values that are read before they are written are updated in place") {
    if (emulator_skipped()) return;
    Random random(6);
    for (const std::string device : {"cpu", "emulator"}) {
        const Shared p = shared(random_array(float32, {1000}, random), "p"),
                     m = shared(random_array(float32, {1000}, random), "m");
        const Array old_p = p.get_value(), old_m = m.get_value();
        // Both read both old values: p is written in place only if m is computed from the old one.
        Function f =
            function({}, std::vector<Expr>{}, {.updates = {{m, m * 0.5 + p}, {p, p - m}}, .device = device});
        f();
        const auto before_p = old_p.to_vector<float>(), before_m = old_m.to_vector<float>(),
                   after_p = p.get_value().to_vector<float>(), after_m = m.get_value().to_vector<float>();
        for (std::size_t i = 0; i < before_p.size(); ++i) {
            REQUIRE(after_m[i] == before_m[i] * 0.5f + before_p[i]);
            REQUIRE(after_p[i] == before_p[i] - before_m[i]);
        }
    }
}

TEST_CASE("scans walk by threads, and blocks sort rows") {
    if (emulator_left_out()) return;
    ScheduleGraphs graphs;
    Random random(7);
    for (const Dims& shape : {Dims{3, 40}, Dims{70, 300}, Dims{300, 7}, Dims{2, 1000}, Dims{5, 1}}) {
        const std::string size = text_of_dims(shape);
        const Expr x = graphs.input("x" + size, random_array(float32, shape, random, -1.5, 1.5)),
                   i = graphs.input("i" + size, random_array(int64, shape, random, -5, 5));
        for (const int axis : {0, 1}) {
            const std::string name = size + " along " + std::to_string(axis);
            graphs.add("cumsum " + name, cumsum(x, axis));
            graphs.add("from the end " + name, cumsum(x, axis, {.exclusive = true, .reverse = true}));
            graphs.add("gradient " + name, grad(sum(sqr(cumprod(x, axis))), x));
            graphs.add("logcumsumexp " + name, logcumsumexp(x * 9, axis));
            graphs.add("sort " + name, sort(x, axis));
            graphs.add("argsort " + name, argsort(i, axis, {.descending = true}));
            graphs.add("topk " + name, topk(x, 1, axis).values);
            graphs.add("gradient of sort " + name, grad(sum(sqr(sort(x, axis)) * x), x));
        }
        graphs.add("flat " + size, cumsum(x));
        graphs.add("flat order " + size, argsort(x, std::nullopt));
    }
    check_same_bits(graphs);
    CHECK(has(source_of(graphs.on("emulator")), "b_sort_row<true>("));
}
