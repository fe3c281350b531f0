// dnnl_sgemm through dlsym, and the cutting of products.
#include "runtime/cpu/gemm.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bitale/error.h"

namespace bitale {

namespace {

// The C interface of oneDNN 2 and 3; row-major.
using Sgemm = int (*)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                      float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                      float beta, float* c, std::int64_t ldc);
struct Version {
    int major, minor, patch;
};

struct Library {
    GemmLibrary info;
    Sgemm sgemm = nullptr;
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

Library open_library() {
    Library r;
    std::string tried;
    for (const std::string& name : file_names()) {
        void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            const char* problem = dlerror();
            if (tried.empty()) tried = problem ? problem : name;
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

// The library sees one thread while this lives; the caller may be a thread of the user with settings of its
// own.
class OneThread {
  public:
    OneThread() {
        if (!library().set_threads || !library().max_threads) return;
        before_ = library().max_threads();
        if (before_ != 1) library().set_threads(1);
    }
    ~OneThread() {
        if (before_ > 1) library().set_threads(before_);
    }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

  private:
    int before_ = 0;
};

// Measured on 19 shapes of small networks: a slice of 15 us on one core outweighs the packing of the whole
// other operand that each slice repeats; powers of two share evenly among two, four or eight threads.
constexpr double least_flops = 3e6;
constexpr std::int64_t least_width = 32, most_slices = 8;

// Bias and relu of some rows of c, while they are in the cache.
void add_epilogue(const GemmShape& s, const float* bias, std::int64_t rows, std::int64_t columns, float* c) {
    if (!s.bias && !s.relu) return;
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
            float value = c[i * s.n + j];
            if (s.bias) value += bias[j];
            c[i * s.n + j] = s.relu && value < 0 ? 0 : value;
        }
}

}  // namespace

const GemmLibrary& gemm_library() { return library().info; }

GemmSlices slices_of(const GemmShape& s) {
    GemmSlices r;
    r.by_rows = s.m > s.n;
    const std::int64_t extent = r.by_rows ? s.m : s.n;
    const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    std::int64_t count = 1;
    while (count < most_slices && flops / static_cast<double>(2 * count) >= least_flops &&
           extent / (2 * count) >= least_width)
        count *= 2;
    // Multiples of a vector of 16 floats: no slice but the last has a masked edge.
    r.width = std::min(extent, ((extent + count - 1) / count + 15) / 16 * 16);
    r.count = r.width > 0 ? (extent + r.width - 1) / r.width : 0;
    return r;
}

void gemm(Pool& pool, const GemmShape& s, const float* a, const float* b, const float* bias, float* c) {
    if (s.m == 0 || s.n == 0) return;
    if (s.k == 0) {
        std::memset(c, 0, static_cast<std::size_t>(s.m * s.n) * sizeof(float));
        add_epilogue(s, bias, s.m, s.n, c);
        return;
    }
    const GemmSlices slices = slices_of(s);
    const std::int64_t lda = s.transpose_a ? s.m : s.k, ldb = s.transpose_b ? s.k : s.n;
    pool.run(slices.count, [&](std::int64_t first, std::int64_t last) {
        const OneThread guard;
        for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t at = i * slices.width;
            const std::int64_t m = slices.by_rows ? std::min(slices.width, s.m - at) : s.m;
            const std::int64_t n = slices.by_rows ? s.n : std::min(slices.width, s.n - at);
            const float* from_a = slices.by_rows ? a + at * (s.transpose_a ? 1 : lda) : a;
            const float* from_b = slices.by_rows ? b : b + at * (s.transpose_b ? ldb : 1);
            float* to = slices.by_rows ? c + at * s.n : c + at;
            const int status = library().sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', m, n,
                                               s.k, 1.0f, from_a, lda, from_b, ldb, 0.0f, to, s.n);
            if (status != 0) throw DeviceError("dnnl_sgemm failed with status " + std::to_string(status));
            add_epilogue(s, bias && !slices.by_rows ? bias + at : bias, m, n, to);
        }
    });
}

}  // namespace bitale
