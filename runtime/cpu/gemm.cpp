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
double nanoseconds(const GemmShape& s, const GemmSlices& slice) {
    constexpr double flops_per_ns = 230, pack_a = 0.2, pack_b = 0.04, turn_b = 0.22, call = 500;
    constexpr std::int64_t block_rows = 8, block_columns = 48, lanes = 16;
    const std::int64_t rest = slice.columns % block_columns;
    const std::int64_t m = (slice.rows + block_rows - 1) / block_rows * block_rows,
                       n = slice.columns - rest +
                           (rest > 0 ? (rest + lanes - 1) / lanes * lanes + block_rows : std::int64_t{0});
    const auto k = static_cast<double>(slice.depth);
    return 2 * static_cast<double>(m) * static_cast<double>(n) * k / flops_per_ns +
           static_cast<double>(slice.rows) * k * pack_a +
           static_cast<double>(slice.columns) * k * (s.transpose_b ? turn_b : pack_b) + call;
}

// How many slices are worth having: each some microseconds at least, and more of them where there is work
// for more cores.
std::int64_t wanted_slices(const GemmShape& s) {
    const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    constexpr double two = 1e6, four = 8e6, eight = 80e6, sixteen = 640e6, more = 2560e6;
    return flops < two       ? 1
           : flops < four    ? 2
           : flops < eight   ? 4
           : flops < sixteen ? 8
           : flops < more    ? 16
                             : 64;
}

// Parts of the depth: halves where the rows of a parameter lie along it that are so many that to fetch them
// from the core that wrote them takes longer than to add the halves' results.
std::int64_t parts_of_depth(const GemmShape& s, std::int64_t wanted) {
    constexpr std::int64_t many = 64;
    const bool along = s.parameter == GemmCall::Parameter::depth && s.k >= many * std::min(s.m, s.n);
    return along && wanted > 1 ? 2 : 1;
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
    using Parameter = GemmCall::Parameter;
    GemmSlices best;
    double least = std::numeric_limits<double>::max();
    const std::int64_t of_depth = parts_of_depth(s, wanted_slices(s)), wanted = wanted_slices(s) / of_depth;
    for (std::int64_t parts = 1; parts <= wanted; parts *= 2) {
        if (s.parameter == Parameter::rows && parts < std::min(wanted, s.m / row_unit)) continue;
        if (s.parameter == Parameter::columns && parts > 1) continue;
        GemmSlices r;
        r.rows = part(s.m, parts, row_unit);
        r.columns = part(s.n, wanted / parts, column_unit);
        r.depth = part(s.k, of_depth, column_unit);
        r.of_rows = (s.m + r.rows - 1) / r.rows;
        r.of_columns = (s.n + r.columns - 1) / r.columns;
        r.of_depth = (s.k + r.depth - 1) / std::max<std::int64_t>(1, r.depth);
        const double cost = nanoseconds(s, r);
        if (cost < least) {
            least = cost;
            best = r;
        }
    }
    return best;
}

namespace {

class Product {
  public:
    Product(const GemmShape& shape, const float* a, const float* b, const float* bias, float* c)
        : s_(shape), slices_(slices_of(shape)), a_(a), b_(b), bias_(bias), c_(c) {}

    void run(Pool& pool, std::vector<float>& parts) {
        if (slices_.of_depth > 1) {
            const auto size = static_cast<std::size_t>((slices_.of_depth - 1) * s_.m * s_.n);
            if (parts.size() < size) parts.resize(size);
            parts_ = parts.data();
        }
        pool.run(slices_.count(), [&](std::int64_t first, std::int64_t last) {
            const OneThread guard;
            for (std::int64_t i = first; i < last; ++i) slice(i);
        });
        if (slices_.of_depth == 1) return;
        constexpr std::int64_t elements = 4096;
        const std::int64_t rows = std::max<std::int64_t>(1, elements / s_.n);
        pool.run((s_.m + rows - 1) / rows, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) add_parts(i * rows, std::min(rows, s_.m - i * rows));
        });
    }

  private:
    void slice(std::int64_t i) const {
        const std::int64_t of_grid = slices_.of_rows * slices_.of_columns, part = i / of_grid,
                           row = i % of_grid / slices_.of_columns * slices_.rows,
                           column = i % slices_.of_columns * slices_.columns, begin = part * slices_.depth;
        const std::int64_t m = std::min(slices_.rows, s_.m - row),
                           n = std::min(slices_.columns, s_.n - column),
                           k = std::min(slices_.depth, s_.k - begin);
        const std::int64_t lda = s_.transpose_a ? s_.m : s_.k, ldb = s_.transpose_b ? s_.k : s_.n;
        const float* a = a_ + (s_.transpose_a ? begin * lda + row : row * lda + begin);
        const float* b = b_ + (s_.transpose_b ? column * ldb + begin : begin * ldb + column);
        float* to = (part == 0 ? c_ : parts_ + (part - 1) * s_.m * s_.n) + row * s_.n + column;
        const int status = library().sgemm(s_.transpose_a ? 'T' : 'N', s_.transpose_b ? 'T' : 'N', m, n, k,
                                           1.0f, a, lda, b, ldb, 0.0f, to, s_.n);
        if (status != 0) throw DeviceError("dnnl_sgemm failed with status " + std::to_string(status));
        if (slices_.of_depth == 1) add_epilogue(s_, bias_ ? bias_ + column : bias_, m, n, to);
    }

    void add_parts(std::int64_t row, std::int64_t rows) const {
        float* to = c_ + row * s_.n;
        for (std::int64_t part = 0; part + 1 < slices_.of_depth; ++part) {
            const float* from = parts_ + (part * s_.m + row) * s_.n;
            for (std::int64_t i = 0; i < rows * s_.n; ++i) to[i] += from[i];
        }
        add_epilogue(s_, bias_, rows, s_.n, to);
    }

    const GemmShape& s_;
    const GemmSlices slices_;
    const float *a_, *b_, *bias_;
    float* c_;
    float* parts_ = nullptr;
};

}  // namespace

void gemm(Pool& pool, const GemmShape& s, const float* a, const float* b, const float* bias, float* c,
          std::vector<float>& parts) {
    if (s.m == 0 || s.n == 0) return;
    if (s.k == 0) {
        std::memset(c, 0, static_cast<std::size_t>(s.m * s.n) * sizeof(float));
        add_epilogue(s, bias, s.m, s.n, c);
        return;
    }
    Product(s, a, b, bias, c).run(pool, parts);
}

}  // namespace bitale
