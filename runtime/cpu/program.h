// Another program, run to its end or for as long as it may take.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace bitale {

struct Ended {
    // unknown: this process ignores its children's ends, so the system keeps no status.
    enum class How : std::uint8_t { exited, signalled, too_long, unknown } how = How::unknown;
    int number = 0;    // exit status, signal, or the seconds that it was given
    std::string said;  // what it wrote to both of its outputs: the first 64 KB

    bool succeeded() const { return how == How::unknown || (how == How::exited && number == 0); }
};

// Starts a program, without a shell, and reads what it says. After `seconds` (0: never), of which some may be
// spent already, it is ended, with the programs that it has started. Throws CompileError when it cannot be
// started.
Ended run_program(const std::vector<std::string>& command, int seconds,
                  std::chrono::milliseconds spent = std::chrono::milliseconds{0});

}  // namespace bitale
