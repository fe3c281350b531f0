// Batches of known lengths in parts, how many rows a part has, and limits of devices that lead to parts.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/memory.h"
#include "graph/base/options.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr std::int64_t images_in_batch = 37;

// How the images come, all of them or, of rows, 37 of 111.
enum class ImagesAs { argument, given, whole_variable, beside_labels, rows_of_variable };

// Two convolutions' worth of ops of which some have the number of images in their attributes, and a layer
// of as many units as there are images.
struct NetworkOfKnownBatch {
    explicit NetworkOfKnownBatch(ImagesAs how) : form(how) {
        images = random_array(
            uint8, {how == ImagesAs::rows_of_variable ? 3 * images_in_batch : images_in_batch, 2, 9, 8},
            random, 0, 255);
        labels = random_array(int32, {images.shape()[0]}, random, 0, 4);
        const Shared bytes = shared(images, "images"), classes = shared(labels, "labels");
        switch (form) {
            case ImagesAs::argument:
            case ImagesAs::given:
                x = input(float64, {images_in_batch, 2, 9, 8}, "x");
                y = input(int32, {images_in_batch}, "y");
                if (form == ImagesAs::given) givens = {{x, cast(bytes, float64)}, {y, classes}};
                break;
            case ImagesAs::whole_variable:
                x = cast(bytes, float64);
                y = classes;
                break;
            case ImagesAs::beside_labels:  // and beside a table of as many rows, which is no batch
                x = cast(bytes, float64);
                y = input(int32, {images_in_batch}, "y");
                break;
            case ImagesAs::rows_of_variable:
                x = cast(bytes[range(i * images_in_batch, (i + 1) * images_in_batch)], float64);
                y = classes[range(i * images_in_batch, (i + 1) * images_in_batch)];
                break;
        }
        const Expr hidden = relu(max_pool(conv2d(x / 255, filters), 2) + reshape(bias, {1, 4, 1, 1}));
        const Expr flat = reshape(hidden, {images_in_batch, 4 * 3 * 3});
        scores = dot(tanh(dot(dropout(flat, 0.5, stream), wide)), layer);
        loss = mean(categorical_crossentropy(softmax(scores), y)) + 0.01 * sum(sqr(layer));
        outputs = {loss,
                   scores,
                   max(scores),
                   sum(scores, {0}),
                   argmax(scores, {1}),
                   min(x),
                   transpose(flat, {1, 0})};
    }
    std::vector<Array> after_steps(FunctionOptions o) {
        o.updates = momentum(loss, {filters, bias, wide, layer}, 0.1);
        o.name = "net";
        o.givens = givens;
        std::vector<Input> inputs;
        if (form == ImagesAs::argument) inputs = {x, y};
        if (form == ImagesAs::beside_labels) inputs = {y};
        if (form == ImagesAs::rows_of_variable) inputs = {i};
        Function f = function(inputs, outputs, o);
        std::vector<Array> all;
        for (std::int64_t step = 0; step < 2; ++step) {
            const Results r = form == ImagesAs::argument           ? f(images.as(float64), labels)
                              : form == ImagesAs::beside_labels    ? f(labels)
                              : form == ImagesAs::rows_of_variable ? f(step)
                                                                   : f();
            const std::vector<Array> list = list_of(r);
            all.insert(all.end(), list.begin(), list.end());
        }
        for (const Shared& p : {filters, bias, wide, layer}) all.push_back(p.get_value());
        return all;
    }

    ImagesAs form;
    Random random{7};
    Array images, labels;
    Shared filters = shared(random_array(float64, {4, 2, 3, 2}, random, -1, 1), "filters"),
           bias = shared(random_array(float64, {4}, random, -1, 1), "bias"),
           wide = shared(random_array(float64, {4 * 3 * 3, images_in_batch}, random, -1, 1), "wide"),
           layer = shared(random_array(float64, {images_in_batch, 5}, random, -1, 1), "layer");
    RandomStream stream{3};
    Expr i = lscalar("i"), x, y, scores, loss;
    Givens givens;
    std::vector<Expr> outputs;
};

// A chain whose intermediate values are much larger than what goes in and out.
struct Wide {
    explicit Wide(std::int64_t length = -1) : x(input(float32, {length, 30}, "x")) {}
    Function on(const std::string& device, ByteCount limit = {}, std::int64_t rows = 0) const {
        return function({x}, {mean(sqr(y)), sum(y, {0})},
                        {.name = "wide", .device = device, .micro_batch = rows, .memory_limit = limit});
    }
    static Array argument(std::int64_t rows) {
        Random random(3);
        return random_array(float32, {rows, 30}, random, -1, 1);
    }
    Expr x;
    Shared w = shared(full_of({30, 500}, 0.01), "w"), v = shared(full_of({500, 30}, 0.01), "v");
    Expr y = dot(tanh(dot(x, w)), v);
};

}  // namespace

TEST_CASE("batches of known lengths are computed in parts", "[core][runtime][parts]") {
    for (const ImagesAs form : {ImagesAs::argument, ImagesAs::given, ImagesAs::whole_variable,
                                ImagesAs::beside_labels, ImagesAs::rows_of_variable}) {
        const std::vector<Array> expected = NetworkOfKnownBatch(form).after_steps({.device = "reference"});
        for (const std::string& device : cpu_and_emulator()) {
            INFO(device << ", form " << static_cast<int>(form));
            const std::vector<Array> got =
                NetworkOfKnownBatch(form).after_steps({.device = device, .micro_batch = 16});
            CHECK(differences(got, expected, 1e-12) == "");
        }
    }
}

// The length of the last one is less.
TEST_CASE("slices of data, and rows that a slice looks up, are a batch", "[core][runtime][parts]") {
    enum class Rows { clipped, looked_up, between_arguments, of_argument };
    constexpr std::int64_t many = 41, batch = 16;
    Random random(11);
    const Array pixels = random_array(uint8, {many, 2, 6, 5}, random, 0, 255),
                labels = random_array(int32, {many}, random, 0, 3),
                order = random_array(int64, {many}, random, 0, many - 1);
    const auto after_steps = [&](Rows rows, FunctionOptions o) {
        Random weights(3);
        const Shared images = shared(pixels, "images"), classes = shared(labels, "labels"),
                     shuffled = shared(order, "order"),
                     filters = shared(random_array(float64, {4, 2, 3, 2}, weights, -1, 1), "filters"),
                     layer = shared(random_array(float64, {4 * 2 * 2, 4}, weights, -1, 1), "layer");
        const Expr i = lscalar("i"), begin = lscalar("begin"), end = lscalar("end");
        const Expr all = input(uint8, {-1, 2, 6, 5}, "all");
        const Slice slice =
            rows == Rows::between_arguments ? Slice{begin, end} : Slice{i * batch, (i + 1) * batch};
        const Expr x = rows == Rows::looked_up     ? Expr(images)[Expr(shuffled)[slice]]
                       : rows == Rows::of_argument ? all[slice]
                                                   : images[slice],
                   y = rows == Rows::looked_up ? Expr(classes)[Expr(shuffled)[slice]] : classes[slice];
        const Expr hidden = relu(max_pool(conv2d(cast(x, float64) / 255, filters), 2)),
                   scores = dot(flatten(hidden, 2), layer),
                   loss = mean(categorical_crossentropy(softmax(scores), y));
        o.updates = momentum(loss, {filters, layer}, 0.1);
        std::vector<Input> inputs{i};
        if (rows == Rows::between_arguments) inputs = {begin, end};
        if (rows == Rows::of_argument) inputs = {i, all};
        Function f = function(inputs, {loss, scores, argmax(scores, {1}), max(x), sum(scores, {0})}, o);
        std::vector<Array> got;
        for (std::int64_t step = 0; step < 3; ++step) {
            const Results r = rows == Rows::between_arguments ? f(step * batch, (step + 1) * batch)
                              : rows == Rows::of_argument     ? f(step, pixels)
                                                              : f(step);
            const std::vector<Array> list = list_of(r);
            got.insert(got.end(), list.begin(), list.end());
        }
        for (const Shared& p : {filters, layer}) got.push_back(p.get_value());
        return got;
    };
    for (const Rows rows : {Rows::clipped, Rows::looked_up, Rows::between_arguments, Rows::of_argument}) {
        const std::vector<Array> expected = after_steps(rows, {.device = "reference"});
        for (const std::string& device : cpu_and_emulator())
            for (const std::int64_t part : {5, 16}) {
                INFO(device << ", form " << static_cast<int>(rows) << ", parts of " << part);
                CHECK(differences(after_steps(rows, {.device = device, .micro_batch = part}), expected,
                                  1e-12) == "");
            }
    }
}

// Labels are an argument and images a variable: a part computes what it needs of both. A table of as many
// rows that is read as a whole is no part of the batch.
TEST_CASE("a data set and the labels of a call are one batch", "[core][runtime][parts]") {
    constexpr std::int64_t many = 600;
    Random random(5);
    const Array pixels = random_array(uint8, {many, 30}, random, 0, 255),
                labels = random_array(int32, {many}, random, 0, 9);
    const Shared images = shared(pixels, "images"),
                 wide = shared(random_array(float32, {30, 500}, random, -1, 1), "wide"),
                 classes = shared(random_array(float32, {500, 10}, random, -1, 1), "classes"),
                 table = shared(random_array(float32, {many, 10}, random, -1, 1), "table");
    for (const std::int64_t length : {many, std::int64_t{-1}})
        for (const std::string& device : cpu_and_emulator()) {
            INFO(device << ", length " << length);
            const Expr y = input(int32, {length}, "y");
            const Expr hidden = tanh(dot(cast(images, float32) / 255, wide));
            const Expr scores = dot(hidden, classes) + sum(table, {0});
            const std::vector<Expr> outputs{mean(softmax_crossentropy(scores, y)),
                                            mean(cast(eq(argmax(scores, {1}), y), float32))};
            Function whole = function({y}, outputs, {.device = device});
            const std::vector<Array> expected = list_of(whole(labels));
            const std::int64_t peak = whole.memory_plan().peak_bytes, limit = peak / 3;
            Function f = function({y}, outputs, {.device = device, .memory_limit = {limit}});
            if (length > 0) {  // estimates are for the parts that the call will have
                std::string report = f.report();
                std::erase_if(report, [](char c) { return c == ' ' || c == '\n'; });
                CHECK_THAT(report, ContainsSubstring(fmt::format("rowsofthepart={},rowsofthebatch={}",
                                                                 f.memory_plan().micro_batch, many)));
            }
            CHECK(differences(list_of(f(labels)), expected, 1e-5) == "");
            const MemoryPlan plan = f.memory_plan();
            INFO(plan.peak_bytes << " of " << peak << " bytes, " << plan.micro_batch << " rows");
            CHECK(plan.micro_batch > 0);
            CHECK(plan.peak_bytes <= limit);
            Array wrong(labels);
            static_cast<std::int32_t*>(wrong.mutable_data())[many - 3] = 10;
            CHECK_THAT(error_of([&] { f(wrong); }), ContainsSubstring("to 600 of the batch"));
            CHECK_THAT(error_of([&] { f(Array(int32, {many - 1})); }), ContainsSubstring("599"));
        }
}

TEST_CASE("rows of packed data are a batch, alone and beside an argument", "[core][runtime][parts]") {
    Random random(9);
    for (const StorageType storage : {uint1, uint4})
        for (const Dims& shape : {Dims{8, 3}, Dims{24, 4}, Dims{16}}) {
            const PackedShared packed = shared(random_array(float32, shape, random, 0, 1),
                                               {.storage = storage, .scale = 1, .name = "packed"});
            const Array rows = random_array(float32, {shape[0]}, random, -1, 1);
            for (const std::string& device : cpu_and_emulator())
                for (const std::int64_t length : {std::int64_t{0}, shape[0], std::int64_t{-1}}) {
                    INFO(device << ", " << shape.size() << " axes, length " << length);
                    const Expr y = input(float32, {length == 0 ? 1 : length}, "y");
                    Expr each = Expr(packed) * 2;
                    if (shape.size() > 1) each = sum(each, {1});
                    const std::vector<Expr> outputs =
                        length == 0 ? std::vector<Expr>{each} : std::vector<Expr>{each + y, sum(each * y)};
                    const std::vector<Input> inputs =
                        length == 0 ? std::vector<Input>{} : std::vector<Input>{y};
                    const auto results = [&](std::int64_t part) {
                        Function f = function(inputs, outputs, {.device = device, .micro_batch = part});
                        return list_of(length == 0 ? f() : f(rows));
                    };
                    std::string refused;
                    std::vector<Array> parts;
                    refused = error_of([&] { parts = results(3); });
                    // Rows that are packed together are no rows of a batch.
                    if (shape.size() > 1)
                        CHECK(refused == "");
                    else
                        CHECK(refused.find("internal") == std::string::npos);
                    if (refused.empty()) CHECK(differences(parts, results(0), 1e-6) == "");
                }
        }
}

TEST_CASE("what a known batch must not be is refused with its line", "[core][runtime][parts]") {
    const Expr x = input(float32, {6, 3}, "x");
    const Shared table = shared(zeros({6, 3}), "table");
    const auto refused = [&](const Expr& y, FunctionOptions o = {}) {
        o.micro_batch = 2;
        return error_of([&] { function({x}, y, o); });
    };
    CHECK_THAT(refused(sort(x, 0)), ContainsSubstring("parts_test.cpp:") &&
                                        ContainsSubstring("all rows of the batch at once") &&
                                        ContainsSubstring("compute it in a function of its own"));
    CHECK_THAT(refused(cumsum(x, 0)), ContainsSubstring("some rows of the batch differently from the rest"));
    CHECK_THAT(refused(sum(x), {.updates = {{table, x}}}), ContainsSubstring("new value of \"table\""));
    CHECK_THAT(refused(reshape(x, {3, 6})), ContainsSubstring("micro-batches"));
    const Expr images = input(float32, {16, 5, 4}, "images");
    const Shared w = shared(zeros({4, 3}), "w");
    CHECK_THAT(error_of([&] { function({images}, mean(sqr(dot(images, w) - 1)), {.micro_batch = 4}); }),
               ContainsSubstring("declare the length of the batch as -1"));
    // The number of rows is in what is computed.
    CHECK(refused(x * 6 + sum(x) / 6) == "");
    Function f = function({x}, {sum(x, {0}), pad(x, {{0, 0}, {6, 0}})}, {.micro_batch = 4});
    const Array ones = full_of({6, 3}, 1);
    const Results got = f(ones), whole = function({x}, {sum(x, {0}), pad(x, {{0, 0}, {6, 0}})})(ones);
    CHECK(same(got[0], whole[0]));
    CHECK(same(got[1], whole[1]));
}

TEST_CASE("a limit is kept by parts of a known batch, planned when the function is built",
          "[core][runtime][parts]") {
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const std::int64_t many = device == "cpu" ? 4000 : 400;
        const Wide net(many);
        const Array a = Wide::argument(many);
        Function whole = net.on(device);
        const std::int64_t peak = whole.memory_plan().peak_bytes;
        Function f = net.on(device, {peak / 3});
        const MemoryPlan plan = f.memory_plan();
        CHECK(plan.micro_batch > 1);
        CHECK(plan.micro_batch < many);
        CHECK(plan.peak_bytes <= peak / 3);
        CHECK(differences(list_of(f(a)), list_of(whole(a)), 1e-4) == "");
        CHECK_THAT(error_of([&] { net.on(device, 20_KiB); }),
                   ContainsSubstring("memory_limit is 20.5 kB") && ContainsSubstring("too little"));
    }
}

TEST_CASE("a part has the most rows that fit, and a smaller limit never takes more",
          "[core][runtime][parts]") {
    const Wide net;
    const std::int64_t many = 3000;
    const Array a = Wide::argument(many), few = Wide::argument(7);
    Function whole = net.on("cpu");
    const std::vector<Array> expected = list_of(whole(a));
    const std::int64_t all = whole.memory_plan().peak_bytes,
                       none = whole.memory_plan({{net.x, {1, 30}}}).peak_bytes;
    std::int64_t before = all + 1, rows_before = many + 1;
    for (const double share : {0.9, 0.4, 0.25, 0.15}) {
        const auto limit = static_cast<std::int64_t>(static_cast<double>(all) * share) + none;
        Function f = net.on("cpu", {limit});
        f(few);
        trim_host_memory();
        host_ledger().forget_most();
        const std::int64_t alive = host_ledger().now();
        const std::vector<Array> got = list_of(f(a));
        CHECK(differences(got, expected, 1e-5) == "");
        const MemoryPlan plan = f.memory_plan();
        INFO(share << ": " << plan.micro_batch << " rows, " << plan.peak_bytes << " of " << limit);
        CHECK(plan.peak_bytes <= limit);
        CHECK(host_ledger().most() - alive <= plan.peak_bytes);
        CHECK(plan.peak_bytes < before);
        CHECK(plan.micro_batch < rows_before);
        // One part less does not fit.
        const std::int64_t parts = (many + plan.micro_batch - 1) / plan.micro_batch;
        const std::int64_t more = (many / (parts - 1) + 1 + 15) / 16 * 16;
        if (parts > 1 && more < many)
            CHECK(net.on("cpu", {}, more).memory_plan({{net.x, {many, 30}}}).peak_bytes > limit);
        before = plan.peak_bytes;
        rows_before = plan.micro_batch;
        for (int again = 0; again < 2; ++again) {
            const std::vector<Array> same_again = list_of(f(a));
            for (std::size_t k = 0; k < got.size(); ++k) CHECK(same(got[k], same_again[k]));
            f(few);
        }
    }
}

TEST_CASE("the limit of a device leads to parts", "[core][runtime][parts]") {
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const std::int64_t many = device == "cpu" ? 6000 : 600;
        const Wide net;
        const Array a = Wide::argument(many), few = Wide::argument(5);
        Function whole = net.on(device);
        const std::vector<Array> expected = list_of(whole(a));
        const std::int64_t arena = whole.memory_plan().arena_bytes;
        MemoryLedger& ledger = *whole.state().executable->ledger();
        whole = Function();
        Function f = net.on(device);
        f(few);
        trim_host_memory();
        {
            const std::int64_t limit = ledger.now() + arena / 2;
            const ScopedOptions scope = with_limit(limit);
            ledger.forget_most();
            CHECK(differences(list_of(f(a)), expected, 1e-5) == "");
            CHECK(ledger.most() <= limit);
            CHECK(f.memory_plan().micro_batch > 0);
            CHECK(f.memory_plan().micro_batch < many);
            f(few);
            CHECK(differences(list_of(f(a)), expected, 1e-5) == "");
            CHECK(ledger.most() <= limit);
            // What cannot be computed in parts is refused, and says why; also without the arenas of others.
            IdleMemory::give_all_back();
            trim_host_memory();
            Function sorted =
                function({net.x}, sort(exp(net.x), 0) + 1, {.name = "sorted", .device = device});
            const ScopedOptions less = with_limit(ledger.now() + 2000);
            CHECK_THAT(error_of([&] { sorted(a); }), ContainsSubstring("memory_limit in BITALE_FLAGS") &&
                                                         ContainsSubstring("cannot be computed in parts") &&
                                                         ContainsSubstring("Where the "));
        }
        CHECK(differences(list_of(f(a)), expected, 1e-5) == "");
        CHECK(f.memory_plan().micro_batch == 0);
    }
}
