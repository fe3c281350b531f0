// Lengths that a call cannot have: negative, and products or bytes beyond what can be counted. Refused before
// anything is allocated, on all devices.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bitale/function.h"
#include "bitale/ops.h"
#include "runtime/exec/int_table.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"

using namespace bitale;  // NOLINT
using bitale::test::message_of;
using bitale::test::Random;
using bitale::test::random_array;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62, least = std::numeric_limits<std::int64_t>::min();

struct SizeCase {
    std::string name;
    std::vector<Input> inputs;
    Expr result;
    std::vector<Array> arguments;
};

// Of no elements, and as long as can be said.
Array empty_of(DType dtype, std::int64_t length) { return Array(dtype, Dims{0, length}); }

std::vector<SizeCase> cases() {
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
        {"a square of which nothing is stored",
         {n},
         sum(broadcast_to(constant(Array(1.5F)), {n * n})),
         {whole(std::int64_t{1} << 32)}},
        {"a square beside a known length",
         {n},
         sum(broadcast_to(constant(Array(1.5F)), {n * n * 2, 3})),
         {whole(std::int64_t{1} << 31)}},
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
        for (const bool specialise : {false, true})
            for (const SizeCase& c : cases()) {
                INFO(c.name << ", " << device << (specialise ? ", for these lengths" : ""));
                Function f = function(c.inputs, {c.result}, {.device = device, .specialise = specialise});
                CHECK_THROWS_AS(f.call(c.arguments), Error);
            }
}

TEST_CASE("an array that cannot be counted is named with its line", "[core][runtime]") {
    const Expr n = lscalar("n");
    Function f = function({n}, {sum(broadcast_to(constant(Array(1.5F)), {n * n}))});
    CHECK_THROWS_WITH(f(std::int64_t{1} << 32),
                      ContainsSubstring("sizes_test.cpp:") &&
                          Catch::Matchers::EndsWith("more elements than can be counted"));
    Function g = function({n}, {n, range(0, n)});
    CHECK_THROWS_WITH(g(huge), ContainsSubstring("sizes_test.cpp:") &&
                                   ContainsSubstring("result 1 of the function: an array of int64"));
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

TEST_CASE("literal lengths that cannot be are refused where they are written", "[core][runtime]") {
    const Expr v = vector("v"), labels = ivector("labels"), byte = constant(Array(std::uint8_t{7}));
    RandomStream random(1);
    const Expr long_bytes = broadcast_to(byte, {huge});
    const std::vector<std::pair<std::string, std::function<void()>>> list = {
        {"uniform",
         [&] {
             eval(random.uniform({Expr(huge), Expr(8)}));
         }},
        {"uniform", [&] { eval(random.uniform({Expr(huge)})); }},
        {"uniform", [&] { eval(random.uniform({Expr(-3)})); }},
        {"normal",
         [&] {
             eval(random.normal({Expr(huge), Expr(huge)}));
         }},
        {"normal",
         [&] {
             eval(random.normal({v.length(0), Expr(huge)}), {{v, ones({1})}});
         }},
        {"range", [&] { eval(range(0, huge)); }},
        {"range", [&] { eval(range(least, huge)); }},
        {"expand",
         [&] {
             eval(broadcast_to(Expr(1.5F), {huge, huge}));
         }},
        {"expand",
         [&] {
             eval(broadcast_to(Expr(1.5F), {huge, 0, huge}));
         }},
        {"",
         [&] {
             eval(one_hot(labels, huge), {{labels, Array(std::vector<int>{1})}});
         }},
        {"concat",
         [&] {
             eval(sum(concatenate({long_bytes, long_bytes, long_bytes, long_bytes})));
         }},
        {"cast", [&] { eval(sum(cast(long_bytes, float32))); }},
        {"x",
         [&] {
             input(float32, {huge, 8}, "x");
         }},
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
        INFO("case " << i);
        CHECK_THAT(message_of<ShapeError>(list[i].second),
                   ContainsSubstring("sizes_test.cpp:") && ContainsSubstring(list[i].first));
    }
    // Of no elements, and of no product.
    CHECK(eval(broadcast_to(byte, {0, huge})).size() == 0);
    CHECK(eval(sum(broadcast_to(byte, {5}))).item<int>() == 35);
}

TEST_CASE("lengths of absurd arguments are the same on every device", "[core][runtime]") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const Expr n = lscalar("n"), m = lscalar("m"), v = vector("v");
    Random random(1);
    const Array twelve = random_array(float32, {12}, random);
    struct Bounds {
        std::int64_t n, m;
        std::int64_t rows;  // below 0: IndexError
    };
    const std::vector<Bounds> list = {{0, least, 0},    {1, least, 0},  {12, least, 0},  {2, 5, 3},
                                      {5, 2, 0},        {0, 12, 12},    {0, 13, -1},     {13, 13, -1},
                                      {-1, 3, -1},      {least, 0, -1}, {13, least, -1}, {least, least, -1},
                                      {most, most, -1}, {most, 0, -1},  {0, most, -1}};
    for (const char* device : {"cpu", "emulator", "reference", "reference=wide"}) {
        Function f = function({n, m, v}, {v[range(n, m)], v[range(n, m)] * 2}, {.device = device});
        for (const Bounds& b : list) {
            INFO(device << ", from " << b.n << " to " << b.m);
            const std::vector<Array> arguments{Array(b.n), Array(b.m), twelve};
            if (b.rows < 0) {
                CHECK_THAT(message_of<IndexError>([&] { f.call(arguments); }),
                           ContainsSubstring("sizes_test.cpp:") && ContainsSubstring("\"v\""));
            } else {
                const Array got = f.call(arguments)[0];
                CHECK(same(got, twelve.rows(b.rows ? b.n : 0, b.rows ? b.n + b.rows : 0)));
            }
        }
    }
}

TEST_CASE("lengths that the host computes are those of the expressions", "[core][runtime]") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const IntRange any{IntRange::lowest, IntRange::highest};
    const Int a = Int::symbol("a", any), b = Int::symbol("b", any), c = Int::symbol("c", any);
    const std::vector<Int> forms = {a + b,
                                    a - b,
                                    a * b,
                                    a * b * c,
                                    3 * a - 2 * b + 5,
                                    max(b - a, 0),
                                    min(a * b, c),
                                    floordiv(a, b),
                                    mod(a, b),
                                    ceildiv(max(b - a, 0), 3),
                                    floordiv(a + 7, 4) * 4 - b,
                                    a * a - b * 8,
                                    min(max(a, 0), 12) - min(max(b, 0), 12)};
    const std::vector<std::int64_t> numbers = {least, least + 1, -huge, -3,   -1,       0,
                                               1,     2,         7,     huge, most - 1, most};
    const std::vector<std::uint64_t> ids = {a.symbol_id(), b.symbol_id(), c.symbol_id()};
    IntTable table(ids);
    std::vector<int> slots;
    for (const Int& form : forms) slots.push_back(table.add(form));
    std::vector<std::int64_t> computed(static_cast<std::size_t>(table.slots()));
    for (const std::int64_t x : numbers)
        for (const std::int64_t y : numbers)
            for (const std::int64_t z : {least, std::int64_t{-2}, std::int64_t{5}, most}) {
                const std::int64_t values[] = {x, y, z};
                table.evaluate(values, computed.data());
                for (std::size_t i = 0; i < forms.size(); ++i) {
                    INFO(forms[i].text() << " of " << x << ", " << y << ", " << z);
                    CHECK(evaluate(forms[i], {{ids[0], x}, {ids[1], y}, {ids[2], z}}) ==
                          computed[static_cast<std::size_t>(slots[i])]);
                }
            }
}

TEST_CASE("a loop names the step whose index does not fit, the first one too", "[core][runtime]") {
    const Expr byte = scalar("byte", uint8), row = lscalar("row"), x = vector("x");
    const Shared data = shared(ones({4}), "data");
    for (const char* device : {"cpu", "emulator", "reference"}) {
        INFO(device);
        Function f = function({byte}, byte + byte, {.device = device}),
                 g = function({row}, Expr(data)[Slice{row, row + 1}], {.device = device});
        CHECK_THAT(message_of<TypeError>([&] { f.loop(-3, 3); }),
                   ContainsSubstring("in step 0 of the loop, whose first argument is -3"));
        CHECK_THAT(message_of<TypeError>([&] { f.loop(254, 300); }),
                   ContainsSubstring("in step 2 of the loop, whose first argument is 256"));
        CHECK_THAT(message_of<IndexError>([&] { g.loop(7, 9); }),
                   ContainsSubstring("in step 0 of the loop, whose first argument is 7"));
        CHECK_THAT(message_of<IndexError>([&] { g.loop(3, 9); }), ContainsSubstring("in step 1 of the loop"));
    }
}
