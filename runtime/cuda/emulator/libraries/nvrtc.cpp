// An emulated libnvrtc: the host's compiler makes objects for the CPU of CUDA text, as for device=emulator.
// Its log has the compiler's words, of ptxas those that name no kernel: an emulated GPU has no registers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/emulator/compile.h"
#include "runtime/cuda/emulator/image.h"

#define EMULATED extern "C" __attribute__((visibility("default")))

using namespace bitale::cuda;

namespace {

enum Result : int { ok = 0, invalid_input = 3, invalid_program = 4, invalid_option = 5, compilation = 6 };

constexpr int cuda = BITALE_EMULATED_CUDA;

const std::vector<int>& architectures() {
    static const auto& list = *new std::vector<int>(
        cuda < 13000 ? std::vector<int>{50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 120}
        : cuda < 13050 ? std::vector<int>{75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121}
                       : std::vector<int>{75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121});
    return list;
}

struct Program {
    std::string source, log, image, ptx;
};

// As the driver's cache, which NVRTC asks from 12.9 on (12.9.86 knows the option, 12.8.93 does not): whether
// it has this already. What comes from there has an empty log.
bool in_drivers_cache(const std::string& source, const std::vector<std::string>& options) {
    constexpr int first = 12090;
    if (cuda < first || std::count(options.begin(), options.end(), "--no-cache") > 0) return false;
    static std::mutex mutex;
    static auto& known = *new std::set<std::string>;
    const std::lock_guard lock(mutex);
    return !known.insert(fmt::format("{}\n{}", fmt::join(options, " "), source)).second;
}

// The target of -arch, "sm_90" or "compute_90"; empty, with the log's words, where an option is not known.
std::string target_in(const std::vector<std::string>& options, std::string& log) {
    std::string target = "sm_" + std::to_string(architectures().front());
    for (const std::string& option : options) {
        const std::size_t equals = option.find('=');
        const std::string name = option.substr(option.find_first_not_of('-'),
                                               equals - option.find_first_not_of('-')),
                          value = equals == std::string::npos ? "" : option.substr(equals + 1);
        if (name == "arch" || name == "gpu-architecture") {
            const std::size_t digits = value.find('_') + 1;
            const int number = std::atoi(value.c_str() + digits);
            if ((!value.starts_with("sm_") && !value.starts_with("compute_")) ||
                !std::count(architectures().begin(), architectures().end(), number)) {
                log = fmt::format("nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
                return "";
            }
            target = value;
            continue;
        }
        // Whatever these say, host compilers do as our flags for them say: no contraction, nothing flushed.
        constexpr const char* known[] = {"std",        "default-device", "ptxas-options", "lineinfo",
                                         "fmad=false", "ftz=false",      "prec-div=true", "prec-sqrt=true"};
        if (cuda >= 12090 && name == "no-cache") continue;
        if (std::none_of(std::begin(known), std::end(known),
                         [&](const std::string& k) { return name == k || name + "=" + value == k; })) {
            log = fmt::format("nvrtc: error: unrecognized option {} found\n", option);
            return "";
        }
    }
    return target;
}

Result compile(Program& program, const std::vector<std::string>& options) {
    program.log.clear();
    const std::string target = target_in(options, program.log);
    if (target.empty()) return invalid_option;
    try {
        program.image = compile_emulated({program.source}).images.at(0);
    } catch (const std::exception& e) {
        program.log = e.what();
        return compilation;
    }
    program.ptx = emulated_ptx(program.image, kernels_in(program.source), target);
    if (!target.starts_with("sm_")) program.image.clear();
    if (!in_drivers_cache(program.source, options)) program.log = "ptxas info    : 0 bytes gmem\n";
    return ok;
}

Result length(const Program* program, std::string Program::*text, std::size_t ending, std::size_t* bytes) {
    if (!program) return invalid_program;
    if (!bytes) return invalid_input;
    *bytes = (program->*text).size() + ending;
    return ok;
}

Result copy(const Program* program, std::string Program::*text, std::size_t ending, char* to) {
    if (!program) return invalid_program;
    if (!to) return invalid_input;
    std::memcpy(to, (program->*text).c_str(), (program->*text).size() + ending);
    return ok;
}

}  // namespace

EMULATED int nvrtcVersion(int* major, int* minor) {
    if (!major || !minor) return invalid_input;
    *major = cuda / 1000;
    *minor = cuda % 1000 / 10;
    return ok;
}
EMULATED int nvrtcGetNumSupportedArchs(int* count) {
    if (!count) return invalid_input;
    *count = static_cast<int>(architectures().size());
    return ok;
}
EMULATED int nvrtcGetSupportedArchs(int* list) {
    if (!list) return invalid_input;
    std::copy(architectures().begin(), architectures().end(), list);
    return ok;
}
EMULATED const char* nvrtcGetErrorString(int status) {
    switch (status) {
        case ok: return "NVRTC_SUCCESS";
        case invalid_input: return "NVRTC_ERROR_INVALID_INPUT";
        case invalid_program: return "NVRTC_ERROR_INVALID_PROGRAM";
        case invalid_option: return "NVRTC_ERROR_INVALID_OPTION";
        case compilation: return "NVRTC_ERROR_COMPILATION";
        default: return "NVRTC_ERROR unknown";
    }
}

EMULATED int nvrtcCreateProgram(void** program, const char* source, const char* /*name*/, int headers,
                                const char* const* /*header_texts*/, const char* const* /*header_names*/) {
    if (!program || !source || headers != 0) return invalid_input;
    *program = new Program{source, "", "", ""};
    return ok;
}
EMULATED int nvrtcDestroyProgram(void** program) {
    if (!program || !*program) return invalid_program;
    delete static_cast<Program*>(*program);
    *program = nullptr;
    return ok;
}
EMULATED int nvrtcCompileProgram(void* program, int count, const char* const* options) {
    if (!program) return invalid_program;
    return compile(*static_cast<Program*>(program), {options, options + count});
}

EMULATED int nvrtcGetProgramLogSize(void* program, std::size_t* bytes) {
    return length(static_cast<Program*>(program), &Program::log, 1, bytes);
}
EMULATED int nvrtcGetProgramLog(void* program, char* log) {
    return copy(static_cast<Program*>(program), &Program::log, 1, log);
}
EMULATED int nvrtcGetCUBINSize(void* program, std::size_t* bytes) {
    return length(static_cast<Program*>(program), &Program::image, 0, bytes);
}
EMULATED int nvrtcGetCUBIN(void* program, char* image) {
    return copy(static_cast<Program*>(program), &Program::image, 0, image);
}
EMULATED int nvrtcGetPTXSize(void* program, std::size_t* bytes) {
    return length(static_cast<Program*>(program), &Program::ptx, 1, bytes);
}
EMULATED int nvrtcGetPTX(void* program, char* text) {
    return copy(static_cast<Program*>(program), &Program::ptx, 1, text);
}
