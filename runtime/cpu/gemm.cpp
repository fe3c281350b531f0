// The slices of products.
#include "runtime/cpu/gemm.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "codegen/library/slices.h"
#include "graph/base/check.h"
#include "graph/base/options.h"
#include "runtime/cpu/onednn.h"
#include "runtime/cpu/product.h"

namespace bitale {

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

    void* memory() const { return block_->memory.base(); }
    // Runs a task of the kernel, whose null pointers are replaced by `part`.
    void run(const GemmKernel& kernel, void* part, std::int64_t task) const {
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
        b->memory.grow(room.of_thread, limit);
        if (b->buffers.size() < buffers) b->buffers.resize(buffers);
    }
    parts_.grow(room.of_parts, limit);
}

std::int64_t GemmScratch::bytes() const {
    std::int64_t all = parts_.bytes();
    for (const std::unique_ptr<Block>& b : blocks_) all += b->memory.bytes();
    return all;
}

void GemmScratch::drop() {
    for (const std::unique_ptr<Block>& b : blocks_) b->memory.drop();
    parts_.drop();
}

namespace {

// Integers wrap: a zero point that is added later may bring a sum back.
template <class T>
T wrapping_product(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) *
                              static_cast<std::make_unsigned_t<T>>(b));
    else
        return a * b;
}
template <class T>
T wrapping_sum(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                              static_cast<std::make_unsigned_t<T>>(b));
    else
        return a + b;
}

// oneDNN of a processor without 512-bit vectors packs no operand whose columns are side by side, so that rows
// which lie half pages apart share few places of the cache. With them it packs operands whose terms are side
// by side in rows that lie pages apart at a fraction of its speed, which few columns do not make up for.
bool rows_collide(const GemmShape& s) {
#if defined(__x86_64__)
    static const bool packs = __builtin_cpu_supports("avx512f");
    constexpr std::int64_t half_page = 512, enough_rows = 32;
    constexpr std::int64_t page = 1024, few_columns = 128;
    const std::int64_t terms_a = s.strided ? s.row_a : s.k, terms_b = s.strided ? s.row_b : s.k;
    if (packs)
        return !s.transpose_a && s.transpose_b && terms_a % page == 0 && terms_b % page == 0 &&
               s.n <= few_columns && s.m >= enough_rows && s.n >= enough_rows;
    const std::int64_t row_a = s.strided ? s.row_a : s.m, row_b = s.strided ? s.row_b : s.n;
    if (!s.transpose_b && row_b % half_page == 0) return true;
    return s.transpose_a && row_a % half_page == 0 && (!s.transpose_b || s.m >= enough_rows);
#else
    return false;
#endif
}

// Whether the library takes longer for the product than for the transpose of it, which is turned then: where
// it turns both factors of many terms, and for few columns, which it computes as slowly as many, where it has
// kernels for few rows.
bool is_faster_turned(const GemmShape& s) {
    constexpr std::int64_t many_terms = 1024, enough_terms = 32, long_row = 512, few = 4, several = 8;
    if (s.transpose_a) return s.transpose_b && s.k >= many_terms;
    return s.m > several && s.k >= enough_terms && s.n <= (s.transpose_b && s.k >= long_row ? several : few);
}

}  // namespace

// One product, slice by slice: of factors of A and B, in T.
template <class T, class A, class B>
class GemmProduct {
  public:
    GemmProduct(const GemmShape& shape, const GemmData& data, const GemmKernels& kernels,
                GemmScratch& scratch)
        : s_(shape),
          a_data_(static_cast<const A*>(data.a)),
          b_data_(static_cast<const B*>(data.b)),
          bias_(static_cast<const T*>(data.bias)),
          c_data_(static_cast<T*>(data.c)),
          kernels_(kernels),
          scratch_(scratch),
          slices_(slices_for(shape)),
          own_(is_float && (!std::is_same_v<T, float> || !gemm_library().present || rows_collide(shape))),
          turns_(is_float && !own_ && !made() && !shape.symmetric && is_faster_turned(shape)) {}

    void run(Pool& pool) {
        const bool by_depth = slices_.of_depth > 1;
        BITALE_CHECK(!s_.strided || !(by_depth || made() || s_.symmetric),
                     "a product of strided matrices is cut by its results alone");
        BITALE_CHECK(s_.batches.empty() || (c_data_ && !kernels_.epilogue.entry),
                     "many products are stored, and have no epilogue");
        const bool inside = c_data_ == nullptr;
        place_parts(!inside);
        reserve(pool, !inside, std::max({kernels_.epilogue.count, kernels_.a.count, kernels_.b.count}));
        if (by_depth)
            pool.run(slices_.of_depth * computed(), [&](std::int64_t first, std::int64_t last) {
                const OneThread guard;
                const GemmScratch::Claim claim(scratch_, made() || packs_ || turns_);
                for (std::int64_t i = first; i < last; ++i) {
                    const std::int64_t part = i / computed();
                    const Slice slice = computed_slice(i % computed());
                    multiply(slice, part, 0, part_at(part, slice), s_.n, claim);
                }
            });
        pool.run(computed() * products(s_), [&](std::int64_t first, std::int64_t last) {
            const OneThread guard;
            const GemmScratch::Claim claim(scratch_,
                                           inside || made() || packs_ || turns_ || kernels_.epilogue.entry);
            for (std::int64_t i = first; i < last; ++i) {
                const Slice slice = computed_slice(i);
                T* to = inside ? elements(claim) : place_of(slice);
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
        if (elements_ == 0 && !by_depth && buffers == 0) return {};
        const auto bytes = [](std::size_t elements) {
            return static_cast<std::int64_t>(elements * sizeof(T));
        };
        return {bytes(elements_ + readable_past_the_end),
                by_depth ? bytes(size(slices_.of_depth * s_.m * s_.n)) : 0};
    }

  private:
    struct Slice {
        std::int64_t number, row, column, rows, columns;
        std::int64_t a = 0, b = 0, c = 0;  // where the matrices of its product begin
    };

    template <class Element>
    struct Matrix {
        const Element* at;
        std::int64_t row;  // elements from one row to the next
    };
    static constexpr bool is_float = std::is_floating_point_v<T>;

    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
    bool made() const { return s_.made_a || s_.made_b; }

    static GemmSlices slices_for(const GemmShape& s) {
        if (s.slice_rows == 0)
            return slices_of(s.m, s.n, s.k * added(s), s.transpose_b && !s.transpose_a, s.parameter,
                             s.strided || s.symmetric, products(s), sizeof(B));
        if (s.piece_depth > 0)
            return slices_in_pieces(
                s.m, s.n, s.k, {.rows = s.slice_rows, .columns = s.slice_columns, .depth = s.piece_depth},
                s.symmetric, s.beta != 0);
        const std::int64_t depth = s.slice_depth > 0 ? s.slice_depth : std::max<std::int64_t>(1, s.k);
        return slices_of(s.m, s.n, s.k, {.rows = s.slice_rows, .columns = s.slice_columns, .depth = depth});
    }

    // Elements of the result that take the memory of so many of an operand.
    template <class Element>
    static std::int64_t elements_of(std::int64_t count) {
        constexpr auto own = static_cast<std::int64_t>(sizeof(T));
        return (count * static_cast<std::int64_t>(sizeof(Element)) + own - 1) / own;
    }

    // Memory of a thread: a slice that is kept nowhere, and the one that mirrors it, pieces of operands, and
    // what our own routine packs.
    void place_parts(bool stored) {
        constexpr std::int64_t aligned = 16;
        const auto room = [&](std::int64_t count) {
            const std::size_t at = elements_;
            elements_ += size(count == 0 ? 0 : (count + 2 * aligned - 1) / aligned * aligned);
            return at;
        };
        elements_ = 0;
        const std::int64_t slice = stored ? 0 : slices_.rows * slices_.columns;
        room(slice);
        mirrored_ = room(s_.symmetric ? slice : 0);
        a_ = room(s_.made_a ? elements_of<A>(slices_.rows * s_.piece_depth) : 0);
        b_ = room(s_.made_b ? elements_of<B>(slices_.columns * s_.piece_depth) : 0);
        const std::int64_t terms = made() ? s_.piece_depth : std::min(slices_.depth, s_.k);
        const std::int64_t packing = own_ ? product_room(slices_.rows, slices_.columns, terms) : 0;
        packs_ = packing > 0;  // not for a sum of nothing
        packed_ = room(packing);
        turned_ = room(turns_ ? slices_.rows * slices_.columns : 0);
        columns_ = room(turns_ && !s_.transpose_b ? slices_.columns * terms : 0);
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

    static T* elements(const GemmScratch::Claim& claim) { return static_cast<T*>(claim.memory()); }

    T* place_of(const Slice& slice) const { return c_data_ + slice.c + slice.row * row_c() + slice.column; }

    T* part_at(std::int64_t part, const Slice& slice) const {
        return static_cast<T*>(static_cast<void*>(scratch_.parts_.base())) +
               (part * s_.m + slice.row) * s_.n + slice.column;
    }

    // The products that are added up, in order.
    void multiply_all(const Slice& slice, T* to, std::int64_t ldc, const GemmScratch::Claim& claim) const {
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
            multiply(one, 0, i == 0 ? beta() : T{1}, to, ldc, claim);
        }
    }

    // A sum of nothing is added to the old value.
    void scale(const Slice& slice, T* to, std::int64_t ldc) const {
        for (std::int64_t i = 0; i < slice.rows; ++i)
            for (std::int64_t j = 0; j < slice.columns; ++j)
                to[i * ldc + j] = s_.beta == 0 ? 0 : beta() * to[i * ldc + j];
    }

    void multiply(const Slice& slice, std::int64_t part, T beta, T* to, std::int64_t ldc,
                  const GemmScratch::Claim& claim) const {
        const std::int64_t begin = part * slices_.depth, end = std::min(begin + slices_.depth, s_.k);
        if (begin >= end) return scale(slice, to, ldc);
        const std::int64_t step = made() ? s_.piece_depth : end - begin;
        for (std::int64_t term = begin; term < end; term += step) {
            const Matrix<A> a = operand_a(slice, term, claim);
            // On the diagonal both pieces are one, where they lie alike.
            const bool one = s_.symmetric && s_.made_a && s_.made_b && slice.row == slice.column &&
                             s_.transpose_a != s_.transpose_b && std::is_same_v<A, B>;
            Matrix<B> b{};
            if constexpr (std::is_same_v<A, B>) b = a;
            if (!one) b = operand_b(slice, term, claim);
            multiply(slice, std::min(step, end - term), a, b, beta, to, ldc, claim);
            beta = 1;
        }
    }

    Matrix<A> operand_a(const Slice& slice, std::int64_t term, const GemmScratch::Claim& claim) const {
        if (s_.made_a)
            return {made<A>(kernels_.a, slice.row / slices_.rows, term, claim, a_),
                    s_.transpose_a ? slices_.rows : s_.piece_depth};
        const std::int64_t row = s_.strided ? s_.row_a : s_.transpose_a ? s_.m : s_.k;
        return {a_data_ + slice.a + (s_.transpose_a ? term * row + slice.row : slice.row * row + term), row};
    }

    Matrix<B> operand_b(const Slice& slice, std::int64_t term, const GemmScratch::Claim& claim) const {
        if (s_.made_b)
            return {made<B>(kernels_.b, slice.column / slices_.columns, term, claim, b_),
                    s_.transpose_b ? s_.piece_depth : slices_.columns};
        const std::int64_t row = s_.strided ? s_.row_b : s_.transpose_b ? s_.k : s_.n;
        return {b_data_ + slice.b + (s_.transpose_b ? slice.column * row + term : term * row + slice.column),
                row};
    }

    template <class Element>
    const Element* made(const GemmKernel& kernel, std::int64_t of_slices, std::int64_t term,
                        const GemmScratch::Claim& claim, std::size_t at) const {
        const std::int64_t pieces = (s_.k + s_.piece_depth - 1) / s_.piece_depth;
        void* const piece = elements(claim) + at;
        claim.run(kernel, piece, of_slices * pieces + term / s_.piece_depth);
        return static_cast<const Element*>(piece);
    }

    void multiply(const Slice& slice, std::int64_t k, const Matrix<A>& a, const Matrix<B>& b, T beta, T* to,
                  std::int64_t ldc, const GemmScratch::Claim& claim) const {
        const char turned_a = s_.transpose_a ? 'T' : 'N', turned_b = s_.transpose_b ? 'T' : 'N';
        if constexpr (is_float) {
            if (own_) {
                const auto strided = [](const Matrix<T>& x, bool transposed) {
                    return StridedMatrix<const T>{x.at, transposed ? 1 : x.row, transposed ? x.row : 1};
                };
                return bitale::multiply(slice.rows, slice.columns, k, static_cast<T>(s_.alpha),
                                        strided(a, s_.transpose_a), strided(b, s_.transpose_b), beta,
                                        StridedMatrix<T>{to, ldc, 1}, elements(claim) + packed_);
            }
        } else if (multiply_by_onednn(turned_a, turned_b, slice.rows, slice.columns, k, a.at, a.row, b.at,
                                      b.row, beta != 0, to, ldc)) {
            return;
        }
        if constexpr (std::is_same_v<T, float>) {
            const Matrix<B> rows = turns_ && !s_.transpose_b ? columns_of(slice, k, b, claim) : b;
            if (turns_ && multiply_by_onednn('N', s_.transpose_a ? 'N' : 'T', slice.columns, slice.rows, k,
                                             static_cast<T>(s_.alpha), rows.at, rows.row, a.at, a.row, 0,
                                             elements(claim) + turned_, slices_.rows)) {
                turn(slice, elements(claim) + turned_, beta, to, ldc);
                return;
            }
            if (multiply_by_onednn(turned_a, turned_b, slice.rows, slice.columns, k, static_cast<T>(s_.alpha),
                                   a.at, a.row, b.at, b.row, beta, to, ldc))
                return;
        }
        multiply_plainly(slice, k, a, b, beta, to, ldc);
    }

    // Adds the transpose of what lies in rows of slices_.rows elements.
    // Few columns, each with its terms side by side.
    Matrix<B> columns_of(const Slice& slice, std::int64_t k, const Matrix<B>& b,
                         const GemmScratch::Claim& claim) const {
        B* const columns = elements(claim) + columns_;
        for (std::int64_t p = 0; p < k; ++p)
            for (std::int64_t j = 0; j < slice.columns; ++j) columns[j * k + p] = b.at[p * b.row + j];
        return {columns, k};
    }

    void turn(const Slice& slice, const T* from, T beta, T* to, std::int64_t ldc) const {
        constexpr std::int64_t block = 16;  // rows and columns that stay in the first cache
        for (std::int64_t i = 0; i < slice.rows; i += block)
            for (std::int64_t j = 0; j < slice.columns; j += block)
                for (std::int64_t row = i; row < std::min(i + block, slice.rows); ++row)
                    for (std::int64_t column = j; column < std::min(j + block, slice.columns); ++column) {
                        T& c = to[row * ldc + column];
                        const T turned = from[column * slices_.rows + row];
                        c = beta == 0 ? turned : wrapping_sum(turned, wrapping_product(beta, c));
                    }
    }

    void multiply_plainly(const Slice& slice, std::int64_t k, const Matrix<A>& a, const Matrix<B>& b, T beta,
                          T* to, std::int64_t ldc) const {
        for (std::int64_t i = 0; i < slice.rows; ++i)
            for (std::int64_t j = 0; j < slice.columns; ++j) {
                T sum = 0;
                for (std::int64_t p = 0; p < k; ++p)
                    sum = wrapping_sum(
                        sum, wrapping_product(T{s_.transpose_a ? a.at[p * a.row + i] : a.at[i * a.row + p]},
                                              T{s_.transpose_b ? b.at[j * b.row + p] : b.at[p * b.row + j]}));
                T& c = to[i * ldc + j];
                const T scaled = wrapping_product(static_cast<T>(s_.alpha), sum);
                c = beta == 0 ? scaled : wrapping_sum(scaled, wrapping_product(beta, c));
            }
    }

    // The results of all parts of the depth, in order.
    void add_parts(const Slice& slice, T* to, std::int64_t ldc) const {
        for (std::int64_t i = 0; i < slice.rows; ++i) {
            T* row = to + i * ldc;
            const T* first = part_at(0, slice) + i * s_.n;
            if (s_.beta == 0)
                std::copy_n(first, slice.columns, row);
            else
                for (std::int64_t j = 0; j < slice.columns; ++j)
                    row[j] = wrapping_sum(wrapping_product(beta(), row[j]), first[j]);
            for (std::int64_t part = 1; part < slices_.of_depth; ++part) {
                const T* from = part_at(part, slice) + i * s_.n;
                for (std::int64_t j = 0; j < slice.columns; ++j) row[j] = wrapping_sum(row[j], from[j]);
            }
        }
    }

    void finish(const Slice& slice, T* to, std::int64_t ldc, const GemmScratch::Claim& claim) const {
        add_bias(slice, to, ldc);
        if (kernels_.epilogue.entry) claim.run(kernels_.epilogue, to, slice.number);
    }

    // The slice on the other side of the diagonal.
    void mirror(const Slice& slice, const T* from, std::int64_t ldc, const GemmScratch::Claim& claim) const {
        const Slice other =
            slice_at(slice.column / slices_.columns * slices_.of_columns + slice.row / slices_.rows);
        T* to = c_data_ ? place_of(other) : elements(claim) + mirrored_;
        for (std::int64_t i = 0; i < other.rows; ++i)
            for (std::int64_t j = 0; j < other.columns; ++j) to[i * ldc + j] = from[j * ldc + i];
        finish(other, to, ldc, claim);
    }

    // And relu, where a device with such epilogues is emulated.
    void add_bias(const Slice& slice, T* to, std::int64_t ldc) const {
        if (!s_.bias && !s_.relu) return;
        for (std::int64_t i = 0; i < slice.rows; ++i)
            for (std::int64_t j = 0; j < slice.columns; ++j) {
                T value = to[i * ldc + j];
                if (s_.bias) value += bias_[slice.column + j];
                to[i * ldc + j] = s_.relu && value < 0 ? 0 : value;
            }
    }

    T beta() const { return static_cast<T>(s_.beta); }

    const GemmShape& s_;
    const A* const a_data_;
    const B* const b_data_;
    const T* const bias_;
    T* const c_data_;
    const GemmKernels& kernels_;
    GemmScratch& scratch_;
    const GemmSlices slices_;
    const bool own_;    // by a routine of our own
    const bool turns_;  // the transpose of a slice is computed, of factors as they lie, and turned
    bool packs_ = false;
    std::size_t elements_ = 0, mirrored_ = 0, a_ = 0, b_ = 0, packed_ = 0, turned_ = 0,
                columns_ = 0;  // of a thread's memory
};

namespace {

template <class F>
void with_product(const GemmShape& shape, const GemmData& data, const GemmKernels& kernels,
                  GemmScratch& scratch, F f) {
    if (shape.m <= 0 || shape.n <= 0) return;
    switch (shape.dtype) {
        case DType::float32: f(GemmProduct<float, float, float>(shape, data, kernels, scratch)); return;
        case DType::float64: f(GemmProduct<double, double, double>(shape, data, kernels, scratch)); return;
        case DType::int32:
            if (shape.unsigned_a)
                f(GemmProduct<std::int32_t, std::uint8_t, std::int8_t>(shape, data, kernels, scratch));
            else
                f(GemmProduct<std::int32_t, std::int8_t, std::int8_t>(shape, data, kernels, scratch));
            return;
        default: BITALE_CHECK(false, "no product is of " + std::string(name_of(shape.dtype)));
    }
}

}  // namespace

GemmRoom gemm_room(const GemmShape& shape, bool stored, std::size_t buffers) {
    GemmRoom room;
    GemmScratch none;
    with_product(shape, {}, {}, none, [&](auto&& product) { room = product.room(stored, buffers); });
    return room;
}

std::int64_t scratch_bytes(const GemmRoom& most, int threads) {
    return threads * Arena::block_bytes(most.of_thread) + Arena::block_bytes(most.of_parts);
}

void reserve_gemm(Pool& pool, const GemmShape& shape, bool stored, std::size_t buffers,
                  GemmScratch& scratch) {
    with_product(shape, {}, {}, scratch, [&](auto&& product) { product.reserve(pool, stored, buffers); });
}

void gemm(Pool& pool, const GemmShape& shape, const GemmData& data, GemmScratch& scratch,
          const GemmKernels& kernels) {
    with_product(shape, data, kernels, scratch, [&](auto&& product) { product.run(pool); });
}

}  // namespace bitale
