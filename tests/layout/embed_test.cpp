// The embedding of helper headers as strings, in cmake/embed.cmake.
#include "codegen/device/embedded.h"

#include <string>
#include <string_view>

#include "tests/layout/files.h"
#include "tests/support/catch.h"

namespace bitale {
namespace {

TEST_CASE("an embedded header is byte for byte its file") {
    const std::string expected = text_of_file(AWKWARD);
    REQUIRE(expected.size() > 400);
    CHECK(device_awkward == expected);
}

TEST_CASE("an embedded header is a constant, which objects that are made before main read") {
    static constexpr std::string_view text = device_awkward;
    STATIC_REQUIRE(text.size() > 400);
}

TEST_CASE("an embedded header may be longer than a string literal of every compiler") {
    const std::string expected = text_of_file(LENGTHY);
    REQUIRE(expected.size() > 32 << 10);
    CHECK(device_lengthy == expected);
}

}  // namespace
}  // namespace bitale
