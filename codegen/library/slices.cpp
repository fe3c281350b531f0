#include "codegen/library/slices.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/library/cost.h"

namespace bitale {

namespace {

struct Sizes {
    std::int64_t m, n, k;
    bool transpose_b;
    GemmCall::Parameter parameter;
    std::int64_t products = 1;  // of which this is one
    std::int64_t element = 4;   // bytes of one of the factors
    bool of_bytes() const { return element == 1; }
    std::int64_t column_unit() const { return of_bytes() ? 48 : 16; }
};
constexpr std::int64_t row_unit = 8, term_unit = 16;

// An element of b that the library packs. One that it turns as well costs more, and much more where rows lie
// whole pages apart, which share few places of the cache, or where few rows of a use what was turned.
double packing(const Sizes& s, const GemmSlices& slice) {
    constexpr double straight = 0.04, turned = 0.1, turned_dearly = 0.22, of_bytes = 0.02;
    constexpr std::int64_t page = 1024, few_rows = 64;
    if (s.of_bytes()) return of_bytes;
    if (!s.transpose_b) return straight;
    return slice.rows < few_rows || s.k % page == 0 ? turned_dearly : turned;
}

// A slice on one core in nanoseconds, fitted to 31 shapes of small networks on one with 512-bit vectors: what
// counts is which of the grids is best. The library works on blocks of 8 rows by 48 columns; whatever slices
// share, each of them packs for itself.
double nanoseconds(const Sizes& s, const GemmSlices& slice) {
    const double flops_per_ns = s.of_bytes() ? 1000 : 230, pack_a = s.of_bytes() ? 0.02 : 0.2;
    constexpr double call = 500,
                     term_of_rest = 6;  // the library adds up bytes of a rest of columns by themselves
    constexpr std::int64_t block_rows = 8, block_columns = 48, lanes = 16;
    const std::int64_t rest = slice.columns % block_columns;
    const std::int64_t m = (slice.rows + block_rows - 1) / block_rows * block_rows,
                       n = slice.columns - rest +
                           (rest > 0 ? (rest + lanes - 1) / lanes * lanes + block_rows : std::int64_t{0});
    const auto k = static_cast<double>(slice.depth);
    return 2 * static_cast<double>(m) * static_cast<double>(n) * k / flops_per_ns +
           static_cast<double>(slice.rows) * k * pack_a +
           static_cast<double>(slice.columns) * k * packing(s, slice) + call +
           (s.of_bytes() && rest > 0 ? term_of_rest * k : 0);
}

// How many slices are worth having: each some microseconds at least, and more of them where there is work
// for more cores.
std::int64_t wanted_slices(const Sizes& s) {
    const double together = s.of_bytes() ? 4 : 1;  // products of one instruction, beside those of float32
    const double flops = 2.0 / together * static_cast<double>(s.m) * static_cast<double>(s.n) *
                         static_cast<double>(s.k) * static_cast<double>(s.products);
    constexpr double two = 1e6, four = 8e6, eight = 80e6, sixteen = 640e6, more = 2560e6;
    const std::int64_t all = flops < two       ? 1
                             : flops < four    ? 2
                             : flops < eight   ? 4
                             : flops < sixteen ? 8
                             : flops < more    ? 16
                                               : 64;
    std::int64_t each = all;
    while (each > 1 && (each - 1) * s.products >= all) each /= 2;
    return each;
}

// Elements that the results of all parts of the depth may take.
constexpr std::int64_t partial_results = 1 << 20;

// Halves of the depth, at least, where the rows of a parameter lie along it that are so many that to fetch
// them from the core that wrote them takes longer than to add the halves' results.
std::int64_t fewest_parts_of_depth(const Sizes& s, std::int64_t wanted) {
    constexpr std::int64_t many = 64;
    const bool along = s.parameter == GemmCall::Parameter::depth && s.k >= many * std::min(s.m, s.n);
    return along && wanted > 1 ? 2 : 1;
}

// Long sums of few results, as gradients of filters by many rows are: slices of the result would each pack
// all of an operand.
std::int64_t most_parts_of_depth(const Sizes& s, std::int64_t wanted, std::int64_t fewest) {
    constexpr std::int64_t shortest = 1024;
    return std::max(fewest, std::min({wanted, s.k / shortest, partial_results / (s.m * s.n)}));
}

// Storing the results of parts and adding them up, in nanoseconds.
double adding(const Sizes& s, std::int64_t parts) {
    constexpr double element = 0.3;
    return parts > 1 ? element * static_cast<double>(s.m * s.n * parts) : 0;
}

}  // namespace

GemmSlices slices_of(std::int64_t m, std::int64_t n, std::int64_t k, const GemmSlices& sizes) {
    GemmSlices r = sizes;
    r.of_rows = (m + r.rows - 1) / r.rows;
    r.of_columns = (n + r.columns - 1) / r.columns;
    r.of_depth = std::max<std::int64_t>(1, (k + r.depth - 1) / r.depth);
    return r;
}

GemmSlices slices_of(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_b,
                     GemmCall::Parameter parameter, bool whole, std::int64_t products, std::int64_t element) {
    const Sizes s{m, n, k, transpose_b, parameter, std::max<std::int64_t>(1, products), element};
    if (s.m == 0 || s.n == 0) return {.rows = 1, .columns = 1, .depth = 1};
    const auto part = [](std::int64_t extent, std::int64_t parts, std::int64_t unit) {
        return std::min(extent, ((extent + parts - 1) / parts + unit - 1) / unit * unit);
    };
    using Parameter = GemmCall::Parameter;
    GemmSlices best;
    double least = std::numeric_limits<double>::max();
    const std::int64_t all = wanted_slices(s), fewest_deep = whole ? 1 : fewest_parts_of_depth(s, all),
                       most_deep = whole ? 1 : most_parts_of_depth(s, all, fewest_deep);
    for (std::int64_t of_depth = fewest_deep; of_depth <= most_deep; of_depth *= 2) {
        const std::int64_t most = all / of_depth;
        // Half as many, where what they share costs that much to turn.
        const std::int64_t fewest = s.transpose_b && most > 4 ? most / 2 : most;
        for (std::int64_t wanted = most; wanted >= fewest; wanted /= 2)
            for (std::int64_t parts = 1; parts <= wanted; parts *= 2) {
                if (s.parameter == Parameter::rows && parts < std::min(wanted, s.m / row_unit)) continue;
                if (s.parameter == Parameter::columns && parts > 1) continue;
                GemmSlices r;
                r.rows = part(s.m, parts, row_unit);
                r.columns = part(s.n, wanted / parts, s.column_unit());
                r.depth = std::max<std::int64_t>(1, part(s.k, of_depth, term_unit));
                constexpr double worth_fewer = 0.97, worth_parts = 0.85;
                const double cost =
                    (nanoseconds(s, r) * static_cast<double>(wanted * of_depth) + adding(s, of_depth)) /
                    (wanted < most ? worth_fewer : 1) / (of_depth > fewest_deep ? worth_parts : 1);
                if (cost < least) {
                    least = cost;
                    best = slices_of(m, n, k, r);
                }
            }
    }
    return best;
}

namespace {

std::int64_t up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }
std::int64_t parts_of(std::int64_t x, std::int64_t part) { return (x + part - 1) / part; }

// Slices that are computed: of those that mirror each other one.
std::int64_t computed(const GemmSlices& r, bool symmetric) {
    return symmetric ? r.of_rows * (r.of_rows + 1) / 2 : r.of_rows * r.of_columns;
}

// Pieces stay in the second cache, both together, and with them the slice of the result. 0: they cannot.
std::int64_t depth_of_piece(std::int64_t rows, std::int64_t columns, std::int64_t k, const Pieces& how) {
    constexpr std::int64_t bytes = 1 << 18, shortest = 128, longest = 1024;
    const std::int64_t side = std::max<std::int64_t>({1, how.made_a ? rows : 1, how.made_b ? columns : 1});
    const std::int64_t all = up(std::max<std::int64_t>(k, 1), term_unit),
                       most = bytes / how.element / side / term_unit * term_unit;
    if (most < std::min(shortest, all)) return 0;
    return std::min({most, longest, all});
}

}  // namespace

GemmSlices slices_in_pieces(std::int64_t m, std::int64_t n, std::int64_t k, const GemmSlices& sizes,
                            bool symmetric, bool whole) {
    constexpr std::int64_t enough = 16, pieces_of_part = 4;
    GemmSlices r = sizes;
    r.of_rows = parts_of(m, r.rows);
    r.of_columns = parts_of(n, r.columns);
    const std::int64_t pieces = std::max<std::int64_t>(1, parts_of(k, sizes.depth));
    const std::int64_t most =
        std::min({enough / std::max<std::int64_t>(1, computed(r, symmetric)), pieces / pieces_of_part,
                  partial_results / std::max<std::int64_t>(1, m * n)});
    const std::int64_t parts = whole ? 1 : std::max<std::int64_t>(1, most);
    r.depth = parts_of(pieces, parts) * sizes.depth;
    r.of_depth = std::max<std::int64_t>(1, parts_of(k, r.depth));
    return r;
}

// By what making a piece costs beside the product: what is made for several slices is made several times.
GemmSlices slices_in_pieces(std::int64_t m, std::int64_t n, std::int64_t k, const Pieces& how) {
    constexpr double again = 0.1;             // an element of the result, once more
    constexpr double call = 3000, cores = 4;  // for each piece, memory that the library takes for itself
    constexpr std::int64_t enough = 16;
    const Sizes s{std::max<std::int64_t>(1, m),
                  std::max<std::int64_t>(1, n),
                  std::max<std::int64_t>(1, k),
                  how.transpose_b && !how.made_b,
                  how.parameter,
                  1,
                  how.element};
    // 1, 2, 3, 4, 6, 8, 12, 16 ... come out even for most numbers of threads.
    const auto next = [](std::int64_t parts) {
        const bool power = (parts & (parts - 1)) == 0;
        return parts == 1 ? 2 : power ? parts + parts / 2 : parts / 3 * 4;
    };
    using Parameter = GemmCall::Parameter;
    const double wanted = static_cast<double>(std::min(enough, wanted_slices(s)));
    GemmSlices best;
    double least = std::numeric_limits<double>::max();
    for (std::int64_t i = 1; i <= parts_of(s.m, row_unit); i = next(i))
        for (std::int64_t j = 1; j <= parts_of(s.n, s.column_unit()); j = next(j)) {
            if (how.symmetric && i != j) continue;
            if (how.parameter == Parameter::rows && !how.made_b && j > 1) continue;
            if (how.parameter == Parameter::columns && !how.made_a && i > 1) continue;
            GemmSlices r;
            r.columns = up(parts_of(s.n, j), s.column_unit());
            r.rows = how.symmetric ? r.columns : up(parts_of(s.m, i), row_unit);
            r.depth = depth_of_piece(r.rows, r.columns, s.k, how);
            if (r.depth == 0) continue;
            const GemmSlices all = slices_in_pieces(s.m, s.n, s.k, r, how.symmetric, false);
            GemmSlices one = r;
            one.depth = s.k;
            const double slice =
                nanoseconds(s, one) +
                made_ns *
                    static_cast<double>(s.k * ((how.made_a ? r.rows : 0) + (how.made_b ? r.columns : 0))) +
                (call + again * static_cast<double>(r.rows * r.columns)) *
                    static_cast<double>(parts_of(s.k, r.depth));
            // Few tasks that do not come out even leave cores without work.
            const double tasks = static_cast<double>(computed(all, how.symmetric) * all.of_depth);
            const double shares = std::ceil(std::max(tasks, wanted) / cores) * cores;
            const double cost = shares / static_cast<double>(all.of_depth) * slice;
            if (cost >= least) continue;
            least = cost;
            best = r;
        }
    return best;
}

}  // namespace bitale
