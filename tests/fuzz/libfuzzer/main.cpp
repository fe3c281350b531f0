// A target under libFuzzer: tests/fuzz/libfuzzer/build compiles one program per target.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bitale::fuzz::Target& target = *bitale::fuzz::target_named(FUZZ_TARGET);
    target.run({reinterpret_cast<const char*>(data), size});
    return 0;
}
