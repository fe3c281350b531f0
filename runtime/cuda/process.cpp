#include "runtime/cuda/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/outside.h"

namespace bitale::cuda {

std::optional<std::string> output_of(const std::vector<std::string>& command) {
    int ends[2];
    if (outside::open_pipe(ends) != 0) return std::nullopt;
    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    pid_t process = 0;
    const int problem = outside::start_program(&process, arguments[0], &actions, nullptr, arguments.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string text;
    if (problem == 0) {
        char part[4096];
        for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0 || (n < 0 && errno == EINTR);)
            if (n > 0) text.append(part, static_cast<std::size_t>(n));
    }
    close(ends[0]);
    if (problem != 0) return std::nullopt;
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
    return text;
}

}  // namespace bitale::cuda
