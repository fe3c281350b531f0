// Faults that are planted in the emulated GPU of a process that a test starts.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace bitale::test {

// The fault that this process has, if a test started it.
inline std::string_view planted() {
    const char* fault = std::getenv("BITALE_EMULATED_FAULT");
    return fault ? fault : "";
}

// The exit status of a process of these tests that runs the case `name` with a fault.
inline int with_fault(const std::string& fault, const std::string& name) {
    const std::string command =
        "BITALE_EMULATED_FAULT='" + fault + "' timeout 120 /proc/$PPID/exe '" + name + "' > /dev/null";
    return WEXITSTATUS(std::system(command.c_str()));  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace bitale::test
