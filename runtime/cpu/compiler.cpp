// Finding the compiler, knowing it again, and explaining its failures.
#include "runtime/cpu/compiler.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "bitale/error.h"
#include "graph/base/atomic_file.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "graph/base/turns.h"
#include "runtime/cache/workshop.h"
#include "runtime/cpu/debug_lines.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/object_file.h"
#include "runtime/cpu/program.h"
#include "runtime/outside.h"

namespace bitale {

namespace {

using std::chrono::milliseconds;

bool is_program(const std::string& path) {
    struct stat s {};
    return stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) && access(path.c_str(), X_OK) == 0;
}

// The full path of a program named as a shell would name it; empty when there is none.
std::string resolve(const std::string& name) {
    if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
    const char* path = secure_getenv("PATH");
    for (const std::string& folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ":"))
        if (const std::string full = (folder.empty() ? "." : folder) + "/" + name; is_program(full))
            return full;
    return "";
}

std::string stamp_of(const std::string& path) {
    struct stat s {};
    if (stat(path.c_str(), &s) != 0) return "";
    return " " + std::to_string(s.st_size) + " " + std::to_string(s.st_mtim.tv_sec) + "." +
           std::to_string(s.st_mtim.tv_nsec);
}

// Whether the command is a compiler's own program and nothing else; ccache, a script or a link to one of them
// says nothing of the compiler behind it.
bool is_plain_compiler(const std::vector<std::string>& command, const std::string& real) {
    const std::string name = real.substr(real.rfind('/') + 1);
    const bool named = name.find("g++") != std::string::npos || name.find("clang") != std::string::npos;
    std::array<char, 4> first{};
    std::ifstream(real, std::ios::binary).read(first.data(), first.size());
    return command.size() == 1 && named &&
           std::string_view(first.data(), first.size()) ==
               "\x7f"
               "ELF";
}

struct Answers {
    std::string text;
    HostCompiler::Unpaid unpaid;
};

// What a command behind a wrapper says of itself, and the program that does the compiling; asked once.
Answers answers_of(const std::vector<std::string>& command, const std::string& identity) {
    static TurnLock& turns = *new TurnLock;
    static auto& known = *new std::map<std::string, Answers>;
    const std::lock_guard lock(turns);
    if (const auto at = known.find(identity); at != known.end()) return at->second;
    constexpr int most_seconds = 10;  // for all questions
    const int limit = options().compiler_seconds;
    const int seconds = limit > 0 ? std::min(limit, most_seconds) : most_seconds;
    milliseconds spent{0};
    bool hangs = false;
    // The first line of the answer; empty where there is none.
    const auto ask = [&](const char* question) -> std::string {
        const auto start = std::chrono::steady_clock::now();
        std::vector<std::string> asked = command;
        asked.emplace_back(question);
        try {
            const Ended ended = run_program(asked, seconds, spent);
            spent += std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
            hangs |= ended.how == Ended::How::too_long;
            return ended.succeeded() ? ended.said.substr(0, ended.said.find('\n')) : "";
        } catch (const CompileError&) {
            return "";  // the first compilation will say so
        }
    };
    Answers answers;
    answers.text = ask("--version");
    if (!answers.text.empty()) {
        const std::string inner = ask("-print-prog-name=cc1plus");
        answers.text = " " + answers.text + " " + inner + stamp_of(inner);
    }
    answers.unpaid = std::make_shared<std::atomic<milliseconds>>(hangs ? spent : milliseconds{0});
    const Running running;
    return known[identity] = answers;
}

Answers identity_of(const std::vector<std::string>& command) {
    char path[PATH_MAX];
    const std::string real = realpath(command[0].c_str(), path) ? path : command[0];
    std::string text = real + stamp_of(real);
    for (std::size_t i = 1; i < command.size(); ++i) text += " " + command[i];
    if (is_plain_compiler(command, real)) return {text, nullptr};
    Answers answers = answers_of(command, text);
    answers.text.insert(0, text);
    return answers;
}

// "g++-12" or "ccache g++": the whole text is a program's name, or its first word is.
std::optional<HostCompiler> from_text(const std::string& text) {
    std::vector<std::string> command;
    if (const std::string whole = resolve(text); !whole.empty()) {
        command = {whole};
    } else {
        command = split(text, " \t\n");
        std::erase(command, "");
        if (command.empty()) return std::nullopt;
        command[0] = resolve(command[0]);
        if (command[0].empty()) return std::nullopt;
    }
    const Answers who = identity_of(command);
    HostCompiler compiler{command, who.text, {}, who.unpaid};
    // The first two turn selects in the body of a loop into jumps, which g++'s vectorizer cannot undo; the
    // third one makes calls of short copies, as string instructions that take longer to begin than a row does
    // to copy. Others know no such flags.
    if (compiler.identity.find("g++") != std::string::npos &&
        compiler.identity.find("clang") == std::string::npos)
        compiler.flags = {"-fno-tree-pre", "-fno-thread-jumps", "-fno-tree-loop-distribute-patterns"};
    if (options().debug_kernels && !compiler.flags.empty())
        compiler.flags.emplace_back("-gno-variable-location-views");  // they count lines that go
    for (const std::string& flag : compiler.flags) compiler.identity += " " + flag;
    return compiler;
}

std::string joined(const std::vector<std::string>& words) {
    std::string s;
    for (const std::string& word : words) s += (s.empty() ? "" : " ") + word;
    return s;
}

// The line that the first "PATH:LINE:" with an error in the log names; 0 for none.
int fault_line(const std::string& log, const std::string& source) {
    int first = 0;
    for (const std::string& line : split(log, "\n")) {
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

std::vector<std::string> command_of(const HostCompiler& compiler, const CompileJob& job) {
    std::vector<std::string> command = compiler.command;
    const std::vector<std::string> flags = compile_flags();
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), compiler.flags.begin(), compiler.flags.end());
    command.insert(command.end(), {"-o", job.object, job.source});
    command.insert(command.end(), job.more_flags.begin(), job.more_flags.end());
    return command;
}

// What came of a compiler that says that all went well.
std::string outcome(const CompileJob& job) {
    if (access(job.object.c_str(), F_OK) != 0) return "it left no object";
    const std::string problem = problem_of_object(job.object);
    if (problem.empty()) return "";
    const std::string said =
        "it ended without an error, and its object cannot be loaded: the file " + problem;
    if (!cure_for(problem).empty()) return said;
    return said +
           ". Look whether the disk is full, and what the command does by hand; the variable BITALE_CXX, or "
           "compiler= in BITALE_FLAGS, names another compiler";
}

// Empty when the object is there; else why not.
std::string outcome(const CompileJob& job, const Ended& ended, milliseconds spent) {
    switch (ended.how) {
        case Ended::How::exited:
            return ended.number == 0 ? outcome(job) : "exit status " + std::to_string(ended.number);
        case Ended::How::unknown: return outcome(job);  // only the object can tell
        case Ended::How::signalled:
            return "killed by signal " + std::to_string(ended.number) +
                   (ended.number == SIGKILL ? ", which is what the system does when memory runs out" : "");
        case Ended::How::too_long: break;
    }
    const std::string text = "it was ended because it took more than " + std::to_string(ended.number) +
                             " s, the limit that compiler_seconds in BITALE_FLAGS sets";
    if (spent.count() == 0) return text;
    return text + "; " + std::to_string(spent.count()) +
           " ms of them passed without an answer to --version or -print-prog-name";
}

std::string explain(const CompileJob& job, const std::vector<std::string>& command, const std::string& why,
                    const std::string& log) {
    constexpr std::size_t most = 4000;
    const int fault = fault_line(log, job.source);
    std::string text = "the host compiler failed (" + why + ")\n";
    if (!job.subject.empty()) text += "  compiling: " + job.subject + "\n";
    text += "  command: " + joined(command) + "\n  source: " + job.source + "\n";
    if (fault > 0) text += lines_around(job.source, fault);
    text += log.size() > most ? log.substr(0, most) + "...\n" : log;
    if (!text.ends_with('\n')) text += "\n";
    if (const std::string cure = cure_for(why + "\n" + log); !cure.empty()) return text + "Cure: " + cure;
    // What a compiler has against a line of the source is no fault of the user's.
    return text + (fault > 0
                       ? "Cure: another compiler, named by BITALE_CXX or by compiler= in BITALE_FLAGS; the "
                         "source is Bitale's, so please report it"
                       : "Cure: run the command by hand to see what it lacks, or name another compiler by "
                         "BITALE_CXX or by compiler= in BITALE_FLAGS");
}

// By way of assembly, in which lines are put right.
Ended compile_for_debuggers(const HostCompiler& compiler, const CompileJob& job, milliseconds spent) {
    const std::string assembly = job.source + ".s";
    std::vector<std::string> to_assembly = job.more_flags;
    to_assembly.emplace_back("-S");
    Ended ended = run_program(command_of(compiler, {job.source, assembly, to_assembly, {}}),
                              options().compiler_seconds, spent);
    std::ifstream file(assembly, std::ios::binary);
    if (!ended.succeeded() || !file) return ended;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    save_file(assembly, with_lines_of_callers(text, job.source), false);
    return run_program(command_of(compiler, {assembly, job.object, job.more_flags, {}}),
                       options().compiler_seconds, spent);
}

Ended run(const HostCompiler& compiler, const CompileJob& job, milliseconds spent) {
    const std::vector<std::string> command = command_of(compiler, job);
    log(4, "starts " + joined(command));
    return options().debug_kernels ? compile_for_debuggers(compiler, job, spent)
                                   : run_program(command, options().compiler_seconds, spent);
}

// `spent`: of its time. Throws CompileError.
void compile(const HostCompiler& compiler, const CompileJob& job, milliseconds spent) {
    const std::vector<std::string> command = command_of(compiler, job);
    Ended ended = run(compiler, job, spent);
    // Vectors of 16-bit integers under a mask are instructions that g++ 12 does not know. Scalars have the
    // same bits.
    if (ended.how == Ended::How::exited && ended.number != 0 &&
        ended.said.find("internal compiler error") != std::string::npos) {
        log(1, "an internal error of the host compiler: the kernel is compiled without vectors: " +
                   joined(command));
        CompileJob scalar = job;
        for (const char* flag : {"-fno-openmp-simd", "-fno-tree-vectorize", "-fno-tree-slp-vectorize"})
            scalar.more_flags.emplace_back(flag);
        if (Ended again = run(compiler, scalar, spent); again.succeeded()) ended = std::move(again);
    }
    const std::string why = outcome(job, ended, spent);
    if (why.empty()) return;
    outside::remove_file(job.object);
    const std::string text = explain(job, command, why, ended.said);
    if (ended.how == Ended::How::too_long) throw SameElsewhere(text);
    throw CompileError(text);
}

}  // namespace

CompilerSearch find_compiler() {
    outside::occupy_closed_streams();  // programs are looked into, and sources where they fail
    CompilerSearch r;
    const char* variable = secure_getenv("BITALE_CXX");
    const std::string named = !options().compiler.empty() ? options().compiler : variable ? variable : "";
    if (!named.empty()) {
        r.found = from_text(named);
        if (!r.found)
            r.problem = "\"" + named + "\", named by " +
                        (options().compiler.empty() ? "BITALE_CXX" : "compiler= in BITALE_FLAGS") +
                        ", is not a program; name g++ or clang++, or name none and have one of them on PATH";
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
    // Of version 5 binutils 2.40 takes the file before the one that is meant, where that is not the source.
    if (options().debug_kernels) list.emplace_back("-gdwarf-4");
    const std::vector<std::string>& machine = target_features().flags;
    list.insert(list.end(), machine.begin(), machine.end());
    // Checks and optimisation together take clang up to 25 times as long as checks alone.
    if (const std::string sanitizers = BITALE_SANITIZE; !sanitizers.empty())
        list.insert(list.end(), {"-fsanitize=" + sanitizers, "-O0", "-fno-omit-frame-pointer", "-g1"});
#if defined(__clang__)
    // Types of arguments have names of their own in a kernel's source.
    if (std::string(BITALE_SANITIZE).find("undefined") != std::string::npos)
        list.emplace_back("-fno-sanitize=function");
#endif
    return list;
}

void compile_all(const HostCompiler& compiler, const std::vector<CompileJob>& jobs, int parallel) {
    const milliseconds spent = compiler.unpaid ? compiler.unpaid->exchange(milliseconds{0}) : milliseconds{0};
    std::mutex mutex;
    std::exception_ptr failure;  // the first one
    std::size_t next = 0;
    // The job whose turn it is; null when there is none left, or one failed.
    const auto take = [&]() -> const CompileJob* {
        const std::lock_guard lock(mutex);
        return !failure && next < jobs.size() ? &jobs[next++] : nullptr;
    };
    const auto work = [&] {
        while (const CompileJob* job = take()) {
            try {
                compile(compiler, *job, spent);
            } catch (...) {  // for the caller, once no thread works any more
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
            }
        }
    };
    // Each waits for its own process: whichever ends first, the next one starts.
    const std::size_t most = std::min(jobs.size(), static_cast<std::size_t>(std::max(1, parallel)));
    run_on_threads(most, work);
    if (failure) std::rethrow_exception(failure);
}

}  // namespace bitale
