// Child processes for the tests of the examples.
#include "tests/examples/programs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/support/catch.h"

namespace bitale {
namespace {

struct Child {
    pid_t pid = 0;
    int output = -1;
};

Child start(const std::string& command) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const Child child{fork(), ends[0]};
    REQUIRE(child.pid >= 0);
    if (child.pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        const std::string line = "exec " + (command.find("/") == 0 ? "" : std::string(EXAMPLES "/")) +
                                 command;  // exec: the signal reaches the program itself
        execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
        _exit(127);
    }
    close(ends[1]);
    return child;
}

int wait_for(const Child& child) {
    int status = 0;
    waitpid(child.pid, &status, 0);
    close(child.output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Appends output until it contains mark, or to its end when mark is empty.
void read_until(const Child& child, const std::string& mark, std::string& output) {
    char buffer[4096];
    while (mark.empty() || output.find(mark) == std::string::npos) {
        const ssize_t count = read(child.output, buffer, sizeof buffer);
        if (count <= 0) return;
        output.append(buffer, static_cast<std::size_t>(count));
    }
}

}  // namespace

Finished run_program(const std::string& command) {
    Finished finished;
    const Child child = start(command);
    read_until(child, "", finished.output);
    finished.status = wait_for(child);
    return finished;
}

Finished run_command(const std::string& command) {
    Finished f;
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    REQUIRE(pipe);
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) f.output += static_cast<char>(c);
    const int status = pclose(pipe);
    f.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return f;
}

Finished run_and_interrupt(const std::string& command, const std::string& mark, int signal) {
    Finished finished;
    const Child child = start(command);
    read_until(child, mark, finished.output);
    kill(child.pid, signal);
    read_until(child, "", finished.output);
    finished.status = wait_for(child);
    return finished;
}

nlohmann::json results_of(const std::string& command) {
    const std::string path = temporary_file("results.json");
    std::filesystem::remove(path);
    const Finished finished = run_program(command + " --quiet --json " + path);
    INFO(command << "\n" << finished.output);
    REQUIRE(finished.status == 0);
    CHECK(finished.output.empty());
    return nlohmann::json::parse(std::ifstream(path));
}

std::vector<PageProgram> programs_of(const std::string& page) {
    std::ifstream file(std::string(BITALE_SOURCE_DIR) + "/docs/" + page);
    REQUIRE(file);
    std::vector<PageProgram> programs;
    std::string* block = nullptr;
    std::string source;
    for (std::string line; std::getline(file, line);) {
        if (line == "```cpp") {
            source.clear();
            block = &source;
        } else if (line == "```text" && source.find("#include") == 0) {
            programs.push_back({page, source, ""});
            block = &programs.back().output;
            source.clear();
        } else if (line.find("```") == 0) {
            block = nullptr;
        } else if (block) {
            *block += line + "\n";
        }
    }
    INFO(page << ": the output of the last program is missing");
    CHECK(source.find("#include") != 0);
    return programs;
}

std::string temporary_file(const std::string& name) {
    const auto folder = std::filesystem::path(BITALE_BINARY_DIR) / "examples_test" / std::to_string(getpid());
    std::filesystem::create_directories(folder);
    return (folder / name).string();
}

}  // namespace bitale
