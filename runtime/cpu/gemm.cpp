// dnnl_sgemm through dlsym, and the slices of products.
#include "runtime/cpu/gemm.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bitale/error.h"
#include "codegen/library/slices.h"
#include "graph/base/check.h"
#include "graph/base/options.h"
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

    float* floats() const { return reinterpret_cast<float*>(block_->floats.base()); }
    // Runs a task of the kernel, whose null pointers are replaced by `part`.
    void run(const GemmKernel& kernel, float* part, std::int64_t task) const {
        for (std::size_t i = 0; i < kernel.count; ++i)
            block_->buffers[i] = kernel.buffers[i] ? kernel.buffers[i] : part;
        kernel.entry(block_->buffers.data(), kernel.sizes, task, task + 1);
    }

  private:
    Block* block_ = nullptr;
};

void GemmScratch::prepare(std::size_t threads, const GemmRoom& room, std::size_t buffers) {
    const std::int64_t limit = is_limited ? options().memory_limit : 0;
    while (blocks_.size() < threads) blocks_.push_back(std::make_unique<Block>());
    for (const std::unique_ptr<Block>& b : blocks_) {
        b->floats.grow(room.of_thread, limit);
        if (b->buffers.size() < buffers) b->buffers.resize(buffers);
    }
    parts_.grow(room.of_parts, limit);
}

void GemmScratch::drop() {
    for (const std::unique_ptr<Block>& b : blocks_) b->floats.drop();
    parts_.drop();
}

// One product, slice by slice.
class GemmProduct {
  public:
    GemmProduct(const GemmShape& shape, const GemmData& data, const GemmKernels& kernels,
                GemmScratch& scratch)
        : s_(shape), d_(data), kernels_(kernels), scratch_(scratch), slices_(slices_for(shape)) {}

    void run(Pool& pool) {
        const bool by_depth = slices_.of_depth > 1;
        BITALE_CHECK(!by_depth || s_.beta == 0, "parts of a product that is added to an old value");
        BITALE_CHECK(!s_.strided || !(by_depth || made() || s_.symmetric),
                     "a product of strided matrices is cut by its results alone");
        BITALE_CHECK(s_.batches.empty() || (d_.c && !kernels_.epilogue.entry),
                     "many products are stored, and have no epilogue");
        const bool inside = d_.c == nullptr;
        place_parts(!inside);
        reserve(pool, !inside, std::max({kernels_.epilogue.count, kernels_.a.count, kernels_.b.count}));
        if (by_depth)
            pool.run(slices_.of_depth * computed(), [&](std::int64_t first, std::int64_t last) {
                const OneThread guard;
                const GemmScratch::Claim claim(scratch_, made());
                for (std::int64_t i = first; i < last; ++i) {
                    const std::int64_t part = i / computed();
                    const Slice slice = computed_slice(i % computed());
                    multiply(slice, part, s_.beta, part_at(part, slice), s_.n, claim);
                }
            });
        pool.run(computed() * products(s_), [&](std::int64_t first, std::int64_t last) {
            const OneThread guard;
            const GemmScratch::Claim claim(scratch_, inside || made() || kernels_.epilogue.entry);
            for (std::int64_t i = first; i < last; ++i) {
                const Slice slice = computed_slice(i);
                float* to = inside ? claim.floats() : place_of(slice);
                const std::int64_t ldc = inside ? slices_.columns : row_c();
                if (by_depth)
                    add_parts(slice, to, ldc);
                else
                    multiply_all(slice, to, ldc, claim);
                finish(slice, to, ldc, claim);
                if (s_.symmetric && slice.row != slice.column) mirror(slice, to, ldc, claim);
            }
        });
    }

    void reserve(const Pool& pool, bool stored, std::size_t buffers) {
        const GemmRoom needed = room(stored, buffers);
        if (needed.of_thread > 0) scratch_.prepare(static_cast<std::size_t>(pool.threads()), needed, buffers);
    }

    GemmRoom room(bool stored, std::size_t buffers) {
        constexpr std::size_t readable_past_the_end = 16;
        place_parts(stored);
        const bool by_depth = slices_.of_depth > 1;
        if (floats_ == 0 && !by_depth && buffers == 0) return {};
        const auto bytes = [](std::size_t floats) {
            return static_cast<std::int64_t>(floats * sizeof(float));
        };
        return {bytes(floats_ + readable_past_the_end),
                by_depth ? bytes(size(slices_.of_depth * s_.m * s_.n)) : 0};
    }

  private:
    struct Slice {
        std::int64_t number, row, column, rows, columns;
        std::int64_t a = 0, b = 0, c = 0;  // where the matrices of its product begin
    };
    struct Matrix {
        const float* at;
        std::int64_t row;  // elements from one row to the next
    };

    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
    bool made() const { return s_.made_a || s_.made_b; }

    static GemmSlices slices_for(const GemmShape& s) {
        if (s.slice_rows == 0)
            return slices_of(s.m, s.n, s.k * added(s), s.transpose_b, s.parameter, products(s));
        if (s.piece_depth > 0)
            return slices_in_pieces(
                s.m, s.n, s.k, {.rows = s.slice_rows, .columns = s.slice_columns, .depth = s.piece_depth},
                s.symmetric, s.beta != 0);
        const std::int64_t depth = s.slice_depth > 0 ? s.slice_depth : std::max<std::int64_t>(1, s.k);
        return slices_of(s.m, s.n, s.k, {.rows = s.slice_rows, .columns = s.slice_columns, .depth = depth});
    }

    // Memory of a thread: a slice that is kept nowhere, and the one that mirrors it, then pieces of operands.
    void place_parts(bool stored) {
        constexpr std::int64_t aligned = 16;
        const auto room = [&](std::int64_t count) {
            const std::size_t at = floats_;
            floats_ += size(count == 0 ? 0 : (count + 2 * aligned - 1) / aligned * aligned);
            return at;
        };
        floats_ = 0;
        const std::int64_t slice = stored ? 0 : slices_.rows * slices_.columns;
        room(slice);
        mirrored_ = room(s_.symmetric ? slice : 0);
        a_ = room(s_.made_a ? slices_.rows * s_.piece_depth : 0);
        b_ = room(s_.made_b ? slices_.columns * s_.piece_depth : 0);
    }

    // Slices that are computed: of those that mirror each other the one right of the diagonal.
    std::int64_t computed() const {
        return s_.symmetric ? slices_.of_rows * (slices_.of_rows + 1) / 2 : slices_.of_grid();
    }

    std::int64_t row_c() const { return s_.strided ? s_.row_c : s_.n; }

    static std::int64_t products(const GemmShape& s) {
        std::int64_t count = 1;
        for (const GemmShape::Batch& batch : s.batches)
            if (batch.c != 0) count *= batch.count;
        return count;
    }
    // Products that are added up to one of them.
    static std::int64_t added(const GemmShape& s) {
        std::int64_t count = 1;
        for (const GemmShape::Batch& batch : s.batches)
            if (batch.c == 0) count *= batch.count;
        return count;
    }

    // Of all products, those of the first one first.
    Slice computed_slice(std::int64_t i) const {
        if (s_.strided) {
            Slice slice = slice_at(i % computed());
            slice.a = s_.first_a;
            slice.b = s_.first_b;
            std::int64_t product = i / computed();
            for (std::size_t d = s_.batches.size(); d-- > 0;) {
                const GemmShape::Batch& batch = s_.batches[d];
                if (batch.c == 0) continue;
                const std::int64_t at = product % batch.count;
                product /= batch.count;
                slice.a += at * batch.a;
                slice.b += at * batch.b;
                slice.c += at * batch.c;
            }
            return slice;
        }
        if (!s_.symmetric) return slice_at(i);
        std::int64_t row = 0;
        for (; i >= slices_.of_rows - row; ++row) i -= slices_.of_rows - row;
        return slice_at(row * slices_.of_columns + row + i);
    }

    Slice slice_at(std::int64_t i) const {
        const std::int64_t row = i / slices_.of_columns * slices_.rows,
                           column = i % slices_.of_columns * slices_.columns;
        return {i, row, column, std::min(slices_.rows, s_.m - row), std::min(slices_.columns, s_.n - column)};
    }

    float* place_of(const Slice& slice) const { return d_.c + slice.c + slice.row * row_c() + slice.column; }

    float* part_at(std::int64_t part, const Slice& slice) const {
        return reinterpret_cast<float*>(scratch_.parts_.base()) + (part * s_.m + slice.row) * s_.n +
               slice.column;
    }

    // The products that are added up, in order.
    void multiply_all(const Slice& slice, float* to, std::int64_t ldc,
                      const GemmScratch::Claim& claim) const {
        const std::int64_t count = s_.k > 0 ? added(s_) : 0;
        if (count == 0) return scale(slice, to, ldc);
        for (std::int64_t i = 0; i < count; ++i) {
            Slice one = slice;
            std::int64_t product = i;
            for (std::size_t d = s_.batches.size(); d-- > 0;) {
                const GemmShape::Batch& batch = s_.batches[d];
                if (batch.c != 0) continue;
                one.a += product % batch.count * batch.a;
                one.b += product % batch.count * batch.b;
                product /= batch.count;
            }
            multiply(one, 0, i == 0 ? s_.beta : 1, to, ldc, claim);
        }
    }

    // A sum of nothing is added to the old value.
    void scale(const Slice& slice, float* to, std::int64_t ldc) const {
        for (std::int64_t i = 0; i < slice.rows; ++i)
            for (std::int64_t j = 0; j < slice.columns; ++j)
                to[i * ldc + j] = s_.beta == 0 ? 0 : s_.beta * to[i * ldc + j];
    }

    void multiply(const Slice& slice, std::int64_t part, float beta, float* to, std::int64_t ldc,
                  const GemmScratch::Claim& claim) const {
        const std::int64_t begin = part * slices_.depth, end = std::min(begin + slices_.depth, s_.k);
        if (begin >= end) return scale(slice, to, ldc);
        const std::int64_t step = made() ? s_.piece_depth : end - begin;
        for (std::int64_t term = begin; term < end; term += step) {
            const Matrix a = operand_a(slice, term, claim);
            // On the diagonal both pieces are one, where they lie alike.
            const bool one = s_.symmetric && s_.made_a && s_.made_b && slice.row == slice.column &&
                             s_.transpose_a != s_.transpose_b;
            multiply(slice, std::min(step, end - term), a, one ? a : operand_b(slice, term, claim), beta, to,
                     ldc);
            beta = 1;
        }
    }

    Matrix operand_a(const Slice& slice, std::int64_t term, const GemmScratch::Claim& claim) const {
        if (s_.made_a)
            return {made(kernels_.a, slice.row / slices_.rows, term, claim, a_),
                    s_.transpose_a ? slices_.rows : s_.piece_depth};
        const std::int64_t row = s_.strided ? s_.row_a : s_.transpose_a ? s_.m : s_.k;
        return {d_.a + slice.a + (s_.transpose_a ? term * row + slice.row : slice.row * row + term), row};
    }

    Matrix operand_b(const Slice& slice, std::int64_t term, const GemmScratch::Claim& claim) const {
        if (s_.made_b)
            return {made(kernels_.b, slice.column / slices_.columns, term, claim, b_),
                    s_.transpose_b ? s_.piece_depth : slices_.columns};
        const std::int64_t row = s_.strided ? s_.row_b : s_.transpose_b ? s_.k : s_.n;
        return {d_.b + slice.b + (s_.transpose_b ? slice.column * row + term : term * row + slice.column),
                row};
    }

    const float* made(const GemmKernel& kernel, std::int64_t of_slices, std::int64_t term,
                      const GemmScratch::Claim& claim, std::size_t at) const {
        const std::int64_t pieces = (s_.k + s_.piece_depth - 1) / s_.piece_depth;
        claim.run(kernel, claim.floats() + at, of_slices * pieces + term / s_.piece_depth);
        return claim.floats() + at;
    }

    void multiply(const Slice& slice, std::int64_t k, const Matrix& a, const Matrix& b, float beta, float* to,
                  std::int64_t ldc) const {
        keep_small_blocks();
        // The library fails for want of memory of its own, before it writes anything.
        if (outside::refused(outside::Door::library) ||
            library().sgemm(s_.transpose_a ? 'T' : 'N', s_.transpose_b ? 'T' : 'N', slice.rows, slice.columns,
                            k, s_.alpha, a.at, a.row, b.at, b.row, beta, to, ldc) != 0)
            multiply_plainly(slice, k, a, b, beta, to, ldc);
    }

    void multiply_plainly(const Slice& slice, std::int64_t k, const Matrix& a, const Matrix& b, float beta,
                          float* to, std::int64_t ldc) const {
        for (std::int64_t i = 0; i < slice.rows; ++i)
            for (std::int64_t j = 0; j < slice.columns; ++j) {
                float sum = 0;
                for (std::int64_t p = 0; p < k; ++p)
                    sum += (s_.transpose_a ? a.at[p * a.row + i] : a.at[i * a.row + p]) *
                           (s_.transpose_b ? b.at[j * b.row + p] : b.at[p * b.row + j]);
                float& c = to[i * ldc + j];
                c = beta == 0 ? s_.alpha * sum : s_.alpha * sum + beta * c;
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

    void finish(const Slice& slice, float* to, std::int64_t ldc, const GemmScratch::Claim& claim) const {
        add_bias(slice, to, ldc);
        if (kernels_.epilogue.entry) claim.run(kernels_.epilogue, to, slice.number);
    }

    // The slice on the other side of the diagonal.
    void mirror(const Slice& slice, const float* from, std::int64_t ldc,
                const GemmScratch::Claim& claim) const {
        const Slice other =
            slice_at(slice.column / slices_.columns * slices_.of_columns + slice.row / slices_.rows);
        float* to = d_.c ? place_of(other) : claim.floats() + mirrored_;
        for (std::int64_t i = 0; i < other.rows; ++i)
            for (std::int64_t j = 0; j < other.columns; ++j) to[i * ldc + j] = from[j * ldc + i];
        finish(other, to, ldc, claim);
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
    const GemmKernels& kernels_;
    GemmScratch& scratch_;
    const GemmSlices slices_;
    std::size_t floats_ = 0, mirrored_ = 0, a_ = 0, b_ = 0;  // of a thread's memory
};

GemmRoom gemm_room(const GemmShape& shape, bool stored, std::size_t buffers) {
    GemmScratch none;
    if (shape.m <= 0 || shape.n <= 0) return {};
    return GemmProduct(shape, GemmData{}, GemmKernels{}, none).room(stored, buffers);
}

std::int64_t scratch_bytes(const GemmRoom& most, int threads) {
    return threads * Arena::block_bytes(most.of_thread) + Arena::block_bytes(most.of_parts);
}

void reserve_gemm(Pool& pool, const GemmShape& shape, bool stored, std::size_t buffers,
                  GemmScratch& scratch) {
    if (shape.m > 0 && shape.n > 0)
        GemmProduct(shape, GemmData{}, GemmKernels{}, scratch).reserve(pool, stored, buffers);
}

void gemm(Pool& pool, const GemmShape& shape, const GemmData& data, GemmScratch& scratch,
          const GemmKernels& kernels) {
    if (shape.m > 0 && shape.n > 0) GemmProduct(shape, data, kernels, scratch).run(pool);
}

}  // namespace bitale
