// The locale of a program changes neither what functions compute nor what the library writes.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/tune/choices.h"
#include "tests/support/catch.h"
#include "tests/support/comma_locale.h"
#include "tests/support/emulator.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::vector<double> computed_in(const std::string& device) {
    const Expr x = vector("x");
    Function f = function({x},
                          {x * 0.25F + 1.5F, cast(x < 2.5F, float32), where(x > 0.5F, x, -1.5F),
                           tanh(pow(abs(x), 0.3F)), cumsum(x * 0.1F, 0), pad(x, {{1, 1}}, 0.125)},
                          {.device = device});
    std::vector<double> all;
    const Results results = f(Array{0.25F, -1.F, 3.F, 100.F});
    for (std::size_t i = 0; i < results.size(); ++i) {
        const std::vector<double> more = results[i].as(float64).to_vector<double>();
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

struct Texts {
    std::string numbers, plan, picture, graph, error, other_error, choice;
    bool operator==(const Texts&) const = default;
};

Texts texts() {
    const Expr x = matrix("x");
    const Function f = function({x}, sum(exp(clip(x * 0.25F, -1.5F, 2.5F)), 1), {.name = "texts"});
    const MemoryPlan plan = f.memory_plan({{x, {1234, 567}}});
    RandomStream random(1);
    return {to_text(Array{0.5F, 1234.5F}),
            plan.to_string(),
            plan.svg(),
            debugprint(f),
            message_of<Error>([&] { random.uniform({3}, 2.5, 1.5); }),
            message_of<TypeError>([&] {
                pad(lvector("n"), {{1, 1}}, 0.5);
            }),
            text_of(Choice{Way::generated, {{Way::generated, 1.5e-6}}})};
}

}  // namespace

TEST_CASE("kernels compute the same in a locale with a decimal comma", "[core][runtime][locale]") {
    const TemporaryFolder folder;
    Options o = options();
    o.cache_directory = folder / "cache";
    const std::vector<double> expected = computed_in("reference");
    for (const std::string& device : cpu_and_emulator()) {
        const ScopedOptions scoped(o);  // a cache in which nothing was compiled in another locale
        const CommaLocale locale;
        const std::vector<double> found = computed_in(device);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-6));
    }
    const CommaLocale locale;
    CHECK(computed_in("reference") == expected);
}

TEST_CASE("a locale with a decimal comma changes no text", "[core][runtime][locale]") {
    const Texts expected = texts();
    CHECK_THAT(expected.error, ContainsSubstring("from 2.5 to 1.5 is empty"));
    CHECK_THAT(expected.other_error, ContainsSubstring("the value 0.5 does not fit"));
    const CommaLocale locale;
    const Texts found = texts();
    CHECK(found.numbers == expected.numbers);
    CHECK(found.plan == expected.plan);
    CHECK(found.picture == expected.picture);
    CHECK(found.graph == expected.graph);
    CHECK(found.error == expected.error);
    CHECK(found.other_error == expected.other_error);
    CHECK(found.choice == expected.choice);
}

TEST_CASE("times of measurements are read back in a locale with a decimal comma", "[core][runtime][locale]") {
    const CommaLocale locale;
    const std::vector<Way> ways = {Way::generated};
    const std::optional<Choice> choice =
        parse_choice(text_of(Choice{Way::generated, {{Way::generated, 1.5e-6}}}), ways);
    REQUIRE(choice);
    CHECK(choice->measured[0].second == 1.5e-6);
}

TEST_CASE("files are read in a locale in which they were not written", "[core][runtime][locale]") {
    const TemporaryFolder folder;
    const Array many = uniform_values({1234, 2}, -1, 1, 3);
    save_npy(folder / "before.npy", many);
    save_npz(folder / "before.npz", {{"many", many}});
    const CommaLocale locale;
    CHECK(load_npy(folder / "before.npy").to_vector<float>() == many.to_vector<float>());
    CHECK(load_npz(folder / "before.npz").at("many").to_vector<float>() == many.to_vector<float>());
    save_npy(folder / "after.npy", many);
    CHECK(text_of_file(folder / "after.npy") == text_of_file(folder / "before.npy"));
}
