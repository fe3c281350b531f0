// Views: results by hand, index maps against the oracle, gradients, messages.
#include "ops/shape/view.h"

#include "ops/shape/gather.h"
#include "ops/shape/join.h"
#include "ops/shape/sequence.h"
#include "ops/shape/slice.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Expr known(const Array& x, const std::string& name = "x") { return input(x.dtype(), x.shape(), name); }

}  // namespace

TEST_CASE("reshape keeps the elements in row-major order") {
    struct Case {
        Dims from, to;
    };
    const std::vector<Case> cases = {{{2, 3}, {3, 2}},       {{2, 3}, {6}},       {{6}, {2, 3}},
                                     {{}, {1, 1}},           {{1}, {}},           {{2, 3, 5}, {5, 6}},
                                     {{7, 1, 3}, {1, 7, 3}}, {{0, 3}, {3, 0, 2}}, {{4, 6}, {8, 3}},
                                     {{2, 3, 4}, {2, 12}}};
    for (const Case& c : cases)
        for (const DType dtype : {float32, int8, boolean}) {
            const Array x = sample(dtype, c.from);
            const NodePtr node = make_node(reshape_op(), {known(x).node()}, {{"shape", shape_of(c.to)}});
            REQUIRE(same(require_nest_matches(node, {x}), widened(x).reshaped(c.to)));
        }
}

TEST_CASE("joining and splitting axes beside others needs no division") {
    const Expr x = input(float32, Dims{-1, 2, 3, 4}, "x");
    const NodePtr joined = flatten(x, 2).node();
    CHECK(text_of(nest_of(*joined)).find("x.0") != std::string::npos);
    const NodePtr back = make_node(reshape_op(), {joined}, {{"shape", x.node()->type.shape}});
    const Nest nest = nest_of(*back);
    CHECK(text_of(nest.body).find("floordiv") == std::string::npos);
    CHECK(nest.body->at[0] == nest.parallel[0].variable);
    // The whole is divided by known lengths only, never by the unknown one.
    const Nest flat = nest_of(*joined);
    CHECK(flat.body->at[0] == flat.parallel[0].variable);
    require_nest_matches(joined, {sample(float32, {5, 2, 3, 4})});
    require_nest_matches(back, {sample(float32, {5, 24})});
}

TEST_CASE("reshape with symbolic lengths") {
    const Expr x = matrix("x");
    const Expr flat = reshape(x, {x.length(0) * x.length(1)});
    require_nest_matches(flat.node(), {sample(float32, {3, 5})});
    CHECK(flat.node()->op->equalities(*flat.node()).empty());
    const Expr rest = reshape(x, {x.length(0), -1, 1});
    CHECK(rest.shape_text() == "[x.0, x.1, 1]");
    const Expr pairs = reshape(x, {-1, 2});
    REQUIRE(pairs.node()->op->equalities(*pairs.node()).size() == 1);
    require_nest_matches(pairs.node(), {sample(float32, {3, 4})});
    require_nest_matches(pairs.node(), {sample(float32, {0, 4})});
    const Expr y = matrix("y");
    const Expr like = reshape(x, {y.length(0), y.length(1)});
    SymbolValues values{{type_of(y).shape[0].symbol_id(), 6}, {type_of(y).shape[1].symbol_id(), 2}};
    require_nest_matches(like.node(), {sample(float32, {3, 4})}, values);
}

TEST_CASE("reshape refuses what cannot fit") {
    const Expr x = input(float32, Dims{2, 3}, "x");
    const auto refused = [&](const std::vector<Expr>& shape, const char* text,
                             Where where = Where::current()) {
        CHECK_THAT(message_of<ShapeError>([&] { reshape(x, shape, where); }, where), ContainsSubstring(text));
    };
    refused({4, 2}, "6 elements cannot fill 8 places");
    refused({4, -1}, "6 elements are no multiple of 4");
    refused({-1, -1}, "only one length may be -1");
    refused({0, -1}, "write a number instead of -1");
    refused({-2, -3}, "cannot be negative");
    CHECK_THAT(message_of<GraphError>([&] { reshape(x, {shared(Array(6), "n")}); }),
               ContainsSubstring("on the device"));
}

TEST_CASE("flatten, expand_dims, squeeze, channel") {
    const Expr x = input(float32, Dims{2, 1, 3}, "x");
    CHECK(flatten(x).shape_text() == "[6]");
    CHECK(flatten(x, 2).shape_text() == "[2, 3]");
    CHECK(flatten(x, 3).shape_text() == "[2, 1, 3]");
    CHECK(flatten(scalar("s")).shape_text() == "[1]");
    CHECK(expand_dims(x, 0).shape_text() == "[1, 2, 1, 3]");
    CHECK(expand_dims(x, -1).shape_text() == "[2, 1, 3, 1]");
    CHECK(squeeze(x, 1).shape_text() == "[2, 3]");
    CHECK(squeeze(x, -2).shape_text() == "[2, 3]");
    CHECK(channel(input(float32, Dims{5}, "b")).shape_text() == "[1, 5, 1, 1]");
    CHECK_THAT(message_of<ShapeError>([&] { squeeze(x, 0); }), ContainsSubstring("has the length 2"));
    CHECK_THAT(
        message_of<ShapeError>([] { squeeze(matrix("scores"), 1); }),
        ContainsSubstring("; declare the axis with length 1, or take its element 0: scores[{colon, 0}]"));
    CHECK_THAT(message_of<ShapeError>([] { squeeze(matrix("scores"), 0); }), ContainsSubstring("scores[0]"));
    CHECK_THAT(message_of<ShapeError>([] {
                   reshape(matrix("scores"), {-1, -1});
               }),
               ContainsSubstring("reshape of \"scores\" (float32 [scores.0, scores.1]) at ") &&
                   ContainsSubstring(" to [-1, -1]: only one length may be -1"));
    CHECK_THAT(message_of<ShapeError>([&] { channel(x); }), ContainsSubstring("a vector [c]"));
    CHECK_THAT(message_of<ShapeError>([&] { flatten(x, 4); }), ContainsSubstring("from 1 to 3"));
    CHECK_THAT(message_of<IndexError>([&] { expand_dims(x, 4); }),
               ContainsSubstring("no axis 4; of the result, axes are 0 to 3, or -1 to -4"));
}

TEST_CASE("transpose") {
    const Array x = sample(int16, {2, 3, 4});
    const Expr e = known(x);
    CHECK(transpose(e).shape_text() == "[4, 3, 2]");
    CHECK(transpose(e, {0, -1, 1}).shape_text() == "[2, 4, 3]");
    require_nest_matches(transpose(e).node(), {x});
    const Array r = require_nest_matches(transpose(e, {1, 2, 0}).node(), {x});
    CHECK(r.at((2 * 4 + 1) * 2 + 1) == x.at((1 * 3 + 2) * 4 + 1));
    require_nest_matches(transpose(tensor3("t")).node(), {sample(float32, {3, 0, 2})});
    CHECK_THAT(message_of<ShapeError>([&] {
                   transpose(e, {0, 1});
               }),
               ContainsSubstring("name each axis once"));
    CHECK_THAT(message_of<ShapeError>([&] {
                   transpose(e, {0, 1, 1});
               }),
               ContainsSubstring("are not a permutation of its 3 axes"));
    CHECK_THROWS_AS(transpose(e, {0, 1, 3}), IndexError);
}

TEST_CASE("expand repeats axes of length one and missing ones") {
    struct Case {
        Dims from, to;
    };
    for (const Case& c : std::vector<Case>{{{}, {2, 3}},
                                           {{3}, {2, 3}},
                                           {{2, 1}, {2, 3}},
                                           {{1, 3}, {4, 0, 3}},
                                           {{1}, {1}},
                                           {{1, 1}, {5, 1}}})
        for (const DType dtype : {float64, uint8, boolean}) {
            const Array x = sample(dtype, c.from);
            require_nest_matches(make_node(expand_op(), {known(x).node()}, {{"shape", shape_of(c.to)}}), {x});
        }
    const Expr x = matrix("x"), row = vector("row");
    const Expr wide = broadcast_to(row, {x.length(0), x.length(1)});
    REQUIRE(wide.node()->op->equalities(*wide.node()).size() == 1);
    require_nest_matches(wide.node(), {sample(float32, {3})},
                         {{type_of(x).shape[0].symbol_id(), 2}, {type_of(x).shape[1].symbol_id(), 3}});
    const Expr fixed = input(float32, Dims{2, 3}, "fixed");
    CHECK_THAT(message_of<ShapeError>([&] {
                   broadcast_to(fixed, {3, 3});
               }),
               ContainsSubstring("cannot be broadcast to [3, 3]"));
    CHECK_THROWS_AS(broadcast_to(fixed, {3}), ShapeError);
}

TEST_CASE("flip") {
    const Array x = sample(float32, {3, 4});
    const Array r = require_nest_matches(flip(known(x), -1).node(), {x});
    CHECK(r.at(0) == x.at(3));
    require_nest_matches(flip(matrix("m"), 0).node(), {x});
    require_nest_matches(flip(matrix("m"), 0).node(), {sample(float32, {0, 2})});
}

TEST_CASE("concatenate") {
    for (const DType dtype : {float32, int64, boolean}) {
        const Array a = sample(dtype, {2, 3}, 1), b = sample(dtype, {2, 1}, 2), c = sample(dtype, {2, 0}, 3),
                    d = sample(dtype, {2, 2}, 4);
        const Expr joined = concatenate({known(a), known(b), known(c), known(d)}, 1);
        CHECK(joined.shape_text() == "[2, 6]");
        require_nest_matches(joined.node(), {a, b, c, d});
    }
    const Array a = sample(float32, {2, 3}), b = sample(float32, {4, 3}, 5);
    CHECK(numbers(require_nest_matches(concatenate({matrix("a"), matrix("b")}).node(), {a, b}).rows(2, 6)) ==
          numbers(b));
    require_nest_matches(concatenate({matrix("a"), matrix("b")}).node(), {sample(float32, {0, 3}), b});
    require_nest_matches(concatenate({matrix("a")}).node(), {a});
    CHECK_THAT(message_of<TypeError>([] {
                   concatenate({matrix("a"), imatrix("b")});
               }),
               ContainsSubstring("write cast(b, float32)"));
    CHECK_THAT(message_of<TypeError>([] {
                   concatenate({imatrix("a"), matrix("b")});
               }),
               ContainsSubstring("write cast(a, float32)"));
    CHECK_THAT(message_of<ShapeError>([&] {
                   concatenate({known(a), known(b)}, 1);
               }),
               ContainsSubstring(
                   "all other axes must have equal lengths, but axis 0 of the first operand has length 2"));
    CHECK_THAT(message_of<ShapeError>([&] {
                   concatenate({known(a), vector("v")});
               }),
               ContainsSubstring("the ranks differ, 2 and 1; write expand_dims(v, 0)"));
    CHECK_THAT(message_of<ShapeError>([&] {
                   concatenate({vector("v"), known(a)});
               }),
               ContainsSubstring("the ranks differ, 1 and 2; write expand_dims(v, 0)"));
    CHECK_THAT(message_of<ShapeError>([&] {
                   concatenate({tensor3("t"), vector("v")});
               }),
               Catch::Matchers::EndsWith("the ranks differ, 3 and 1"));
    CHECK_THROWS_AS(concatenate({}), ShapeError);
}

TEST_CASE("pad") {
    for (const DType dtype : {float32, int8, uint64}) {
        const Array x = sample(dtype, {2, 3});
        const Array r = require_nest_matches(pad(known(x), {{1, 0}, {0, 2}}, 3).node(), {x});
        CHECK(r.shape() == Dims{3, 5});
        CHECK(r.at(0) == 3);
        CHECK(r.at(5) == widened(x).at(0));
        CHECK(r.at(8) == 3);
    }
    require_nest_matches(pad(matrix("x"), {{2, 1}, {1, 1}}, -1.5).node(), {sample(float32, {1, 2})});
    require_nest_matches(pad(matrix("x"), {{2, 1}, {0, 0}}).node(), {sample(float32, {0, 2})});
    require_nest_matches(pad(matrix("x"), {{0, 0}, {0, 0}}).node(), {sample(float32, {2, 2})});
    const Expr bytes = input(int8, Dims{2}, "bytes");
    CHECK_THAT(message_of<TypeError>([&] { pad(bytes, {{1, 1}}, 300); }), ContainsSubstring("does not fit"));
    CHECK_THROWS_AS(pad(bytes, {{1, 1}}, 0.5), TypeError);
    CHECK_THAT(message_of<ShapeError>([&] {
                   pad(bytes, {{-1, 1}});
               }),
               ContainsSubstring("cannot be negative"));
    CHECK_THAT(message_of<ShapeError>([&] {
                   pad(bytes, {{1, 1}, {1, 1}});
               }),
               ContainsSubstring("each of its 1 axes"));
}

TEST_CASE("iota, length and range") {
    CHECK(numbers(require_nest_matches(make_iota(4, {}), {})) == std::vector<double>{0, 1, 2, 3});
    CHECK(require_nest_matches(make_iota(0, {}), {}).shape() == Dims{0});
    const Expr x = vector("x");
    require_nest_matches(make_length(type_of(x).shape[0] * 2 + 1, {}), {},
                         {{type_of(x).shape[0].symbol_id(), 5}});
    CHECK(is_constant(make_length(7, {})));
    CHECK(numbers(evaluated(range(3, 7))) == std::vector<double>{3, 4, 5, 6});
    CHECK(evaluated(range(7, 3)).shape() == Dims{0});
    const Expr i = lscalar("i");
    const Expr batch = range(i * 128, (i + 1) * 128);
    CHECK(batch.shape_text() == "[128]");
    CHECK(batch.dtype() == int64);
    CHECK(evaluated(batch, {i}, {Array(std::int64_t{2})}).at(5) == 261);
    const NodePtr simple = batch.node()->op->decompose(batch.node());
    CHECK(evaluated(wrap(simple), {i}, {Array(std::int64_t{2})}).at(5) == 261);
}

TEST_CASE("every dtype moves through every view") {
    for (const DType dtype : all_dtypes) {
        const Array x = sample(dtype, {3, 2});
        const Expr e = known(x);
        const Array indices = Array(std::vector<std::int64_t>{2, 0, 2});
        require_nest_matches(reshape(e, {2, 3}).node(), {x});
        require_nest_matches(transpose(e).node(), {x});
        require_nest_matches(broadcast_to(e, {2, 3, 2}).node(), {x});
        require_nest_matches(flip(e, 0).node(), {x});
        require_nest_matches(e[Slice{.step = -2}].node(), {x});
        require_nest_matches(concatenate({e, e}).node(), {x, x});
        require_nest_matches(pad(e, {{1, 1}, {0, 1}}, 1).node(), {x});
        require_nest_matches(gather(e, known(indices, "i")).node(), {x, indices});
        require_nest_matches(make_node(rows_op(), {e.node(), lscalar("s").node()}, {{"count", Int(2)}}),
                             {x, Array(std::int64_t{1})});
        require_nest_matches(
            make_node(place_rows_op(), {e.node(), lscalar("s").node()}, {{"extent", Int(6)}}),
            {x, Array(std::int64_t{1})});
        CHECK(zeros_like(e).dtype() == dtype);
        CHECK(numbers(evaluated(zeros_like(e), {e}, {x})) == std::vector<double>(6, 0));
        CHECK(numbers(evaluated(ones_like(e), {e}, {x})) == std::vector<double>(6, 1));
    }
}

TEST_CASE("gradients of views") {
    const std::vector<Array> x = {sample(float64, {2, 3}, 3)};
    for (const bool symbolic : {false, true}) {
        require_gradient([](const auto& v) { return flatten(v[0]); }, x, symbolic);
        require_gradient([](const auto& v) { return transpose(v[0]); }, x, symbolic);
        require_gradient([](const auto& v) { return flip(v[0], 1); }, x, symbolic);
        require_gradient([](const auto& v) { return pad(v[0], {{1, 0}, {2, 1}}, 4); }, x, symbolic);
        require_gradient([](const auto& v) { return concatenate({v[0], v[0] * 2, v[0]}, 1); }, x, symbolic);
        require_gradient(
            [](const auto& v) {
                return broadcast_to(v[0], {4, v[0].length(0), v[0].length(1)});
            },
            x, symbolic);
    }
    require_gradient([](const auto& v) { return broadcast_to(v[0], {2, 3}); }, {sample(float64, {2, 1})});
    require_gradient([](const auto& v) { return broadcast_to(v[0], {2, 3}); }, {sample(float64, {})});
}
