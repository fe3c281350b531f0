// Lengths that a call cannot have: negative, and products or bytes beyond what can be counted. Refused before
// anything is allocated, on all devices.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "bitale/function.h"
#include "bitale/ops.h"
#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62, least = std::numeric_limits<std::int64_t>::min();

struct Case {
    std::string name;
    std::vector<Input> inputs;
    Expr result;
    std::vector<Array> arguments;
};

// Of no elements, and as long as can be said.
Array empty_of(DType dtype, std::int64_t length) { return Array(dtype, Dims{0, length}); }

std::vector<Case> cases() {
    const Expr n = lscalar("n"), m = lscalar("m"), v = vector("v"), x = matrix("x"),
               labels = ivector("labels"), bytes = matrix("bytes", uint8);
    RandomStream random(1);
    const Array twelve(float32, Dims{12}), four(int32, Dims{4});
    const auto whole = [](std::int64_t a) { return Array(a); };
    return {
        {"twice negative, reshape",
         {n, m, v},
         flatten(softmax(reshape(v, {n, m}))),
         {whole(-3), whole(-4), twelve}},
        {"twice negative, sum", {n, m, v}, sum(reshape(v, {n, m})), {whole(-3), whole(-4), twelve}},
        {"twice negative, random", {n, m}, mean(random.uniform({n, m})), {whole(-3), whole(-4)}},
        {"negative classes", {labels, n}, sum(one_hot(labels, n)), {four, whole(-5)}},
        {"negative draws", {n}, sum(random.uniform({n})), {whole(-1)}},
        {"a product that wraps to 12",
         {n, m, v},
         sum(reshape(v, {n, m}), {1}),
         {whole(7), whole(2635249153387078804), twelve}},
        {"a product that wraps to a small number",
         {n, m},
         sum(broadcast_to(constant(Array(1.5F)), {n, m})),
         {whole(312749974083), whole(6416927582074158340)}},
        {"a long range", {n}, range(0, n), {whole(huge)}},
        {"many draws", {n}, random.uniform({n}), {whole(huge)}},
        {"many classes", {labels, n}, one_hot(labels, n), {four, whole(huge)}},
        {"a long result", {bytes}, mean(cast(bytes, float32), {0}), {empty_of(uint8, huge / 2)}},
        {"a square result", {x}, dot(transpose(x), x), {empty_of(float32, std::int64_t{1} << 31)}},
        {"a long intermediate result",
         {bytes},
         sum(sqr(cast(bytes, float32) - mean(cast(bytes, float32), {0}))),
         {empty_of(uint8, huge / 2)}},
    };
}

}  // namespace

TEST_CASE("lengths that cannot be are refused", "[core][runtime]") {
    for (const char* device : {"cpu", "emulator", "reference"})
        for (const Case& c : cases()) {
            INFO(c.name << ", " << device);
            Function f = function(c.inputs, {c.result}, {.device = device});
            CHECK_THROWS_AS(f.call(c.arguments), Error);
        }
}

TEST_CASE("the quotient and the remainder of the least number by -1 as lengths", "[core][runtime]") {
    const Expr n = lscalar("n"), m = lscalar("m"), v = vector("v");
    const Array twelve = ones({12});
    for (const char* device : {"cpu", "emulator", "reference"}) {
        INFO(device);
        Function quotient = function({n, m, v}, sum(v[Slice{0, floordiv(n, m)}]), {.device = device}),
                 remainder = function({n, m, v}, sum(v[Slice{0, n % m}]), {.device = device});
        CHECK(Array(remainder(Array(least), Array(std::int64_t{-1}), twelve)).item<float>() == 0);
        // The quotient is no 64-bit number: it may wrap, or be the greatest of them.
        const float sum = Array(quotient(Array(least), Array(std::int64_t{-1}), twelve)).item<float>();
        CHECK((sum == 12 || sum == 0));
    }
}

TEST_CASE("a loop whose results cannot be counted leaves the variables alone", "[core][runtime]") {
    const Shared w = shared(zeros({8}), "w");
    const Expr i = lscalar("i");
    for (const char* device : {"cpu", "emulator"}) {
        INFO(device);
        Function step = function({i}, {i + 1}, {.updates = {{w, w + 1}}, .device = device});
        for (const std::int64_t steps : {huge, huge / 2, std::numeric_limits<std::int64_t>::max()})
            CHECK_THROWS_AS(step.loop(0, steps), Error);
        CHECK(w.get_value().at(0) == 0);
    }
}

TEST_CASE("an index below 0 is no unsigned one", "[core][runtime]") {
    for (const char* device : {"cpu", "reference"}) {
        INFO(device);
        const Expr i = scalar("i", uint64);
        Function f = function({i}, i + 1, {.device = device});
        CHECK_THROWS_AS(f.loop(-3, 3), Error);
        CHECK(f.loop(0, 3)[0].to_vector<std::uint64_t>() == std::vector<std::uint64_t>{1, 2, 3});
    }
}
