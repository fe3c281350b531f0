// x[...]: NumPy's corner cases, dynamic lengths, gathers and their gradients, messages.
#include <algorithm>
#include <limits>

#include "ops/shape/gather.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Array counting(std::int64_t n) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i));
    return Array(values);
}

// Which elements of a vector of length n NumPy's slice takes.
std::vector<double> sliced(std::int64_t n, std::optional<std::int64_t> start,
                           std::optional<std::int64_t> stop, std::int64_t step) {
    const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const auto clipped = [&](std::int64_t x) { return std::clamp(x < 0 ? x + n : x, low, high); };
    const std::int64_t first = start ? clipped(*start) : (step > 0 ? low : high);
    const std::int64_t end = stop ? clipped(*stop) : (step > 0 ? high : low);
    std::vector<double> r;
    for (std::int64_t i = first; step > 0 ? i < end : i > end; i += step) r.push_back(static_cast<double>(i));
    return r;
}

}  // namespace

TEST_CASE("constant slices clip as NumPy's do") {
    const std::vector<std::optional<std::int64_t>> bounds = {std::nullopt, 0, 1, 3, 5, 9, -1, -4, -9};
    for (const std::int64_t n : {0, 1, 5})
        for (const bool symbolic : {false, true})
            for (const auto& start : bounds)
                for (const auto& stop : bounds)
                    for (const std::int64_t step : {1, 2, 3, -1, -2}) {
                        const Expr x = symbolic ? vector("x") : input(float32, Dims{n}, "x");
                        Slice s;
                        if (start) s.start = *start;
                        if (stop) s.stop = *stop;
                        s.step = step;
                        INFO("n " << n << " [" << start.value_or(999) << ":" << stop.value_or(999) << ":"
                                  << step << "]");
                        const Expr y = x[s];
                        REQUIRE(numbers(evaluated(y, {x}, {counting(n)})) == sliced(n, start, stop, step));
                        if (!same(x, y)) require_nest_matches(y.node(), {counting(n)});
                    }
    for (const bool symbolic : {false, true}) {
        const Expr x = symbolic ? vector("x") : input(float32, Dims{5}, "x");
        for (const std::int64_t step : {std::int64_t{1000}, std::numeric_limits<std::int64_t>::max()}) {
            CHECK(numbers(evaluated(x[Slice{.step = step}], {x}, {counting(5)})) == std::vector<double>{0});
            CHECK(numbers(evaluated(x[Slice{.step = -step}], {x}, {counting(5)})) == std::vector<double>{4});
            CHECK(numbers(evaluated(x[Slice{.step = -step - 1}], {x}, {counting(5)})) ==
                  std::vector<double>{4});
        }
    }
}

TEST_CASE("slices with bounds that are arguments clip too") {
    const Expr x = vector("x"), a = lscalar("a"), b = iscalar("b");
    const auto index = [](std::int64_t i) { return Array(i); };
    for (const std::int64_t step : {1, 2, -1, -3}) {
        const Expr both = x[Slice{a, b, step}], from = x[Slice{a, {}, step}], to = x[Slice{{}, b, step}];
        for (const std::int64_t n : {0, 1, 6})
            for (const std::int64_t start : {-9, -2, -1, 0, 1, 4, 9})
                for (const std::int64_t stop : {-9, -2, 0, 3, 6, 9}) {
                    INFO("n " << n << " [" << start << ":" << stop << ":" << step << "]");
                    const std::vector<Array> values = {counting(n), index(start),
                                                       Array(static_cast<std::int32_t>(stop))};
                    REQUIRE(numbers(evaluated(both, {x, a, b}, values)) == sliced(n, start, stop, step));
                    REQUIRE(numbers(evaluated(from, {x, a, b}, values)) == sliced(n, start, {}, step));
                    REQUIRE(numbers(evaluated(to, {x, a, b}, values)) == sliced(n, {}, stop, step));
                }
    }
}

TEST_CASE("a minibatch slice has a value for its start and its own length at the end") {
    const Expr i = lscalar("i"), x = input(float32, Dims{300, 2}, "x");
    const Expr batch = x[Slice{i * 128, (i + 1) * 128}];
    REQUIRE(batch.node()->op == rows_op());
    CHECK(!is_constant(batch.node()->inputs[1]));
    CHECK(batch.node()->op->checks(*batch.node()).empty());
    const Array data = sample(float32, {300, 2});
    CHECK(evaluated(batch, {i, x}, {Array(std::int64_t{0}), data}).shape() == Dims{128, 2});
    CHECK(evaluated(batch, {i, x}, {Array(std::int64_t{2}), data}).shape() == Dims{44, 2});
    CHECK(evaluated(batch, {i, x}, {Array(std::int64_t{3}), data}).shape() == Dims{0, 2});
    CHECK(same(evaluated(batch, {i, x}, {Array(std::int64_t{1}), data}), data.rows(128, 256)));
    const Expr labels = input(uint8, Dims{300}, "labels");
    CHECK(type_of(labels[Slice{i * 128, (i + 1) * 128}]).shape[0] == type_of(batch).shape[0]);
}

TEST_CASE("numbers drop axes") {
    const Array data = sample(int32, {3, 4, 5});
    const Expr x = input(int32, Dims{3, 4, 5}, "x"), t = tensor3("t", int32);
    const auto at = [&](int i, int j, int k) { return data.at((i * 4 + j) * 5 + k); };
    CHECK(evaluated(x[{1, 2, 3}], {x}, {data}).item<double>() == at(1, 2, 3));
    CHECK(evaluated(t[{-1, -2, -3}], {t}, {data}).item<double>() == at(2, 2, 2));
    CHECK(x[1].shape_text() == "[4, 5]");
    CHECK(x[{colon, 1}].shape_text() == "[3, 5]");
    CHECK(evaluated(x[{colon, 1, Slice{1, 3}}], {x}, {data}).at(2) == at(1, 1, 1));
    CHECK(same(x[{colon, colon}], x));
    CHECK(evaluated(t[t.length(0) - 1], {t}, {data}).at(7) == at(2, 1, 2));
}

TEST_CASE("integer scalars that are arguments or on the device") {
    const Array data = sample(float32, {3, 4});
    const Expr x = matrix("x"), i = iscalar("i");
    CHECK(evaluated(x[i], {x, i}, {data, Array(2)}).at(1) == data.at(9));
    CHECK(evaluated(x[{colon, i}], {x, i}, {data, Array(2)}).at(1) == data.at(6));
    const Shared where_to = shared(Array(std::uint8_t{1}), "where_to");
    CHECK(evaluated(x[where_to], {x}, {data}).at(1) == data.at(5));
    CHECK(evaluated(x[{colon, where_to}], {x}, {data}).at(2) == data.at(9));
    CHECK_THROWS_AS(evaluated(x[i], {x, i}, {data, Array(3)}), IndexError);
    CHECK_THROWS_AS(evaluated(x[i], {x, i}, {data, Array(-1)}), IndexError);
}

TEST_CASE("rows") {
    const Array data = sample(uint8, {7, 2});
    const Expr x = matrix("x", uint8), i = lscalar("i");
    const Expr three = rows(x, i, 3), batch = x[range(i * 3, (i + 1) * 3)];
    CHECK(batch.node()->op == rows_op());
    CHECK(batch.shape_text() == "[3, x.1]");
    for (const std::int64_t first : {0, 2, 4}) require_nest_matches(three.node(), {data, Array(first)});
    require_nest_matches(three.node(), {sample(uint8, {3, 2}), Array(std::int64_t{0})});
    require_nest_matches(rows(x, i, 0).node(), {data, Array(std::int64_t{7})});
    REQUIRE(three.node()->op->checks(*three.node()).size() == 1);
    REQUIRE(three.node()->op->equalities(*three.node()).size() == 1);
    CHECK(same(evaluated(batch, {x, i}, {data, Array(std::int64_t{1})}), data.rows(3, 6)));
    CHECK_THROWS_AS(evaluated(batch, {x, i}, {data, Array(std::int64_t{2})}), IndexError);
    CHECK_THROWS_AS(evaluated(three, {x, i}, {data, Array(std::int64_t{-1})}), IndexError);
    const Shared start = shared(Array(4), "start");
    CHECK(same(evaluated(rows(x, start, 2), {x}, {data}), data.rows(4, 6)));
    CHECK(same(evaluated(x[range(1, 3)], {x}, {data}), data.rows(1, 3)));
    const Expr y = input(uint8, Dims{2, 7}, "y");
    CHECK(y[{colon, range(i, i + 2)}].shape_text() == "[2, 2]");
}

TEST_CASE("a start out of range is clamped by the kernel, whatever the check says later") {
    const Expr x = input(float32, Dims{5}, "x");
    const NodePtr node = rows(x, lscalar("i"), 2).node();
    const Array data = counting(5);
    CHECK(interpret(nest_of(*node), {widened(data), Array(std::int64_t{99})}).at(0) == 3);
    CHECK(interpret(nest_of(*node), {widened(data), Array(std::int64_t{-99})}).at(0) == 0);
    const NodePtr chosen = gather(x, ivector("k")).node();
    const SymbolValues two{{chosen->inputs[1]->type.shape[0].symbol_id(), 2}};
    const Array wild(std::vector<std::int32_t>{-7, 88});
    CHECK(numbers(interpret(nest_of(*chosen), {widened(data), wild}, two)) == std::vector<double>{0, 4});
}

TEST_CASE("gather") {
    const Array data = sample(float32, {5, 2});
    const Expr x = matrix("x");
    for (const DType dtype : {int8, int16, int32, int64, uint8, uint16, uint32, uint64}) {
        const Array indices = Array(std::vector<std::int64_t>{4, 0, 4, 1}).as(dtype);
        const Expr y = x[input(dtype, 1, "i")];
        REQUIRE(y.node()->op == gather_op());
        const Array r = require_nest_matches(y.node(), {data, indices});
        CHECK(r.shape() == Dims{4, 2});
        CHECK(r.at(0) == data.at(8));
        CHECK(r.at(7) == data.at(3));
    }
    const Array square(std::vector<std::int64_t>{1, 2, 3, 0}, Dims{2, 2});
    CHECK(require_nest_matches(x[input(int64, 2, "i")].node(), {data, square}).shape() == Dims{2, 2, 2});
    CHECK(require_nest_matches(gather(x, lscalar("i")).node(), {data, Array(std::int64_t{3})}).shape() ==
          Dims{2});
    require_nest_matches(gather(vector("v"), lvector("i")).node(),
                         {counting(3), Array(std::vector<std::int64_t>{})});
    require_nest_matches(gather(input(float32, Dims{1, 2}, "one"), lvector("i")).node(),
                         {sample(float32, {1, 2}), Array(std::vector<std::int64_t>{0, 0})});
    const Expr i = lvector("i");
    const Expr mixed = x[{i, 1}];
    CHECK(evaluated(mixed, {x, i}, {data, Array(std::vector<std::int64_t>{3, 0})}).at(0) == data.at(7));
    CHECK_THAT(message_of<IndexError>([&] {
                   evaluated(x[i], {x, i}, {data, Array(std::vector<std::int64_t>{5})});
               }),
               ContainsSubstring("index_test.cpp:") && ContainsSubstring("out of range"));
}

TEST_CASE("a list of indices on any axis") {
    const Dims shape{3, 4, 5};
    const Array data = sample(float32, shape);
    const Array list(std::vector<std::int64_t>{2, 0, 2, 1, 1, 0}, Dims{2, 3});
    const Expr x = input(float32, shape, "x"), i = input(int64, 2, "i");
    const auto element = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
        return data.at((a * 4 + b) * 5 + c);
    };
    struct Form {
        Expr y;
        Dims shape;
        std::function<double(const Dims&)> at;
    };
    const auto index = [&](const Dims& p, std::size_t first) {
        return static_cast<std::int64_t>(list.at(p[first] * 3 + p[first + 1]));
    };
    const std::vector<Form> forms{
        {x[{colon, i}], {3, 2, 3, 5}, [&](const Dims& p) { return element(p[0], index(p, 1), p[3]); }},
        {x[{colon, colon, i}], {3, 4, 2, 3}, [&](const Dims& p) { return element(p[0], p[1], index(p, 2)); }},
        {x[{Slice{.step = -1}, i, 1}],
         {3, 2, 3},
         [&](const Dims& p) { return element(2 - p[0], index(p, 1), 1); }},
        {x[{1, i, Slice{1, 3}}], {2, 3, 2}, [&](const Dims& p) { return element(1, index(p, 0), p[2] + 1); }},
        {x[{0, 3, i}], {2, 3}, [&](const Dims& p) { return element(0, 3, index(p, 0)); }},
        {x[{i, colon, -1}], {2, 3, 4}, [&](const Dims& p) { return element(index(p, 0), p[2], 4); }},
    };
    for (std::size_t k = 0; k < forms.size(); ++k) {
        INFO("form " << k);
        const Array r = evaluated(forms[k].y, {x, i}, {data, list});
        REQUIRE(r.shape() == forms[k].shape);
        for (std::int64_t n = 0; n < r.size(); ++n) {
            Dims place(r.shape().size());
            std::int64_t rest = n;
            for (std::size_t d = place.size(); d-- > 0; rest /= r.shape()[d]) place[d] = rest % r.shape()[d];
            CHECK(r.at(n) == forms[k].at(place));
        }
    }
}

TEST_CASE("scatter sums what met in one row") {
    const Array g = sample(float32, {4, 2});
    for (const DType dtype : {float32, float64, int8, uint8, int64}) {
        const Array part = sample(dtype, {4, 2}), indices(std::vector<std::int32_t>{2, 0, 2, 2});
        const NodePtr node =
            make_node(scatter_op(), {matrix("g", dtype).node(), ivector("i").node()}, {{"extent", Int(3)}});
        const Array r = require_nest_matches(node, {part, indices});
        CHECK(r.shape() == Dims{3, 2});
        CHECK(r.at(2) == 0);
    }
    const NodePtr single =
        make_node(scatter_op(), {vector("g").node(), lscalar("i").node()}, {{"extent", Int(3)}});
    require_nest_matches(single, {counting(2), Array(std::int64_t{1})});
    const NodePtr two =
        make_node(scatter_op(), {tensor3("g").node(), imatrix("i").node()}, {{"extent", Int(3)}});
    require_nest_matches(two,
                         {sample(float32, {2, 2, 3}), Array(std::vector<std::int32_t>{1, 1, 0, 1}, {2, 2})});
}

TEST_CASE("place_slice puts a part back among zeros") {
    for (const std::int64_t step : {1, 2, 3, -1, -2})
        for (const std::int64_t count : {0, 1, 3}) {
            const Int start = step > 0 ? 1 : 8;
            const NodePtr node = make_node(place_slice_op(), {input(int8, Dims{count, 2}, "g").node()},
                                           {{"start", std::vector<Int>{start, 0}},
                                            {"step", std::vector<std::int64_t>{step, 1}},
                                            {"shape", std::vector<Int>{10, 2}}});
            require_nest_matches(node, {sample(int8, {count, 2})});
        }
}

TEST_CASE("one_hot") {
    for (const DType dtype : {int8, uint8, int32, int64}) {
        const Expr labels = input(dtype, 1, "labels");
        const Expr hot = one_hot(labels, 4);
        CHECK(hot.dtype() == float32);
        CHECK(numbers(evaluated(hot, {labels}, {Array(std::vector<int>{2, 0}).as(dtype)})) ==
              std::vector<double>{0, 0, 1, 0, 1, 0, 0, 0});
    }
    CHECK_THROWS_AS(one_hot(vector("x"), 3), TypeError);
}

TEST_CASE("gradients of indexing") {
    const Array x = sample(float64, {5, 3}, 7);
    for (const bool symbolic : {false, true}) {
        const auto check = [&](const std::function<Expr(const std::vector<Expr>&)>& f,
                               std::vector<Array> values) { require_gradient(f, values, symbolic); };
        check([](const auto& v) { return v[0][Slice{1, 4}]; }, {x});
        check([](const auto& v) { return v[0][{Slice{.step = 2}, Slice{.step = -1}}]; }, {x});
        check([](const auto& v) { return v[0][{-2, Slice{0, 2}}]; }, {x});
        check([](const auto& v) { return v[0][{colon, 1}]; }, {x});
        check([](const auto& v) { return rows(v[0], v[1], 2); }, {x, Array(std::int64_t{3})});
        check([](const auto& v) { return v[0][Slice{v[1], v[1] + 4}]; }, {x, Array(std::int64_t{3})});
        check([](const auto& v) { return v[0][v[1]]; }, {x, Array(2)});
        check([](const auto& v) { return v[0][v[1]]; }, {x, Array(std::vector<std::int64_t>{4, 4, 0, 2})});
        check(
            [](const auto& v) {
                return v[0][{Slice{1, {}}, v[1]}];
            },
            {x, Array(std::vector<std::int64_t>{2, 2, 0, 2})});
    }
}

TEST_CASE("messages of indexing") {
    const Expr x = input(float32, Dims{3, 4}, "x"), v = vector("v"), i = lvector("i");
    CHECK_THAT(message_of<IndexError>([&] { (void)x[3]; }),
               ContainsSubstring("index 3 is out of range for axis 0"));
    CHECK_THAT(message_of<IndexError>([&] {
                   (void)x[{0, -5}];
               }),
               ContainsSubstring("index -5 is out of range for axis 1"));
    CHECK_THAT(message_of<TypeError>([&] { (void)x[1.5]; }),
               ContainsSubstring("must have an integer dtype; write cast(1.5, int64)"));
    CHECK_THAT(message_of<IndexError>([&] {
                   (void)x[{0, 0, 0}];
               }),
               ContainsSubstring("has only 2 axes, but 3 indices"));
    CHECK_THAT(message_of<IndexError>([&] {
                   (void)x[{i, i}];
               }),
               ContainsSubstring("stand on axes 0 and 1") && ContainsSubstring("only one index may be one"));
    CHECK_THAT(message_of<IndexError>([&] {
                   (void)input(float32, Dims{2, 3, 4}, "x")[{0, colon, i}];
               }),
               ContainsSubstring("the number on axis 0 and the integer tensor on axis 2") &&
                   ContainsSubstring("x[{0, colon}][{colon, indices}]"));
    CHECK_THAT(
        message_of<IndexError>([&] {
            evaluated(x[{colon, i}], {x, i}, {sample(float32, {3, 4}), Array(std::vector<std::int64_t>{4})});
        }),
        ContainsSubstring("index_test.cpp:") && ContainsSubstring("out of range"));
    CHECK_THAT(message_of<TypeError>([&] { (void)x[{colon, v}]; }), ContainsSubstring("integer dtype"));
    CHECK_THAT(message_of<TypeError>([&] { (void)x[v]; }), ContainsSubstring("write cast(v, int64)"));
    CHECK_THAT(message_of<TypeError>([&] { (void)x[v > 0]; }), ContainsSubstring("use where"));
    CHECK_THAT(message_of<IndexError>([&] { (void)x[Slice{.step = 0}]; }),
               ContainsSubstring("the step cannot be 0"));
    CHECK_THAT(message_of<TypeError>([&] { (void)x[Slice{0.5}]; }),
               ContainsSubstring("must be an integer scalar"));
    const Shared n = shared(Array(2), "n");
    CHECK_THAT(message_of<GraphError>([&] {
                   (void)x[Slice{{}, Expr(n)}];
               }),
               ContainsSubstring("rows(x, start, count)"));
    CHECK_THAT(message_of<IndexError>([&] { rows(x, 2, 2); }), ContainsSubstring("rows 2 to 3 of"));
    CHECK_THAT(message_of<IndexError>([&] { (void)x[range(-1, 1)]; }), ContainsSubstring("rows -1 to 0 of"));
    CHECK_THAT(message_of<IndexError>([&] { rows(x, lscalar("s"), 4); }),
               ContainsSubstring("are out of range"));
    CHECK_THAT(message_of<TypeError>([&] { gather(x, v); }), ContainsSubstring("integer dtype"));
    CHECK_THAT(message_of<IndexError>([&] {
                   gather(input(float32, Dims{0, 2}, "none"), input(int32, Dims{3}, "k"));
               }),
               ContainsSubstring("no rows"));
    CHECK_THROWS_AS(gather(scalar("s"), i), ShapeError);
    // Unknown lengths: the call decides.
    const Expr fifth = v[4], last = v[-1];
    CHECK(fifth.node()->inputs[0]->op->equalities(*fifth.node()->inputs[0]).size() == 1);
    CHECK(last.node()->inputs[0]->op->equalities(*last.node()->inputs[0]).size() == 1);
}
