// Batches that are joined with other axes, or with each other, are computed in parts too: layers over time,
// attention, pairs of lookups in one table.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// Results and new values of the parameters are those of the batch at once.
void same_in_parts(const std::vector<Expr>& inputs, const std::vector<Array>& arguments,
                   const std::vector<Expr>& outputs, const std::vector<Shared>& parameters,
                   const Updates& updates) {
    const std::vector<Input> of_call(inputs.begin(), inputs.end());
    std::vector<Array> before;
    for (const Shared& p : parameters) before.push_back(p.get_value());
    for (const std::string& device : cpu_and_emulator()) {
        std::vector<Array> expected;
        for (const std::int64_t rows : {0, 1, 3, 100}) {
            INFO(device << ", " << rows << " rows at a time");
            Function f =
                function(of_call, outputs, {.updates = updates, .device = device, .micro_batch = rows});
            const Results results = f.call(arguments);
            std::vector<Array> all;
            for (std::size_t k = 0; k < results.size(); ++k) all.push_back(results[k]);
            for (std::size_t k = 0; k < parameters.size(); ++k) {
                all.push_back(parameters[k].get_value());
                parameters[k].set_value(before[k]);
            }
            if (rows == 0) expected = all;
            for (std::size_t k = 0; k < all.size(); ++k) {
                INFO("result " << k);
                CHECK(all[k].shape() == expected[k].shape());
                CHECK(difference(all[k], expected[k], {.of_largest = 1e-12}) == "");
            }
        }
    }
}

}  // namespace

TEST_CASE("layers over time, attention and views that join rows are computed in parts", "[core][runtime]") {
    Random random(4);
    const Shared w = shared(random_array(float64, {6, 6}, random, -1, 1), "w"),
                 v = shared(random_array(float64, {6, 4}, random, -1, 1), "v"),
                 places = shared(random_array(float64, {5, 6}, random, -1, 1), "places"),
                 last = shared(random_array(float64, {4}, random, -1, 1), "last");
    const Expr x = input(float64, {-1, 5, 6}, "x");
    const Expr h = tanh(dot(x + places, w));                                          // [n, 5, 6]
    const Expr mixed = matmul(softmax(matmul(h, transpose(h, {0, 2, 1})) / 2.4), h);  // [n, 5, 6]
    const Expr scores = dot(mixed, v);                                                // [n, 5, 4]
    const Expr joined = reshape(scores, {-1, 4}), pairs = reshape(h, {-1, 3, 2});     // [5 n, 4], [5 n, 3, 2]
    const Expr loss = mean(sqr(scores)) + mean(sqr(dot(scores, last))) + mean(abs(joined) * last);
    same_in_parts({x}, {random_array(float64, {7, 5, 6}, random, -1, 1)},
                  {loss, scores, joined, pairs, sum(pairs, {0}), dot(scores, last), max(joined, {0}),
                   reshape(dot(reshape(x, {-1, 6}), w), {-1, 5, 6}), reshape(joined, {-1, 20})},
                  {w, v, places, last}, sgd(loss, {w, v, places, last}, 0.1));
}

TEST_CASE("pairs of lookups in one table are trained in parts", "[core][runtime]") {
    Random random(5);
    const Shared table = shared(random_array(float64, {9, 3}, random, -1, 1), "table");
    const Expr i = lvector("i"), j = lvector("j");
    const Expr near = sum(sqr(table[i] - table[j]), {1});
    const Expr loss = mean(log1p(exp(-near)));
    const std::vector<std::int64_t> first{0, 3, 3, 8, 1, 0, 5}, second{1, 3, 2, 0, 8, 1, 5};
    same_in_parts({i, j}, {Array(first), Array(second)}, {loss, near}, {table}, sgd(loss, {table}, 0.1));
}

TEST_CASE("two batches one after another are no rows of an output", "[core][runtime]") {
    const Expr x = input(float32, {-1, 2}, "x");
    Function sums = function({x}, {sum(concatenate({x, 2 * x}), {0})}, {.micro_batch = 2});
    CHECK(Array(sums(full_of({3, 2}, 1))[0]).to_vector<int>() == std::vector<int>{9, 9});
    const std::string message = error_of([&] {
        (void)function({x}, {concatenate({x, 2 * x})}, {.micro_batch = 2});
    });
    CHECK_THAT(message, ContainsSubstring("holds the batch more than once, one after another"));
}

TEST_CASE("sums of very many parts are as exact as those of the batch", "[core][runtime]") {
    const Expr x = input(float32, {-1}, "x"), b = input(uint8, {-1, 100}, "b");
    Function f = function({x}, {mean(x), sum(x)}, {.micro_batch = 1}),
             g = function({b}, {mean(b), sum(cast(b, float32))}, {.micro_batch = 3});
    const double value = 0.7F;
    const Results one_by_one = f(full_of({20000}, value)), bytes = g(full_of({200000, 100}, 1, uint8));
    CHECK(double(one_by_one[0]) == Approx(value).epsilon(1e-7));
    CHECK(double(one_by_one[1]) == Approx(20000 * value).epsilon(1e-7));
    CHECK(double(bytes[0]) == 1);
    CHECK(double(bytes[1]) == 2e7);
}
