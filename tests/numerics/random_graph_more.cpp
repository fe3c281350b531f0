// Steps over indices, integers, storage and draws: slices on all axes, indices that are computed, operands of
// two dtypes, bits, values kept as halves, random streams, second derivatives.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "graph/ir/node.h"
#include "tests/numerics/random_graph.h"

namespace bitale::test {

bool has_known_shape(const Expr& x) {
    const Shape& shape = x.node()->type.shape;
    return std::all_of(shape.begin(), shape.end(), [](const Int& n) { return n.is_constant(); });
}

namespace {

struct Cut {
    Slice slice;
    std::int64_t length = 0;
};

// A slice of `n` elements in any form that Python knows, and how many it takes.
Cut cut_of(std::int64_t n, Random& random) {
    Cut cut;
    cut.slice.step = random.pick(std::vector<std::int64_t>{1, 1, 1, 2, 3, -1, -1, -2});
    const bool forwards = cut.slice.step > 0;
    std::int64_t start = forwards ? 0 : n - 1, stop = forwards ? n : -1;
    const auto bound = [&](std::optional<Expr>& to, std::int64_t& at) {
        if (random.chance(3)) return;
        std::int64_t given = random.between(-n - 1, n + 1);
        to = Expr(given);
        if (given < 0) given += n;
        at = forwards ? std::clamp<std::int64_t>(given, 0, n) : std::clamp<std::int64_t>(given, -1, n - 1);
    };
    bound(cut.slice.start, start);
    bound(cut.slice.stop, stop);
    const std::int64_t span = forwards ? stop - start : start - stop, size = std::abs(cut.slice.step);
    cut.length = std::max<std::int64_t>(0, (span + size - 1) / size);
    return cut;
}

}  // namespace

Array GraphGenerator::some_array(DType dtype, const Dims& shape, double low, double high) {
    if (is_special()) return special_array(dtype, shape, random_, static_cast<int>(random_.between(0, 1)));
    const Array value = random_array(dtype, shape, random_, low, high);
    return is_whole() && is_float(dtype) ? value.as(int32).as(dtype) : value;
}

void GraphGenerator::second_derivatives(const Expr& cost) {
    const Expr &first = random_.pick(trainable_), &second = random_.pick(trainable_);
    try {
        const Expr slope = grad(cost, first);
        graph_.outputs.push_back(grad(sum(sqr(slope) * 0.125), second));
    } catch (const GraphError&) {  // disconnected
    }
}

bool GraphGenerator::slice_anywhere() {
    const Value v = any();
    if (v.shape.empty()) return false;
    std::vector<Index::Item> items;
    Dims shape;
    const auto axes = random_.between(1, static_cast<std::int64_t>(v.shape.size()));
    for (std::size_t axis = 0; axis < v.shape.size(); ++axis) {
        const std::int64_t n = v.shape[axis];
        if (static_cast<std::int64_t>(axis) >= axes) {
            shape.push_back(n);
            continue;
        }
        if (random_.chance(4)) {
            items.emplace_back(colon);
            shape.push_back(n);
        } else if (n > 0 && random_.chance(4)) {
            items.emplace_back(random_.between(-n, n - 1));
        } else {
            const Cut cut = cut_of(n, random_);
            items.emplace_back(cut.slice);
            shape.push_back(cut.length);
        }
    }
    Index index{colon};
    index.items = std::move(items);
    return keep(v.x[index], shape, v.bound);
}

// Rows at indices that the graph computes.
bool GraphGenerator::computed_index() {
    const Value v = any();
    if (v.shape.empty() || v.shape[0] == 0) return false;
    const std::int64_t n = v.shape[0];
    Value at;
    for (const Value& p : values_)
        if (p.shape.size() <= 2 && count_of(p.shape) <= 100 && (is_integer(p.x.dtype()) || random_.chance(3)))
            at = p;
    Expr index;
    if (at.x.is_null() || at.x.dtype() == uint64 || at.x.dtype() == boolean || floating(at)) {
        if (!at.x.is_null() && !at.shape.empty() && at.shape.back() > 0 && is_whole()) {
            // The position of a maximum.
            index = argmax(at.x, {-1});
            at.shape.pop_back();
        } else {
            at.shape = {random_.between(0, 9)};
            index = index_input(int64, at.shape, 50);
        }
    } else {
        index = cast(at.x, int64);
    }
    Dims shape(v.shape.begin() + 1, v.shape.end());
    shape.insert(shape.begin(), at.shape.begin(), at.shape.end());
    return keep(gather(v.x, (index * 3 + 1) % n), shape, v.bound);
}

// Operands of two dtypes, as the promotion's table has them.
bool GraphGenerator::mixed() {
    const Value v = any();
    std::vector<Value> fitting;
    for (const Value& p : values_)
        if (p.shape == v.shape && p.x.dtype() != v.x.dtype() && has_known_shape(p.x) == has_known_shape(v.x))
            fitting.push_back(p);
    if (fitting.empty()) return false;
    const Value p = random_.pick(fitting);
    try {
        const double bound = std::max(v.bound, p.bound);
        switch (random_.between(0, 3)) {
            case 0: return keep(maximum(v.x, p.x), v.shape, bound);
            case 1: return is_whole() && keep(lt(v.x, p.x), v.shape, 1);
            case 2: return is_whole() && keep(eq(p.x, v.x), v.shape, 1);
            default: {
                const Expr y = v.x + p.x;
                if (is_special() && is_float(y.dtype())) return false;
                return keep(y, v.shape, is_integer(y.dtype()) ? wraps : v.bound + p.bound);
            }
        }
    } catch (const TypeError&) {  // such a pair wants a cast
        return false;
    }
}

bool GraphGenerator::integers() {
    const Value v = any();
    if (!is_integer(v.x.dtype())) return false;
    const Value p = partner(v);
    const Dims& shape = v.shape;
    if (p.shape.size() > shape.size()) return false;
    switch (random_.between(0, 9)) {
        case 0: return keep(bitwise_and(v.x, p.x), shape, wraps);
        case 1: return keep(bitwise_or(v.x, p.x), shape, wraps);
        case 2: return keep(bitwise_xor(v.x, p.x), shape, wraps);
        case 3: return keep(shift_left(v.x, p.x), shape, wraps);
        case 4: return keep(shift_right(v.x, p.x), shape, wraps);
        case 5: return keep(floordiv(v.x, p.x), shape, wraps);
        case 6: return keep(mod(v.x, p.x), shape, wraps);
        case 7: return keep(pow(v.x, p.x), shape, wraps);
        case 8: return keep(clip(v.x, minimum(p.x, 3), maximum(p.x, 3)), shape, wraps);
        default: return !shape.empty() && keep(prod(v.x, {-1}), {shape.begin(), shape.end() - 1}, wraps);
    }
}

// A float kept as half on the way.
bool GraphGenerator::keep_as_half() {
    const Value v = any();
    if (!floating(v) || (is_whole() && !is_special() && v.bound > 2048)) return false;
    const DType half_type =
        is_special() || v.bound <= 256 ? random_.pick(std::vector<DType>{float16, bfloat16}) : float16;
    const Expr stored = cast(v.x, half_type);
    if (random_.chance(3)) graph_.outputs.push_back(stored);
    return keep(cast(stored, v.x.dtype()), v.shape, v.bound * 1.01);
}

// Numbers of a random stream, or a value with some of its elements dropped.
bool GraphGenerator::draw() {
    if (!stream_) stream_.emplace(random_.bits());
    if (!is_whole() && random_.chance(2)) {
        const Value v = any();
        if (!floating(v)) return false;
        return keep(dropout(v.x, 0.25, *stream_), v.shape, v.bound * 4 / 3);
    }
    const Dims shape = some_shape(static_cast<int>(random_.between(1, 3)));
    const std::vector<Expr> lengths(shape.begin(), shape.end());
    if (is_whole()) return keep(floor(stream_->uniform(lengths) * 8), shape, 8);
    return random_.chance(2) ? keep(stream_->uniform(lengths, -1, 2), shape, 2)
                             : keep(stream_->normal(lengths), shape, 8);
}

// Where only what is exact, in any order, may be done with floats.
bool GraphGenerator::special_binary() {
    const Value v = any();
    if (!floating(v)) return binary();
    const Value p = partner(v);
    const Dims& shape = v.shape;
    switch (random_.between(0, 8)) {
        case 0: return keep(maximum(v.x, p.x), shape, v.bound);
        case 1: return keep(minimum(p.x, v.x), shape, v.bound);
        case 2: return keep(lt(v.x, p.x), shape, 1);
        case 3: return keep(random_.chance(2) ? eq(v.x, p.x) : neq(v.x, p.x), shape, 1);
        case 4: return keep(random_.chance(2) ? ge(v.x, p.x) : le(p.x, v.x), shape, 1);
        case 5: return keep(copysign(v.x, p.x), shape, v.bound);
        case 6: return keep(random_.chance(2) ? isnan(v.x) : isinf(v.x), shape, 1);
        case 7: return keep(clip(v.x, minimum(p.x, 1), maximum(p.x, 1)), shape, v.bound);
        default: return keep(where(isnan(v.x), p.x, v.x), shape, v.bound);
    }
}

bool GraphGenerator::special_unary() {
    const Value v = any();
    if (!floating(v)) return unary();
    switch (random_.between(0, 6)) {
        case 0: return keep(-v.x, v.shape, v.bound);
        case 1: return keep(abs(v.x), v.shape, v.bound);
        case 2: return keep(sign(v.x), v.shape, v.bound);
        case 3: return keep(relu(v.x), v.shape, v.bound);
        case 4: return keep(floor(v.x), v.shape, v.bound);
        case 5: return keep(random_.chance(2) ? ceil(v.x) : trunc(v.x), v.shape, v.bound);
        default: return keep(round(v.x), v.shape, v.bound);
    }
}

bool GraphGenerator::special_step() {
    switch (random_.between(0, 15)) {
        case 0: return special_unary();
        case 1:
        case 2: return special_binary();
        case 3: return integers();
        case 4: return select();
        case 5: return convert();
        case 6: return reduce();
        case 7: return move();
        case 8: return slice_anywhere();
        case 9: return resize();
        case 10: return join();
        case 11: return look_up();
        case 12: return computed_index();
        case 13: return mixed();
        case 14: return keep_as_half();
        default: return pool();
    }
}

}  // namespace bitale::test
