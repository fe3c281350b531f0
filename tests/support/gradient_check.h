// Gradients against central finite differences, both through the wide oracle.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "ops/dsl/build.h"
#include "tests/support/catch.h"
#include "tests/support/oracles.h"

namespace bitale::test {

// d sum(f(inputs) * weights) / d input for every floating-point input, whose lengths are symbols where
// `symbolic`.
inline void require_gradient(const std::function<Expr(const std::vector<Expr>&)>& f,
                             const std::vector<Array>& values, bool symbolic = false,
                             double tolerance = 1e-6) {
    std::vector<Expr> inputs, wrt;
    std::vector<Array> at = values;
    for (Array& x : at) {
        if (is_float(x.dtype())) x = x.as(DType::float64);
        const std::string name = "x" + std::to_string(inputs.size());
        inputs.push_back(symbolic ? input(x.dtype(), x.rank(), name) : input(x.dtype(), x.shape(), name));
        if (is_float(x.dtype())) wrt.push_back(inputs.back());
    }
    const Expr y = f(inputs);
    // Weights that differ, so that no two elements can stand in for each other.
    const Array shape_of_y = evaluated(y, inputs, at);
    std::vector<double> weights;
    for (std::int64_t i = 0; i < shape_of_y.size(); ++i)
        weights.push_back(0.5 + static_cast<double>(i * 7 % 11) / 8);
    const Expr cost = sum(y * constant(Array(weights, shape_of_y.shape())));
    const std::vector<Array> gradients = evaluated(grad(cost, wrt), inputs, at);
    std::size_t number = 0;
    for (std::size_t k = 0; k < at.size(); ++k) {
        if (!is_float(at[k].dtype())) continue;
        const Array& gradient = gradients[number++];
        REQUIRE(gradient.dtype() == DType::float64);
        REQUIRE(gradient.shape() == at[k].shape());
        for (std::int64_t i = 0; i < at[k].size(); ++i) {
            const double x = at[k].at(i), step = 1e-5;
            const auto cost_at = [&](double moved) {
                std::vector<Array> there = at;
                static_cast<double*>(there[k].mutable_data())[i] = moved;
                return evaluated(cost, inputs, there).item<double>();
            };
            const double expected = (cost_at(x + step) - cost_at(x - step)) / (2 * step);
            INFO("input " << k << ", element " << i);
            CHECK(gradient.at(i) == Approx(expected).epsilon(tolerance).margin(tolerance));
        }
    }
}

// The message of the error that f throws. It must begin with the user's file and line: that of this call, or
// one of the next few where the call is long.
template <class Error, class F>
std::string message_of(F&& f, Where where = Where::current()) {
    std::string message;
    try {
        f();
    } catch (const Error& e) {
        message = e.what();
    }
    bool named = false;
    for (unsigned further = 0; further < 8; ++further)
        named |= message.starts_with(Where{where.file, where.line + further}.text() + ": ");
    INFO("from " << where.text());
    INFO("message: " << message);
    CHECK(named);
    return message;
}

}  // namespace bitale::test
