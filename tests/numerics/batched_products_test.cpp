// Products of many matrices, and of matrices that are parts of tensors, in the forms that people write:
// against the oracle, with the same bits for any number of threads; and which of them a library computes.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "runtime/cpu/gemm.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// x [batch, m, k], y [batch, k, n]: every order of axes, by matmul and by broadcasting.
std::vector<Expr> forms(const Expr& x, const Expr& y) {
    const Expr xt = transpose(x, {0, 2, 1}), yt = transpose(y, {0, 2, 1});
    return {matmul(x, y), matmul(yt, xt), batched_dot(x, y), transpose(matmul(x, y), {0, 2, 1}),
            transpose(matmul(x, y), {1, 0, 2}),
            // Both factors along k, as the scores of attention.
            sum(expand_dims(x, 2) * expand_dims(yt, 1), {3}),
            sum(expand_dims(xt, 3) * expand_dims(y, 2), {1}),
            // Batches in between, reversed, shared and as part of the sum.
            sum(expand_dims(transpose(x, {1, 0, 2}), 3) * expand_dims(y, 0), {2}), matmul(flip(x, 0), y),
            sum(expand_dims(x, 3) * expand_dims(y, 1), {0, 2}), relu(matmul(x, y) + 1) * 2,
            matmul(tanh(x), exp(y)),
            // Over an axis that lies elsewhere in both factors as well.
            sum(expand_dims(x, 3) * expand_dims(y, 1), {2, 0}),
            sum(expand_dims(transpose(x, {1, 0, 2}), 3) * expand_dims(y, 0), {2, 1}),
            3 * sum(expand_dims(xt, 3) * expand_dims(y, 2), {0, 1})};
}

// Where no axis is empty.
std::vector<Expr> parts(const Expr& x, const Expr& y) {
    return {matmul(expand_dims(x[0], 0), y),
            matmul(x, y[0]),
            matmul(x[{0, 0}], y),
            matmul(softmax(x), y),
            matmul(cumsum(x, 0, {.reverse = true}), y),
            matmul(x, cumsum(y, 1)),
            batched_dot(x[{colon, 0}], y),
            batched_dot(x, y[{colon, colon, 0}])};
}

struct ProductLengths {
    std::int64_t batch, m, k, n;
};

void check_forms(DType dtype, bool known, const std::vector<ProductLengths>& lengths, double tolerance) {
    for (const ProductLengths& l : lengths) {
        const Expr x = known ? input(dtype, {l.batch, l.m, l.k}, "x") : input(dtype, 3, "x"),
                   y = known ? input(dtype, {l.batch, l.k, l.n}, "y") : input(dtype, 3, "y");
        std::vector<Expr> all = forms(x, y);
        if (std::min({l.batch, l.m, l.k, l.n}) > 0)
            for (const Expr& part : parts(x, y)) all.push_back(part);
        const std::vector<Expr> gradients = grad(sum(sqr(matmul(x, y))), {x, y});
        all.insert(all.end(), gradients.begin(), gradients.end());
        Random random(9);
        const std::vector<Array> arguments{random_array(dtype, {l.batch, l.m, l.k}, random, -1, 1),
                                           random_array(dtype, {l.batch, l.k, l.n}, random, -1, 1)};
        const Results expected = function({x, y}, all, {.device = "reference"}).call(arguments);
        std::vector<Array> first;
        for (const int threads : {1, 3}) {
            const ScopedOptions scope(with(threads));
            const Results got = function({x, y}, all, {.device = tested_device()}).call(arguments);
            for (std::size_t i = 0; i < got.size(); ++i) {
                INFO(fmt::format("{} {} of {} x {} over {}, {}, form {}, {} threads", name_of(dtype), l.batch,
                                 l.m, l.n, l.k, known ? "known" : "unknown", i, threads));
                CHECK(difference(got[i], expected[i], {.of_largest = tolerance}) == "");
                if (threads > 1) CHECK(difference(got[i], first[i]) == "");
                if (threads == 1) first.push_back(got[i]);
            }
        }
    }
}

bool calls(const Expr& result, const std::vector<Input>& inputs, const std::string& text) {
    const std::string report = function(inputs, {result}, {.device = "cpu"}).report(Detail::complete);
    INFO(report);
    return report.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("many products in every form") {
    check_forms(float32, true, {{1, 1, 1, 1}, {3, 4, 5, 6}, {2, 33, 17, 48}, {7, 32, 64, 40}}, 1e-5);
    check_forms(float32, false,
                {{3, 4, 5, 6}, {0, 4, 3, 2}, {2, 0, 3, 2}, {2, 3, 0, 2}, {2, 3, 4, 0}, {5, 31, 64, 33}},
                1e-5);
    // Generated, in blocks of rows that come out even and that do not.
    check_forms(float64, true, {{3, 20, 33, 18}, {2, 128, 20, 48}, {2, 131, 9, 40}}, 1e-12);
    check_forms(float64, false, {{2, 70, 9, 33}}, 1e-12);
}

TEST_CASE("parts of tensors are multiplied where they lie") {
    const Expr qkv = input(float32, {2, 40, 3, 4, 16}, "qkv");  // images, places, which, heads, channels
    const auto heads = [&](int which) {
        return transpose(qkv[{colon, colon, which}], {0, 2, 1, 3});  // images, heads, places, channels
    };
    const Expr scores = matmul(heads(0), transpose(heads(1), {0, 1, 3, 2})) / 4;
    const Expr mixed = transpose(matmul(softmax(scores), heads(2)), {0, 2, 1, 3});
    const Expr cost = sum(sqr(mixed));
    const std::vector<Expr> all{scores, mixed, grad(cost, {qkv})[0]};
    Random random(4);
    const Array x = random_array(float32, {2, 40, 3, 4, 16}, random, -1, 1);
    const Results expected = function({qkv}, all, {.device = "reference"}).call(std::vector<Array>{x});
    Function f = function({qkv}, all, {.device = tested_device()});
    const Results got = f.call(std::vector<Array>{x});
    for (std::size_t i = 0; i < got.size(); ++i) {
        INFO("result " << i);
        CHECK(difference(got[i], expected[i], {.of_largest = 1e-5}) == "");
    }
}

TEST_CASE("heads that share keys and values") {
    // Images, heads, places, channels; [heads of queries, of keys, places].
    const auto check = [](std::int64_t heads, std::int64_t of_keys, std::int64_t places, bool known) {
        const std::int64_t images = 3, channels = 16, shared = heads / of_keys;
        const auto image = [&](std::int64_t count, const char* name) {
            return known ? input(float32, {images, count, places, channels}, name) : input(float32, 4, name);
        };
        const Expr q = image(heads, "q"), k = image(of_keys, "k"), v = image(of_keys, "v");
        // All copies of a head follow each other, or all heads are repeated as a whole.
        for (const bool follow : {true, false}) {
            const auto copies = [&](const Expr& x) {
                return follow ? repeat(x, shared, 1) : concatenate(std::vector<Expr>(shared, x), 1);
            };
            const Expr scores = matmul(q, transpose(copies(k), {0, 1, 3, 2})) / 4;
            const Expr y = matmul(softmax(scores), copies(v));
            std::vector<Expr> all{scores, y, matmul(transpose(copies(v), {0, 1, 3, 2}), copies(k))};
            const std::vector<Expr> gradients = grad(sum(sqr(y)), {q, k, v});
            all.insert(all.end(), gradients.begin(), gradients.end());
            Random random(4);
            const std::vector<Array> arguments{
                random_array(float32, {images, heads, places, channels}, random, -1, 1),
                random_array(float32, {images, of_keys, places, channels}, random, -1, 1),
                random_array(float32, {images, of_keys, places, channels}, random, -1, 1)};
            const Results expected = function({q, k, v}, all, {.device = "reference"}).call(arguments);
            const Results got = function({q, k, v}, all, {.device = tested_device()}).call(arguments);
            for (std::size_t i = 0; i < got.size(); ++i) {
                INFO(fmt::format("{} heads, {} of keys, {} places, {}, {}, result {}", heads, of_keys, places,
                                 known ? "known" : "unknown", follow ? "repeated" : "in turn", i));
                CHECK(difference(got[i], expected[i], {.of_largest = 1e-5}) == "");
            }
        }
    };
    check(8, 2, 64, true);
    check(6, 2, 33, false);
    check(6, 3, 5, true);
    check(4, 1, 40, true);
    check(5, 5, 17, false);
}

TEST_CASE("a library computes many products, and those whose matrices overlap are generated") {
    if (!gemm_library().present || !options().enabled("onednn")) return;
    const Expr x = input(float32, {8, 128, 64}, "x"), y = input(float32, {8, 128, 64}, "y");
    CHECK(calls(sum(expand_dims(x, 2) * expand_dims(y, 1), {3}), {x, y}, "for each of 8 products"));
    CHECK(calls(matmul(transpose(x, {0, 2, 1}), y), {x, y}, "for each of 8 products"));
    // Four matrices by each of these are one that is four times as long.
    const Expr few = input(float32, {2, 128, 64}, "few");
    CHECK(calls(matmul(x, transpose(repeat(few, 4, 0), {0, 2, 1})), {x, few},
                "c[512, 128] = a . b transposed over 64, for each of 2 products"));
    // The gradient of weights that images are multiplied by: over images and places.
    const Expr images = input(float32, {8, 96, 400}, "images"), after = input(float32, {8, 64, 400}, "after");
    const Expr of_weights = sum(expand_dims(after, 2) * expand_dims(images, 1), {0, 3});
    CHECK(calls(of_weights, {after, images},
                "c[64, 96] = a . b transposed over 400, added up over 8 products"));
    const Expr w = input(float32, {64, 96}, "w");
    CHECK(calls(matmul(x, w), {x, w}, "c[1024, 96]"));
    const Expr more = input(float32, {4, 512, 64}, "more");
    CHECK(calls(dot(more[3], w), {more, w}, "c[512, 96]"));
    // A head at a time: rows of the tensors are no copies.
    CHECK(calls(dot(more[1], transpose(more[2])), {more}, "c[512, 512] = a . b transposed over 64"));
    // A stack of all windows of a vector: rows that share memory.
    const Expr v = input(float32, {1024}, "v"), many = input(float32, {64, 96}, "many");
    std::vector<Expr> terms;
    for (int k = 0; k < 64; ++k) terms.push_back(expand_dims(v[Slice{k, k + 900}], 1));
    CHECK_FALSE(
        calls(sum(broadcast_to(expand_dims(concatenate(terms, 1), 2), {Expr(900), Expr(64), Expr(96)}) *
                      expand_dims(many, 0),
                  {1}),
              {v, many}, "v transposed"));
}

TEST_CASE("what matmul and batched_dot refuse") {
    const Expr x = input(float32, {2, 3, 4}, "x"), d = input(float64, {2, 4, 5}, "d"),
               bytes = input(uint8, {2, 4, 5}, "bytes"), wrong = input(float32, {2, 5, 4}, "wrong"),
               other = input(float32, {3, 4, 5}, "other"), v = vector("v");
    CHECK_THROWS_AS(matmul(x, Expr(2.0F)), ShapeError);
    CHECK_THROWS_AS(matmul(x, d), TypeError);
    CHECK_THROWS_AS(matmul(x, bytes), TypeError);
    CHECK_THROWS_AS(matmul(x, wrong), ShapeError);
    CHECK_THROWS_AS(matmul(x, other), ShapeError);
    CHECK_THROWS_AS(batched_dot(x, other), ShapeError);
    CHECK_THROWS_AS(batched_dot(x, wrong), ShapeError);
    CHECK_THROWS_AS(batched_dot(v, x), ShapeError);
    CHECK_THROWS_AS(batched_dot(expand_dims(x, 0), x), ShapeError);
    // At the call, on every device: an axis of one element is not broadcast against the other operand's.
    const Expr narrow = input(float32, {2, 3, 1}, "narrow"), any = tensor3("any");
    const Array ones(float32, {2, 3, 1}), more(float32, {2, 4, 5}), one_row(float32, {2, 1, 5}),
        single(float32, {1, 1, 5});
    for (const char* device : {tested_device(), "reference"})
        for (const bool batched : {false, true}) {
            Function f = function({narrow, any}, batched ? batched_dot(narrow, any) : matmul(narrow, any),
                                  {.device = device});
            CHECK_THROWS_AS(f(ones, more), ShapeError);
            CHECK(f(ones, one_row)[0].shape() == Dims{2, 3, 5});
            CHECK_THROWS_AS(f(ones, single), ShapeError);
        }
    CHECK(error_of([&] { matmul(x, wrong); }).find("matmul of") != std::string::npos);
    CHECK(error_of([&] { batched_dot(x, other); }).find("2 and 3 items") != std::string::npos);
}

TEST_CASE("a product of what a softmax or a normalisation gives is not stored before it is summed") {
    for (const bool known : {true, false})
        for (const DType dtype : {float32, float64}) {
            const std::int64_t batch = 3, m = 70, k = 90, n = 40;
            const Expr x = known ? input(dtype, {batch, m, k}, "x") : input(dtype, 3, "x"),
                       y = known ? input(dtype, {batch, k, n}, "y") : input(dtype, 3, "y");
            const Expr centred = x - mean(x, {2}, {.keepdims = true}),
                       scaled = centred / sqrt(mean(sqr(centred), {2}, {.keepdims = true}) + 1e-5);
            // In three dimensions, and with all four axes written out.
            const auto broadcast = [&](const Expr& rows) {
                return sum(expand_dims(rows, 3) * expand_dims(y, 1), {2});
            };
            const std::vector<Expr> all{matmul(softmax(x), y), broadcast(softmax(x)), matmul(scaled, y),
                                        broadcast(scaled)};
            Random random(4);
            const std::vector<Array> arguments{random_array(dtype, {batch, m, k}, random, -1, 1),
                                               random_array(dtype, {batch, k, n}, random, -1, 1)};
            const Results expected = function({x, y}, all, {.device = "reference"}).call(arguments);
            for (std::size_t i = 0; i < all.size(); ++i) {
                Function f = function({x, y}, all[i], {.device = tested_device()});
                INFO(fmt::format("{}, {}, form {}", name_of(dtype), known ? "known" : "unknown", i));
                const double tolerance = dtype == float64 ? 1e-13 : 1e-5;
                CHECK(difference(f.call(arguments)[0], expected[i], {.of_largest = tolerance}) == "");
                CHECK(f.peak_bytes() < batch * m * k * n * bytes_of(dtype) / 4);
            }
        }
}

TEST_CASE("what follows products that are added up sees the whole sum") {
    Random random(8);
    const Dims of_x{3, 96, 80}, of_y{3, 100, 80};
    const std::vector<Array> arguments{random_array(float32, of_x, random, -1, 1),
                                       random_array(float32, of_y, random, -1, 1)};
    const Array start = random_array(float32, {96, 100}, random, -1, 1);
    for (const bool known : {true, false}) {
        const auto results = [&](const std::string& device) {
            const Expr x = known ? input(float32, of_x, "x") : input(float32, 3, "x"),
                       y = known ? input(float32, of_y, "y") : input(float32, 3, "y");
            const Shared added = shared(start, "added"), moved = shared(start, "moved"),
                         beside = shared(start, "beside");
            const Expr z = sum(expand_dims(x, 2) * expand_dims(y, 1), {0, 3});
            Function f =
                function({x, y}, {z * 0.5 + beside, relu(z), sum(z, {1})},
                         {.updates = {{added, added + z}, {moved, moved - 0.1 * sqr(z)}}, .device = device});
            std::vector<Array> all;
            const auto keep = [&](const Results& r) {
                for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
            };
            for (int call = 0; call < 2; ++call) keep(f.call(arguments));
            Function one = function({x, y}, z * 0.5 + beside, {.device = device});
            Function in_place = function({x, y}, std::vector<Expr>{},
                                         {.updates = {{added, added - 0.1 * z}}, .device = device});
            keep(one.call(arguments));
            in_place.call(arguments);
            for (const Shared& s : {added, moved}) all.push_back(s.get_value());
            return all;
        };
        const std::vector<Array> expected = results("reference"), got = results(tested_device());
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            CAPTURE(known, i);
            CHECK(difference(got[i], expected[i], {.absolute = 2e-4, .relative = 2e-4}) == "");
        }
    }
}
