// What decides how long a function takes to compile: how kernels are named, shared and spread over files.
#include <cmath>
#include <string>
#include <vector>

#include "bitale/function.h"
#include "bitale/ops.h"
#include "codegen/print/comments.h"
#include "graph/base/options.h"
#include "runtime/cpu/objects.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

Program of_lengths(const std::vector<std::size_t>& lengths) {
    Program p;
    p.prelude = "// prelude";
    for (std::size_t k = 0; k < lengths.size(); ++k)
        p.kernels.push_back({"k" + std::to_string(k), {}, std::string(lengths[k], 'x'), {}, {}, {}, {}});
    return p;
}

Function scaled(float factor, float offset, const std::string& cache) {
    Options o = options();
    o.cache_directory = cache;
    const ScopedOptions scoped(o);
    Expr x = bitale::vector("x");
    return function({x}, exp(x * factor) + offset, {.device = "cpu"});
}

}  // namespace

TEST_CASE("comments are dropped line by line", "[core][runtime][compile_time]") {
    REQUIRE(without_comments("").empty());
    REQUIRE(without_comments("a;\n") == "a;\n");
    REQUIRE(without_comments("// one\n  // two\na;  // stays\n\n  b;\n// end") == "a;  // stays\n\n  b;\n");
    REQUIRE(without_comments("a; /* no */\n/ b") == "a; /* no */\n/ b");
}

TEST_CASE("long kernels are compiled side by side", "[core][runtime][compile_time]") {
    constexpr std::size_t kb = 1024;
    CHECK(translation_units(of_lengths({kb, kb, kb, kb})).size() == 1);
    CHECK(translation_units(of_lengths({16 * kb, 16 * kb})).size() == 2);
    CHECK(translation_units(of_lengths({16 * kb, 16 * kb, 16 * kb, 16 * kb})).size() == 4);
    // One long kernel is one function: the others share the second file.
    const std::vector<TranslationUnit> units =
        translation_units(of_lengths({60 * kb, 4 * kb, 4 * kb, 4 * kb}));
    REQUIRE(units.size() == 2);
    CHECK(units[0].kernels == std::vector<int>{0});
    CHECK(units[1].kernels == std::vector<int>{1, 2, 3});
    CHECK(translation_units(of_lengths({100 * kb})).size() == 1);
}

TEST_CASE("a function that differs in numbers only needs no compiler", "[core][runtime][compile_time]") {
    const TemporaryFolder folder;
    const std::string cache = folder / "cache";
    Function first = scaled(0.37F, 0.123F, cache);
    const std::vector<float> x = {-2, -0.5F, 0, 0.1F, 1, 3};
    // Another line, and other numbers.
    Function second = scaled(-0.71F, 1e-8F, cache);
    CHECK(second.compiler_runs() == 0);
    CHECK(first.kernels().at(0).name == second.kernels().at(0).name);
    const auto check = [&](Function& f, double factor, double offset) {
        const std::vector<float> y = f(x).operator Array().to_vector<float>();
        for (std::size_t i = 0; i < x.size(); ++i)
            CHECK(y[i] == Approx(std::exp(x[i] * factor) + offset).epsilon(1e-6));
    };
    check(first, 0.37F, 0.123F);
    check(second, -0.71F, 1e-8F);
    // What a compiler makes something of stays in the text.
    Function doubled = scaled(2, 0.123F, cache);
    CHECK(doubled.kernels().at(0).name != first.kernels().at(0).name);
    check(doubled, 2, 0.123F);
}

TEST_CASE("literals as parameters: the same bits as in the text", "[core][runtime][compile_time]") {
    Expr x = bitale::vector("x"), d = bitale::vector("d", float64);
    // pow keeps its exponent in the text, and so does every other 0.3 of that kernel.
    Function f =
        function({x}, {x * 0.3F, x / 0.7F, 0.1F - x, maximum(x, 0.45F), pow(x, 0.3F)}, {.device = "cpu"});
    const std::vector<float> values = {0.1F, 0.3F, 0.7F, 1e-30F, 17.25F, 3e8F};
    const Results r = f(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float v = values[i];
        CHECK(r[0].to_vector<float>()[i] == v * 0.3F);
        CHECK(r[1].to_vector<float>()[i] == v / 0.7F);
        CHECK(r[2].to_vector<float>()[i] == 0.1F - v);
        CHECK(r[3].to_vector<float>()[i] == std::max(v, 0.45F));
        CHECK(r[4].to_vector<float>()[i] == Approx(std::pow(double{v}, double{0.3F})).epsilon(1e-5));
    }
    Function g = function({d}, d * 0.1 + 1.0 / 3, {.device = "cpu"});
    const std::vector<double> wide = {0.1, -5.5, 1e300};
    const std::vector<double> y = g(wide).operator Array().to_vector<double>();
    for (std::size_t i = 0; i < wide.size(); ++i) CHECK(y[i] == wide[i] * 0.1 + 1.0 / 3);
}
