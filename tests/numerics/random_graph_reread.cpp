// Steps that read existing values once more at other places of the same kernel: other rows, filters out of
// values, values with themselves.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/numerics/random_graph.h"

namespace bitale::test {

namespace {

constexpr double largest_sum = 1 << 23;  // of whole numbers that float32 holds exactly

}  // namespace

GraphGenerator::Value GraphGenerator::in_other_rows(const Value& v) {
    const std::int64_t n = v.shape[0];
    switch (random_.between(0, 4)) {
        case 0: return {flip(v.x, 0), v.shape, v.bound};
        case 1: return {v.x[random_.between(-n, n - 1)], {v.shape.begin() + 1, v.shape.end()}, v.bound};
        case 2: {
            const std::int64_t at = random_.between(0, n);
            return {concatenate({v.x[Slice{Expr(at), Expr(n)}], v.x[Slice{Expr(0), Expr(at)}]}), v.shape,
                    v.bound};
        }
        case 3: {
            std::vector<int> axes(v.shape.size());
            for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>((i + 1) % axes.size());
            return {reshape(transpose(v.x, axes), {v.shape.begin(), v.shape.end()}), v.shape, v.bound};
        }
        default: return {gather(v.x, index_input(int64, {n}, n)), v.shape, v.bound};
    }
}

// A value, or what is computed of it, combined with the value in other rows.
bool GraphGenerator::read_again() {
    const Value v = any();
    if (v.shape.empty() || v.shape[0] == 0 || v.x.dtype() == boolean) return false;
    std::vector<Value> alike;
    for (const Value& p : values_)
        if (p.shape == v.shape && p.x.dtype() == v.x.dtype()) alike.push_back(p);
    const Value other = in_other_rows(random_.pick(alike));
    const double wraps = is_integer(v.x.dtype()) ? 1e18 : 0;
    switch (random_.between(0, 2)) {
        case 0: return keep(v.x + other.x, v.shape, std::max(wraps, v.bound + other.bound));
        case 1: return keep(v.x * other.x, v.shape, std::max(wraps, v.bound * other.bound));
        default: return keep(maximum(other.x, v.x), v.shape, std::max(v.bound, other.bound));
    }
}

// A convolution of as many channels, beside its image in some rows; new images have known lengths.
bool GraphGenerator::residual() {
    Value v = as_images(any());
    if (!floating(v) || v.shape.size() != 4 || random_.chance(3))
        v = make_input(
            real_,
            {random_.between(2, 5), random_.between(1, 4), random_.between(3, 9), random_.between(3, 9)}, -3,
            3, 3);
    const std::int64_t c = v.shape[1];
    if (count_of(v.shape) == 0 || c > 20) return false;
    if (random_.chance(3)) v.x = is_whole() ? relu(v.x) : tanh(v.x);
    const std::int64_t size = random_.chance(3) ? 1 : 3;
    const Value w = make_input(v.x.dtype(), {c, c, size, size}, -2, 2, 4);
    const double bound = v.bound * 3 * static_cast<double>(size * size * c);
    if (is_whole() && bound >= largest_sum) return false;
    const Expr y = conv2d(v.x, w.x, {.border_mode = half, .filter_flip = random_.chance(2)});
    const Value other = random_.chance(4) ? v : in_other_rows(v);
    if (random_.chance(3))
        return keep(y + conv2d(as_images(other).x, w.x, {.border_mode = half}), v.shape, 2 * bound);
    return keep(random_.chance(2) ? y + other.x : y - other.x, v.shape, bound + other.bound);
}

// Filters cut out of a value, often out of the image itself.
bool GraphGenerator::convolve_values() {
    const std::int64_t channels = random_.between(1, 3);
    const auto fitting = [&](const Value& v) {
        return floating(v) && v.shape.size() == 4 && count_of(v.shape) > 0 && count_of(v.shape) < 2000;
    };
    std::vector<Value> list;
    for (const Value& v : values_)
        if (fitting(v) && has_known_shape(v.x)) list.push_back(v);
    Value v;
    if (!list.empty() && !random_.chance(3)) {
        v = random_.pick(list);
    } else {
        v = make_input(real_, {random_.between(1, 4), channels, random_.between(3, 6), random_.between(3, 6)},
                       -3, 3, 4);
        if (random_.chance(2)) v.x = is_whole() ? relu(v.x) : tanh(v.x);
    }
    Value filters = v;
    for (const Value& p : list)
        if (p.shape[1] == v.shape[1] && p.x.dtype() == v.x.dtype() && random_.chance(3)) filters = p;
    const auto some = [&](std::size_t axis, std::int64_t most) {
        const std::int64_t n = filters.shape[axis], count = random_.between(1, std::min(n, most)),
                           from = random_.between(0, n - count);
        filters.shape[axis] = count;
        return Slice{Expr(from), Expr(from + count)};
    };
    if (!random_.chance(4)) {
        const Slice first = some(0, 4), rows = some(2, 3), columns = some(3, 3);
        filters.x = filters.x[{first, colon, rows, columns}];
    }
    const std::int64_t kh = filters.shape[2], kw = filters.shape[3];
    const double bound = v.bound * filters.bound * static_cast<double>(kh * kw * v.shape[1]);
    if (is_whole() && bound >= largest_sum) return false;
    const Expr y = conv2d(v.x, filters.x, {.border_mode = half, .filter_flip = random_.chance(2)});
    return keep(y,
                {v.shape[0], filters.shape[0], v.shape[2] + 2 * (kh / 2) - kh + 1,
                 v.shape[3] + 2 * (kw / 2) - kw + 1},
                bound);
}

// Rows with a border of columns times a matrix, beside other rows; or rows times each other.
bool GraphGenerator::rows_with_border() {
    Value v = any();
    if (!floating(v) || v.shape.size() != 2 || random_.chance(3))
        v = make_input(real_, {random_.between(2, 9), random_.between(2, 9)}, -3, 3, 1);
    const std::int64_t n = v.shape[0], k = v.shape[1];
    if (n == 0 || k == 0 || n * k > 2000) return false;
    const auto left = static_cast<int>(random_.between(0, 2)),
               right = static_cast<int>(random_.between(0, 2));
    const double bound = v.bound * v.bound * 3 * static_cast<double>(k);
    if (is_whole() && bound >= largest_sum) return false;
    const Expr padded = pad(v.x, {{0, 0}, {left, right}});
    if (random_.chance(3)) return keep(dot(padded, transpose(padded)), {n, n}, bound);
    const Value w = make_input(v.x.dtype(), {k + left + right, k}, -2, 2, 2);
    const Value other = in_other_rows(v);
    return keep(dot(padded, w.x) + other.x, v.shape, v.bound * 3 * static_cast<double>(k) + other.bound);
}

}  // namespace bitale::test
