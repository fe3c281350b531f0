// Steps of random graphs that came later: products of many matrices, scans and orders.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/numerics/random_graph.h"

namespace bitale::test {

bool GraphGenerator::newer_step() {
    if (is_special()) return put_in_order();
    switch (random_.between(0, crossings_ ? 4 : 2)) {
        case 0: return scan();
        case 1: return put_in_order();
        case 2: return products();
        default: return cross();
    }
}

// Shares and their means along rows, put back and used again, of a column and a row.
bool GraphGenerator::cross() {
    const std::int64_t n = random_.pick(lengths_), m = random_.pick(lengths_);
    if (is_whole() || n * m > most_elements_) return false;
    const Expr column = exp(expand_dims(make_input(real_, {n}, -1, 1).x, 1)),
               row = expand_dims(make_input(real_, {m}, 0.5, 2).x, 0), quotient = row / (column + 9);
    std::vector<Expr> terms{column, quotient, column * quotient, column / (abs(column) + abs(quotient) + 1),
                            column * row / (column + sqr(row) + 1)};
    Expr x = column;
    for (std::int64_t i = random_.between(1, 3); i > 0; --i) {
        const Expr total = mean(random_.pick(terms) * random_.pick(terms) * row, {1}, {.keepdims = true});
        terms.push_back(total * random_.pick(terms));
        x = random_.chance(2) ? x + terms.back() * 0.1 : x * cos(terms.back() * 0.1);
    }
    return keep(x + row, {n, m}, 20);
}

std::int64_t GraphGenerator::groups_of(std::int64_t channels) {
    if (!groups_ || random_.chance(3)) return 1;
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= channels; ++d)
        if (channels % d == 0) divisors.push_back(d);
    return random_.pick(divisors);
}

// Of the last two axes of a value, by matmul or by broadcasting, with another order of axes on either side.
bool GraphGenerator::products() {
    const Value v = any();
    if (!floating(v) || v.shape.size() < 2 || v.shape.size() > 4) return false;
    const int rank = static_cast<int>(v.shape.size());
    Value a = v;
    if (random_.chance(3)) {
        std::vector<int> axes;
        for (int i = 0; i < rank; ++i) axes.push_back(i);
        for (std::size_t i = axes.size() - 1; i > 0; --i)
            std::swap(axes[i], axes[static_cast<std::size_t>(random_.between(0, static_cast<int>(i)))]);
        a.x = transpose(v.x, axes);
        for (std::size_t i = 0; i < axes.size(); ++i) a.shape[i] = v.shape[static_cast<std::size_t>(axes[i])];
    }
    const std::int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back();
    Dims right(a.shape.begin(), a.shape.end() - 2);
    if (!right.empty() && random_.chance(3)) right.erase(right.begin());
    if (!right.empty() && random_.chance(4)) right[0] = 1;
    const std::int64_t n = random_.chance(4) ? m : random_.pick(lengths_);
    const bool turned = random_.chance(2);
    right.push_back(turned ? n : k);
    right.push_back(turned ? k : n);
    Value b = make_input(v.x.dtype(), right, -2, 2);
    if (turned) {
        std::vector<int> axes;
        for (int i = 0; i < b.x.rank(); ++i) axes.push_back(i);
        std::swap(axes[axes.size() - 2], axes.back());
        b.x = transpose(b.x, axes);
    }
    const double bound = a.bound * b.bound * static_cast<double>(k);
    if (is_whole() && bound >= 1 << 23) return false;
    std::int64_t multiplied = k * n;
    for (std::size_t i = 0; i + 1 < a.shape.size(); ++i) multiplied *= a.shape[i];
    if (multiplied > 10 * most_elements_) return false;
    Dims shape(a.shape.begin(), a.shape.end() - 1);
    shape.push_back(n);
    const Expr x =
        random_.chance(2) ? matmul(a.x, b.x) : sum(expand_dims(a.x, -1) * expand_dims(b.x, -3), {-2});
    return keep(x, shape, bound);
}

// Of each element what those up to it make.
bool GraphGenerator::scan() {
    const Value v = any();
    if (v.shape.empty()) return false;
    const auto axis = static_cast<std::size_t>(random_.between(0, v.x.rank() - 1));
    const double n = static_cast<double>(v.shape[axis]);
    const ScanOptions options{.exclusive = random_.chance(3), .reverse = random_.chance(3)};
    const int at = static_cast<int>(axis);
    if (!is_whole()) {
        if (!floating(v)) return false;
        switch (random_.between(0, 3)) {
            case 0: return keep(cumprod(tanh(v.x), at, options), v.shape, 1);
            case 1:
                return keep(logcumsumexp(v.x, at, {.reverse = options.reverse}), v.shape,
                            v.bound + std::log(n + 1));
            default: return keep(cumsum(v.x, at, options), v.shape, v.bound * std::max(n, 1.0));
        }
    }
    if (is_float(v.x.dtype()))
        return v.bound * n < most_exact &&
               keep(cumsum(v.x, at, options), v.shape, v.bound * std::max(n, 1.0));
    return keep(random_.chance(3) ? cumprod(v.x, at, options) : cumsum(v.x, at, options), v.shape, wraps);
}

bool GraphGenerator::put_in_order() {
    const Value v = any();
    if (v.shape.empty()) return false;
    const auto axis = static_cast<std::size_t>(random_.between(0, v.x.rank() - 1));
    const int at = static_cast<int>(axis);
    const bool other = random_.chance(3);
    Dims shape = v.shape;
    switch (random_.between(0, is_whole() ? 3 : 1)) {
        case 0: return keep(sort(v.x, at, {.descending = other}), shape, v.bound);
        case 1:
            shape[axis] = random_.between(0, shape[axis]);
            return keep(topk(v.x, Expr(shape[axis]), at, {.smallest = other}).values, shape, v.bound);
        case 2:
            shape[axis] = random_.between(0, shape[axis]);
            return keep(topk(v.x, Expr(shape[axis]), at, {.smallest = other}).positions, shape,
                        static_cast<double>(v.shape[axis]));
        default:
            return keep(argsort(v.x, at, {.descending = other}), shape, static_cast<double>(v.shape[axis]));
    }
}

// Over a shared variable that is read only: its sum is cut into chunks and computed once for each version.
bool GraphGenerator::long_sum() {
    const Dims shape =
        random_.pick(std::vector<Dims>{{20000}, {5000, 16}, {300, 257}, {3, 17000}, {2100, 7, 5}});
    const Shared s = shared(some_array(real_, shape, -2, 2), named("long" + std::to_string(values_.size())));
    const Expr x = random_.chance(2) ? Expr(s) : sqr(s);
    const double n = static_cast<double>(count_of(shape)), largest = 4;
    if (random_.chance(3)) return keep(sum(x), {}, largest * n);
    const bool best = random_.chance(3);
    Dims rest(shape.begin() + 1, shape.end());
    return keep(best ? max(x, {0}) : sum(x, {0}), rest,
                best ? largest : largest * static_cast<double>(shape[0]));
}

}  // namespace bitale::test
