// Names of devices: with a number, with an architecture, and what is none.
#include <string>

#include "bitale/error.h"
#include "runtime/cuda/device_name.h"
#include "tests/support/catch.h"

using namespace bitale;
using namespace bitale::cuda;

TEST_CASE("a device's name has a number or an architecture") {
    CHECK(parse_device_name("cuda") == DeviceName{});
    CHECK(parse_device_name("cuda:0") == DeviceName{});
    CHECK(parse_device_name("cuda:1") == DeviceName{false, 1, ""});
    CHECK(parse_device_name("cuda:12") == DeviceName{false, 12, ""});
    CHECK(parse_device_name("cuda:sm_75") == DeviceName{false, 0, "sm_75"});
    CHECK(parse_device_name("cuda:sm_120") == DeviceName{false, 0, "sm_120"});
    CHECK(parse_device_name("emulator") == DeviceName{true, 0, ""});
    CHECK(parse_device_name("emulator:1") == DeviceName{true, 1, ""});
    for (const char* other : {"cpu", "cpu:1", "reference", "cudax", "", ":1", "emulator1"})
        CHECK_FALSE(parse_device_name(other));
}

TEST_CASE("the shortest text of a device's name is read as the same name") {
    CHECK(parse_device_name("cuda:0")->text() == "cuda");
    for (const char* text : {"cuda", "cuda:1", "cuda:sm_90", "emulator", "emulator:1"})
        CHECK(parse_device_name(text)->text() == text);
}

TEST_CASE("what follows the colon of a device's name is a number or an architecture, says the error") {
    for (const char* wrong :
         {"cuda:", "cuda:-1", "cuda:+1", "cuda:01", "cuda:1 ", "cuda: 1", "cuda:one", "cuda:12345",
          "cuda:99999999999999999999", "cuda:sm_", "cuda:sm_9", "cuda:sm_090", "cuda:sm_90a", "cuda:sm_1000",
          "cuda:compute_90", "cuda:SM_90", "cuda:1:2"}) {
        INFO(wrong);
        CHECK_THROWS_WITH(parse_device_name(wrong),
                          ContainsSubstring("there is no device \"" + std::string(wrong) + "\"") &&
                              ContainsSubstring("\"cuda:1\"") && ContainsSubstring("\"cuda:sm_90\""));
        CHECK_THROWS_AS(parse_device_name(wrong), DeviceError);
    }
    for (const char* wrong : {"emulator:", "emulator:sm_90", "emulator:x"}) {
        INFO(wrong);
        CHECK_THROWS_WITH(parse_device_name(wrong), ContainsSubstring("\"emulator:1\""));
    }
}
