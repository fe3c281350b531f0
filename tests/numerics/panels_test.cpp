// Generated products of matrices: panels of columns of every width, whole and left over, of known and unknown
// numbers, from matrices, from columns of wider ones, and from values that are put together from parts.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "tests/numerics/random_graph.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Options without_libraries(bool smallest_tasks) {
    Options chosen = options();
    chosen.disabled.insert("onednn");
    chosen.smallest_tasks = smallest_tasks;
    return chosen;
}

struct Products {
    std::vector<Expr> inputs, outputs;
};

// Of `a` [rows, depth] with matrices of so many columns, plain, out of a wider matrix, and with operations.
Products products(DType dtype, const Dims& rows_and_depth, const std::vector<std::int64_t>& columns) {
    const std::int64_t depth = rows_and_depth[1];
    const Expr a = input(dtype, rows_and_depth, "a");
    Products all{{a}, {}};
    for (const std::int64_t n : columns) {
        const Expr b = input(dtype, {depth, n < 0 ? n : n + 7}, fmt::format("b{}", n));
        all.inputs.push_back(b);
        const Expr part = b[{colon, Slice{.start = 3, .stop = b.length(1) - 4}}];
        all.outputs.push_back(tanh(dot(a, part)) + 1);
        all.outputs.push_back(dot(a, b));
    }
    return all;
}

std::vector<Array> arguments_of(const Products& products, const std::vector<Dims>& shapes, Random& random) {
    std::vector<Array> r;
    for (std::size_t i = 0; i < shapes.size(); ++i)
        r.push_back(random_array(products.inputs[i].dtype(), shapes[i], random, -1, 1));
    return r;
}

void check(const Products& products, const std::vector<Array>& arguments, const std::string& device) {
    const std::vector<Input> inputs(products.inputs.begin(), products.inputs.end());
    const Results right = function(inputs, products.outputs, {.device = "reference"}).call(arguments);
    for (const bool smallest_tasks : {false, true}) {
        const ScopedOptions scope(without_libraries(smallest_tasks));
        const Results got = function(inputs, products.outputs, {.device = device}).call(arguments);
        for (std::size_t i = 0; i < got.size(); ++i) {
            INFO("output " << i << (smallest_tasks ? ", smallest tasks" : ""));
            CHECK(difference(got[i], right[i], {.of_largest = 3e-6}) == "");
        }
    }
}

}  // namespace

TEST_CASE("panels of all widths") {
    Random random(5);
    const std::vector<std::int64_t> columns{33, 57, 64, 73, 80, 89, 93, 100, 121, 128, 193};
    for (const DType dtype : {DType::float32, DType::float64})
        for (const std::int64_t rows : {2, 5, 21}) {
            const std::int64_t depth = rows == 5 ? 131 : 12;
            INFO(rows << " rows of " << depth << " of " << (dtype == DType::float64 ? "float64" : "float32"));
            const Products p = products(dtype, {rows, depth}, columns);
            std::vector<Dims> shapes{{rows, depth}};
            for (const std::int64_t n : columns) shapes.push_back({depth, n + 7});
            check(p, arguments_of(p, shapes, random), tested_device());
        }
}

TEST_CASE("panels of unknown numbers of columns") {
    Random random(6);
    const Products p = products(DType::float32, {6, 9}, {-1});
    for (const std::int64_t n : {7, 8, 38, 39, 40, 70, 71, 72, 103, 141}) {
        INFO(n << " columns");
        check(p, arguments_of(p, {{6, 9}, {9, n}}, random), tested_device());
    }
}

TEST_CASE("a bias that is looked up or transposed for all windows is stored") {
    const Expr table = input(float32, {13, 3}, "table"), scores = input(float32, {-1, 3, 7, 7}, "scores");
    const Expr bias = input(float32, {7, 7, 3}, "bias");
    std::vector<std::int64_t> distances, others;
    for (int i = 0; i < 7; ++i)
        for (int j = 0; j < 7; ++j) {
            distances.push_back(i - j + 6);
            others.push_back((5 * i + 3 * j * j) % 13);
        }
    // Distances are known places, at which the table is a view.
    const auto looked_up = [&](const std::vector<std::int64_t>& at) {
        return transpose(table[constant(Array(at, {7, 7}))], {2, 0, 1});
    };
    const struct {
        Expr biases;
        Expr given;
        Dims dims;
        const char* reason;
    } forms[] = {{looked_up(others), table, {13, 3}, "looked up, and read many times"},
                 {looked_up(distances), table, {13, 3}, "not contiguous, and read many times"},
                 {transpose(bias, {2, 0, 1}), bias, {7, 7, 3}, "not contiguous, and read many times"}};
    Random random(8);
    for (const auto& form : forms) {
        INFO(form.reason);
        const Products p{{form.given, scores}, {softmax(scores * 0.25 + form.biases)}};
        check(p, arguments_of(p, {form.dims, {40, 3, 7, 7}}, random), tested_device());
        const Function f = function({form.given, scores}, p.outputs, {.device = "cpu"});
        CHECK(f.report(Detail::complete).find(form.reason) != std::string::npos);
    }
}

TEST_CASE("gradients of slices of a product are put together once") {
    // As the gates of recurrent networks: one product, of which each gate is a slice.
    const std::int64_t width = 40;
    const Expr x = input(float32, {24, 19}, "x"), w = input(float32, {19, 3 * width}, "w");
    const Expr bias = input(float32, {3 * width}, "bias"), gates = dot(x, w) + bias;
    const auto gate = [&](int k) { return gates[{colon, Slice{k * width, (k + 1) * width}}]; };
    const Expr h = sigmoid(gate(0)) * tanh(gate(2)) + sigmoid(gate(1));
    const Products p{{x, w, bias}, grad(sum(sqr(h)), {w, bias})};
    Random random(7);
    check(p, arguments_of(p, {{24, 19}, {19, 3 * width}, {3 * width}}, random), tested_device());
    const ScopedOptions scope(without_libraries(false));
    const Function f = function({x, w, bias}, p.outputs, {.device = "cpu"});
    CHECK(f.report(Detail::complete).find("\"concatenate\": float32 [24, 120]") != std::string::npos);
}
