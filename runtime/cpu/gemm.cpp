// dnnl_sgemm through dlsym, and the slices of products.
#include "runtime/cpu/gemm.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bitale/error.h"
#include "codegen/library/slices.h"
#include "graph/base/check.h"
#include "runtime/outside.h"

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

}  // namespace

const GemmLibrary& gemm_library() { return library().info; }

// Memory of one thread at a time.
class GemmScratch::Claim {
  public:
    Claim(GemmScratch& scratch, bool wanted) {
        if (!wanted) return;
        // A thread gets what it had before, which is still in its cache, unless another one took that.
        static thread_local std::size_t last = 0;
        for (std::size_t i = last;; ++i) {
            const std::unique_ptr<Block>& b = scratch.blocks_[i % scratch.blocks_.size()];
            if (b->taken.exchange(true, std::memory_order_acquire)) continue;
            last = i % scratch.blocks_.size();
            block_ = b.get();
            return;
        }
    }
    ~Claim() {
        if (block_) block_->taken.store(false, std::memory_order_release);
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    float* floats() const { return block_->floats.data(); }
    // The pointers, those that are null replaced by that of the floats.
    void* const* with_floats(void* const* buffers, std::size_t count) const {
        for (std::size_t i = 0; i < count; ++i)
            block_->buffers[i] = buffers[i] ? buffers[i] : block_->floats.data();
        return block_->buffers.data();
    }

  private:
    Block* block_ = nullptr;
};

void GemmScratch::prepare(std::size_t threads, std::size_t floats, std::size_t buffers, std::size_t parts) {
    constexpr std::size_t readable_past_the_end = 16;
    while (blocks_.size() < threads) blocks_.push_back(std::make_unique<Block>());
    for (const std::unique_ptr<Block>& b : blocks_) {
        if (b->floats.size() < floats + readable_past_the_end)
            b->floats.resize(floats + readable_past_the_end);
        if (b->buffers.size() < buffers) b->buffers.resize(buffers);
    }
    if (parts_.size() < parts) parts_.resize(parts);
}

// One product, slice by slice.
class GemmProduct {
  public:
    GemmProduct(const GemmShape& shape, const GemmData& data, const GemmEpilogue* epilogue,
                GemmScratch& scratch)
        : s_(shape), d_(data), epilogue_(epilogue), scratch_(scratch), slices_(slices_for(shape)) {}

    void run(Pool& pool) {
        const bool by_depth = slices_.of_depth > 1;
        BITALE_CHECK(!by_depth || s_.beta == 0, "parts of a product that is added to an old value");
        const bool inside = d_.c == nullptr;
        reserve(pool, !inside, epilogue_ ? epilogue_->count : 0);
        if (by_depth)
            pool.run(slices_.of_depth * slices_.of_grid(), [&](std::int64_t first, std::int64_t last) {
                const OneThread guard;
                for (std::int64_t i = first; i < last; ++i) {
                    const std::int64_t part = i / slices_.of_grid();
                    const Slice slice = slice_at(i % slices_.of_grid());
                    multiply(slice, part, part_at(part, slice), s_.n);
                }
            });
        pool.run(slices_.of_grid(), [&](std::int64_t first, std::int64_t last) {
            const OneThread guard;
            const GemmScratch::Claim claim(scratch_, inside);
            for (std::int64_t i = first; i < last; ++i) {
                const Slice slice = slice_at(i);
                float* to = inside ? claim.floats() : d_.c + slice.row * s_.n + slice.column;
                const std::int64_t ldc = inside ? slices_.columns : s_.n;
                if (by_depth)
                    add_parts(slice, to, ldc);
                else
                    multiply(slice, 0, to, ldc);
                add_bias(slice, to, ldc);
                if (epilogue_)
                    epilogue_->entry(
                        inside ? claim.with_floats(epilogue_->buffers, epilogue_->count) : epilogue_->buffers,
                        epilogue_->sizes, i, i + 1);
            }
        });
    }

    void reserve(const Pool& pool, bool stored, std::size_t buffers) const {
        const bool by_depth = slices_.of_depth > 1;
        if (stored && !by_depth) return;
        scratch_.prepare(static_cast<std::size_t>(pool.threads()),
                         stored ? 0 : size(slices_.rows * slices_.columns), stored ? 0 : buffers,
                         by_depth ? size(slices_.of_depth * s_.m * s_.n) : 0);
    }

  private:
    struct Slice {
        std::int64_t row, column, rows, columns;
    };

    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

    static GemmSlices slices_for(const GemmShape& s) {
        if (s.slice_rows == 0) return slices_of(s.m, s.n, s.k, s.transpose_b, s.parameter);
        const std::int64_t depth = s.slice_depth > 0 ? s.slice_depth : std::max<std::int64_t>(1, s.k);
        return slices_of(s.m, s.n, s.k, {.rows = s.slice_rows, .columns = s.slice_columns, .depth = depth});
    }

    Slice slice_at(std::int64_t i) const {
        const std::int64_t row = i / slices_.of_columns * slices_.rows,
                           column = i % slices_.of_columns * slices_.columns;
        return {row, column, std::min(slices_.rows, s_.m - row), std::min(slices_.columns, s_.n - column)};
    }

    float* part_at(std::int64_t part, const Slice& slice) const {
        return scratch_.parts_.data() + (part * s_.m + slice.row) * s_.n + slice.column;
    }

    void multiply(const Slice& slice, std::int64_t part, float* to, std::int64_t ldc) const {
        const std::int64_t begin = part * slices_.depth, k = std::min(slices_.depth, s_.k - begin);
        if (k == 0) {
            for (std::int64_t i = 0; i < slice.rows; ++i)
                for (std::int64_t j = 0; j < slice.columns; ++j)
                    to[i * ldc + j] = s_.beta == 0 ? 0 : s_.beta * to[i * ldc + j];
            return;
        }
        const std::int64_t lda = s_.transpose_a ? s_.m : s_.k, ldb = s_.transpose_b ? s_.k : s_.n;
        const float* a = d_.a + (s_.transpose_a ? begin * lda + slice.row : slice.row * lda + begin);
        const float* b = d_.b + (s_.transpose_b ? slice.column * ldb + begin : begin * ldb + slice.column);
        // The library fails for want of memory of its own, before it writes anything.
        if (outside::refused(outside::Door::library) ||
            library().sgemm(s_.transpose_a ? 'T' : 'N', s_.transpose_b ? 'T' : 'N', slice.rows, slice.columns,
                            k, s_.alpha, a, lda, b, ldb, s_.beta, to, ldc) != 0)
            multiply_plainly(slice, k, a, lda, b, ldb, to, ldc);
    }

    void multiply_plainly(const Slice& slice, std::int64_t k, const float* a, std::int64_t lda,
                          const float* b, std::int64_t ldb, float* to, std::int64_t ldc) const {
        for (std::int64_t i = 0; i < slice.rows; ++i)
            for (std::int64_t j = 0; j < slice.columns; ++j) {
                float sum = 0;
                for (std::int64_t p = 0; p < k; ++p)
                    sum += (s_.transpose_a ? a[p * lda + i] : a[i * lda + p]) *
                           (s_.transpose_b ? b[j * ldb + p] : b[p * ldb + j]);
                float& c = to[i * ldc + j];
                c = s_.beta == 0 ? s_.alpha * sum : s_.alpha * sum + s_.beta * c;
            }
    }

    // The results of all parts of the depth, in order.
    void add_parts(const Slice& slice, float* to, std::int64_t ldc) const {
        for (std::int64_t i = 0; i < slice.rows; ++i) {
            float* row = to + i * ldc;
            std::copy_n(part_at(0, slice) + i * s_.n, slice.columns, row);
            for (std::int64_t part = 1; part < slices_.of_depth; ++part) {
                const float* from = part_at(part, slice) + i * s_.n;
                for (std::int64_t j = 0; j < slice.columns; ++j) row[j] += from[j];
            }
        }
    }

    // And relu, where a device with such epilogues is emulated.
    void add_bias(const Slice& slice, float* to, std::int64_t ldc) const {
        if (!s_.bias && !s_.relu) return;
        for (std::int64_t i = 0; i < slice.rows; ++i)
            for (std::int64_t j = 0; j < slice.columns; ++j) {
                float value = to[i * ldc + j];
                if (s_.bias) value += d_.bias[slice.column + j];
                to[i * ldc + j] = s_.relu && value < 0 ? 0 : value;
            }
    }

    const GemmShape& s_;
    const GemmData& d_;
    const GemmEpilogue* epilogue_;
    GemmScratch& scratch_;
    const GemmSlices slices_;
};

void reserve_gemm(Pool& pool, const GemmShape& shape, bool stored, std::size_t buffers,
                  GemmScratch& scratch) {
    if (shape.m > 0 && shape.n > 0)
        GemmProduct(shape, GemmData{}, nullptr, scratch).reserve(pool, stored, buffers);
}

void gemm(Pool& pool, const GemmShape& shape, const GemmData& data, GemmScratch& scratch,
          const GemmEpilogue* epilogue) {
    if (shape.m > 0 && shape.n > 0) GemmProduct(shape, data, epilogue, scratch).run(pool);
}

}  // namespace bitale
