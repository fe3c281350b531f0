// Products by a library whose operands are cast, scaled, shifted, moved, padded or gathered: slices make the
// pieces that they need. Against the oracle, with the same bits for any number of threads, in no more memory
// than the results.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

bool made_in_pieces(const Function& f) {
    return f.report(Detail::complete).find("packed on the fly") != std::string::npos;
}

// Products of x[rows, columns], w[columns, results] and g[rows, results] in every form.
std::vector<Expr> products_of(const Expr& x, const Expr& w, const Expr& g, const Expr& order) {
    const Expr wide = (cast(x, float32) - 1.5F) / 4;
    const Expr centred = wide - mean(wide, {0});
    return {dot(wide, w),
            dot(transpose(wide), g),
            dot(transpose(g), wide),
            dot(transpose(wide), wide),
            dot(transpose(centred), centred) / 3,
            tanh(dot(wide, transpose(wide)) / 100),
            dot(cast(x[order], float32), w),
            dot(pad(cast(x, float32), {{1, 2}, {0, 0}}), w),
            dot(flip(cast(x, float32), 1), w),
            dot(transpose(cast(x, float32)), flip(g, 0)),
            relu(dot(cast(x, float32), w) + 1)};
}

struct OperandLengths {
    std::int64_t rows, columns, results;
};

}  // namespace

TEST_CASE("operands in pieces, of every dtype and length") {
    for (const DType dtype : {uint8, int8, boolean, int16, uint16, int32, float16, bfloat16, float32}) {
        const Expr x = matrix("x", dtype), w = matrix("w"), g = matrix("g"), order = input(int32, 1, "order");
        const std::vector<Expr> all = products_of(x, w, g, order);
        Function exact = function({x, w, g, order}, all, {.device = "reference"});
        std::vector<OperandLengths> lengths = {{1, 1, 1}, {0, 4, 3},    {4, 0, 3},
                                               {4, 3, 0}, {70, 33, 17}, {513, 130, 20}};
        if (dtype == uint8) lengths.insert(lengths.end(), {{2311, 40, 11}, {37, 700, 129}, {300, 257, 256}});
        for (const OperandLengths& l : lengths) {
            Random random(5);
            const Array images = random_array(dtype, {l.rows, l.columns}, random, -4, 100),
                        weights = random_array(float32, {l.columns, l.results}, random, -1, 1),
                        gradient = random_array(float32, {l.rows, l.results}, random, -1, 1);
            const std::int64_t picked = l.rows > 0 ? l.rows / 2 + 3 : 0;
            const Array rows = random_array(int32, {picked}, random, 0, static_cast<double>(l.rows - 1));
            const std::vector<Array> arguments{images, weights, gradient, rows};
            const Results expected = exact.call(arguments);
            std::vector<Array> first;
            for (const int threads : {1, 2, 3}) {
                const ScopedOptions scope(with(threads));
                Function f = function({x, w, g, order}, all, {.device = tested_device()});
                const Results got = f.call(arguments);
                for (std::size_t i = 0; i < got.size(); ++i) {
                    INFO(fmt::format("{} {} x {}, {} results, product {}, {} threads", name_of(dtype), l.rows,
                                     l.columns, l.results, i, threads));
                    CHECK(difference(got[i], expected[i], {.of_largest = 1e-5}) == "");
                    if (threads > 1) CHECK(difference(got[i], first[i]) == "");
                    if (threads == 1) first.push_back(got[i]);
                }
            }
        }
    }
}

// Parts of unlike lengths, one of them empty, side by side, one below the other, and of patches of images.
TEST_CASE("operands in pieces that are concatenations") {
    struct Lengths {
        std::int64_t rows, first, second, results;
    };
    const Expr x = matrix("x"), y = matrix("y"), w = matrix("w"), g = matrix("g");
    const Expr images = input(float32, {-1, 6, 7, 12}, "images");
    const Expr wide = concatenate({x, 2 * y, x[{colon, Slice{0, 0}}], x + 1}, 1);
    const Expr high = concatenate({transpose(x), transpose(y), transpose(x)}, 0);
    std::vector<Expr> patches;
    for (const int i : {0, 1, 2})
        for (const int j : {0, 1, 2}) patches.push_back(images[{colon, Slice{i, i + 4}, Slice{j, j + 5}}]);
    std::vector<Expr> planes;  // [n, 1, c, 4, 5]
    for (const Expr& patch : patches) planes.push_back(expand_dims(transpose(patch, {0, 3, 1, 2}), 1));
    const Expr columns = concatenate(patches, 3), joined = transpose(concatenate(planes, 1), {0, 3, 4, 1, 2}),
               f = matrix("f");
    // Planes with rows of 14, side by side and in turn, in nine parts and in four.
    const Expr pictures = input(float32, {-1, 4, 9, 16}, "pictures"), f9 = matrix("f9"), f4 = matrix("f4");
    std::vector<Expr> flat, in_turn, four;
    for (const int i : {0, 1, 2})
        for (const int j : {0, 1, 2}) {
            flat.push_back(pictures[{colon, colon, Slice{i, i + 7}, Slice{j, j + 14}}]);
            in_turn.push_back(expand_dims(flat.back(), 2));
            if (i < 2 && j < 2) four.push_back(in_turn.back());
        }
    const auto rows = [](const Expr& planes) { return transpose(planes, {0, 2, 3, 1}); };
    const Expr turned = rows(reshape(concatenate(in_turn, 2), {-1, 36, 7, 14})),
               quarters = rows(reshape(concatenate(four, 2), {-1, 16, 7, 14}));
    const std::vector<Expr> all = {
        dot(rows(concatenate(flat, 1)), f9),
        dot(turned, f9),
        dot(quarters, f4),
        grad(sum(sqr(dot(turned, f9))), f9),
        grad(sum(sqr(dot(quarters, f4))), pictures),
        dot(reshape(transpose(turned, {3, 0, 1, 2}), {36, -1}), reshape(dot(turned, f9), {-1, 3})),
        dot(wide, w),
        dot(transpose(wide), g),
        dot(transpose(high), w),
        dot(transpose(g), wide),
        relu(dot(wide, w) + 1),
        dot(columns, f),
        dot(reshape(joined, {-1, 9 * 12}), f),
        grad(sum(sqr(dot(columns, f))), f)};
    const std::vector<Input> inputs{x, y, w, g, images, f, pictures, f9, f4};
    for (const bool specialise : {true, false})
        for (const Lengths& l : {Lengths{1, 1, 1, 1},
                                 {0, 3, 4, 5},
                                 {70, 33, 17, 20},
                                 {2311, 130, 257, 40},
                                 {130, 700, 3, 129},
                                 {1000, 64, 0, 64}}) {
            Random random(11);
            const std::int64_t depth = 2 * l.first + l.second;
            const std::vector<Array> arguments{random_array(float32, {l.rows, l.first}, random, -1, 1),
                                               random_array(float32, {l.rows, l.second}, random, -1, 1),
                                               random_array(float32, {depth, l.results}, random, -1, 1),
                                               random_array(float32, {l.rows, l.results}, random, -1, 1),
                                               random_array(float32, {l.rows / 5, 6, 7, 12}, random, -1, 1),
                                               random_array(float32, {9 * 12, l.results}, random, -1, 1),
                                               random_array(float32, {l.rows / 40, 4, 9, 16}, random, -1, 1),
                                               random_array(float32, {36, 3}, random, -1, 1),
                                               random_array(float32, {16, 5}, random, -1, 1)};
            const Results expected = function(inputs, all, {.device = "reference"}).call(arguments);
            std::vector<Array> first;
            for (const int threads : {1, 3}) {
                const ScopedOptions scope(with(threads));
                Function made = function(inputs, all, {.device = tested_device(), .specialise = specialise});
                const Results got = made.call(arguments);
                for (std::size_t i = 0; i < got.size(); ++i) {
                    INFO(fmt::format("{} x {} and {}, {} results, product {}, {} threads, known: {}", l.rows,
                                     l.first, l.second, l.results, i, threads, specialise));
                    CHECK(difference(got[i], expected[i], {.of_largest = 1e-5}) == "");
                    if (threads > 1) CHECK(difference(got[i], first[i]) == "");
                    if (threads == 1) first.push_back(got[i]);
                }
            }
        }
}

TEST_CASE("a data set of bytes is stored once") {
    constexpr std::int64_t rows = 3000, columns = 200, classes = 10;
    Random random(3);
    const Array pixels = random_array(uint8, {rows, columns}, random, 0, 255),
                numbers = random_array(int64, {rows}, random, 0, classes - 1);
    const auto trained = [&](const std::string& device) {
        Shared images = shared(pixels, "images"), labels = shared(numbers, "labels"),
               w = shared(zeros({columns, classes}), "w"), c = shared(zeros({columns, columns}), "c");
        const Expr x = (cast(images, float32) - 33.3F) / 128;
        const Expr cost = mean(softmax_crossentropy(dot(x, w), labels));
        Updates updates = sgd(cost, {w}, 0.1);
        updates.push_back({c, c + dot(transpose(x), x) / rows});
        Function f = function({}, {cost}, {.updates = updates, .name = "full batch", .device = device});
        std::vector<Array> all;
        for (int step = 0; step < 3; ++step) all.push_back(f()[0]);
        all.push_back(w.get_value());
        all.push_back(c.get_value());
        const bool called = f.report(Detail::complete).find("library call") != std::string::npos;
        if (std::string(device) == "cpu" && called) {
            CHECK(made_in_pieces(f));
            INFO(f.report(Detail::complete));
            CHECK(f.report(Detail::complete).find("operand of the library call") == std::string::npos);
        }
        return all;
    };
    const std::vector<Array> exact = trained("reference");
    std::vector<Array> first;
    for (const int threads : {1, 2, 3}) {
        const ScopedOptions scope(with(threads));
        const std::vector<Array> got = trained(tested_device());
        for (std::size_t i = 0; i < got.size(); ++i) {
            INFO(fmt::format("{} threads, value {}", threads, i));
            CHECK(difference(got[i], exact[i], {.of_largest = 2e-5}) == "");
            if (!first.empty()) CHECK(difference(got[i], first[i]) == "");
        }
        if (first.empty()) first = got;
    }
}

TEST_CASE(
    "weights of bytes with a scale for each column, updated tables, and what is made of what is replaced") {
    constexpr std::int64_t from = 700, to = 600, batch = 130;
    const auto run = [&](const std::string& device) {
        Random random(9);
        Shared w = shared(random_array(int8, {from, to}, random, -127, 127), "w"),
               scale = shared(random_array(float32, {to}, random, 0.001, 0.1), "scale"),
               table = shared(random_array(float32, {batch, from}, random, -1, 1), "table");
        const Expr x = matrix("x"), order = input(int64, 1, "order");
        const Expr y = dot(x, cast(w, float32) * scale);
        // Pieces of the table are gathered while its new value, which depends on them, is made.
        Function f =
            function({x, order}, {y, dot(transpose(table[order]), y)},
                     {.updates = {{table, table * 0.5F + dot(y, transpose(cast(w, float32) * 0.01F))}},
                      .name = "scaled",
                      .device = device});
        std::vector<Array> all;
        for (int step = 0; step < 2; ++step) {
            Array rows = random_array(int64, {batch}, random, 0, batch - 1);
            const Results r =
                f.call(std::vector<Array>{random_array(float32, {batch, from}, random, -1, 1), rows});
            for (std::size_t i = 0; i < r.size(); ++i) all.push_back(r[i]);
            all.push_back(table.get_value());
        }
        return all;
    };
    const std::vector<Array> exact = run("reference");
    for (const int threads : {1, 2, 3}) {
        const ScopedOptions scope(with(threads));
        const std::vector<Array> got = run(tested_device());
        for (std::size_t i = 0; i < got.size(); ++i) {
            INFO(fmt::format("{} threads, result {}", threads, i));
            CHECK(difference(got[i], exact[i], {.of_largest = 2e-5}) == "");
        }
    }
}
