// Finding the compiler, starting it without a shell, and explaining its failures.
#include "runtime/cpu/compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>

#include "bitale/error.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cpu/features.h"
#include "runtime/outside.h"

extern char** environ;  // NOLINT: POSIX

namespace bitale {

namespace {

bool is_program(const std::string& path) {
    struct stat s {};
    return stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) && access(path.c_str(), X_OK) == 0;
}

// The full path of a program named as a shell would name it; empty when there is none.
std::string resolve(const std::string& name) {
    if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (const std::string full = (folder.empty() ? "." : folder) + "/" + name; is_program(full))
            return full;
    return "";
}

std::string identity_of(const std::vector<std::string>& command) {
    char real[PATH_MAX];
    std::string text = realpath(command[0].c_str(), real) ? real : command[0];
    struct stat s {};
    if (stat(text.c_str(), &s) == 0)
        text += " " + std::to_string(s.st_size) + " " + std::to_string(s.st_mtim.tv_sec) + "." +
                std::to_string(s.st_mtim.tv_nsec);
    for (std::size_t i = 1; i < command.size(); ++i) text += " " + command[i];
    return text;
}

// "g++-12" or "ccache g++": the whole text is a program's name, or its first word is.
std::optional<HostCompiler> from_text(const std::string& text) {
    std::vector<std::string> command;
    if (const std::string whole = resolve(text); !whole.empty()) {
        command = {whole};
    } else {
        std::istringstream words(text);
        command.assign(std::istream_iterator<std::string>(words), {});
        if (command.empty()) return std::nullopt;
        command[0] = resolve(command[0]);
        if (command[0].empty()) return std::nullopt;
    }
    HostCompiler compiler{command, identity_of(command), {}};
    // The first two turn selects in the body of a loop into jumps, which g++'s vectorizer cannot undo; the
    // third one makes calls of short copies, as string instructions that take longer to begin than a row does
    // to copy. Others know no such flags.
    if (compiler.identity.find("g++") != std::string::npos &&
        compiler.identity.find("clang") == std::string::npos)
        compiler.flags = {"-fno-tree-pre", "-fno-thread-jumps", "-fno-tree-loop-distribute-patterns"};
    for (const std::string& flag : compiler.flags) compiler.identity += " " + flag;
    return compiler;
}

std::string joined(const std::vector<std::string>& words) {
    std::string s;
    for (const std::string& word : words) s += (s.empty() ? "" : " ") + word;
    return s;
}

std::string text_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The line that the first "PATH:LINE:" with an error in the log names; 0 for none.
int fault_line(const std::string& log, const std::string& source) {
    int first = 0;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(source + ":")) continue;
        const int number = std::atoi(line.c_str() + source.size() + 1);
        if (line.find("error") != std::string::npos) return number;
        if (first == 0) first = number;
    }
    return first;
}

std::string lines_around(const std::string& path, int fault) {
    constexpr int context = 4;
    std::string text;
    std::ifstream file(path);
    int number = 0;
    for (std::string line; std::getline(file, line) && number < fault + context;) {
        if (++number < fault - context) continue;
        std::string label = std::to_string(number);
        label.insert(0, label.size() < 6 ? 6 - label.size() : 0, ' ');
        text += (number == fault ? ">" : " ") + label + " | " + line.substr(0, 300) + "\n";
    }
    return text;
}

struct Running {
    pid_t pid = 0;
    const CompileJob* job = nullptr;
    std::vector<std::string> command;
};

std::string log_path(const CompileJob& job) { return job.object + ".log"; }

Running start(const HostCompiler& compiler, const CompileJob& job) {
    Running r{0, &job, compiler.command};
    std::vector<std::string> flags = compile_flags();
    flags.insert(flags.end(), compiler.flags.begin(), compiler.flags.end());
    r.command.insert(r.command.end(), flags.begin(), flags.end());
    r.command.insert(r.command.end(), {"-o", job.object, job.source});
    r.command.insert(r.command.end(), job.more_flags.begin(), job.more_flags.end());
    std::vector<char*> argv;
    for (std::string& word : r.command) argv.push_back(word.data());
    argv.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log_path(job).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    const int problem = posix_spawn(&r.pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (problem != 0)
        throw CompileError("the host compiler cannot be started: " + std::string(std::strerror(problem)) +
                           "\n  command: " + joined(r.command));
    log(4, "started " + joined(r.command));
    return r;
}

// Empty when the object is there; else why not.
std::string outcome(const Running& r, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return access(r.job->object.c_str(), R_OK) == 0 ? "" : "it left no object";
    if (WIFEXITED(status)) return "exit status " + std::to_string(WEXITSTATUS(status));
    if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
    return "status " + std::to_string(status);
}

std::string explain(const Running& r, const std::string& why) {
    constexpr std::size_t most = 4000;
    std::string said = text_of_file(log_path(*r.job));
    const int fault = fault_line(said, r.job->source);
    if (said.size() > most) said = said.substr(0, most) + "...\n";
    std::string text = "the host compiler failed (" + why + ")\n  command: " + joined(r.command) +
                       "\n  source: " + r.job->source + "\n";
    if (fault > 0) text += lines_around(r.job->source, fault);
    return text + said;
}

// Waits for one process; its failure, or empty.
std::string finish(const Running& r) {
    int status = 0;
    while (waitpid(r.pid, &status, 0) < 0) {
        if (errno == EINTR) continue;
        // The program ignores its children's ends, so the status is lost: only the object can tell.
        status = 0;
        break;
    }
    const std::string why = outcome(r, status);
    std::string failure = why.empty() ? "" : explain(r, why);
    unlink(log_path(*r.job).c_str());
    if (!failure.empty()) unlink(r.job->object.c_str());
    return failure;
}

}  // namespace

CompilerSearch find_compiler() {
    CompilerSearch r;
    const char* variable = std::getenv("BITALE_CXX");
    const std::string named = !options().compiler.empty() ? options().compiler : variable ? variable : "";
    if (!named.empty()) {
        r.found = from_text(named);
        if (!r.found)
            r.problem = "\"" + named + "\", named by " +
                        (options().compiler.empty() ? "BITALE_CXX" : "compiler= in BITALE_FLAGS") +
                        ", is not a program";
        return r;
    }
    for (const char* name : {"c++", "g++", "clang++"})
        if ((r.found = from_text(name))) return r;
    r.problem = "none of c++, g++ and clang++ is on PATH; install one, or name one in BITALE_CXX";
    return r;
}

std::vector<std::string> compile_flags() {
    std::vector<std::string> list = {
        "-std=c++17", "-O2", "-fPIC", "-shared", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math",
        // A product and a sum stay two roundings unless the text says fma: the same bits on every device.
        "-ffp-contract=off", "-fno-semantic-interposition", "-w"};
    // -O1 takes three quarters of the time of -O2. -Og takes a third: loops over elements stay scalar, and
    // what is written in vector registers, the sums of products, stays fast.
    if (options().mode == Options::Mode::fast_compile) list.emplace_back("-Og");
    const std::vector<std::string>& machine = target_features().flags;
    list.insert(list.end(), machine.begin(), machine.end());
    if (const std::string sanitizers = BITALE_SANITIZE; !sanitizers.empty())
        list.insert(list.end(), {"-fsanitize=" + sanitizers, "-fno-omit-frame-pointer", "-g"});
    return list;
}

void compile_all(const HostCompiler& compiler, const std::vector<CompileJob>& jobs, int parallel) {
    std::mutex mutex;
    std::string failure;
    std::size_t next = 0;
    // The job whose turn it is; null when there is none left, or one failed.
    const auto take = [&]() -> const CompileJob* {
        const std::lock_guard lock(mutex);
        return failure.empty() && next < jobs.size() ? &jobs[next++] : nullptr;
    };
    const auto fail = [&](const std::string& why) {
        const std::lock_guard lock(mutex);
        if (failure.empty()) failure = why;
    };
    const auto work = [&] {
        while (const CompileJob* job = take()) {
            try {
                if (const std::string problem = finish(start(compiler, *job)); !problem.empty())
                    fail(problem);
            } catch (const CompileError& e) {
                fail(e.what());
            } catch (...) {  // for the caller, once no thread works any more
                fail("stopped");
                throw;
            }
        }
    };
    // Each waits for its own process: whichever ends first, the next one starts.
    const std::size_t most = std::min(jobs.size(), static_cast<std::size_t>(std::max(1, parallel)));
    run_on_threads(most, work);
    if (!failure.empty()) throw CompileError(failure);
}

}  // namespace bitale
