// Options: what environment variables say, read once, in one place.
//
//     BITALE_FLAGS   comma-separated name=value; see the table of flags in options.cpp (`flags_help`)
//     BITALE_DEBUG   0..6: 1 devices and cache, 2 a line per kernel, 3 the graph after each phase, 4
//     generated
//                    source, 5 nests and schedule decisions, 6 PTX, SASS, assembly; a level includes those
//                    below it
//     BITALE_DUMP    a folder into which every function writes its graphs, nests and sources
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace bitale {

struct Options {
    enum class Promotion : std::uint8_t { strict, theano };
    enum class Graphs : std::uint8_t { off, step, loop };
    enum class Mode : std::uint8_t { fast_run, fast_compile };

    std::string device = "cpu";     // of functions that name none
    std::int64_t memory_limit = 0;  // bytes that may be alive on a device, of the whole process; 0: any
    std::string cache_directory;    // empty: the user's cache folder
    std::int64_t cache_bytes = std::int64_t{1} << 30;  // the least recently used files beyond it are removed
    bool cache = true;                                 // compiled kernels on disk
    int threads = 0;                    // of the cpu device; 0: one for each core of the affinity mask
    Mode mode = Mode::fast_run;         // what the host compiler's time is spent on
    bool smallest_tasks = false;        // of the cpu device: each has as little as it can, for tests
    bool checked_loops = false;         // of the cpu device: variables outside of their range trap, for tests
    bool autotune = false;              // choices are measured instead of estimated
    bool specialise = true;             // functions are compiled for the lengths that arrive, at a call
    std::string cpu_target = "native";  // the processor that kernels are compiled for
    std::string compiler;               // host compiler for generated code; empty: the first one found
    int compiler_seconds = 600;         // a compiler that takes longer is ended; 0: it may take any time
    std::string cuda_home;              // folders where CUDA's libraries are looked for first
    bool emulator_checks = false;       // every access of a kernel is watched on the emulator
    bool emulator_counts = false;       // what kernels ask of memory is counted on the emulator
    int emulator_devices = 1;           // GPUs that the emulator shows
    Graphs graphs = Graphs::loop;       // the most that a GPU may be given at once
    bool wait_for_launches = false;     // each launch on a GPU is waited for: faults name their kernel
    bool compare_launches = false;      // and repeated on the emulator: so do wrong results
    bool debug_lines = false;           // machine code for a GPU names the lines of its CUDA text
    bool debug_kernels = false;  // kernels are compiled from their readable text, with the user's lines
    std::string dump_target = "sm_90";        // what the emulator's kernels are compiled for in a dump
    bool interpret = true;                    // the cpu device evaluates graphs where there is no compiler
    Promotion promotion = Promotion::strict;  // of mixed dtypes; theano: its whole table
    bool strict_math = false;        // no rule that rounds elsewhere than the expression says, or skips zeros
    bool assume_finite = false;      // allows the rules that hold only without inf and NaN
    bool verify = false;             // verifies after every pass, as debug builds always do
    std::set<std::string> disabled;  // rules, whole tags of rules, passes and libraries, switched off by name
    int debug = 0;
    std::string dump;  // empty: nothing is written

    bool enabled(const std::string& name) const { return !disabled.contains(name); }
    bool verifies() const;  // verify, or a debug build, or debug >= 3
};

// The options in force. The environment is read at the first call, and nothing of it in a program that runs
// with more rights than whoever started it (set-user-id), who may be a stranger. Throws Error for an unknown
// flag or a malformed value, with the list of the known ones; names of disable= are left to check_disabled
// (ops/rules/phases.h), which knows the rules.
const Options& options();

// The same from given texts; null stands for an unset variable.
Options parse_options(const char* flags, const char* debug, const char* dump);
std::string flags_help();  // one line per flag: its name, values and meaning

// Replaces the options of the whole process while it lives; nests. For tests.
class ScopedOptions {
  public:
    explicit ScopedOptions(Options with);
    ~ScopedOptions();
    ScopedOptions(const ScopedOptions&) = delete;
    ScopedOptions& operator=(const ScopedOptions&) = delete;

  private:
    const Options mine_;
    const Options* before_;
};

}  // namespace bitale
