// The loops of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008):
//     for columns of b, 256 at a time
//         for terms, 256 at a time                 pack that part of b
//             for rows of a, about 100 at a time   pack that part of a
//                 for columns, two registers of them
//                     for rows of the tile         a tile of c in registers, over all terms
#include "runtime/cpu/product.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace bitale {

namespace {

#define B_INLINE inline __attribute__((always_inline))

constexpr std::int64_t terms_of_block = 256, columns_of_block = 256, most_rows_of_block = 96;
constexpr std::int64_t most_tile_rows = 12, most_tile_columns = 32;

// Elements for a block of a.
std::int64_t room_of_rows(std::int64_t m, std::int64_t k) {
    const std::int64_t whole = (m + most_tile_rows - 1) / most_tile_rows * most_tile_rows;
    return std::min(terms_of_block, k) * std::min(most_rows_of_block, whole);
}

// For registers of so many bytes, and tiles of so many rows. All of it is inlined into functions that are
// compiled for the processor that has such registers.
template <class T, int register_bytes, int tile_rows>
struct Product {
    static constexpr std::int64_t lanes = register_bytes / sizeof(T), tile_columns = 2 * lanes;
    static constexpr std::int64_t rows_of_block = most_rows_of_block / tile_rows * tile_rows;
    static_assert(tile_rows <= most_tile_rows && most_tile_columns % tile_columns == 0);
    static_assert(columns_of_block % most_tile_columns == 0);
    // g++ takes these attributes of a template's T in a typedef alone. NOLINTBEGIN(modernize-use-using)
    typedef T Lanes __attribute__((vector_size(register_bytes)));
    typedef T Unaligned __attribute__((vector_size(register_bytes), aligned(sizeof(T)), may_alias));
    // NOLINTEND(modernize-use-using)

    // [blocks of `width` columns][terms][width], the last block filled up with zeros. `step` lies between
    // columns, `term` between terms.
    template <std::int64_t width>
    static B_INLINE void pack(const T* from, std::int64_t step, std::int64_t term, std::int64_t columns,
                              std::int64_t terms, T* to) {
        std::int64_t j = 0;
        if (step == 1 && width == tile_columns) {
            // Four lines of memory after one another, as long as there are so many.
            constexpr std::int64_t together = 4;
            for (; j + together * width <= columns; j += together * width, to += together * terms * width)
                for (std::int64_t p = 0; p < terms; ++p)
                    for (std::int64_t g = 0; g < together; ++g)
                        copy<width>(from + j + g * width + p * term, to + (g * terms + p) * width);
        }
        for (; j < columns; j += width, to += terms * width) {
            const T* const block = from + j * step;
            if (columns - j < width && term == 1)
                turn<width>(block, step, term, terms, to, columns - j);
            else if (columns - j < width)
                pack_some(block, step, term, columns - j, terms, width, to);
            else if (step == 1)
                for (std::int64_t p = 0; p < terms; ++p) copy<width>(block + p * term, to + p * width);
            else
                turn<width>(block, step, term, terms, to);
        }
    }

    template <std::int64_t width>
    static B_INLINE void copy(const T* from, T* to) {
        if constexpr (width % lanes == 0)
            for (std::int64_t x = 0; x < width; x += lanes)
                *reinterpret_cast<Unaligned*>(to + x) = *reinterpret_cast<const Unaligned*>(from + x);
        else
            for (std::int64_t x = 0; x < width; ++x) to[x] = from[x];
    }

    // Half of two registers, from that lane on, lane by lane.
    template <std::size_t first, std::size_t... I>
    static B_INLINE void interleave(const Lanes& x, const Lanes& y, Lanes& to, std::index_sequence<I...>) {
        to = __builtin_shufflevector(x, y, ((I % 2 == 0 ? 0 : lanes) + first + I / 2)...);
    }

    // As many registers as lanes, rows to columns.
    static B_INLINE void transpose(Lanes* x) {
        constexpr auto all = std::make_index_sequence<static_cast<std::size_t>(lanes)>();
        Lanes y[lanes];
        for (std::int64_t done = 1; done < lanes; done *= 2) {
#pragma GCC unroll 8
            for (std::int64_t l = 0; l < lanes / 2; ++l) {
                interleave<0>(x[l], x[l + lanes / 2], y[2 * l], all);
                interleave<lanes / 2>(x[l], x[l + lanes / 2], y[2 * l + 1], all);
            }
#pragma GCC unroll 16
            for (std::int64_t l = 0; l < lanes; ++l) x[l] = y[l];
        }
    }

    // Terms side by side: a register of each column at a time, and zeros for columns that are not there.
    template <std::int64_t width, std::int64_t first = 0>
    static B_INLINE void turn_registers(const T* from, std::int64_t step, T* to, std::int64_t columns) {
        constexpr std::int64_t count = std::min(lanes, width - first);
        Lanes x[lanes];
#pragma GCC unroll 16
        for (std::int64_t l = 0; l < lanes; ++l)
            x[l] = l < count && first + l < columns
                       ? *reinterpret_cast<const Unaligned*>(from + (first + l) * step)
                       : Unaligned{};
        transpose(x);
#pragma GCC unroll 16
        for (std::int64_t l = 0; l < lanes; ++l)
            std::memcpy(to + l * width + first, &x[l], count * sizeof(T));
        if constexpr (first + lanes < width) turn_registers<width, first + lanes>(from, step, to, columns);
    }

    // A line of memory of each column at a time: columns may lie so that few of their lines fit into a cache.
    template <std::int64_t width>
    static B_INLINE void turn(const T* from, std::int64_t step, std::int64_t term, std::int64_t terms, T* to,
                              std::int64_t columns = width) {
        constexpr std::int64_t line = 64 / sizeof(T);
        std::int64_t p = 0;
        if (term == 1)
            for (; p + lanes <= terms; p += lanes)
                turn_registers<width>(from + p, step, to + p * width, columns);
        if (columns < width)
            return pack_some(from + p * term, step, term, columns, terms - p, width, to + p * width);
        for (; p + line <= terms; p += line)
            for (std::int64_t x = 0; x < width; ++x)
                for (std::int64_t q = p; q < p + line; ++q) to[q * width + x] = from[x * step + q * term];
        for (; p < terms; ++p)
            for (std::int64_t x = 0; x < width; ++x) to[p * width + x] = from[x * step + p * term];
    }

    static B_INLINE void pack_some(const T* from, std::int64_t step, std::int64_t term, std::int64_t columns,
                                   std::int64_t terms, std::int64_t width, T* to) {
        for (std::int64_t p = 0; p < terms; ++p) {
            for (std::int64_t x = 0; x < columns; ++x) to[p * width + x] = from[x * step + p * term];
            for (std::int64_t x = columns; x < width; ++x) to[p * width + x] = 0;
        }
    }

    // A tile of c, of which `rows` and `columns` exist.
    static B_INLINE void tile(std::int64_t terms, const T* a, const T* b, T alpha, T beta, T* c,
                              std::int64_t row_c, std::int64_t rows, std::int64_t columns) {
        Lanes sum[tile_rows][2];
#pragma GCC unroll 16
        for (int i = 0; i < tile_rows; ++i) sum[i][0] = sum[i][1] = Lanes{};
        for (std::int64_t p = 0; p < terms; ++p, a += tile_rows, b += tile_columns) {
            const Lanes left = *reinterpret_cast<const Unaligned*>(b),
                        right = *reinterpret_cast<const Unaligned*>(b + lanes);
#pragma GCC unroll 16
            for (int i = 0; i < tile_rows; ++i) {
                sum[i][0] += a[i] * left;
                sum[i][1] += a[i] * right;
            }
        }
        const bool whole = rows == tile_rows && columns == tile_columns;
        T rest[tile_rows * tile_columns];
        T* const to = whole ? c : rest;
        const std::int64_t row = whole ? row_c : tile_columns;
#pragma GCC unroll 16
        for (int i = 0; i < tile_rows; ++i)
            for (int half = 0; half < 2; ++half) {
                auto* const at = reinterpret_cast<Unaligned*>(to + i * row + half * lanes);
                *at = whole && beta != 0 ? beta * *at + alpha * sum[i][half] : alpha * sum[i][half];
            }
        if (whole) return;
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j) {
                T& at = c[i * row_c + j];
                at = beta != 0 ? beta * at + rest[i * tile_columns + j] : rest[i * tile_columns + j];
            }
    }

    static B_INLINE void run(std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                             StridedMatrix<const T> a, StridedMatrix<const T> b, T beta, StridedMatrix<T> c,
                             T* room) {
        T* const packed_a = room;
        T* const packed_b = room + room_of_rows(m, k);
        for (std::int64_t j = 0; j < n; j += columns_of_block)
            for (std::int64_t p = 0; p < k; p += terms_of_block) {
                const std::int64_t columns = std::min(columns_of_block, n - j),
                                   terms = std::min(terms_of_block, k - p);
                pack<tile_columns>(b.at + p * b.row + j * b.column, b.column, b.row, columns, terms,
                                   packed_b);
                for (std::int64_t i = 0; i < m; i += rows_of_block) {
                    const std::int64_t rows = std::min(rows_of_block, m - i);
                    pack<tile_rows>(a.at + i * a.row + p * a.column, a.row, a.column, rows, terms, packed_a);
                    for (std::int64_t y = 0; y < columns; y += tile_columns)
                        for (std::int64_t x = 0; x < rows; x += tile_rows)
                            tile(terms, packed_a + x * terms, packed_b + y * terms, alpha,
                                 p == 0 ? beta : T{1}, c.at + (i + x) * c.row + j + y, c.row,
                                 std::min<std::int64_t>(tile_rows, rows - x),
                                 std::min(tile_columns, columns - y));
                }
            }
    }
};

#undef B_INLINE

template <class T>
using Routine = void (*)(std::int64_t, std::int64_t, std::int64_t, T, StridedMatrix<const T>,
                         StridedMatrix<const T>, T, StridedMatrix<T>, T*);

// Tiles fill the registers: 16 of 16 or 32 bytes, 32 of 64 bytes.
template <class T>
void with_16_bytes(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, StridedMatrix<const T> a,
                   StridedMatrix<const T> b, T beta, StridedMatrix<T> c, T* room) {
    Product<T, 16, 6>::run(m, n, k, alpha, a, b, beta, c, room);
}

#if defined(__x86_64__)
template <class T>
__attribute__((target("avx2,fma"))) void with_32_bytes(std::int64_t m, std::int64_t n, std::int64_t k,
                                                       T alpha, StridedMatrix<const T> a,
                                                       StridedMatrix<const T> b, T beta, StridedMatrix<T> c,
                                                       T* room) {
    Product<T, 32, 6>::run(m, n, k, alpha, a, b, beta, c, room);
}

template <class T>
__attribute__((target("avx512f,avx2,fma"))) void with_64_bytes(std::int64_t m, std::int64_t n, std::int64_t k,
                                                               T alpha, StridedMatrix<const T> a,
                                                               StridedMatrix<const T> b, T beta,
                                                               StridedMatrix<T> c, T* room) {
    // A tile that is filled by few rows takes as long as a whole one.
    constexpr std::int64_t few = 8, whole = 12, rows_of_two = 16;
    if (m <= few || (m > whole && m <= rows_of_two))
        return Product<T, 64, few>::run(m, n, k, alpha, a, b, beta, c, room);
    Product<T, 64, whole>::run(m, n, k, alpha, a, b, beta, c, room);
}
#endif

#if defined(__x86_64__)
int widest_registers() {
    if (__builtin_cpu_supports("avx512f")) return 64;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 32 : 16;
}
#endif

template <class T>
Routine<T> routine([[maybe_unused]] int most_bytes) {
#if defined(__x86_64__)
    static const int widest = widest_registers();
    const int bytes = std::min(most_bytes, widest);
    if (bytes >= 64) return with_64_bytes<T>;
    if (bytes >= 32) return with_32_bytes<T>;
#endif
    return with_16_bytes<T>;
}

}  // namespace

std::int64_t product_room(std::int64_t m, std::int64_t n, std::int64_t k) {
    const std::int64_t whole = (n + most_tile_columns - 1) / most_tile_columns * most_tile_columns;
    return room_of_rows(m, k) + std::min(terms_of_block, k) * std::min(columns_of_block, whole);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, StridedMatrix<const float> a,
              StridedMatrix<const float> b, float beta, StridedMatrix<float> c, float* room, int most_bytes) {
    routine<float>(most_bytes)(m, n, k, alpha, a, b, beta, c, room);
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, StridedMatrix<const double> a,
              StridedMatrix<const double> b, double beta, StridedMatrix<double> c, double* room,
              int most_bytes) {
    routine<double>(most_bytes)(m, n, k, alpha, a, b, beta, c, room);
}

}  // namespace bitale
