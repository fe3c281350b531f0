// Errors of a call show the lengths of the call in the place of symbols.
#include "runtime/exec/told_lengths.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::vector<std::string> every_device() {
    std::vector<std::string> all = cpu_and_emulator();
    all.emplace_back("reference");
    return all;
}

// The text of a sum of the symbols is what its number replaces.
void check_number(const Int& x, const std::map<std::uint64_t, std::int64_t>& values,
                  const ToldLengths& told) {
    INFO(x.text());
    CHECK(told.in("a [2, " + x.text() + ", 3] b") ==
          "a [2, " + std::to_string(evaluate(x, values)) + ", 3] b");
}

}  // namespace

TEST_CASE("texts of lengths become numbers", "[core][runtime]") {
    const Int x = Int::symbol("x.1"), y = Int::symbol("x.10"), odd = Int::symbol("a, [b] - 2.0");
    ToldLengths told;
    told.add("x.1", 7);
    told.add("x.10", 30);
    told.add("a, [b] - 2.0", 5);
    const std::map<std::uint64_t, std::int64_t> values = {
        {x.symbol_id(), 7}, {y.symbol_id(), 30}, {odd.symbol_id(), 5}};
    for (const Int& length : {x, y, odd, x + y, y - 2 * x - 3, -x, x * x * y, floordiv(y - 1, 4) + 1,
                              -16 * floordiv(x, 2) + 8 * floordiv(x, 2) * floordiv(y, 2) + 32,
                              min(x, y) * odd, max(x - y, Int(0)) + min(odd, max(x, y - 20)), Int(4)})
        check_number(length, values, told);
}

TEST_CASE("what is no length of the call stays", "[core][runtime]") {
    ToldLengths told;
    told.add("x.0", 7);
    told.add("x.0", 7);
    told.add("twice.0", 7);
    told.add("twice.0", 8);
    told.add("", 9);
    for (const char* text : {"",
                             "[",
                             "[]",
                             "\"[x.0]\"",
                             "\"a\\\"[x.0]\"",
                             "x.0",
                             "x.0 + 1",
                             "[y.0, z]",
                             "[twice.0]",
                             "[twice.0 + x.0]",
                             "[0, 10)",
                             "[x.01]",
                             "[x.0 +1]",
                             "[x.0",
                             "[<=50, 3]",
                             "{[n, c, h, w]}",
                             "[floordiv(x.0]",
                             "[min(x.0, y.0)]",
                             "[99999999999999999999]",
                             "a[i]",
                             "[(((((((((((("})
        CHECK(told.in(text) == text);
    CHECK(told.in("[x.0, y.0]") == "[7, y.0]");
    CHECK(told.in(std::string(100000, '[') + "x.0]") == std::string(100000, '[') + "7]");
    CHECK(told.in('[' + std::string(100000, '(')) == '[' + std::string(100000, '('));
    std::string deep = "[";
    for (int k = 0; k < 100000; ++k) deep += "min(";
    CHECK(told.in(deep) == deep);
}

TEST_CASE("a call's errors show its shapes", "[core][runtime]") {
    const Shared filters = shared(zeros({8, 3, 5, 5}), "k"), weights = shared(zeros({1152, 10}), "v");
    for (const std::string& device : every_device()) {
        INFO(device);
        const auto message = [&](const std::vector<Input>& inputs, const Expr& result,
                                 const std::vector<Array>& values) {
            return message_of<Error>([&] { function(inputs, {result}, {.device = device}).call(values); });
        };
        const Expr images = tensor4("x");
        CHECK_THAT(message({images}, dot(flatten(max_pool(relu(conv2d(images, filters)), 2), 2), weights),
                           {zeros({10, 3, 32, 32})}),
                   ContainsSubstring("dot of reshape (float32 [10, 1568])") &&
                       ContainsSubstring("; \"v\" needs a row for each of the 1568 features"));
        CHECK_THAT(message({images}, conv2d(images, filters), {zeros({10, 3, 4, 9})}),
                   ContainsSubstring("conv2d of \"x\" (float32 [10, 3, 4, 9])") &&
                       ContainsSubstring("the height of a filter, 5, is more than that of the images, 4;"));
        CHECK_THAT(message({images}, max_pool(max_pool(images, 2), 2), {zeros({2, 1, 3, 8})}),
                   ContainsSubstring("max_pool of max_pool (float32 [2, 1, 1, 4])") &&
                       ContainsSubstring("the height of its window, 2, is more than that of the images, 1;"));
        const Expr q = tensor3("q"), k = tensor3("k");
        CHECK_THAT(message({q, k}, matmul(q, k), {zeros({2, 5, 3}), zeros({2, 5, 3})}),
                   ContainsSubstring("matmul of \"q\" (float32 [2, 5, 3])") &&
                       ContainsSubstring("axis 2 of \"q\" has length 3 and axis 1 of \"k\" has length 5"));
        CHECK_THAT(
            message({q, k}, matmul(q, k), {zeros({2, 5, 3}), zeros({4, 3, 5})}),
            ContainsSubstring("the numbers of matrices must be equal, but axis 0 of \"q\" has length 2"));
        const Expr x = matrix("x"), labels = ivector("y");
        CHECK_THAT(
            message({x, labels}, neq(argmax(x, 1), labels), {zeros({5, 3}), Array(std::vector<int>(6), {6})}),
            ContainsSubstring("neq of argmax (int64 [5])") && ContainsSubstring("\"y\" (int32 [6])"));
        CHECK_THAT(message({x}, x[5], {zeros({5, 2})}),
                   ContainsSubstring("index 5 is out of range for axis 0 of \"x\" (float32 [5, 2])") &&
                       ContainsSubstring(", whose length is 5"));
        CHECK_THAT(message({x}, x[-7], {zeros({5, 2})}), ContainsSubstring("index -7 is out of range"));
        CHECK_THAT(
            message({x, labels}, mean(softmax_crossentropy(x, labels)),
                    {zeros({2, 10}), Array(std::vector<int>{3, 12})}),
            ContainsSubstring("a label of softmax_crossentropy in \"y\" is out of range, 0 to 9: 12 at "
                              "element 1"));
    }
}

TEST_CASE("a loop tells which output has another shape", "[core][runtime]") {
    const Shared data = shared(zeros({250, 3}), "d");
    const Expr i = iscalar("i");
    for (const std::string& device : every_device()) {
        INFO(device);
        Function f = function({i}, {sum(Expr(data)[Slice{i * 100, (i + 1) * 100}], 1)},
                              {.name = "sums", .device = device});
        CHECK_THAT(message_of<ShapeError>([&] { f.loop(0, 3); }),
                   ContainsSubstring("output 0 has the shape [50] in this step and [100] in the first"));
    }
}

TEST_CASE("numbers of matrices that never fit are refused at once", "[core][runtime]") {
    const Expr a = input(float32, {2, 5, 3}, "a"), b = input(float32, {3, 3, 5}, "b"),
               c = input(float32, {1, 3, 5}, "c");
    CHECK_THAT(message_of<ShapeError>([&] { matmul(a, b); }),
               ContainsSubstring("matmul of \"a\"") && ContainsSubstring("axis 0 of \"b\" has length 3"));
    CHECK(matmul(a, c).shape_text() == "[2, 5, 5]");
}
