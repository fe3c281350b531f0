// dnnl_sgemm and dnnl_gemm_?8s8s32 through dlsym.
#include "runtime/cpu/onednn.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

#include "runtime/outside.h"

namespace bitale {

namespace {

// The C interface of oneDNN 2 and 3; row-major.
using Sgemm = int (*)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                      float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                      float beta, float* c, std::int64_t ldc);
template <class A>
using ByteGemm = int (*)(char transpose_a, char transpose_b, char kind_of_offset, std::int64_t m,
                         std::int64_t n, std::int64_t k, float alpha, const A* a, std::int64_t lda,
                         A offset_a, const std::int8_t* b, std::int64_t ldb, std::int8_t offset_b, float beta,
                         std::int32_t* c, std::int64_t ldc, const std::int32_t* offset_c);
struct Version {
    int major, minor, patch;
};

// With each call the library takes some 100 kB of aligned memory and gives it back. Around that, glibc leaves
// small pieces, which a thread keeps for itself, seven of each size; meanwhile what lies between them is not
// joined with its neighbours, and the next call takes fresh memory (glibc's bug 14581): 28 MB were left so,
// in no plan. Where the thread has its seven already, pieces are joined at once. 0.7 us.
void keep_small_blocks() noexcept {
#if defined(__GLIBC__)
    constexpr std::size_t smallest = 24, step = 16, sizes = 9, of_each = 7;
    void* volatile blocks[sizes][of_each];  // volatile: else compilers leave all of it out
    for (std::size_t k = 0; k < sizes; ++k)
        for (void* volatile& block : blocks[k]) block = std::malloc(smallest + k * step);
    for (auto& of_size : blocks)
        for (void* volatile& block : of_size) std::free(block);
#endif
}

struct Library {
    GemmLibrary info;
    Sgemm sgemm = nullptr;
    ByteGemm<std::int8_t> of_int8 = nullptr;
    ByteGemm<std::uint8_t> of_uint8 = nullptr;
    // Of the OpenMP runtime that the library itself uses; null where it uses none.
    void (*set_threads)(int) = nullptr;
    int (*max_threads)() = nullptr;
};

// File names of oneDNN, the preferred one first. Debian 13 has the minor version in the name.
std::vector<std::string> file_names() {
    std::vector<std::string> names{"libdnnl.so.3"};
    constexpr int newest_minor = 19;
    for (int minor = newest_minor; minor >= 0; --minor)
        names.push_back("libdnnl.so.3." + std::to_string(minor));
    names.emplace_back("libdnnl.so.2");
    return names;
}

void find_byte_products(void* handle, Library& r) {
    constexpr int avx512_vnni = 0x67;  // dnnl_cpu_isa_avx512_core_vnni, whose bits later ones have too
    const auto isa = reinterpret_cast<int (*)()>(dlsym(handle, "dnnl_get_effective_cpu_isa"));
    r.of_int8 = reinterpret_cast<ByteGemm<std::int8_t>>(dlsym(handle, "dnnl_gemm_s8s8s32"));
    r.of_uint8 = reinterpret_cast<ByteGemm<std::uint8_t>>(dlsym(handle, "dnnl_gemm_u8s8s32"));
    r.info.multiplies_bytes = r.of_int8 && r.of_uint8 && isa && (isa() & avx512_vnni) == avx512_vnni;
}

Library open_library() {
    Library r;
    std::string tried;
    for (const std::string& name : file_names()) {
        std::string problem = name;
        void* handle = outside::load_library(name, RTLD_NOW | RTLD_LOCAL, &problem);
        if (!handle) {
            if (tried.empty()) tried = problem;
            continue;
        }
        r.sgemm = reinterpret_cast<Sgemm>(dlsym(handle, "dnnl_sgemm"));
        if (!r.sgemm) {
            tried += (tried.empty() ? "" : "; ") + name + " has no dnnl_sgemm";
            continue;
        }
        r.set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
        r.max_threads = reinterpret_cast<int (*)()>(dlsym(handle, "omp_get_max_threads"));
        r.info.present = true;
        find_byte_products(handle, r);
        r.info.name = name;
        if (const auto version = reinterpret_cast<const Version* (*)()>(dlsym(handle, "dnnl_version"))) {
            const Version& v = *version();
            r.info.name += " (oneDNN " + std::to_string(v.major) + "." + std::to_string(v.minor) + "." +
                           std::to_string(v.patch) + ")";
        }
        return r;
    }
    r.info.name = tried;
    return r;
}

const Library& library() {
    static const Library& opened = *new Library(open_library());
    return opened;
}

template <class A>
bool multiply_bytes(ByteGemm<A> gemm, char transpose_a, char transpose_b, std::int64_t m, std::int64_t n,
                    std::int64_t k, const A* a, std::int64_t row_a, const std::int8_t* b, std::int64_t row_b,
                    bool adds, std::int32_t* c, std::int64_t row_c) {
    if (!library().info.multiplies_bytes || outside::refused(outside::Door::library)) return false;
    keep_small_blocks();
    const std::int32_t no_offset = 0;
    return gemm(transpose_a, transpose_b, 'F', m, n, k, 1, a, row_a, 0, b, row_b, 0, adds ? 1.0F : 0.0F, c,
                row_c, &no_offset) == 0;
}

}  // namespace

const GemmLibrary& gemm_library() { return library().info; }

OneThread::OneThread() {
    if (!library().set_threads || !library().max_threads) return;
    before_ = library().max_threads();
    if (before_ != 1) library().set_threads(1);
}

OneThread::~OneThread() {
    if (before_ > 1) library().set_threads(before_);
}

bool multiply_by_onednn(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                        float alpha, const float* a, std::int64_t row_a, const float* b, std::int64_t row_b,
                        float beta, float* c, std::int64_t row_c) {
    if (!library().sgemm || outside::refused(outside::Door::library)) return false;
    keep_small_blocks();
    return library().sgemm(transpose_a, transpose_b, m, n, k, alpha, a, row_a, b, row_b, beta, c, row_c) == 0;
}

bool multiply_by_onednn(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                        const std::int8_t* a, std::int64_t row_a, const std::int8_t* b, std::int64_t row_b,
                        bool adds, std::int32_t* c, std::int64_t row_c) {
    return multiply_bytes(library().of_int8, transpose_a, transpose_b, m, n, k, a, row_a, b, row_b, adds, c,
                          row_c);
}

bool multiply_by_onednn(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                        const std::uint8_t* a, std::int64_t row_a, const std::int8_t* b, std::int64_t row_b,
                        bool adds, std::int32_t* c, std::int64_t row_c) {
    return multiply_bytes(library().of_uint8, transpose_a, transpose_b, m, n, k, a, row_a, b, row_b, adds, c,
                          row_c);
}

}  // namespace bitale
