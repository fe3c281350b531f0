// The embedding of helper headers as strings, in cmake/embed.cmake.
#include "codegen/device/embedded.h"

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/catch.h"

namespace bitale {
namespace {

std::string text_of_file(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("an embedded header is byte for byte its file") {
    const std::string expected = text_of_file(AWKWARD);
    REQUIRE(expected.size() > 400);
    CHECK(device_awkward == expected);
}

TEST_CASE("an embedded header may be longer than a string literal of every compiler") {
    const std::string expected = text_of_file(LENGTHY);
    REQUIRE(expected.size() > 32 << 10);
    CHECK(device_lengthy == expected);
}

}  // namespace
}  // namespace bitale
