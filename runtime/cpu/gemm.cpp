// dnnl_sgemm through dlsym, and the cutting of products.
#include "runtime/cpu/gemm.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
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

// A slice on one core in nanoseconds, fitted to 26 shapes of small networks on one with 512-bit vectors: what
// counts is which of the grids is best. The library works on blocks of 8 rows by 48 columns; whatever slices
// share, each of them packs for itself, and dearly where it has to turn it as well.
double nanoseconds(const GemmShape& s, std::int64_t rows, std::int64_t columns) {
    constexpr double flops_per_ns = 230, pack_a = 0.2, pack_b = 0.04, turn_b = 0.22, call = 500;
    constexpr std::int64_t block_rows = 8, block_columns = 48, lanes = 16;
    const std::int64_t rest = columns % block_columns;
    const std::int64_t m = (rows + block_rows - 1) / block_rows * block_rows,
                       n = columns - rest +
                           (rest > 0 ? (rest + lanes - 1) / lanes * lanes + block_rows : std::int64_t{0});
    const auto k = static_cast<double>(s.k);
    return 2 * static_cast<double>(m) * static_cast<double>(n) * k / flops_per_ns +
           static_cast<double>(rows) * k * pack_a +
           static_cast<double>(columns) * k * (s.transpose_b ? turn_b : pack_b) + call;
}

// How many slices are worth having: each some ten microseconds at least, and more of them where there is work
// for more cores.
std::int64_t wanted_slices(const GemmShape& s) {
    const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    constexpr double two = 4e6, four = 12e6, eight = 80e6, sixteen = 640e6, more = 2560e6;
    return flops < two       ? 1
           : flops < four    ? 2
           : flops < eight   ? 4
           : flops < sixteen ? 8
           : flops < more    ? 16
                             : 64;
}

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
    if (s.m == 0 || s.n == 0) return {};
    constexpr std::int64_t row_unit = 8, column_unit = 16;
    const auto part = [](std::int64_t extent, std::int64_t parts, std::int64_t unit) {
        return std::min(extent, ((extent + parts - 1) / parts + unit - 1) / unit * unit);
    };
    GemmSlices best;
    double least = std::numeric_limits<double>::max();
    const std::int64_t wanted = wanted_slices(s);
    for (std::int64_t parts = 1; parts <= wanted; parts *= 2) {
        GemmSlices r;
        r.rows = part(s.m, parts, row_unit);
        r.columns = part(s.n, wanted / parts, column_unit);
        r.of_rows = (s.m + r.rows - 1) / r.rows;
        r.of_columns = (s.n + r.columns - 1) / r.columns;
        const double cost = nanoseconds(s, r.rows, r.columns);
        if (cost < least) {
            least = cost;
            best = r;
        }
    }
    return best;
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
    pool.run(slices.count(), [&](std::int64_t first, std::int64_t last) {
        const OneThread guard;
        for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t row = i / slices.of_columns * slices.rows,
                               column = i % slices.of_columns * slices.columns;
            const std::int64_t m = std::min(slices.rows, s.m - row),
                               n = std::min(slices.columns, s.n - column);
            float* to = c + row * s.n + column;
            const int status = library().sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', m, n,
                                               s.k, 1.0f, a + row * (s.transpose_a ? 1 : lda), lda,
                                               b + column * (s.transpose_b ? ldb : 1), ldb, 0.0f, to, s.n);
            if (status != 0) throw DeviceError("dnnl_sgemm failed with status " + std::to_string(status));
            add_epilogue(s, bias ? bias + column : bias, m, n, to);
        }
    });
}

}  // namespace bitale
