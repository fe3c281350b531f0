// math=strict: what is compiled rounds where the expression does, so it has the bits of the reference device
// as long as no sum and no approximated function is in it; the report says what was held back.
#include <fmt/format.h>

#include <string_view>

#include "graph/base/options.h"
#include "tests/numerics/random_graph.h"
#include "tests/support/catch.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr std::int64_t length = 600;

Options strict() {
    Options o = options();
    o.strict_math = true;
    o.disabled.insert("stabilizes");  // which makes numbers of what would be infinite or NaN
    return o;
}

// Expressions of operations that are rounded correctly, or not at all, with many constants and copies.
class Expressions {
  public:
    Expressions(std::uint64_t seed, DType dtype) : random_(seed), dtype_(dtype) {
        for (int i = 0; i < 3; ++i) {
            inputs.push_back(input(dtype, {length}, fmt::format("x{}_{}", i, seed)));
            arguments.push_back(special_array(dtype, {length}, random_, i));
            values_.push_back(inputs.back());
        }
    }

    Expr operator()(int operations) {
        for (int i = 0; i < operations; ++i) values_.push_back(next());
        return values_.back();
    }

    std::vector<Expr> inputs;
    std::vector<Array> arguments;

  private:
    // Recent values, so that constants meet.
    const Expr& value() {
        const auto last = static_cast<std::int64_t>(values_.size()) - 1;
        return values_[static_cast<std::size_t>(random_.between(random_.chance(4) ? 0 : last, last))];
    }
    double number() {
        static const std::vector<double> numbers = {0, 0.1, -1, 1, 2, 3, -5, 0.25, 1e30, 7e-30, -1e-3};
        return random_.pick(numbers);
    }

    Expr next() {
        const Expr &x = value(), &y = value();
        switch (random_.between(0, 15)) {
            case 0: return x + number();
            case 1: return number() - x;
            case 2:
            case 3: return x * number();
            case 4: return x / number();
            case 5: return number() / x;
            case 6: return x + y;
            case 7: return x - y;
            case 8: return x * y;
            case 9: return x / y;
            case 10: return x * (1 / y);
            case 11: return -x;
            case 12: return random_.chance(2) ? sqr(x) : sqrt(x);
            case 13: return random_.chance(2) ? maximum(x, y) : minimum(x, number());
            case 14: return cast(gt(x, y), dtype_) * y;
            default: return where(lt(x, y), x, y * number());
        }
    }

    Random random_;
    DType dtype_;
    std::vector<Expr> values_;
};

struct Differing {
    int expressions = 0, differ = 0;
    std::string first;
};

// Expressions compiled as one function, against plain loops.
Differing compared(DType dtype, std::uint64_t first_seed, int count) {
    Differing r;
    std::vector<Input> inputs;
    std::vector<Array> arguments;
    std::vector<Expr> outputs;
    for (int i = 0; i < count; ++i) {
        Expressions expressions(first_seed + static_cast<std::uint64_t>(i), dtype);
        outputs.push_back(expressions(14));
        inputs.insert(inputs.end(), expressions.inputs.begin(), expressions.inputs.end());
        arguments.insert(arguments.end(), expressions.arguments.begin(), expressions.arguments.end());
    }
    FunctionOptions how;
    how.on_unused_input = OnUnused::ignore;
    how.device = tested_device();
    Function f = function(inputs, outputs, how);
    how.device = "reference";
    Function plain = function(inputs, outputs, how);
    const Results got = f.call(arguments), expected = plain.call(arguments);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
        ++r.expressions;
        const std::string d = difference(got[k], expected[k]);
        if (d.empty()) continue;
        ++r.differ;
        if (r.first.empty()) r.first = fmt::format("seed {}: {}", first_seed + k, d);
    }
    return r;
}

}  // namespace

TEST_CASE("under math=strict expressions have the bits of plain loops that round every value") {
    for (const DType dtype : {float32, float64}) {
        CHECK(compared(dtype, 1, 40).differ > 3);  // rewritten as usual
        const ScopedOptions scope(strict());
        const Differing r = compared(dtype, 1, 40);
        INFO(r.first);
        CHECK(r.expressions == 40);
        CHECK(r.differ == 0);
    }
}

TEST_CASE("many expressions under math=strict have the bits of plain loops", "[slow]") {
    const ScopedOptions scope(strict());
    for (std::uint64_t seed = 1000; seed < 3000; seed += 100)
        for (const DType dtype : {float32, float64}) {
            const Differing r = compared(dtype, seed, 100);
            INFO(r.first);
            CHECK(r.differ == 0);
        }
}

TEST_CASE("the report says that math=strict is on, and what it held back") {
    const Expr x = vector("x"), image = input(float32, Dims{-1, 1, 12, 12}, "image"),
               w = input(float32, Dims{8, 1, 5, 5}, "w");
    const auto report = [&](const Expr& e) {
        return function({x, image, w}, e, {.device = tested_device(), .on_unused_input = OnUnused::ignore})
            .report(Detail::complete);
    };
    const auto filters = [&] { return grad(sum(sqr(max_pool(conv2d(image, w), {2, 2}))), w); };
    CHECK_THAT(report(x * 3 * 5), !ContainsSubstring("math=strict"));
    Options o = options();
    o.strict_math = true;
    o.disabled.insert("cudnn");
    const ScopedOptions scope(o);
    CHECK_THAT(report(x * 3 * 5 + 0.0),
               ContainsSubstring("math=strict: held back add-zero, mul-constants\n"));
    CHECK_THAT(report(x + x), ContainsSubstring("math=strict: no rule had to be held back"));
    const std::string gradient = report(filters());
    CHECK_THAT(gradient, ContainsSubstring("conv-grad-w-unpool"));
    // A GPU goes over all places anyway.
    if (std::string_view(tested_device()) == "cpu")
        CHECK_THAT(gradient,
                   ContainsSubstring("over all places, because math=strict leaves out no product with zero"));
}

TEST_CASE("a function with an unknown name in disable= is an error on every device") {
    Options o = options();
    o.disabled = {"cublaslt"};
    const ScopedOptions scope(o);
    const Expr x = vector("x");
    for (const char* device : {tested_device(), "reference", "null"})
        CHECK_THROWS_WITH(
            function({x}, x * 2, {.device = device}),
            ContainsSubstring("disable=\"cublaslt\" is no rule, tag of rules, pass or library"));
}
