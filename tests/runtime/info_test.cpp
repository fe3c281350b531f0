// What bitale-info prints, and what it clears.
#include "runtime/info.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::size_t files_in(const std::string& folder) {
    std::size_t n = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        n += entry.is_regular_file();
    return n;
}

}  // namespace

TEST_CASE("the info names devices, processor, compiler, libraries and cache", "[core][runtime][info]") {
    const TemporaryFolder folder;
    Options o = options();
    o.cache_directory = folder / "cache";
    const ScopedOptions scoped(o);
    const std::string text = info_text();
    for (const char* part :
         {"bitale ", "devices", "  cpu ", "  reference ", "  null ", "  cuda ", "processor", "host compiler",
          "oneDNN", "NVRTC", "compiled kernels", "BITALE_FLAGS"})
        CHECK_THAT(text, ContainsSubstring(part));
    CHECK_THAT(text, ContainsSubstring(o.cache_directory));
}

TEST_CASE("the info as JSON says the same, whatever is in the names", "[core][runtime][info]") {
    const TemporaryFolder folder;
    Options o = options();
    o.cache_directory = folder / "\xff";
    o.compiler = "/nowhere/c++";
    const ScopedOptions scoped(o);
    const auto info = nlohmann::json::parse(info_json());
    CHECK(info.at("version") == version());
    CHECK(info.at("devices").at(0).at("name") == "cpu");
    CHECK(info.at("devices").at(0).at("available") == true);
    CHECK(info.at("default_device") == o.device);
    CHECK(info.at("processor").at("usable_cores") > 0);
    CHECK(info.at("host_compiler").at("found") == false);
    CHECK_THAT(info.at("host_compiler").at("problem").get<std::string>(), ContainsSubstring("/nowhere/c++"));
    CHECK(info.at("onednn").contains("present"));
    CHECK(info.at("cuda").at("libraries").size() > 2);
    CHECK(info.at("cache").at("usable") == true);
    CHECK(info.at("cache").at("most_bytes") == o.cache_bytes);
}

TEST_CASE("the info says why a thing is absent", "[core][runtime][info]") {
    const ScopedVariable path("PATH", "/nowhere"), named("BITALE_CXX", std::nullopt);
    Options o = options();
    o.compiler = "/nowhere/c++";
    const ScopedOptions scoped(o);
    CHECK_THAT(info_text(), ContainsSubstring("/nowhere/c++"));
}

TEST_CASE("clearing the cache removes the compiled kernels and says so", "[core][runtime][info]") {
    const TemporaryFolder folder;
    Options o = options();
    o.cache_directory = folder / "cache";
    const ScopedOptions scoped(o);
    Expr x = bitale::vector("x");
    function({x}, exp(x) * 0.123456F, {.device = "cpu"});
    CHECK(files_in(o.cache_directory) ==
          3);  // source, machine code, and the order in which entries were used
    CHECK_THAT(clear_cache(), ContainsSubstring("removed 2 files") && ContainsSubstring(o.cache_directory));
    CHECK(files_in(o.cache_directory) == 0);
    CHECK_THAT(clear_cache(), ContainsSubstring("removed 0 files"));
}
