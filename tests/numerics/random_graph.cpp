// Random graphs over the operations of bitale/ops.h.
#include "tests/numerics/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/ir/node.h"

namespace bitale::test {

namespace {

std::vector<Expr> lengths_of(const Dims& shape) { return {shape.begin(), shape.end()}; }

Dims broadcast_shape(const Dims& a, const Dims& b) {
    Dims r(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < a.size(); ++i) r[r.size() - a.size() + i] = a[i];
    for (std::size_t i = 0; i < b.size(); ++i) {
        std::int64_t& to = r[r.size() - b.size() + i];
        if (to == 1) to = b[i];
    }
    return r;
}

bool is_mask(const Expr& x) {
    return x.node()->op->name == "cast" && x.node()->inputs[0]->type.dtype == DType::boolean;
}

}  // namespace

GraphGenerator::GraphGenerator(std::uint64_t seed, Arithmetic arithmetic)
    : random_(seed),
      newer_(seed >= first_newer_seed),
      long_sums_(seed >= first_seed_of_long_sums),
      groups_(seed >= first_seed_of_groups),
      crossings_(seed >= first_seed_of_crossings),
      arithmetic_(arithmetic) {
    real_ = random_.chance(3) ? float64 : float32;
    static const std::vector<std::int64_t> all = {1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 100};
    for (int i = 0; i < 3; ++i) lengths_.push_back(random_.pick(all));
    if (is_whole() && random_.chance(20)) lengths_.push_back(0);
    if (random_.chance(30)) {  // enough for two threads
        most_elements_ = 150000;
        lengths_.push_back(random_.pick(std::vector<std::int64_t>{257, 500}));
    }
}

DType GraphGenerator::some_dtype() {
    static const std::vector<DType> all = {int8, int16, int32, int64, uint8, uint16, uint32, boolean, uint64};
    return !is_whole() || random_.chance(2) ? real_ : random_.pick(all);
}

Dims GraphGenerator::some_shape(int rank) {
    Dims shape;
    for (int i = 0; i < rank; ++i) shape.push_back(random_.pick(lengths_));
    while (count_of(shape) > most_elements_) *std::max_element(shape.begin(), shape.end()) = 3;
    return shape;
}

GraphGenerator::Value GraphGenerator::make_input(DType dtype, const Dims& shape, double low, double high,
                                                 std::size_t known) {
    Dims declared = shape;
    for (std::size_t i = 0; i + known < declared.size(); ++i)
        if (declared[i] != 1 && random_.chance(2) && !(declares_trailing_lengths && i > 0)) declared[i] = -1;
    const Expr x = input(dtype, declared, named("x" + std::to_string(graph_.inputs.size())));
    graph_.inputs.push_back(x);
    graph_.arguments.push_back(some_array(dtype, shape, low, high));
    const double bound = is_special()       ? 1e300
                         : dtype == boolean ? 1
                                            : std::max(std::fabs(low), std::fabs(high)) + 1;
    if (is_float(dtype)) trainable_.push_back(x);
    return {x, shape, bound};
}

GraphGenerator::Value GraphGenerator::make_shared(DType dtype, const Dims& shape) {
    const Shared s =
        shared(some_array(dtype, shape, -2, 2), named("s" + std::to_string(graph_.updates.size())));
    graph_.updates.emplace_back(s, Expr(s));  // replaced when the graph is complete
    if (is_float(dtype)) trainable_.emplace_back(s);
    const double bound = is_special()        ? 1e300
                         : is_integer(dtype) ? std::ldexp(1, bits_of(dtype))
                         : is_whole()        ? most_of_new_values
                                             : 3;
    return {Expr(s), shape, bound};
}

Expr GraphGenerator::index_input(DType dtype, const Dims& shape, std::int64_t length) {
    Dims declared(shape.size(), -1);
    if (declares_trailing_lengths && shape.size() > 1)
        std::copy(shape.begin() + 1, shape.end(), declared.begin() + 1);
    Expr x = input(dtype, declared, named("i" + std::to_string(graph_.inputs.size())));
    graph_.inputs.push_back(x);
    graph_.arguments.push_back(random_array(dtype, shape, random_, 0, static_cast<double>(length - 1)));
    return x;
}

const GraphGenerator::Value& GraphGenerator::any() {
    // Recent values are more likely, so that chains get long.
    const auto n = static_cast<std::int64_t>(values_.size());
    const std::int64_t back =
        random_.chance(3) ? random_.between(0, n - 1) : random_.between(0, std::min<std::int64_t>(n - 1, 3));
    return values_[static_cast<std::size_t>(n - 1 - back)];
}

bool GraphGenerator::keep(const Expr& x, const Dims& shape, double bound) {
    if (count_of(shape) > most_elements_ || shape.size() > 5) return false;
    Value v{x, shape, bound};
    if (is_special()) {
        v.bound = 1e300;
    } else if (is_whole() && x.dtype() != boolean && !(bound < most_exact)) {
        v.x = x % 17;
        v.bound = 17;
    } else if (!is_whole() && bound > 20) {
        v.x = random_.chance(2) ? tanh(x / bound) : x / bound;
        v.bound = 1;
    }
    values_.push_back(v);
    return true;
}

GraphGenerator::Value GraphGenerator::partner(const Value& v) {
    const auto like = [&](const Value& p) -> Value {
        Value r = p;
        if (r.x.dtype() != v.x.dtype()) {
            r.x = cast(r.x, v.x.dtype());
            if (is_integer(v.x.dtype())) r.bound = std::ldexp(1, std::min(bits_of(v.x.dtype()), 40));
        }
        return r;
    };
    std::vector<Value> fitting;
    for (const Value& p : values_) {
        bool fits = p.shape.size() <= v.shape.size() && floating(p) == floating(v);
        for (std::size_t i = 0; fits && i < p.shape.size(); ++i) {
            const std::int64_t a = p.shape[p.shape.size() - 1 - i], b = v.shape[v.shape.size() - 1 - i];
            // An unknown length never broadcasts, whatever it turns out to be.
            fits = a == b;
        }
        if (fits) fitting.push_back(p);
    }
    if (!fitting.empty() && !random_.chance(4)) return like(random_.pick(fitting));
    if (random_.chance(3)) return {random_.chance(2) ? Expr(2) : is_whole() ? Expr(3) : Expr(0.5), {}, 3};
    // Some axes of length 1, some leading ones missing.
    Dims shape = v.shape;
    if (!shape.empty() && random_.chance(2))
        shape.erase(shape.begin(),
                    shape.begin() + random_.between(0, static_cast<std::int64_t>(shape.size())));
    for (std::int64_t& length : shape)
        if (random_.chance(2)) length = 1;
    return make_input(v.x.dtype(), shape, v.x.dtype() == boolean || is_unsigned_integer(v.x.dtype()) ? 0 : -3,
                      3);
}

bool GraphGenerator::unary() {
    const Value v = any();
    if (!is_whole()) {
        using F = Expr (*)(const Arg&);
        static const std::vector<std::pair<F, double>> list = {{tanh, 1}, {sigmoid, 1}, {sin, 1},
                                                               {cos, 1},  {atan, 1.6},  {erf, 1}};
        switch (random_.between(0, 6)) {
            case 0: return keep(sqrt(sqr(v.x) + 1), v.shape, v.bound + 1);
            case 1: return keep(exp(tanh(v.x)), v.shape, 3);
            case 2: return keep(log(sqr(v.x) + 0.5), v.shape, 2 * v.bound + 1);
            case 3: return keep(random_.chance(2) ? relu(v.x) : softplus(v.x), v.shape, v.bound + 1);
            case 4: return keep(random_.chance(2) ? abs(v.x) : -v.x, v.shape, v.bound);
            default: {
                const auto& [f, bound] = random_.pick(list);
                return keep(f(v.x), v.shape, bound);
            }
        }
    }
    if (v.x.dtype() == boolean) return keep(logical_not(v.x), v.shape, 1);
    switch (random_.between(0, 5)) {
        case 0: return keep(-v.x, v.shape, is_unsigned_integer(v.x.dtype()) ? 1e18 : v.bound);
        case 1: return keep(abs(v.x), v.shape, v.bound);
        case 2: return keep(sign(v.x), v.shape, 1);
        case 3: return keep(relu(v.x), v.shape, v.bound);
        case 4: return keep(sqr(v.x), v.shape, v.bound * v.bound);
        default:
            return keep(floating(v) ? floor(v.x / 2) : invert(v.x), v.shape, floating(v) ? v.bound : 1e18);
    }
}

bool GraphGenerator::binary() {
    const Value v = any(), p = partner(v);
    const Dims shape = broadcast_shape(v.shape, p.shape);
    if (v.x.dtype() == boolean) {
        const Expr q = cast(p.x, boolean);
        return keep(random_.chance(2) ? logical_and(v.x, q) : logical_xor(v.x, q), shape, 1);
    }
    const bool turned = random_.chance(2);
    const Expr a = turned ? p.x : v.x, b = turned ? v.x : p.x;
    const double wraps = is_integer(v.x.dtype()) ? 1e18 : 0;
    switch (random_.between(0, is_whole() ? 7 : 4)) {
        case 0: return keep(a + b, shape, std::max(wraps, v.bound + p.bound));
        case 1: {
            // With a literal it may wrap, which has to be said.
            const DType t = v.x.dtype();
            return keep(is_unsigned_integer(t) ? cast(a, t) - cast(b, t) : a - b, shape,
                        std::max(wraps, v.bound + p.bound));
        }
        case 2:
            // Under the usual math infinity times the 0 of a mask is 0.
            if (is_special() && (is_mask(a) || is_mask(b))) return false;
            return keep(a * b, shape, std::max(wraps, v.bound * p.bound));
        case 3: return keep(maximum(a, b), shape, std::max(v.bound, p.bound));
        case 4:
            return is_whole() ? keep(minimum(a, b), shape, std::max(v.bound, p.bound))
                              : keep(a / (sqr(b) + 0.5), shape, 2 * std::max(v.bound, p.bound));
        case 5: return keep(lt(a, b), shape, 1);
        case 6: return keep(random_.chance(2) ? eq(a, b) : ge(a, b), shape, 1);
        default: return keep(floordiv(a, b * b + 1), shape, std::max(wraps, v.bound + 1));
    }
}

bool GraphGenerator::select() {
    const Value v = any(), p = partner(v);
    if (v.x.dtype() == boolean) return false;
    const Dims shape = broadcast_shape(v.shape, p.shape);
    const Expr condition = is_whole() ? gt(v.x, 0) : lt(sin(v.x * 5), 0.25);
    return keep(where(condition, p.x, v.x), shape, std::max(v.bound, p.bound));
}

bool GraphGenerator::convert() {
    if (!is_whole()) return false;
    const Value v = any();
    const DType to = some_dtype();
    const double bound = is_integer(to)  ? (bits_of(to) <= 16 ? std::ldexp(1, bits_of(to)) : 1e18)
                         : to == boolean ? 1
                                         : v.bound;
    return keep(cast(v.x, to), v.shape, bound);
}

bool GraphGenerator::reduce() {
    const Value v = any();
    if (v.shape.empty()) return false;
    Axes axes;
    Dims shape;
    const bool keepdims = random_.chance(3), all = random_.chance(5);
    double n = 1;
    for (std::size_t i = 0; i < v.shape.size(); ++i) {
        if (all || random_.chance(2)) {
            axes.push_back(static_cast<int>(i));
            n *= static_cast<double>(v.shape[i]);
            if (keepdims) shape.push_back(1);
        } else {
            shape.push_back(v.shape[i]);
        }
    }
    if (axes.empty()) return false;
    const ReduceOptions options{.keepdims = keepdims};
    if (v.x.dtype() == boolean)
        return keep(random_.chance(2) ? bitale::any(v.x, axes, options) : bitale::all(v.x, axes, options),
                    shape, 1);
    if (!is_whole()) {
        switch (random_.between(0, n > 0 ? 2 : 0)) {
            case 0: return keep(mean(v.x, axes, options), shape, v.bound);
            case 1: return keep(max(v.x, axes, options), shape, v.bound);
            default: return keep(sum(v.x, axes, options), shape, v.bound * n);
        }
    }
    const bool choose = n > 0;
    switch (random_.between(0, choose ? 4 : 1)) {
        case 0:
            return v.bound * n < most_exact || is_integer(v.x.dtype())
                       ? keep(sum(v.x, axes, options), shape, v.bound * n)
                       : false;
        case 1: return keep(bitale::any(gt(v.x, 2), axes, options), shape, 1);
        case 2: return keep(max(v.x, axes, options), shape, v.bound);
        case 3: return keep(min(v.x, axes, options), shape, v.bound);
        default:
            return keep(random_.chance(2) ? argmax(v.x, axes, options) : argmin(v.x, axes, options), shape,
                        n);
    }
}

bool GraphGenerator::move() {
    const Value v = any();
    const int rank = v.x.rank();
    Dims shape = v.shape;
    switch (random_.between(0, 4)) {
        case 0: {
            std::vector<int> axes(static_cast<std::size_t>(rank));
            std::iota(axes.begin(), axes.end(), 0);
            for (std::size_t i = axes.size(); i > 1; --i)
                std::swap(
                    axes[i - 1],
                    axes[static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(i) - 1))]);
            for (std::size_t i = 0; i < axes.size(); ++i)
                shape[i] = v.shape[static_cast<std::size_t>(axes[i])];
            if (rank == 0) return false;
            return keep(transpose(v.x, axes), shape, v.bound);
        }
        case 1: {
            const int axis = static_cast<int>(random_.between(0, rank));
            shape.insert(shape.begin() + axis, 1);
            return keep(expand_dims(v.x, axis), shape, v.bound);
        }
        case 2: {
            if (rank == 0) return false;
            const int to = static_cast<int>(random_.between(1, rank));
            Dims flat(v.shape.begin(), v.shape.begin() + to);
            for (std::size_t i = static_cast<std::size_t>(to); i < v.shape.size(); ++i)
                flat.back() *= v.shape[i];
            return keep(flatten(v.x, to), flat, v.bound);
        }
        case 3: {
            if (rank == 0) return false;
            const int axis = static_cast<int>(random_.between(0, rank - 1));
            return keep(flip(v.x, axis), shape, v.bound);
        }
        default: {
            // [n, ...] as [n / k, k, ...] or the other way round.
            if (rank == 0 || count_of(v.shape) == 0) return false;
            for (const std::int64_t k : {5, 4, 3, 2})
                if (shape[0] % k == 0) {
                    shape[0] /= k;
                    shape.insert(shape.begin() + random_.between(0, rank), k);
                    return keep(reshape(v.x, lengths_of(shape)), shape, v.bound);
                }
            return false;
        }
    }
}

bool GraphGenerator::slice() {
    const Value v = any();
    if (v.shape.empty()) return false;
    // On up to two leading axes, in the forms that an index takes.
    Dims shape = v.shape;
    const auto one = [&](std::int64_t length, std::int64_t& result) -> Slice {
        const std::int64_t start = random_.between(0, length), stop = random_.between(0, length),
                           step = random_.pick(std::vector<std::int64_t>{1, 1, 2, -1, -3});
        const std::int64_t span = step > 0 ? stop - start : std::min(start, length - 1) - stop,
                           size = std::abs(step);
        result = std::max<std::int64_t>(0, (span + size - 1) / size);
        return {Expr(start), Expr(stop), step};
    };
    if (random_.chance(3)) {
        if (v.shape[0] == 0) return false;
        shape.erase(shape.begin());
        const std::int64_t at = random_.between(-v.shape[0], v.shape[0] - 1);
        return keep(v.x[at], shape, v.bound);
    }
    const Slice first = one(v.shape[0], shape[0]);
    if (v.shape.size() == 1 || random_.chance(2)) return keep(v.x[first], shape, v.bound);
    const Slice second = one(v.shape[1], shape[1]);
    return keep(v.x[{first, second}], shape, v.bound);
}

bool GraphGenerator::resize() {
    const Value v = any();
    if (v.shape.empty()) return false;
    Dims shape = v.shape;
    if (random_.chance(2)) {
        std::vector<std::pair<int, int>> widths;
        for (std::int64_t& length : shape) {
            widths.emplace_back(static_cast<int>(random_.between(0, 2)),
                                static_cast<int>(random_.between(0, 2)));
            length += widths.back().first + widths.back().second;
        }
        return keep(pad(v.x, widths, random_.chance(2) ? 0 : 1), shape, std::max(v.bound, 1.0));
    }
    Dims larger = shape;
    const Expr x = expand_dims(v.x, 0);
    larger.insert(larger.begin(), random_.pick(lengths_));
    return keep(broadcast_to(x, lengths_of(larger)), larger, v.bound);
}

bool GraphGenerator::join() {
    const Value v = any();
    if (v.shape.empty()) return false;
    const int axis = static_cast<int>(random_.between(0, v.x.rank() - 1));
    std::vector<Expr> parts{v.x};
    Dims shape = v.shape;
    double bound = v.bound;
    for (const Value& p : values_) {
        if (parts.size() >= 3 || p.x.dtype() != v.x.dtype() || p.shape.size() != v.shape.size()) continue;
        bool fits = true;
        for (std::size_t i = 0; i < p.shape.size(); ++i)
            fits = fits && (static_cast<int>(i) == axis || p.shape[i] == v.shape[i]);
        if (!fits) continue;
        parts.push_back(p.x);
        shape[static_cast<std::size_t>(axis)] += p.shape[static_cast<std::size_t>(axis)];
        bound = std::max(bound, p.bound);
    }
    return keep(concatenate(parts, axis), shape, bound);
}

bool GraphGenerator::look_up() {
    const Value v = any();
    if (v.shape.empty() || v.shape[0] == 0) return false;
    Dims shape = v.shape;
    if (random_.chance(3)) {
        const std::int64_t count = random_.between(1, v.shape[0]);
        const Expr start = index_input(random_.chance(2) ? int64 : int32, {}, v.shape[0] - count + 1);
        shape[0] = count;
        return keep(rows(v.x, start, Expr(count)), shape, v.bound);
    }
    const Dims at = some_shape(static_cast<int>(random_.between(0, 2)));
    static const std::vector<DType> dtypes = {int64, int32, uint8, int8, int16};
    const Expr indices = index_input(random_.pick(dtypes), at, std::min<std::int64_t>(v.shape[0], 100));
    shape.erase(shape.begin());
    shape.insert(shape.begin(), at.begin(), at.end());
    return keep(gather(v.x, indices), shape, v.bound);
}

bool GraphGenerator::product() {
    const Value v = any();
    if (!floating(v) || v.shape.empty() || v.shape.size() > 2) return false;
    const auto k = v.shape.back();
    Value w;
    if (random_.chance(2) && v.shape.size() == 2) {
        w = {transpose(v.x), {v.shape[1], v.shape[0]}, v.bound};
    } else {
        w = make_input(v.x.dtype(), random_.chance(4) ? Dims{k} : Dims{k, random_.pick(lengths_)}, -2, 2);
        if (random_.chance(3) && w.shape.size() == 2) {
            // The other operand stored the other way.
            w = make_input(v.x.dtype(), {w.shape[1], w.shape[0]}, -2, 2);
            w.x = transpose(w.x);
            std::swap(w.shape[0], w.shape[1]);
        }
    }
    const double bound = v.bound * w.bound * static_cast<double>(k);
    if (is_whole() && bound >= 1 << 23) return false;
    Dims shape(v.shape.begin(), v.shape.end() - 1);
    if (w.shape.size() == 2) shape.push_back(w.shape[1]);
    return keep(dot(v.x, w.x), shape, bound);
}

GraphGenerator::Value GraphGenerator::as_images(const Value& v) {
    Value r = v;
    while (r.shape.size() < 4) {
        r.x = expand_dims(r.x, 0);
        r.shape.insert(r.shape.begin(), 1);
    }
    return r;
}

bool GraphGenerator::convolve() {
    const Value plain = any();
    if (!floating(plain) || plain.shape.size() > 4 || plain.shape.size() < 2) return false;
    const Value v = as_images(plain);
    if (count_of(v.shape) == 0) return false;
    const std::int64_t kh = random_.between(1, 3), kw = random_.between(1, 3), groups = groups_of(v.shape[1]),
                       out = groups * random_.between(1, 5);
    const Value w = make_input(v.x.dtype(), {out, v.shape[1] / groups, kh, kw}, -2, 2, 2);
    ConvOptions options;
    options.groups = static_cast<int>(groups);
    const std::vector<Border> borders = {valid, full, half, Border(1), Border(0, 1)};
    options.border_mode = random_.pick(borders);
    options.subsample =
        Size2(static_cast<int>(random_.between(1, 2)), static_cast<int>(random_.between(1, 3)));
    if (random_.chance(3)) options.dilation = Size2(2, 1);
    options.filter_flip = random_.chance(2);
    const auto length = [](std::int64_t n, std::int64_t k, int dilation, int stride, Border::Kind kind,
                           int pad) {
        const std::int64_t span = (k - 1) * dilation + 1;
        const std::int64_t p = kind == Border::Kind::valid  ? 0
                               : kind == Border::Kind::full ? span - 1
                               : kind == Border::Kind::half ? span / 2
                                                            : pad;
        return n + 2 * p < span ? 0 : (n + 2 * p - span) / stride + 1;
    };
    const std::int64_t h = length(v.shape[2], kh, options.dilation.h, options.subsample.h,
                                  options.border_mode.kind, options.border_mode.h);
    const std::int64_t x = length(v.shape[3], kw, options.dilation.w, options.subsample.w,
                                  options.border_mode.kind, options.border_mode.w);
    const double bound = v.bound * 3 * static_cast<double>(kh * kw * v.shape[1]);
    if (h <= 0 || x <= 0 || (is_whole() && bound >= 1 << 23)) return false;
    return keep(conv2d(v.x, w.x, options), {v.shape[0], out, h, x}, bound);
}

bool GraphGenerator::pool() {
    const Value v = any();
    if (v.shape.size() < 2 || v.x.dtype() == boolean || (!is_whole() && !floating(v))) return false;
    const Size2 window(static_cast<int>(random_.between(1, 3)), static_cast<int>(random_.between(1, 3)));
    PoolOptions options;
    if (random_.chance(2))
        options.stride =
            Size2(static_cast<int>(random_.between(1, 3)), static_cast<int>(random_.between(1, 2)));
    if (random_.chance(2))
        options.pad = Size2(static_cast<int>(random_.between(0, window.h - 1)),
                            static_cast<int>(random_.between(0, window.w - 1)));
    const Size2 stride = options.stride.value_or(window);
    Dims shape = v.shape;
    std::int64_t &h = shape[shape.size() - 2], &w = shape.back();
    if (h + 2 * options.pad.h < window.h || w + 2 * options.pad.w < window.w || h == 0 || w == 0)
        return false;
    h = (h + 2 * options.pad.h - window.h) / stride.h + 1;
    w = (w + 2 * options.pad.w - window.w) / stride.w + 1;
    return keep(max_pool(v.x, window, options), shape, v.bound);
}

bool GraphGenerator::normalise() {
    const Value v = any();
    if (is_whole() || v.shape.empty()) return false;
    const int axis = static_cast<int>(random_.between(-v.x.rank(), v.x.rank() - 1));
    if (v.shape[static_cast<std::size_t>(axis < 0 ? axis + v.x.rank() : axis)] == 0) return false;
    return random_.chance(2) ? keep(softmax(v.x, axis), v.shape, 1)
                             : keep(log_softmax(v.x, axis), v.shape, 2 * v.bound + 5);
}

bool GraphGenerator::classify() {
    const Value v = any();
    if (is_whole() || v.shape.size() != 2) return false;
    const std::int64_t n = v.shape[0], classes = v.shape[1];
    if (classes == 0) return false;
    static const std::vector<DType> dtypes = {int64, int32, uint8, int8, uint16};
    const Expr labels = index_input(random_.pick(dtypes), {n}, std::min<std::int64_t>(classes, 100));
    const Expr target = random_.chance(2) ? labels : one_hot(labels, Expr(classes), v.x.dtype());
    const Expr losses = random_.chance(2) ? categorical_crossentropy(softmax(v.x), target)
                                          : softmax_crossentropy(v.x, target);
    return keep(losses, {n}, 2 * v.bound + 5);
}

bool GraphGenerator::step() {
    constexpr int one_in = 8;
    if (newer_ && random_.chance(one_in)) return newer_step();
    if (long_sums_ && !is_special() && random_.chance(one_in)) return long_sum();
    if (is_special()) return special_step();
    switch (random_.between(0, 31)) {
        case 0:
        case 1:
        case 2: return unary();
        case 3:
        case 4:
        case 5: return binary();
        case 6: return select();
        case 7: return convert();
        case 8:
        case 9: return reduce();
        case 10:
        case 11: return move();
        case 12: return slice();
        case 13: return resize();
        case 14: return join();
        case 15: return look_up();
        case 16: return product();
        case 17: return convolve();
        case 18: return pool();
        case 19:
        case 20: return read_again();
        case 21: return residual();
        case 22: return convolve_values();
        case 23: return rows_with_border();
        case 24:
        case 25: return slice_anywhere();
        case 26: return computed_index();
        case 27: return mixed();
        case 28: return integers();
        case 29: return keep_as_half();
        case 30: return draw();
        default: return random_.chance(2) ? normalise() : classify();
    }
}

RandomGraph GraphGenerator::generate(int operations) {
    for (int i = 0; i < 3; ++i) {
        const DType dtype = some_dtype();
        const bool positive = dtype == boolean || is_unsigned_integer(dtype);
        values_.push_back(
            make_input(dtype, some_shape(static_cast<int>(random_.between(1, 4))), positive ? 0 : -4, 4));
    }
    values_.push_back(make_shared(real_, some_shape(static_cast<int>(random_.between(1, 3)))));
    if (random_.chance(2)) values_.push_back(make_shared(some_dtype(), some_shape(2)));
    for (int done = 0, tries = 0; done < operations && tries < 20 * operations; ++tries) done += step();

    // Outputs: the last values and some in the middle.
    Expr cost(0.0);
    const std::size_t n = values_.size();
    for (std::size_t i = 0; i < n; ++i) {
        const bool is_leaf = i < 4;
        if (i + 2 < n && !(random_.chance(is_leaf ? 20 : 6))) continue;
        graph_.outputs.push_back(values_[i].x);
        if (floating(values_[i]) && !is_whole()) cost = cost + mean(values_[i].x * cos(values_[i].x));
    }
    if (!is_whole() && !cost.is_weak()) {
        // Gradients of what the cost depends on.
        for (const Expr& wrt : trainable_) {
            try {
                graph_.outputs.push_back(grad(cost, wrt));
            } catch (const GraphError&) {  // disconnected
            }
        }
        graph_.outputs.push_back(cost);
        if (!trainable_.empty() && random_.chance(3)) second_derivatives(cost);
    }
    compute_new_values();
    replace_by_values();
    if (stream_)
        for (const Update& u : stream_->updates()) graph_.updates.push_back(u);
    return graph_;
}

}  // namespace bitale::test
