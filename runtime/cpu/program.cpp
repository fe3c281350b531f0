// Starting programs, listening to them, and ending them.
#include "runtime/cpu/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "bitale/error.h"
#include "runtime/cache/workshop.h"
#include "runtime/outside.h"

namespace bitale {

namespace {

constexpr std::size_t most_said = std::size_t{64} << 10;

using Clock = std::chrono::steady_clock;

class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    ~Descriptor() { reset(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return number_; }
    void reset(int number = -1) {
        if (number_ >= 0) close(number_);
        number_ = number;
    }

  private:
    int number_;
};

[[noreturn]] void cannot_start(const std::vector<std::string>& command, int problem) {
    std::string text =
        "the host compiler cannot be started: " + std::string(std::strerror(problem)) + "\n  command:";
    for (const std::string& word : command) text += " " + word;
    if (const std::string cure = cure_for(std::strerror(problem)); !cure.empty()) text += "\nCure: " + cure;
    throw CompileError(text);
}

pid_t start(const std::vector<std::string>& command, int output) {
    std::vector<std::string> words = command;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    // A group of its own, so that what it starts can be ended with it.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    pid_t pid = 0;
    const int problem = outside::start_program(&pid, argv[0], &actions, &attributes, argv.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (problem != 0) cannot_start(command, problem);
    return pid;
}

// Keeps the beginning of what there is to read; false at its end. Of a program that never stops talking it
// reads a piece at a time, so that the time is looked at.
bool listen(int input, std::string& said) {
    char block[1 << 14];
    for (int pieces = 0; pieces < 16; ++pieces) {
        const ssize_t n = read(input, block, sizeof block);
        if (n > 0)
            said.append(block, std::min(static_cast<std::size_t>(n), most_said - said.size()));
        else if (n == 0 || errno != EINTR)
            return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    return true;
}

// Whether it has ended; then how.
bool has_ended(pid_t pid, bool wait, Ended& ended) {
    int status = 0;
    pid_t which = 0;
    do which = waitpid(pid, &status, wait ? 0 : WNOHANG);
    while (which < 0 && errno == EINTR);
    if (which == 0) return false;
    if (which < 0) return true;  // unknown
    ended.how = WIFSIGNALED(status) ? Ended::How::signalled : Ended::How::exited;
    ended.number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

}  // namespace

Ended run_program(const std::vector<std::string>& command, int seconds, std::chrono::milliseconds spent) {
    const auto time = std::chrono::seconds(seconds) - spent;
    if (seconds > 0 && time.count() <= 0) return {Ended::How::too_long, seconds, {}};
    int ends[2];
    if (outside::open_pipe(ends) != 0) cannot_start(command, errno);
    Descriptor input(ends[0]), output(ends[1]);
    fcntl(input.get(), F_SETFL, O_NONBLOCK);
    const Clock::time_point last = Clock::now() + time;
    const pid_t pid = start(command, output.get());
    output.reset();

    Ended ended;
    // Its outputs close when it ends; a program that closes them before, or leaves them to one that stays, is
    // asked for now and then.
    bool open = true;
    int pause = 1;
    while (!has_ended(pid, false, ended)) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(last - Clock::now()).count();
        if (seconds > 0 && left <= 0) {
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
            has_ended(pid, true, ended);
            ended.how = Ended::How::too_long;
            ended.number = seconds;
            break;
        }
        pollfd wanted{open ? input.get() : -1, POLLIN, 0};
        poll(&wanted, 1, pause);
        const bool was_open = open;
        if (open && wanted.revents != 0) open = listen(input.get(), ended.said);
        pause = open == was_open ? std::min(pause * 2, 50) : 1;
    }
    if (open) listen(input.get(), ended.said);
    return ended;
}

}  // namespace bitale
