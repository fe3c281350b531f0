// low_memory_eval: the same loss under any limit, on each device, however the images come.
#include <string>
#include <vector>

#include "tests/examples/programs.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"

namespace bitale {
namespace {

using nlohmann::json;

TEST_CASE("an evaluation in little memory is the evaluation in much") {
    std::vector<std::string> devices{"cpu"};
    if (!test::emulator_skipped()) devices.emplace_back("emulator");
    for (const std::string& device : devices) {
        const std::string images = device == "cpu" ? "700" : "100", limit = device == "cpu" ? "9" : "7";
        const std::string run = "low_memory_eval --seed 1 --limit " + images + " --device " + device;
        const json at_once = results_of(run);
        CHECK(at_once["micro_batch"] == 0);
        for (const auto& [limit_text, bytes] :
             {std::pair{"1000MB", 1000000000}, {"1G", 1 << 30}, {"999000kb", 999000000}})
            CHECK(results_of(run + " --memory-limit " + limit_text)["limit_bytes"] == bytes);
        for (const std::string storage : {"uint8", "float32"}) {
            INFO(device << ", " << storage);
            const json r = results_of(run + " --memory-limit " + limit + "MiB --storage " + storage);
            CHECK(r["limit_bytes"] == std::stoi(limit) << 20);
            CHECK(r["peak_bytes"] <= r["limit_bytes"]);
            CHECK(r["micro_batch"] > 0);
            CHECK(r["micro_batch"] < std::stoi(images));
            CHECK(r["loss"].get<double>() == Approx(at_once["loss"].get<double>()).epsilon(1e-6));
            CHECK(r["accuracy"] == at_once["accuracy"]);
        }
    }
}

TEST_CASE("the system counts no more than the limit and 16 MiB", "[slow]") {
    if (!std::string(BITALE_SANITIZE).empty()) return;  // which has memory of its own
    for (const std::string storage : {"uint8", "float32"}) {
        const Finished finished =
            run_program(std::string(BITALE_SOURCE_DIR) + "/scripts/memory_from_outside --build " +
                        BITALE_BINARY_DIR + " 256MiB 64MiB -- --storage " + storage);
        INFO(finished.output);
        CHECK(finished.status == 0);
        CHECK_THAT(finished.output, ContainsSubstring("64MiB") && !ContainsSubstring("TOO MUCH"));
    }
}

}  // namespace
}  // namespace bitale
