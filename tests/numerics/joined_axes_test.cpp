// Arrays of several axes behind the one that is reduced or scanned, in programs that walk these axes as one,
// or do not: against the oracle.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Track {
    Dims shape;
    bool known = true;
    std::vector<Expr>
        inputs;  // x, y like it, p without its first axis, w of the first axis, v of the last one
    std::vector<Array> values;
};

Track track(const Dims& shape, bool known, Random& random) {
    Track t{shape, known, {}, {}};
    const Dims rest(shape.begin() + 1, shape.end());
    for (const Dims& d : {shape, shape, rest, Dims{shape[0]}, Dims{shape.back()}}) {
        const std::string name = fmt::format("a{}", t.inputs.size());
        t.inputs.push_back(known ? input(float32, d, name)
                                 : input(float32, static_cast<int>(d.size()), name));
        t.values.push_back(random_array(float32, d, random, -1, 1));
    }
    return t;
}

// Of the shape of x.
Expr step(const Track& t, const Expr& x, Random& random) {
    const int rank = static_cast<int>(t.shape.size());
    std::vector<int> ones;
    for (int d = 1; d < rank; ++d) ones.push_back(d);
    const Expr &y = t.inputs[1], &p = t.inputs[2], &v = t.inputs[4];
    Expr w = t.inputs[3];
    for (int d = 1; d < rank; ++d) w = expand_dims(w, d);
    const bool some = t.shape[0] > 1;
    switch (random.between(0, 15)) {
        case 0: return tanh(x);
        case 1: return x - mean(x, {0}, {.keepdims = true});
        case 2: return softmax(x, 0);
        case 3: return x * y + 1;
        case 4: return x + p;
        case 5: return x * w;
        case 6: return random.chance(3) ? x * v : where(x > y, x, -y);
        case 7: return cumsum(x, 0) / 8;
        case 8: return flip(x, 0);
        case 9: return some ? concatenate({x[Slice{.start = 1}], x[Slice{0, 1}]}, 0) : x + 2;
        case 10: return x / (1 + max(abs(x), {0}));
        case 11: return random.chance(2) ? roll(x, 1, 0) : roll(x, 1, rank - 1);
        case 12: return random.chance(3) ? cumsum(x, rank - 1) / 4 : sqr(x);
        case 13: return x + expand_dims(sum(x * y, {0}), 0);
        case 14: return cast(argmax(x, {0}), float32) + x;
        default: return x * sigmoid(y);
    }
}

Expr result(const Track& t, const Expr& x, Random& random) {
    const int rank = static_cast<int>(t.shape.size());
    std::vector<int> turned{rank - 1};
    for (int d = 0; d + 1 < rank; ++d) turned.push_back(d);
    switch (random.between(0, 8)) {
        case 0: return x;
        case 1: return mean(x, {0});
        case 2: return logsumexp(x, {0});
        case 3: return sum(x, {0}) * t.inputs[2];
        case 4: return transpose(max(x, {0}) - t.inputs[2]);
        case 5: return sum(x * t.inputs[1], {0, rank - 1});
        case 6: return sum(transpose(x, turned), {1});
        case 7: return sqrt(mean(sqr(x - mean(x, {0})), {0}) + 0.1F);
        default: return grad(sum(sqr(logsumexp(x, {0}))) + mean(x), {t.inputs[0]})[0];
    }
}

}  // namespace

TEST_CASE("programs over the first axis of arrays of three and four axes") {
    Random random(31);
    PackedCases cases(tested_device(), 2e-5);
    for (const Dims& shape : {Dims{40, 7, 3}, Dims{33, 17, 2}, Dims{6, 4, 5, 3}, Dims{1, 5, 3},
                              Dims{20, 1, 3}, Dims{19, 6, 1}, Dims{70, 3, 16}, Dims{3, 129, 2}})
        for (const bool known : {true, false})
            for (int k = 0; k < 4; ++k) {
                const Track t = track(shape, known, random);
                Expr x = t.inputs[0];
                for (std::int64_t steps = random.between(0, 3); steps > 0; --steps) x = step(t, x, random);
                cases.add(
                    fmt::format("{} of [{}], {}", k, fmt::join(shape, ", "), known ? "known" : "unknown"),
                    t.inputs, t.values, result(t, x, random) + 0 * sum(t.inputs[3]) + 0 * sum(t.inputs[4]));
            }
    cases.run(8);
}

TEST_CASE("arrays without elements, and several results that want the axes in different ways") {
    Random random(32);
    for (const Dims& shape : {Dims{0, 4, 3}, Dims{4, 0, 3}, Dims{4, 3, 0}, Dims{24, 10, 3}})
        for (const bool known : {true, false}) {
            const Track t = track(shape, known, random);
            const Expr& x = t.inputs[0];
            const Expr e = exp(x), s = sum(e, {0});
            const std::vector<Expr> all{s,
                                        e / s,
                                        sum(e, {1}),
                                        sum(e, {2}),
                                        e * t.inputs[4],
                                        transpose(s),
                                        cumsum(s, 1),
                                        reshape(s, {-1})};
            const Results expected = function({x, t.inputs[4]}, all, {.device = "reference"})
                                         .call(std::vector<Array>{t.values[0], t.values[4]});
            const Results got = function({x, t.inputs[4]}, all, {.device = tested_device()})
                                    .call(std::vector<Array>{t.values[0], t.values[4]});
            for (std::size_t i = 0; i < all.size(); ++i) {
                INFO(fmt::format("result {} of [{}]", i, fmt::join(shape, ", ")));
                CHECK(difference(got[i], expected[i], {.of_largest = 1e-5}) == "");
            }
        }
}

TEST_CASE("lengths that differ are refused as they are written, though their products agree") {
    const Expr x = tensor3("x"), y = tensor3("y");
    Function f = function({x, y}, {sum(x * y, {0})}, {.device = tested_device()});
    Random random(33);
    const Array a = random_array(float32, {4, 6, 2}, random), b = random_array(float32, {4, 3, 4}, random);
    CHECK_THROWS_AS(f(a, b), ShapeError);
    CHECK(f(a, a)[0].shape() == Dims{6, 2});
}

TEST_CASE("a variable of three axes is updated by its own means over time") {
    Random random(34);
    const Array start = random_array(float32, {12, 5, 3}, random);
    std::vector<Array> ends;
    for (const char* device : {"reference", tested_device()}) {
        const Shared s = shared(start, "s");
        const Expr x = s;
        Function f =
            function({}, {sum(x, {0})},
                     {.updates = {{s, x - mean(x, {0}, {.keepdims = true}) * 0.5F}}, .device = device});
        f();
        f();
        ends.push_back(s.get_value());
    }
    CHECK(difference(ends[1], ends[0], {.of_largest = 1e-6}) == "");
}

namespace {

// An operand with some of the axes of x, and length 1 along the others.
Dims lengths_of(const Dims& shape, unsigned axes) {
    Dims r;
    for (std::size_t d = 0; d < shape.size(); ++d) r.push_back(axes >> d & 1U ? shape[d] : 1);
    return r;
}

}  // namespace

TEST_CASE("short last axes, and operands that are repeated along one axis of two") {
    // Copies of operands with both axes, chunks of the last of several loops, and of the longest of them.
    for (const Dims& shape : {Dims{12, 130, 23}, Dims{9, 7, 60, 10}, Dims{4, 3, 64, 90}, Dims{300, 37, 3}})
        for (const bool known : {true, false}) {
            PackedCases cases(tested_device(), 2e-5);
            Random random(71);
            Dims lengths = shape;
            if (!known) lengths[0] = -1;
            const Expr x = input(float32, lengths, "x");
            const Array values = random_array(float32, shape, random, -1, 1);
            const auto rank = static_cast<unsigned>(shape.size()), last = 1U << (rank - 1),
                       before = last >> 1U;
            for (const unsigned axes :
                 {last, before, last | before, last | 1U, before | 1U, 1U, before | 2U}) {
                Dims own = lengths_of(shape, axes), given = own;
                if (!known && (axes & 1U)) given[0] = -1;
                const Expr b = input(float32, given, fmt::format("b{}", axes));
                const std::vector<Expr> in{x, b};
                const std::vector<Array> both{values, random_array(float32, own, random, -1, 1)};
                const std::string what =
                    fmt::format("{}, axes {}{}", text_of(shape), axes, known ? "" : ", any");
                const Expr y = sqr(x - b);
                const int r = static_cast<int>(rank);
                cases.add(what + ": map", in, both, tanh(y) * b);
                cases.add(what + ": of the last", in, both, sum(y, r - 1));
                cases.add(what + ": of the last two", in, both, mean(y, {r - 2, r - 1}));
                cases.add(what + ": of all but the first", in, both,
                          sum(y, r == 3 ? Axes{1, 2} : Axes{1, 2, 3}));
                cases.add(what + ": of the first", in, both, mean(y, 0));
                cases.add(what + ": of all but the last", in, both,
                          mean(y, r == 3 ? Axes{0, 1} : Axes{0, 1, 2}));
                cases.add(what + ": of all", in, both, mean(y));
                cases.add(what + ": maximum", in, both, max(x * b, {r - 2, r - 1}));
                cases.add(what + ": gradient", in, both, grad(mean(tanh(x * b) * x), b));
            }
            cases.run(18);
        }
}

TEST_CASE("sums with operands of every subset of axes have the same bits on a GPU") {
    if (emulator_left_out() || std::string(tested_device()) != "cpu") return;
    Options without_library = options();
    without_library.disabled.insert("onednn");
    const ScopedOptions scope(without_library);
    for (const Dims& shape : {Dims{300, 37, 3}, Dims{12, 130, 23}, Dims{4, 3, 64, 90}, Dims{2000, 10}})
        for (const bool known : {true, false}) {
            Random random(72);
            Dims lengths = shape;
            if (!known) lengths[0] = -1;
            const auto rank = static_cast<unsigned>(shape.size()), all = (1U << rank) - 1;
            const Expr x = input(float32, lengths, "x");
            std::vector<Input> inputs{x};
            std::vector<Array> arguments{random_array(float32, shape, random, -1, 1)};
            std::vector<Expr> outputs;
            std::vector<std::string> names;
            for (unsigned axes = 1; axes < all; ++axes) {
                const Dims own = lengths_of(shape, axes);
                Dims given = own;
                if (!known && (axes & 1U)) given[0] = -1;
                const Expr b = input(float32, given, fmt::format("b{}", axes));
                inputs.emplace_back(b);
                arguments.push_back(random_array(float32, own, random, -1, 1));
                for (unsigned over = 1; over <= all; ++over) {
                    std::vector<int> reduced;
                    for (unsigned d = 0; d < rank; ++d)
                        if (over >> d & 1U) reduced.push_back(static_cast<int>(d));
                    outputs.push_back(sum(sqr(x - b), Axes(reduced)));
                    names.push_back(fmt::format("over {}, b of axes {}", over, axes));
                }
            }
            const Results cpu = function(inputs, outputs, {.device = "cpu"}).call(arguments),
                          gpu = function(inputs, outputs, {.device = "emulator"}).call(arguments);
            for (std::size_t k = 0; k < outputs.size(); ++k) {
                INFO(text_of(shape) << (known ? "" : ", any rows") << ", " << names[k]);
                CHECK(difference(cpu[k], gpu[k], {}) == "");
            }
        }
}
