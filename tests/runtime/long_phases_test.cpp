// Kernels of many segments: a host compiler gets them as several functions.
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// One vector after the other, of lengths that only a call tells, doubled.
void check_joined(std::int64_t count, const std::string& device, bool in_parts) {
    std::vector<Expr> parts;
    std::vector<Input> inputs;
    std::vector<Array> values;
    std::vector<float> expected;
    for (std::int64_t k = 0; k < count; ++k) {
        parts.push_back(vector("part" + std::to_string(k)));
        inputs.emplace_back(parts.back());
        const std::int64_t length = k % 5;  // an empty one too
        std::vector<float> value;
        for (std::int64_t i = 0; i < length; ++i) value.push_back(static_cast<float>(100 * k + i));
        for (const float x : value) expected.push_back(2 * x);
        values.push_back(Array(value, {length}));
    }
    Function f = function(inputs, {concatenate(parts) * 2}, {.device = device});
    const Array got = f.call(values)[0];
    CHECK(difference(got, Array(expected)) == "");
    if (device != "cpu") return;
    REQUIRE(f.kernels().size() == 1);
    CHECK(contains(f.kernels()[0].source, "_part1(buffers, sizes, first, last);") == in_parts);
}

// Without comments, which write out each sum of lengths.
std::size_t bytes_of_code(const std::string& source) {
    std::istringstream lines(source);
    std::size_t n = 0;
    for (std::string line; std::getline(lines, line);)
        if (line.compare(std::min(line.find_first_not_of(' '), line.size()), 2, "//") != 0) n += line.size();
    return n;
}

// Matrices side by side, of numbers of columns that only a call tells; how long the kernel is.
std::size_t check_columns(std::int64_t count, const std::string& device) {
    constexpr std::int64_t rows = 20;
    std::vector<Expr> parts;
    std::vector<Input> inputs;
    std::vector<Array> values;
    std::int64_t width = 0;
    for (std::int64_t k = 0; k < count; width += k++ % 4) {
        parts.push_back(matrix("part" + std::to_string(k)));
        inputs.emplace_back(parts.back());
        std::vector<float> value;
        for (std::int64_t i = 0; i < rows * (k % 4); ++i) value.push_back(static_cast<float>(100 * k + i));
        values.push_back(Array(value, {rows, k % 4}));
    }
    std::vector<float> expected;
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t k = 0; k < count; ++k)
            for (std::int64_t i = row * (k % 4); i < (row + 1) * (k % 4); ++i)
                expected.push_back(static_cast<float>(100 * k + i));
    Function f = function(inputs, {concatenate(parts, 1)}, {.device = device, .specialise = false});
    CHECK(difference(f.call(values)[0], Array(expected, {rows, width})) == "");
    return device == "reference" ? 0 : bytes_of_code(f.kernels()[0].source);
}

// The gradient of each of many parts is its own place in that of the whole.
std::size_t check_gradients(std::int64_t count, const std::string& device) {
    std::vector<Expr> parts;
    std::vector<Input> inputs;
    std::vector<Array> values;
    for (std::int64_t k = 0; k < count; ++k) {
        parts.push_back(vector("part" + std::to_string(k)));
        inputs.emplace_back(parts.back());
        values.push_back(full_of({k % 3}, static_cast<double>(k)));
    }
    Function f =
        function(inputs, grad(sum(sqr(concatenate(parts))), parts), {.device = device, .specialise = false});
    const Results got = f.call(values);
    for (std::int64_t k = 0; k < count; ++k)
        CHECK(difference(got[static_cast<std::size_t>(k)], full_of({k % 3}, 2.0 * static_cast<double>(k))) ==
              "");
    std::size_t bytes = 0;
    if (device != "reference")
        for (const auto& kernel : f.kernels()) bytes += bytes_of_code(kernel.source);
    return bytes;
}

}  // namespace

TEST_CASE("a kernel of more than 32 segments is several functions", "[core][runtime][long_phases]") {
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        check_joined(32, device, false);
        check_joined(33, device, true);
        check_joined(70, device, true);
    }
}

TEST_CASE("the text of many parts of unknown lengths is as long as their number",
          "[core][runtime][long_phases]") {
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const std::size_t some = check_columns(35, device), more = check_columns(70, device);
        CHECK(some > 1000);
        CHECK(more < 2 * some + some / 5);
    }
    check_columns(35, "reference");
    check_columns(70, "reference");
}

TEST_CASE("gradients of many parts of unknown lengths read no other part", "[core][runtime][long_phases]") {
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device);
        const std::size_t some = check_gradients(40, device), more = check_gradients(80, device);
        CHECK(some > 1000);
        CHECK(more < 2 * some + some / 5);
    }
    check_gradients(70, "reference");
}

TEST_CASE("starts of segments of unlike numbers of tasks are right", "[core][runtime][long_phases]") {
    for (const std::string& device : cpu_and_emulator())
        for (const std::int64_t count : {3, 40}) {
            std::vector<Expr> sums;
            std::vector<Input> inputs;
            std::vector<Array> values;
            for (std::int64_t k = 0; k < count; ++k) {
                const Expr x = matrix("x" + std::to_string(k));
                inputs.emplace_back(x);
                sums.push_back(sum(x, 1));
                values.push_back(full_of({(7 * k) % 40, 3}, static_cast<double>(k)));
            }
            const Results got = function(inputs, sums, {.device = device, .specialise = false}).call(values);
            for (std::int64_t k = 0; k < count; ++k)
                CHECK(difference(got[static_cast<std::size_t>(k)],
                                 full_of({(7 * k) % 40}, static_cast<double>(3 * k))) == "");
        }
}

TEST_CASE("kernels of many reductions and shared lengths are right in several functions",
          "[core][runtime][long_phases]") {
    const Expr n = matrix("x");
    std::vector<Expr> outputs;
    for (int k = 0; k < 40; ++k) outputs.push_back(sum(n * static_cast<float>(k + 1), {1}) + max(n));
    const Array x(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
    for (const std::string& device : cpu_and_emulator()) {
        const Results got = function({n}, outputs, {.device = device})(x);
        for (std::size_t k = 0; k < outputs.size(); ++k) {
            const auto factor = static_cast<float>(k + 1);
            CHECK(difference(got[k], Array(std::vector<float>{6 * factor + 6, 15 * factor + 6})) == "");
        }
    }
}

TEST_CASE("a CPU reads booleans as bytes, which in lanes beyond a row may be any",
          "[core][runtime][long_phases]") {
    const Expr mask = input(boolean, {-1, 9}, "mask"), x = input(float32, {-1, 9}, "x");
    Function f = function({mask, x}, {where(mask, x, 0)}, {.device = "cpu"});
    CHECK(contains(f.kernels()[0].source, "(const u8*)buffers["));
}
