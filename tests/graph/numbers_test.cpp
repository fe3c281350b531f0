// Numbers as text and back, in every locale.
#include "graph/base/numbers.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "bitale/array.h"
#include "tests/support/catch.h"
#include "tests/support/comma_locale.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::vector<double> numbers_of_all_sizes() {
    using Limits = std::numeric_limits<double>;
    std::vector<double> all = {0,    -0.0,  1,     -1,     0.1,           0.5,           2.5,
                               1e5,  1e6,   1e-4,  1e-5,   999999.5,      9999995,       123456789,
                               1e17, 1e300, 1e-17, 5e-324, Limits::max(), Limits::min(), Limits::infinity()};
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> digits(-10, 10), exponent(-40, 40);
    for (int i = 0; i < 2000; ++i) all.push_back(digits(random) * std::pow(10, exponent(random)));
    return all;
}

}  // namespace

TEST_CASE("a number's text is that of %g", "[core][graph][numbers]") {
    for (const double x : numbers_of_all_sizes())
        for (const int digits : {6, 8, 9, 17}) {
            char text[64];
            std::snprintf(text, sizeof text, "%.*g", digits, x);
            REQUIRE(number_text(x, digits) == text);
        }
    CHECK(number_text(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("a text that is a number is that number, and no other text is", "[core][graph][numbers]") {
    for (const double x : numbers_of_all_sizes()) REQUIRE(number_in(number_text(x, 17)) == x);
    for (const char* text : {"", " 1", "1 ", "1,5", "max", "0x", "1e", "1e999", "--1"})
        CHECK_FALSE(number_in(text).has_value());
}

TEST_CASE("a locale with a decimal comma changes no text of a number", "[core][graph][numbers]") {
    const CommaLocale locale;
    if (locale.is_set()) {
        char text[16];
        std::snprintf(text, sizeof text, "%g", 0.5);
        REQUIRE(std::string(text) == "0,5");
    }
    CHECK(number_text(0.5) == "0.5");
    CHECK(number_text(1234567.25, 17) == "1234567.25");
    CHECK(number_in("1234.5") == 1234.5);
    CHECK_FALSE(number_in("1234,5").has_value());
    CHECK(Array{0.5F, 1234.5F}.text() == "float32 [2] {0.5, 1234.5}");
}
