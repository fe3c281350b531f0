// Runs the example programs as a user would.
#pragma once

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace bitale {

struct Finished {
    int status = 0;
    std::string output;  // stdout and stderr together
};
// Runs a shell command, with the examples' folder first in the path.
Finished run_program(const std::string& command);
// Starts a command, waits until its output contains `mark`, sends it a signal, and waits for its end.
Finished run_and_interrupt(const std::string& command, const std::string& mark, int signal = SIGINT);

// Runs an example quietly with --json and returns what it wrote; fails the test when the program does.
nlohmann::json results_of(const std::string& command);

std::string temporary_file(const std::string& name);  // a path in a folder of this process

}  // namespace bitale
