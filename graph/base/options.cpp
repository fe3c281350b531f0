#include "graph/base/options.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "bitale/error.h"
#include "graph/base/text.h"

namespace bitale {

namespace {

std::atomic<const Options*> in_force{nullptr};

[[noreturn]] void malformed(std::string_view variable, std::string_view name, std::string_view value,
                            const char* expected) {
    throw Error(std::string(variable) + ": " + std::string(name) + "=" + in_quotes(value) + " is not " +
                expected);
}

std::int64_t number(std::string_view variable, std::string_view name, std::string_view text, std::int64_t low,
                    std::int64_t high, const char* expected) {
    std::int64_t x = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (problem != std::errc{} || end != text.data() + text.size() || x < low || x > high)
        malformed(variable, name, text, expected);
    return x;
}

constexpr const char* flags_variable = "BITALE_FLAGS";

// 1000; 64K, 512MiB, 1G by 1024; 512MB by 1000, as dd and other tools of GNU read them.
std::int64_t byte_count(std::string_view name, std::string_view text) {
    constexpr const char* expected = "a number of bytes, such as 1000000, 512MiB or 1GB";
    std::string_view digits = text.substr(0, text.find_first_not_of("0123456789")),
                     unit = text.substr(digits.size());
    std::int64_t factor = 1;
    if (!unit.empty()) {
        constexpr std::string_view prefixes = "KMGT";
        const std::size_t at = prefixes.find(unit[0] == 'k' ? 'K' : unit[0]);
        const std::string_view rest = unit.substr(1);
        if (at == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB"))
            malformed(flags_variable, name, text, expected);
        for (std::size_t power = 0; power <= at; ++power) factor *= rest == "B" ? 1000 : 1024;
    }
    const std::int64_t most = (std::int64_t{1} << 56) / factor;
    return number(flags_variable, name, digits, 0, most, expected) * factor;
}

bool on_off(std::string_view name, std::string_view text) {
    if (text == "on") return true;
    if (text != "off") malformed(flags_variable, name, text, "on or off");
    return false;
}

struct Flag {
    const char* name;
    const char* values;
    const char* meaning;
    void (*set)(Options&, std::string_view value);
};

constexpr Flag flags[] = {
    {"device", "cpu|cuda|emulator|reference|reference=wide|null", "device of functions that name none",
     [](Options& o, std::string_view v) {
         if (v.empty()) malformed(flags_variable, "device", v, "the name of a device");
         o.device = v;
     }},
    {"memory_limit", "BYTES",
     "the most that may be alive on a device; MiB or M: 1024 x 1024, MB: 1000 x 1000",
     [](Options& o, std::string_view v) { o.memory_limit = byte_count("memory_limit", v); }},
    {"cache", "on|off", "keep compiled kernels on disk",
     [](Options& o, std::string_view v) { o.cache = on_off("cache", v); }},
    {"cache_dir", "FOLDER", "where they are kept",
     [](Options& o, std::string_view v) { o.cache_directory = v; }},
    {"cache_size", "MIB", "the cache's size limit",
     [](Options& o, std::string_view v) {
         o.cache_bytes = number(flags_variable, "cache_size", v, 0, 1 << 30, "a number of MiB") << 20;
     }},
    {"threads", "N", "threads of the cpu device; 0: one for each core",
     [](Options& o, std::string_view v) {
         o.threads = static_cast<int>(
             number(flags_variable, "threads", v, 0, 4096, "a number of threads up to 4096"));
     }},
    {"tasks", "usual|smallest", "how much of a kernel a task of the cpu device has",
     [](Options& o, std::string_view v) {
         if (v != "usual" && v != "smallest") malformed(flags_variable, "tasks", v, "usual or smallest");
         o.smallest_tasks = v == "smallest";
     }},
    {"loops", "fast|checked",
     "whether loops of the cpu device end the process where a variable is out of range",
     [](Options& o, std::string_view v) {
         if (v != "fast" && v != "checked") malformed(flags_variable, "loops", v, "fast or checked");
         o.checked_loops = v == "checked";
     }},
    {"mode", "fast_run|fast_compile", "whether kernels are to run fast, or to be compiled fast",
     [](Options& o, std::string_view v) {
         if (v != "fast_run" && v != "fast_compile")
             malformed(flags_variable, "mode", v, "fast_run or fast_compile");
         o.mode = v == "fast_run" ? Options::Mode::fast_run : Options::Mode::fast_compile;
     }},
    {"cpu_target", "native|x86-64-v4|x86-64-v3|x86-64|aarch64", "the processor that kernels are compiled for",
     [](Options& o, std::string_view v) {
         if (v != "native" && v != "x86-64-v4" && v != "x86-64-v3" && v != "x86-64" && v != "aarch64")
             malformed(flags_variable, "cpu_target", v, "native, x86-64-v4, x86-64-v3, x86-64 or aarch64");
         o.cpu_target = v;
     }},
    {"compiler", "COMMAND", "host compiler for generated code",
     [](Options& o, std::string_view v) { o.compiler = v; }},
    {"compiler_seconds", "N", "a host compiler that takes longer is ended; 0: it may take any time",
     [](Options& o, std::string_view v) {
         o.compiler_seconds = static_cast<int>(
             number(flags_variable, "compiler_seconds", v, 0, 86400, "a number of seconds up to 86400"));
     }},
    {"autotune", "on|off",
     "measure the ways in which a value can be computed, once, and remember the fastest",
     [](Options& o, std::string_view v) { o.autotune = on_off("autotune", v); }},
    {"specialise", "on|off",
     "whether functions of unknown lengths are compiled for those of a call, at that call, or for all "
     "lengths",
     [](Options& o, std::string_view v) { o.specialise = on_off("specialise", v); }},
    {"cuda_home", "FOLDER[:FOLDER...]", "where CUDA's libraries are looked for first",
     [](Options& o, std::string_view v) { o.cuda_home = v; }},
    {"emulator", "fast|checked|counted",
     "whether the emulator watches every access of a kernel, or counts them for the report",
     [](Options& o, std::string_view v) {
         if (v != "fast" && v != "checked" && v != "counted")
             malformed(flags_variable, "emulator", v, "fast, checked or counted");
         o.emulator_checks = v == "checked";
         o.emulator_counts = v == "counted";
     }},
    {"emulator_devices", "N", "how many GPUs the emulator shows: emulator, emulator:1, ...",
     [](Options& o, std::string_view v) {
         o.emulator_devices = static_cast<int>(
             number(flags_variable, "emulator_devices", v, 1, 16, "a number of devices from 1 to 16"));
     }},
    {"graphs", "loop|step|off", "the most that one launch on a GPU may hold: a loop, a step, a kernel",
     [](Options& o, std::string_view v) {
         if (v != "loop" && v != "step" && v != "off")
             malformed(flags_variable, "graphs", v, "loop, step or off");
         o.graphs = v == "loop"   ? Options::Graphs::loop
                    : v == "step" ? Options::Graphs::step
                                  : Options::Graphs::off;
     }},
    {"launches", "ahead|wait|compare",
     "whether each launch on a GPU is waited for, so that a fault names its kernel, or repeated on the "
     "emulator, so that a wrong result does",
     [](Options& o, std::string_view v) {
         if (v != "ahead" && v != "wait" && v != "compare")
             malformed(flags_variable, "launches", v, "ahead, wait or compare");
         o.compare_launches = v == "compare";
         o.wait_for_launches = v != "ahead";
     }},
    {"debug_lines", "on|off", "machine code for a GPU names the lines of its CUDA text",
     [](Options& o, std::string_view v) { o.debug_lines = on_off("debug_lines", v); }},
    {"debug_kernels", "on|off",
     "compile kernels from their readable text, so that debuggers and profilers show the lines of the "
     "program",
     [](Options& o, std::string_view v) { o.debug_kernels = on_off("debug_kernels", v); }},
    {"dump_target", "sm_NN", "the GPU that BITALE_DUMP compiles the emulator's kernels for",
     [](Options& o, std::string_view v) {
         const bool is_number =
             v.size() > 3 && v.find_first_not_of("0123456789", 3) == std::string_view::npos;
         if (!v.starts_with("sm_") || !is_number || v.size() > 6)
             malformed(flags_variable, "dump_target", v, "an architecture such as sm_90");
         o.dump_target = v;
     }},
    {"interpret", "on|off", "without a host compiler, evaluate graphs as they are",
     [](Options& o, std::string_view v) { o.interpret = on_off("interpret", v); }},
    {"promotion", "strict|theano", "how dtypes mix",
     [](Options& o, std::string_view v) {
         if (v != "strict" && v != "theano") malformed(flags_variable, "promotion", v, "strict or theano");
         o.promotion = v == "strict" ? Options::Promotion::strict : Options::Promotion::theano;
     }},
    {"math", "usual|strict",
     "strict: every operation is rounded as it is written, and no product is left out",
     [](Options& o, std::string_view v) {
         if (v != "usual" && v != "strict") malformed(flags_variable, "math", v, "usual or strict");
         o.strict_math = v == "strict";
     }},
    {"assume_finite", "on|off", "allow rules that hold only without inf and NaN",
     [](Options& o, std::string_view v) { o.assume_finite = on_off("assume_finite", v); }},
    {"verify", "on|off", "verify the graph after every pass",
     [](Options& o, std::string_view v) { o.verify = on_off("verify", v); }},
    {"disable", "NAME[+NAME...]",
     "rules, tags of rules and passes to leave out, or onednn, lapack, cudnn; may be repeated",
     [](Options& o, std::string_view v) {
         while (!v.empty()) {
             const std::size_t end = std::min(v.find('+'), v.size());
             if (end > 0) o.disabled.emplace(v.substr(0, end));
             v.remove_prefix(std::min(end + 1, v.size()));
         }
     }},
};

std::string_view trimmed(std::string_view text) {
    const auto space = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && space(text.front())) text.remove_prefix(1);
    while (!text.empty() && space(text.back())) text.remove_suffix(1);
    return text;
}

// A path may have blanks, but a blank before the name of a flag and = stands where a comma was meant.
void reject_missing_comma(std::string_view value) {
    for (std::size_t blank = value.find_first_of(" \t"); blank != std::string_view::npos;
         blank = value.find_first_of(" \t", blank + 1)) {
        const std::string_view rest = trimmed(value.substr(blank));
        for (const Flag& flag : flags)
            if (rest.starts_with(flag.name) && trimmed(rest.substr(std::strlen(flag.name))).starts_with('='))
                throw Error(std::string(flags_variable) + ": a comma is missing before " + in_quotes(rest) +
                            "; flags are separated by commas, as in a=b,c=d");
    }
}

void parse_flag(Options& options, std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = trimmed(text.substr(0, equals));
    for (const Flag& flag : flags) {
        if (name != flag.name) continue;
        if (equals == std::string_view::npos)
            throw Error(std::string(flags_variable) + ": " + std::string(name) +
                        " needs a value: " + flag.name + "=" + flag.values);
        const std::string_view value = trimmed(text.substr(equals + 1));
        reject_missing_comma(value);
        return flag.set(options, value);
    }
    std::set<std::string> known;
    for (const Flag& flag : flags) known.insert(flag.name);
    throw Error(std::string(flags_variable) + ": unknown flag " + in_quotes(name) +
                did_you_mean(name, known) + "; known are\n" + flags_help());
}

}  // namespace

std::string flags_help() {
    std::string s;
    for (const Flag& flag : flags)
        s += std::string("  ") + flag.name + "=" + flag.values + ": " + flag.meaning + "\n";
    return s;
}

bool Options::verifies() const {
#ifdef NDEBUG
    return verify || debug >= 3;
#else
    return true;
#endif
}

Options parse_options(const char* flags_text, const char* debug, const char* dump) {
    Options options;
    std::string_view rest = flags_text ? flags_text : "";
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        const std::string_view item = trimmed(rest.substr(0, end));
        if (!item.empty()) parse_flag(options, item);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (options.strict_math && options.assume_finite)
        throw Error(std::string(flags_variable) +
                    ": math=strict keeps what infinities and NaN become, assume_finite=on gives it up; leave "
                    "one of them out");
    if (debug && *debug)
        options.debug =
            static_cast<int>(number("BITALE_DEBUG", "level", trimmed(debug), 0, 6, "a level from 0 to 6"));
    if (dump) options.dump = dump;
    return options;
}

const Options& options() {
    if (const Options* now = in_force.load()) return *now;
    // Leaked: kernels and static shared variables may still ask after main.
    static const Options& environment = *new Options(parse_options(
        secure_getenv("BITALE_FLAGS"), secure_getenv("BITALE_DEBUG"), secure_getenv("BITALE_DUMP")));
    return environment;
}

ScopedOptions::ScopedOptions(Options with) : mine_(std::move(with)), before_(in_force.exchange(&mine_)) {}
ScopedOptions::~ScopedOptions() { in_force = before_; }

}  // namespace bitale
