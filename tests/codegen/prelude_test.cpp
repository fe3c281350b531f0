// The prelude as text: what is selected, that every selection compiles, that vectors and scalars give the
// same bits, and that NVRTC accepts all of it.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "codegen/print/prelude.h"
#include "tests/codegen/device_functions.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using bitale::device_names;
using bitale::device_prelude;
using namespace bitale::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::vector<std::string> real_names() {
    std::vector<std::string> names;
#define ADD_NAME(NAME, REFERENCE) names.push_back("b_" #NAME);
    BITALE_REAL_FUNCTIONS(ADD_NAME)
#undef ADD_NAME
    return names;
}

// The helpers that the rows of the table call.
std::set<std::string> table_names() {
    std::string texts;
#define BITALE_UNARY(name, rule, text, ...) texts += #text " ";
#define BITALE_BINARY(name, rule, text, ...) texts += #text " ";
#define BITALE_TERNARY(name, rule, text, ...) texts += #text " ";
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY
    return device_names(texts);
}

// Runs the host compiler in a folder of its own; the object stays loaded until the end.
class Compiled {
  public:
    Compiled(const std::string& text, const std::string& flags) {
        write_file(folder_ / "text.cpp", text);
        const char* named = std::getenv("BITALE_CXX");
        const std::string command =
            std::string(named ? named : "c++") +
            " -std=c++17 -fPIC -shared -fopenmp-simd -Wall -Wextra -Wno-unused-function "
            "-Werror " +
            flags + " -o " + (folder_ / "text.so") + " " + (folder_ / "text.cpp") + " 2> " +
            (folder_ / "log");
        if (std::system(command.c_str()) != 0) {
            log_ = command + "\n" + text_of_file(folder_ / "log").substr(0, 4000);
            return;
        }
        library_ = dlopen((folder_ / "text.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library_) log_ = dlerror();
    }
    ~Compiled() {
        if (library_) dlclose(library_);
    }
    Compiled(const Compiled&) = delete;
    Compiled& operator=(const Compiled&) = delete;
    const std::string& log() const { return log_; }  // empty: all is well
    using Loop = void (*)(const void* a, const void* b, void* out, long long count);
    Loop loop(const std::string& name) const { return reinterpret_cast<Loop>(dlsym(library_, name.c_str())); }

  private:
    TemporaryFolder folder_;
    std::string log_;
    void* library_ = nullptr;
};

bool has_compiler() {
    const char* named = std::getenv("BITALE_CXX");
    return std::system((std::string(named ? named : "c++") + " --version > /dev/null 2>&1").c_str()) == 0;
}

std::string vector_flags() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return " -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return " -mavx2 -mfma";
#endif
    return "";
}

// A loop per helper: name, type of the operands, type of the result, expression.
struct Case {
    std::string name, from, to, expression;
};

std::vector<Case> cases() {
    std::vector<Case> r;
    for (const char* type : {"f32", "f64"}) {
        for (const std::string& name : real_names())
            r.push_back({name + "_" + type, type, type, name + "(a)"});
        for (const char* name : {"pow", "mod", "maximum", "minimum"})
            r.push_back(
                {std::string("b_") + name + "_" + type, type, type, std::string("b_") + name + "(a, b)"});
        for (const char* to : {"bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16"})
            r.push_back({std::string(type) + "_to_" + to, type, to, std::string("b_to_") + to + "(a)"});
    }
    for (const char* from : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16"})
        r.push_back({std::string(from) + "_to_f32", from, "f32", "b_to_f32(a)"});
    for (const char* type : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"})
        for (const char* name : {"add", "mul", "floordiv", "mod", "maximum", "shift_left", "shift_right"})
            r.push_back(
                {std::string("b_") + name + "_" + type, type, type, std::string("b_") + name + "(a, b)"});
    r.push_back({"philox", "u64", "u32", "b_philox(a, b, (u64)i)"});
    return r;
}

std::string loops(bool vectors) {
    std::string body;
    for (const Case& c : cases())
        body += "extern \"C\" void " + c.name + "(const " + c.from + "* B_RESTRICT x, const " + c.from +
                "* B_RESTRICT y, " + c.to + "* B_RESTRICT out, i64 n) {\n" + (vectors ? "    B_SIMD\n" : "") +
                "    for (i64 i = 0; i < n; ++i) {\n        const " + c.from +
                " a = x[i], b = y[i];\n        (void)a, (void)b;\n" + "        out[i] = " + c.expression +
                ";\n    }\n}\n";
    return device_prelude(false, device_names(body)) + "\n" + body;
}

int bytes_of_type(const std::string& type) {
    return type == "bool" || type.ends_with("8") ? 1
           : type.ends_with("16")                ? 2
           : type.ends_with("32")                ? 4
                                                 : 8;
}

// NaNs are equal: their signs and payloads are the processor's.
template <class T>
bool same_number(const unsigned char* a, const unsigned char* b) {
    T x, y;
    std::memcpy(&x, a, sizeof(T));
    std::memcpy(&y, b, sizeof(T));
    return std::memcmp(a, b, sizeof(T)) == 0 || (x != x && y != y);
}

bool same_bits(const std::string& type, const unsigned char* a, const unsigned char* b) {
    if (type == "f32") return same_number<float>(a, b);
    if (type == "f64") return same_number<double>(a, b);
    return std::memcmp(a, b, static_cast<std::size_t>(bytes_of_type(type))) == 0;
}

// Random bit patterns, and numbers of ordinary size; the odd length leaves a tail after the vectors.
std::vector<unsigned char> operands(const std::string& type, std::size_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    const auto bytes = static_cast<std::size_t>(bytes_of_type(type));
    std::vector<unsigned char> r(count * bytes);
    std::uniform_real_distribution<double> near(-20, 20);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = random();
        const double number = near(random);
        if (i % 3 != 0 && type == "f32") bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
        if (i % 3 != 0 && type == "f64") bits = std::bit_cast<std::uint64_t>(number);
        std::memcpy(&r[i * bytes], &bits, bytes);
    }
    return r;
}

}  // namespace

TEST_CASE("The prelude holds what is used and what that needs", "[device]") {
    const std::string text = device_prelude(false, device_names("y = b_sigmoid(x) + b_mine(x);"));
    CHECK(contains(text, "f32 b_sigmoid(f32"));
    CHECK(contains(text, "f32 b_exp(f32"));
    CHECK(contains(text, "b_times_power_of_two(f32"));
    CHECK(contains(text, "typedef float f32;"));
    CHECK_FALSE(contains(text, "b_log("));
    CHECK_FALSE(contains(text, "b_philox"));
    CHECK_FALSE(contains(text, "f64 b_exp(f64"));
    CHECK_FALSE(contains(text, "__CUDACC__"));
    const std::string wide = device_prelude(false, device_names("const f64 y = b_sigmoid(x);"));
    CHECK(contains(wide, "f64 b_exp(f64"));
    CHECK(contains(device_prelude(true, {}), "__device__"));
    CHECK_FALSE(contains(device_prelude(true), "__builtin"));
    CHECK(device_prelude(false, {"b_log", "b_exp"}) == device_prelude(false, {"b_exp", "b_log"}));
    CHECK(device_prelude(false, {"b_no_such_helper"}) == device_prelude(false, {}));
}

TEST_CASE("Every helper that the elementwise table calls is defined", "[device]") {
    const std::set<std::string> names = table_names();
    CHECK(names.size() > 30);
    for (const std::string& name : names) {
        INFO(name);
        CHECK(contains(device_prelude(false, {name}), name));
    }
}

TEST_CASE("Every selection from the prelude compiles without warnings", "[device]") {
    if (!has_compiler()) {
        WARN("skipped: no host compiler");
        return;
    }
    // Each selection in a namespace of its own, so that the compiler starts once.
    std::string text;
    std::set<std::string> names = table_names();
    for (const char* name :
         {"b_clamp_index", "b_report", "b_max_nan", "b_min_nan", "b_to_f16", "b_to_u8", "b_to_bool"})
        names.insert(name);
    for (const std::string& name : names)
        for (const bool wide : {false, true}) {
            std::set<std::string> used = {name};
            if (wide) used.insert("f64");
            text += "namespace only_" + name + (wide ? "_f64" : "") + " {\n" + device_prelude(false, used) +
                    "}\n";
        }
    INFO(Compiled(text, "-O0").log());
    CHECK(Compiled(text, "-O0").log().empty());
    CHECK(Compiled(device_prelude(false), "-O0").log().empty());
}

TEST_CASE("Vectors, with the processor's fma, give the bits of plain scalar code", "[device]") {
    if (!has_compiler()) {
        WARN("skipped: no host compiler");
        return;
    }
    const Compiled scalar(loops(false), "-O1 -ffp-contract=off");
    const Compiled vectors(
        loops(true),
        "-O2 -fopenmp-simd -fno-math-errno -fno-trapping-math -ffp-contract=off" + vector_flags());
    INFO(scalar.log() << vectors.log());
    REQUIRE((scalar.log().empty() && vectors.log().empty()));
    constexpr std::size_t count = 20011;
    for (const Case& c : cases()) {
        const std::vector<unsigned char> a = operands(c.from, count, 1), b = operands(c.from, count, 2);
        const auto bytes = static_cast<std::size_t>(bytes_of_type(c.to));
        std::vector<unsigned char> one(count * bytes), other(count * bytes);
        scalar.loop(c.name)(a.data(), b.data(), one.data(), count);
        vectors.loop(c.name)(a.data(), b.data(), other.data(), count);
        int different = 0;
        for (std::size_t i = 0; i < count; ++i)
            different += !same_bits(c.to, &one[i * bytes], &other[i * bytes]);
        INFO(c.name);
        CHECK(different == 0);
    }
}

TEST_CASE("NVRTC compiles the whole prelude", "[device][nvrtc]") {
    if (std::strlen(BITALE_SANITIZE) != 0) {
        WARN("skipped: NVRTC is not run under sanitizers");
        return;
    }
    void* library = nullptr;
    for (const char* name :
         {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"})
        if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
    if (!library) {
        WARN("skipped: NVRTC is not installed");
        return;
    }
    const auto symbol = [&](const char* name) { return dlsym(library, name); };
    const auto create = reinterpret_cast<int (*)(void**, const char*, const char*, int, const char* const*,
                                                 const char* const*)>(symbol("nvrtcCreateProgram"));
    const auto compile =
        reinterpret_cast<int (*)(void*, int, const char* const*)>(symbol("nvrtcCompileProgram"));
    const auto log_size = reinterpret_cast<int (*)(void*, std::size_t*)>(symbol("nvrtcGetProgramLogSize"));
    const auto get_log = reinterpret_cast<int (*)(void*, char*)>(symbol("nvrtcGetProgramLog"));
    const auto destroy = reinterpret_cast<int (*)(void**)>(symbol("nvrtcDestroyProgram"));
    REQUIRE((create && compile && log_size && get_log && destroy));

    std::string text = device_prelude(true) + "\n";
    // Unused functions are not compiled to the end: one kernel that calls everything.
    std::string calls;
    for (const Case& c : cases())
        calls += "    {\n        const " + c.from + " a = ((const " + c.from + "*)x)[i], b = ((const " +
                 c.from + "*)y)[i];\n" + "        ((" + c.to + "*)out)[i] = " + c.expression + ";\n    }\n";
    text += "extern \"C\" __global__ void all(void* x, void* y, void* out, i64 i) {\n" + calls +
            "    b_report((i64*)out, 1, 2, b_clamp_index(i, 4), 5);\n}\n";
    for (const char* architecture : {"--gpu-architecture=sm_75", "--gpu-architecture=sm_90"}) {
        void* program = nullptr;
        REQUIRE(create(&program, text.c_str(), "prelude.cu", 0, nullptr, nullptr) == 0);
        const char* options[] = {architecture,      "--std=c++17",      "--fmad=false",
                                 "--prec-div=true", "--prec-sqrt=true", "--ftz=false"};
        const int status = compile(program, 6, options);
        std::size_t size = 0;
        log_size(program, &size);
        std::string log(size, ' ');
        get_log(program, log.data());
        INFO(architecture << "\n" << log.substr(0, 3000));
        CHECK(status == 0);
        CHECK(log.find("warning") == std::string::npos);
        destroy(&program);
    }
}
