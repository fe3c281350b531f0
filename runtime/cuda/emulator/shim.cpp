// What stands in front of a kernel's CUDA text when the host compiles it: CUDA's words in terms of
// EmulatorState.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "codegen/print/comments.h"
#include "graph/base/numbers.h"
#include "runtime/cuda/emulator/compile.h"

namespace bitale::cuda {

namespace {

// What a kernel sees of its launch; see state.h.
constexpr const char* state = R"(struct emulated_extent { unsigned x, y, z; };
struct emulated_state {
    emulated_extent thread, block, block_size, grid_size;
    unsigned lane;
    void (*barrier)(int line);
    unsigned long long (*exchange)(unsigned mask, unsigned long long word, unsigned from, int line);
    unsigned (*ballot)(unsigned mask, int predicate, int line);
    void (*meet)(unsigned mask, int line);
    void (*access)(const void* address, unsigned long bytes, int kind, const void* code);
    void (*set_conditional)(unsigned long long handle, unsigned value);
};
)";

// Of kernels that tell of no access.
constexpr const char* unwatched = R"(
static emulated_state* emulated;
#define __shared__ static
#define EMULATED_UNWATCHED inline
#define EMULATED_ATOMIC(p)
)";

// The compiler was told to prepare the code for ThreadSanitizer: it calls these functions before each access
// of memory. What is static lies far apart, so that what misses a shared array hits nothing else.
constexpr const char* watched = R"(
#define EMULATED_APART __attribute__((aligned(65536)))
static EMULATED_APART emulated_state* emulated;
#define __shared__ static EMULATED_APART
#define EMULATED_UNWATCHED __attribute__((noinline, no_sanitize("thread")))
#define EMULATED_ATOMIC(p) emulated->access(p, sizeof *p, 2, __builtin_return_address(0))
#define EMULATED_HOOK \
    extern "C" __attribute__((visibility("hidden"), used, noinline, no_sanitize("thread"))) void
#define EMULATED_HELPER static inline __attribute__((no_sanitize("thread"), always_inline)) void
extern "C" const char emulated_file[] = __FILE__;
EMULATED_HELPER emulated_whole(const void* p, unsigned long bytes, int kind, const void* code) {
    const unsigned long within = (unsigned long)((const char*)p - (const char*)emulated);
    if (within >= sizeof(emulated_state) && p != &emulated) emulated->access(p, bytes, kind, code);
}
EMULATED_HELPER emulated_pieces(const void* p, unsigned long bytes, int kind, const void* code) {
    if (EMULATED_WHOLE) return emulated_whole(p, bytes, kind, code);
    const unsigned long step = ((unsigned long)p | bytes) % 4 ? 1 : 4;
    for (unsigned long at = 0; at < bytes; at += step)
        emulated_whole((const char*)p + at, step, kind, code);
}
#define EMULATED_READ(name, tell, n) \
    EMULATED_HOOK __tsan_##name(void* p) { tell(p, n, 0, __builtin_return_address(0)); }
#define EMULATED_WRITE(name, tell, n) \
    EMULATED_HOOK __tsan_##name(void* p) { tell(p, n, 1, __builtin_return_address(0)); }
#define EMULATED_SIZE(n) \
    EMULATED_READ(read##n, emulated_whole, n) \
    EMULATED_READ(volatile_read##n, emulated_whole, n) \
    EMULATED_READ(unaligned_read##n, emulated_pieces, n) \
    EMULATED_WRITE(write##n, emulated_whole, n) \
    EMULATED_WRITE(volatile_write##n, emulated_whole, n) \
    EMULATED_WRITE(unaligned_write##n, emulated_pieces, n) \
    EMULATED_WRITE(read_write##n, emulated_whole, n) \
    EMULATED_WRITE(unaligned_read_write##n, emulated_pieces, n)
EMULATED_SIZE(1)
EMULATED_SIZE(2)
EMULATED_SIZE(4)
EMULATED_SIZE(8)
EMULATED_SIZE(16)
EMULATED_HOOK __tsan_read_range(void* p, unsigned long n) {
    emulated_pieces(p, n, 0, __builtin_return_address(0));
}
EMULATED_HOOK __tsan_write_range(void* p, unsigned long n) {
    emulated_pieces(p, n, 1, __builtin_return_address(0));
}
EMULATED_HOOK __tsan_init() {}
extern "C" const int emulated_watched = 1;
EMULATED_HOOK __tsan_func_entry(void*) {}
EMULATED_HOOK __tsan_func_exit() {}
)";

// The checker sees bytes that were written by several instructions, and each shared array by itself.
constexpr const char* for_checks = R"(#define EMULATED_WHOLE false
#define B_SHARED_MEMORY(BYTES)
#define B_SHARED(T, NAME, COUNT, OFFSET) __shared__ T NAME[COUNT]
)";

// What counts sees the instructions of a GPU: elements that move together are one access, although the host's
// compiler would take them apart, and loops are unrolled as they ask for.
constexpr const char* for_counts = R"(#define EMULATED_WHOLE true
#define B_VECTOR_LOAD(V, FROM) emulated_load<V>(FROM)
#define B_VECTOR_STORE(V, TO, VALUE) emulated_store<V>(TO, VALUE)
#define EMULATED_PRAGMA(X) _Pragma(#X)
#ifdef __clang__
#define EMULATED_UNROLL EMULATED_PRAGMA(unroll)
#define EMULATED_UNROLL_TURNS(TURNS) EMULATED_PRAGMA(unroll TURNS)
#else
#define EMULATED_UNROLL EMULATED_PRAGMA(GCC unroll 64)
#define EMULATED_UNROLL_TURNS(TURNS) EMULATED_PRAGMA(GCC unroll TURNS)
#endif
)";
constexpr const char* counted_vectors = R"(
template <class V>
static EMULATED_UNWATCHED V emulated_load(const void* from) {
    emulated->access(from, sizeof(V), 0, __builtin_return_address(0));
    return *(const V*)from;
}
template <class V>
static EMULATED_UNWATCHED void emulated_store(void* to, const V& value) {
    emulated->access(to, sizeof(V), 1, __builtin_return_address(0));
    *(V*)to = value;
}
)";

// CUDA's words.
constexpr const char* words = R"(
#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define threadIdx (emulated->thread)
#define blockIdx (emulated->block)
#define blockDim (emulated->block_size)
#define gridDim (emulated->grid_size)
#define __syncthreads() emulated->barrier(__LINE__)
static inline unsigned emulated_mask(unsigned mask = 0xffffffffu) { return mask; }
#define __syncwarp(...) emulated->meet(emulated_mask(__VA_ARGS__), __LINE__)
#define __ballot_sync(mask, predicate) emulated->ballot(mask, (predicate) != 0, __LINE__)
template <class T>
static inline T emulated_exchange(unsigned mask, T value, unsigned from, int line) {
    unsigned long long word = 0;
    __builtin_memcpy(&word, &value, sizeof value);
    word = emulated->exchange(mask, word, from, line);
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}
#define __shfl_sync(mask, value, from) emulated_exchange(mask, value, from, __LINE__)
#define __shfl_xor_sync(mask, value, bits) emulated_exchange(mask, value, emulated->lane ^ (bits), __LINE__)
static inline unsigned emulated_down(unsigned by) {
    return emulated->lane + by < 32 ? emulated->lane + by : emulated->lane;
}
#define __shfl_down_sync(mask, value, by) emulated_exchange(mask, value, emulated_down(by), __LINE__)
static inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
static inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
#define __threadfence_system() __asm__ volatile("" ::: "memory")
// CUDA text declares the function itself, so it must have a name.
#define cudaGraphSetConditional emulated_set_conditional
extern "C" void emulated_set_conditional(unsigned long long handle, unsigned value) {
    emulated->set_conditional(handle, value);
}
#define __fmaf_rn __builtin_fmaf
#define __fma_rn __builtin_fma
#define __fsqrt_rn __builtin_sqrtf
#define __dsqrt_rn __builtin_sqrt
#define floorf(x) __builtin_floorf(x)
#define floor(x) __builtin_floor(x)
#define ceilf(x) __builtin_ceilf(x)
#define ceil(x) __builtin_ceil(x)
#define truncf(x) __builtin_truncf(x)
#define trunc(x) __builtin_trunc(x)
#define rintf(x) __builtin_rintf(x)
#define rint(x) __builtin_rint(x)
#define fmodf(x, y) __builtin_fmodf(x, y)
#define fmod(x, y) __builtin_fmod(x, y)
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
// Blocks and their threads take turns, so nothing comes between.
static EMULATED_UNWATCHED unsigned long long atomicCAS(unsigned long long* p, unsigned long long expected,
                                                       unsigned long long wanted) {
    EMULATED_ATOMIC(p);
    const unsigned long long old = *p;
    if (old == expected) *p = wanted;
    return old;
}
template <class T>
static EMULATED_UNWATCHED T atomicAdd(T* p, T x) {
    EMULATED_ATOMIC(p);
    const T old = *p;
    *p = old + x;
    return old;
}
// A kernel is called with copies of its arguments, whose types are those of the function.
#define EMULATED_ENTRY(name) \
    extern "C" unsigned long emulated_##name##_bytes(unsigned long i) { \
        return emulated_kernel<name>::bytes(i); \
    } \
    extern "C" EMULATED_PLAIN void emulated_##name(void* state, void** arguments) { \
        emulated = (emulated_state*)state; \
        emulated_kernel<name>::run(arguments); \
    }
#define EMULATED_PLAIN __attribute__((no_sanitize("thread")))
template <auto kernel>
struct emulated_kernel;
template <class... P, void (*kernel)(P...)>
struct emulated_kernel<kernel> {
    struct call {
        EMULATED_PLAIN call(const P&... arguments) { kernel(arguments...); }
    };
    EMULATED_PLAIN static void run(void** arguments) { call{*(const P*)*arguments++...}; }
    static unsigned long bytes(unsigned long i) {
        const unsigned long sizes[] = {sizeof(P)..., 0};
        return i < sizeof...(P) ? sizes[i] : 0;
    }
};
)";

bool is_name(char c) { return is_letter_or_digit(c) || c == '_'; }

// Not a raw string: comments of the text hold names from outside, and with them whatever would end one.
std::string string_literal(const std::string& text) {
    std::string literal = "\"";
    for (const char c : text) {
        if (c == '\n') {
            literal += "\\n\"\n\"";
            continue;
        }
        if (c == '"' || c == '\\') literal += '\\';
        literal += c;
    }
    return literal + "\"";
}

// Host compilers have words of their own for what CUDA's pragma asks.
std::string with_unrolled_loops(std::string text) {
    const std::pair<std::string_view, std::string_view> words[] = {
        {"_Pragma(\"unroll\")", "EMULATED_UNROLL"},
        {"B_PRAGMA(unroll TURNS)", "EMULATED_UNROLL_TURNS(TURNS)"}};
    for (const auto& [cuda, host] : words)
        for (std::size_t at = text.find(cuda); at != std::string::npos;
             at = text.find(cuda, at + host.size()))
            text.replace(at, cuda.size(), host);
    return text;
}

}  // namespace

std::vector<std::string> kernels_in(const std::string& text) {
    constexpr std::string_view word = "__global__", bounds = "__launch_bounds__";
    const std::string plain = without_comments(text);
    std::vector<std::string> names;
    for (std::size_t at = plain.find(word); at != std::string::npos; at = plain.find(word, at)) {
        // The name is the last word before the parenthesis, unless that belongs to the bounds.
        std::string last;
        for (at += word.size(); at < plain.size(); ++at) {
            if (is_name(plain[at])) {
                const std::size_t begin = at;
                while (at < plain.size() && is_name(plain[at])) ++at;
                last = plain.substr(begin, at-- - begin);
            } else if (plain[at] == '(') {
                if (last != bounds) break;
                at = plain.find(')', at);
                if (at == std::string::npos) return names;
            }
        }
        if (std::find(names.begin(), names.end(), last) == names.end()) names.push_back(last);
    }
    return names;
}

std::string emulated_text(const std::string& cuda_text, Watch watch) {
    std::string text = state;
    if (watch == Watch::checks) text += for_checks;
    if (watch == Watch::counts) text += for_counts;
    text += watch == Watch::nothing ? unwatched : watched;
    if (watch == Watch::counts) text += counted_vectors;
    text += words;
    const auto lines = std::count(text.begin(), text.end(), '\n');
    text += watch == Watch::counts ? with_unrolled_loops(cuda_text) : cuda_text;
    for (const std::string& kernel : kernels_in(cuda_text))
        text += fmt::format("EMULATED_ENTRY({})\n", kernel);
    // For messages that cite a line.
    text += fmt::format(
        "extern \"C\" const int emulated_first_line = {};\n"
        "extern \"C\" const char emulated_source[] = {};\n",
        lines + 1, string_literal(cuda_text));
    return text;
}

}  // namespace bitale::cuda
