// The host's C++ compiler, as a subprocess.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bitale {

struct HostCompiler {
    std::vector<std::string> command;  // the program's full path and the user's own arguments
    // Path, size and time of the program behind all links, and the arguments: changes when the compiler does,
    // and costs no process. A wrapper (ccache, a script) is asked once what it starts.
    std::string identity;
    std::vector<std::string> flags;  // that this compiler alone needs; part of its identity
    // Of a wrapper that left a question unanswered: how long that took, until a compilation has counted it as
    // part of its time. So a compiler that hangs at whatever it is asked costs its limit once.
    using Unpaid = std::shared_ptr<std::atomic<std::chrono::milliseconds>>;
    Unpaid unpaid = nullptr;
};

struct CompilerSearch {
    std::optional<HostCompiler> found;
    std::string problem;  // why there is none: what was looked for, and where
};

// The option `compiler`, else BITALE_CXX, else c++, g++ or clang++ on PATH. What the user names is not
// replaced by another one.
CompilerSearch find_compiler();

// The flags of every object, by the options in force; part of the cache key.
std::vector<std::string> compile_flags();

struct CompileJob {
    std::string source, object;                // paths
    std::vector<std::string> more_flags = {};  // behind those of every object
    std::string subject = {};                  // what is compiled, for messages
};
// Compiles all, at most `parallel` at a time; a compiler that takes longer than the option compiler_seconds
// is ended, which is SameElsewhere. Where it returns, each object is a file that can be loaded. Throws
// CompileError with the command, the compiler's message and the lines around the fault; the failing source
// stays where it is, and its path is in the message.
void compile_all(const HostCompiler& compiler, const std::vector<CompileJob>& jobs, int parallel);

}  // namespace bitale
