// More than one GPU, as the emulator shows them: each has its memory, its streams and its faults, and shared
// variables move between them.
#include <cstring>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/availability.h"
#include "runtime/cuda/emulator/compile.h"
#include "runtime/cuda/emulator/stream.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/exec/device.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"

using namespace bitale;
using namespace bitale::cuda;
using namespace bitale::test;

namespace {

Options with_devices(int count) {
    Options changed = options();
    changed.emulator_devices = count;
    return changed;
}

std::size_t used_by(int device) {
    std::size_t free = 0, total = 0;
    REQUIRE(runtime().cudaSetDevice(device) == success);
    REQUIRE(runtime().cudaMemGetInfo(&free, &total) == success);
    return total - free;
}

std::string refusal(const char* device) {
    try {
        const Expr x = vector("x");
        function({x}, x + 1, {.device = device});
    } catch (const DeviceError& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a device that is not there is refused with the number of those that are") {
    CHECK_THAT(refusal("emulator:1"),
               ContainsSubstring("device \"emulator:1\" is not available: the emulator shows 1, emulator; "
                                 "emulator_devices=2 in BITALE_FLAGS shows more"));
    const ScopedOptions scope(with_devices(3));
    CHECK_THAT(refusal("emulator:3"), ContainsSubstring("shows 3, emulator to emulator:2;"));
    CHECK(count_of_devices("cuda", 2) == "2, cuda and cuda:1");
    CHECK_THAT(refusal("cuda:one"), ContainsSubstring("there is no device \"cuda:one\""));
    CHECK_THAT(refusal("cuba"),
               ContainsSubstring("The devices are cpu, reference, reference=wide, null, emulator, cuda, or"));
    CHECK_THAT(refusal("cuba"), ContainsSubstring("devices_test.cpp:"));
    Options changed = options();
    changed.device = "cpu;threads=2";
    const ScopedOptions by_flags(changed);
    CHECK_THAT(refusal(""), ContainsSubstring("BITALE_FLAGS: there is no device \"cpu;threads=2\"") &&
                                ContainsSubstring("flags are separated by commas"));
    if (gpu_count() <= 999)
        CHECK_THAT(refusal("cuda:999"), ContainsSubstring("\"cuda:999\" is not available"));
}

TEST_CASE("the list of devices has each that the emulator shows") {
    const ScopedOptions scope(with_devices(2));
    std::string names;
    for (const DeviceStatus& d : device_list()) names += d.name + " ";
    CHECK_THAT(names, ContainsSubstring("emulator emulator:1 cuda "));
    CHECK(&device_named("emulator:0") == &device_named("emulator"));
    CHECK(&device_named("emulator:1") != &device_named("emulator"));
    CHECK(device_named("emulator:1").name() == "emulator:1");
}

TEST_CASE("functions on two devices share variables, and each device has its own memory") {
    if (emulator_skipped()) return;
    const ScopedOptions scope(with_devices(2));
    const std::size_t first = used_by(0), second = used_by(1);
    const Shared w = shared(Array(std::vector<float>(1000, 1)), "w");
    const Expr x = scalar("x");
    {
        Function add = function({x}, sum(w), {.updates = {{w, w + x}}, .device = "emulator:1"});
        CHECK(double(add(2)) == 1000);
        CHECK(used_by(0) == first);
        CHECK(used_by(1) >= second + 4000);
        Function twice = function({x}, sum(w), {.updates = {{w, w * x}}, .device = "emulator"});
        CHECK(double(twice(3)) == 3000);
        CHECK(used_by(0) >= first + 4000);
        for (int round = 0; round < 3; ++round) {
            add(1);
            twice(2);
        }
        CHECK(w.get_value().at(999) == ((9.f + 1) * 2 + 1) * 2 * 2 + 2);
        Function on_cpu = function({x}, sum(w), {.updates = {{w, w - x}}, .device = "cpu"});
        on_cpu(86);
        CHECK(w.get_value().at(0) == 0);
    }
}

TEST_CASE("a loop on the second device is one launch, with the bits of the first") {
    if (emulator_skipped()) return;
    const ScopedOptions scope(with_devices(2));
    std::vector<float> values[2];
    for (int device = 0; device < 2; ++device) {
        const Shared w = shared(Array(std::vector<float>(100, 0.5f)), "w");
        const Expr i = lscalar("i");
        Function step = function({i}, sum(w),
                                 {.updates = {{w, w * 1.1f + cast(i, float32)}},
                                  .device = device == 0 ? "emulator" : "emulator:1"});
        const LaunchCount before = launches_so_far();
        step.loop(0, 5);
        step.loop(5, 10);
        CHECK(launches_so_far().graphs > before.graphs);
        values[device] = w.get_value().to_vector<float>();
    }
    CHECK(values[0] == values[1]);
}

TEST_CASE("a fault ends one device, and the others go on") {
    if (emulator_skipped()) return;
    const ScopedOptions scope(with_devices(3));
    const Expr x = vector("x");
    const Array ones(std::vector<float>{1, 1});
    Function broken = function({x}, sum(x * 3), {.name = "broken", .device = "emulator:2"});
    Function other = function({x}, sum(x * 3), {.name = "other", .device = "emulator:1"});
    plant_failure("k_");
    CHECK_THROWS_WITH(broken(ones), ContainsSubstring("device emulator:2 is not usable any more"));
    CHECK_THROWS_WITH(broken(ones), ContainsSubstring("device emulator:2 is not usable any more"));
    CHECK(double(other(ones)) == 6);
}

TEST_CASE("streams and events belong to a device, and memory to one that kernels of another do not reach") {
    if (emulator_skipped()) return;
    const ScopedOptions scope(with_devices(2));
    void* memory = nullptr;
    Stream stream = nullptr;
    Event event = nullptr;
    REQUIRE(runtime().cudaSetDevice(2) == error_invalid_device);
    REQUIRE(runtime().cudaSetDevice(1) == success);
    REQUIRE(runtime().cudaMalloc(&memory, 256) == success);
    REQUIRE(runtime().cudaStreamCreateWithFlags(&stream, stream_non_blocking) == success);
    REQUIRE(runtime().cudaEventCreateWithFlags(&event, 0) == success);
    CHECK(runtime().cudaMemsetAsync(memory, 0, 256, stream) == success);
    CHECK(runtime().cudaEventRecord(event, stream) == success);
    REQUIRE(runtime().cudaSetDevice(0) == success);
    CHECK(runtime().cudaMemsetAsync(memory, 0, 256, stream) == error_invalid_handle);
    CHECK(runtime().cudaEventRecord(event, stream) == error_invalid_handle);
    CHECK(runtime().cudaStreamSynchronize(stream) == success);

    CHECK_THAT(
        run_kernel("if (t == 0) out[0] = 5;", 1, 2, memory).problem,
        ContainsSubstring("kernel k_test runs on device 0, and its argument 2 points into the memory of "
                          "device 1"));
    CHECK(runtime().cudaEventDestroy(event) == success);
    CHECK(runtime().cudaStreamDestroy(stream) == success);
    CHECK(runtime().cudaFree(memory) == success);
}

TEST_CASE("checked, a kernel that finds a pointer into another device's memory is told") {
    if (emulator_skipped()) return;
    const ScopedOptions scope(with_devices(2));
    const CheckedEmulator checked;
    void *memory = nullptr, *list = nullptr;
    REQUIRE(runtime().cudaSetDevice(1) == success);
    REQUIRE(runtime().cudaMalloc(&memory, 256) == success);
    REQUIRE(runtime().cudaSetDevice(0) == success);
    REQUIRE(runtime().cudaHostAlloc(&list, sizeof memory, host_memory_is_mapped) == success);
    std::memcpy(list, &memory, sizeof memory);
    CHECK_THAT(
        run_kernel("(*(int**)more)[t] = 1;", 1, 2, list).problem,
        ContainsSubstring("writes 4 bytes at byte 0 of a block of 192 bytes, in the memory of device 1, and "
                          "runs on device 0 (line 2, `(*(int**)more)[t] = 1;`)"));
    CHECK(runtime().cudaFreeHost(list) == success);
    CHECK(runtime().cudaFree(memory) == success);
}
