// Runs the example programs as a user would.
#pragma once

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bitale {

struct Finished {
    int status = 0;
    std::string output;  // stdout and stderr together
};
// Runs a shell command, with the examples' folder first in the path.
Finished run_program(const std::string& command);
// Runs a shell command that is no example: those have a folder of their own.
Finished run_command(const std::string& command);
// Starts a command, waits until its output contains `mark`, sends it a signal, and waits for its end.
Finished run_and_interrupt(const std::string& command, const std::string& mark, int signal = SIGINT);

// Runs an example quietly with --json and returns what it wrote; fails the test when the program does.
nlohmann::json results_of(const std::string& command);

// A program of a page below docs/, and what the page says that it prints.
struct PageProgram {
    std::string page, source, output;
};
// Fenced blocks of C++ that begin with an #include are programs; the block of text that follows is their
// output. Fails the test where a program has none.
std::vector<PageProgram> programs_of(const std::string& page);

std::string temporary_file(const std::string& name);  // a path in a folder of this process

}  // namespace bitale
