// Expressions: lines, shapes, broadcasting, lengths, shared variables, long chains.
#include <pthread.h>

#include <cstdlib>
#include <functional>
#include <memory>

#include "bitale/dlpack.h"
#include "bitale/function.h"
#include "graph/ir/dlpack_abi.h"
#include "graph/ir/shared.h"
#include "graph/show/dot.h"
#include "graph/walk/length.h"
#include "graph/walk/traverse.h"
#include "tests/support/gradient_check.h"

using namespace bitale;
using namespace bitale::test;

namespace {

unsigned line_of(const Expr& x) { return x.where().line; }

// Runs f on a thread with a stack of 1 MB.
template <class F>
void on_small_stack(F f) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_t thread;
    const auto start = [](void* p) -> void* {
        (*static_cast<F*>(p))();
        return nullptr;
    };
    // Catch counts assertions of one thread at a time: none is made here while the other one runs.
    const int refused = pthread_create(&thread, &attributes, start, &f);
    if (refused == 0) pthread_join(thread, nullptr);
    REQUIRE(refused == 0);
    pthread_attr_destroy(&attributes);
}

}  // namespace

TEST_CASE("nodes know the user's line") {
    const Expr x = matrix("x"), y = matrix("y");
    const unsigned line = __LINE__;
    const Expr a = x + y;
    const Expr b = 2 * x;
    const Expr c = -x;
    const Expr d = exp(x);
    const Expr e = maximum(x, 0);
    const Expr f = cast(x, float64);
    const Expr g = where(x > y, x, 0.0);
    const Expr h = x.length(0);
    CHECK(line_of(a) == line + 1);
    CHECK(line_of(b) == line + 2);
    CHECK(line_of(c) == line + 3);
    CHECK(line_of(d) == line + 4);
    CHECK(line_of(e) == line + 5);
    CHECK(line_of(f) == line + 6);
    CHECK(line_of(g) == line + 7);
    CHECK(line_of(h) == line + 8);
    CHECK(std::string(a.where().file).find("dsl_test.cpp") != std::string::npos);
    const Shared s = shared(Array(1.0F), "s");
    const Expr i = x * s;
    CHECK((line_of(i) == line + 19 || line_of(i) == line + 20));
    CHECK(line_of(x) == line - 1);
}

TEST_CASE("a number is a rank, a list in braces a shape") {
    const std::int64_t n = 8;
    CHECK(input(float32, 3, "x").shape_text() == "[x.0, x.1, x.2]");
    CHECK(input(float32, {8}, "x").shape_text() == "[8]");
    CHECK(input(float32, {n}, "x").shape_text() == "[8]");
    CHECK(input(float32, {-1}, "x").shape_text() == "[x.0]");
    CHECK(input(float32, {n, -1}, "x").shape_text() == "[8, x.1]");
    CHECK(input(float32, {}, "x").shape_text() == "[]");
    CHECK(input(float32, Dims{}, "x").rank() == 0);
    const unsigned line = __LINE__;
    CHECK(line_of(input(float32, 2, "x")) == line + 1);
    CHECK_THAT(message_of<ShapeError>([] { input(float32, -1, "x"); }),
               ContainsSubstring("input \"x\": the rank must be at least 0, but is -1"));
    CHECK_THAT(message_of<ShapeError>([] { input(float32, std::int64_t{1} << 32, "x"); }),
               ContainsSubstring("at most 64 axes; a length is written in braces: {4294967296}"));
}

// Of a mistake in a table of them: the line is that of the table.
template <class E>
std::string said(const std::function<void()>& mistake) {
    try {
        mistake();
    } catch (const E& e) {
        return e.what();
    }
    return "";
}

TEST_CASE("errors name the line, the operands and the cure") {
    const Expr x = input(float32, Dims{2, 3}, "x"), y = input(float32, Dims{4, 3}, "y");
    const std::string line = "dsl_test.cpp:" + std::to_string(__LINE__ + 1);
    const std::string message = message_of<ShapeError>([&] { x + y; });
    CHECK_THAT(message, ContainsSubstring(line + ": add of "));
    CHECK_THAT(message, ContainsSubstring("\"x\" (float32 [2, 3]) at dsl_test.cpp"));
    CHECK_THAT(message, ContainsSubstring("\"y\" (float32 [4, 3])"));
    CHECK_THAT(message, ContainsSubstring("cannot be broadcast together: axis 0 of \"x\" has length 2 and "
                                          "axis 0 of \"y\" has length 4; only an axis of length 1"));
    CHECK_THAT(message_of<GraphError>([&] { x + Expr(); }),
               ContainsSubstring("add: an operand is an empty expression"));
    CHECK_THROWS_WITH(Expr().dtype(), ContainsSubstring("empty expression"));
    CHECK_THAT(message_of<IndexError>([&] { x.length(2); }),
               ContainsSubstring("no axis 2; axes are 0 and 1, or -1 and -2"));
    CHECK_THAT(message_of<ShapeError>([] {
                   input(float32, Dims{2, -2}, "z");
               }),
               ContainsSubstring("[2, -2]"));
    // n and n + 1 are never equal.
    const Expr v = vector("v");
    CHECK_THROWS_AS(v + concatenate({v, constant(Array(std::vector<float>{1}))}), ShapeError);
}

TEST_CASE("dtypes that do not mix are named with their operands and the cast to write") {
    const Expr n = vector("n", int64), m = vector("m", int16), u = vector("u", uint64),
               c = vector("c", boolean), d = vector("d", float64), x = vector("x"), h = vector("h", float16);
    const auto says = [](const std::function<void()>& mistake, const std::string& operands,
                         const std::string& cure) {
        CHECK_THAT(said<TypeError>(mistake), ContainsSubstring("dsl_test.cpp:") &&
                                                 ContainsSubstring(": " + operands) &&
                                                 ContainsSubstring(cure));
    };
    says([&] { n* d; },
         "mul of \"n\" (int64 [n.0]) at dsl_test.cpp:", "and \"d\" (float64 [d.0]) at dsl_test.cpp:");
    for (const auto& mistake : std::vector<std::function<void()>>{
             [&] { n* d; }, [&] { d - n; }, [&] { maximum(d, n); }, [&] { where(c, n, d); },
             [&] { where(c, d, n); }, [&] { clip(n, d, 1); }, [&] { n* Array(2.5); }})
        says(mistake, "", "do not mix; write cast(n, float64)");
    says([&] { u + n; }, "add of ", "uint64 and int64 do not mix; write cast(u, int64)");
    says([&] { m + u; }, "add of ", "int16 and uint64 do not mix; write cast(u, int64)");
    says([&] { exp(d) * (m + 1); }, "mul of exp (float64 [d.0])", "write cast(m + 1, float64)");
    says([&] { x + h; }, "add of ", "float16 is for storage only; compute on cast(h, float32)");
    says([&] { bitwise_and(x, 3); }, "bitwise_and of \"x\" (float32 [x.0]) at dsl_test.cpp:",
         "and the number 3: it does not compute on float32; write cast(x, int32)");
}

TEST_CASE("an empty expression is an error with the user's line, wherever it stands") {
    const Expr none, x = matrix("x"), y = ivector("y");
    const std::vector<std::pair<const char*, std::function<void()>>> uses = {
        {"add", [&] { x + none; }},
        {"exp", [&] { exp(none); }},
        {"sum", [&] { sum(none); }},
        {"mean", [&] { mean(none, 1); }},
        {"dot", [&] { dot(x, none); }},
        {"matmul", [&] { matmul(none, x); }},
        {"conv2d", [&] { conv2d(none, x); }},
        {"max_pool", [&] { max_pool(none, 2); }},
        {"reshape",
         [&] {
             reshape(none, {2, 3});
         }},
        {"reshape",
         [&] {
             reshape(x, {none, 3});
         }},
        {"flatten", [&] { flatten(none, 2); }},
        {"transpose", [&] { transpose(none); }},
        {"expand_dims", [&] { expand_dims(none, 0); }},
        {"channel", [&] { channel(none); }},
        {"x[...]", [&] { none[0]; }},
        {"x[...]", [&] { x[none]; }},
        {"concatenate",
         [&] {
             concatenate({x, none});
         }},
        {"softmax", [&] { softmax(none); }},
        {"softmax_crossentropy", [&] { softmax_crossentropy(x, none); }},
        {"binary_crossentropy", [&] { binary_crossentropy(none, y); }},
        {"cast", [&] { cast(none, float32); }},
        {"cumsum", [&] { cumsum(none); }},
        {"sort", [&] { sort(none); }},
        {"rows", [&] { rows(x, 0, none); }},
    };
    for (const auto& [op, use] : uses) {
        INFO(op);
        CHECK_THAT(said<GraphError>(use),
                   ContainsSubstring("dsl_test.cpp:") &&
                       ContainsSubstring(std::string(": ") + op +
                                         ": an operand is an empty expression, a default Expr or one that"));
    }
}

TEST_CASE("a vector along the wrong axis comes with the view to write") {
    const Expr images = input(float32, {-1, 8, 16, 16}, "images"), b = input(float32, Dims{8}, "b");
    const auto says = [](const std::function<void()>& mistake, const char* words) {
        CHECK_THAT(said<ShapeError>(mistake), ContainsSubstring(words));
    };
    says([&] { images* b; }, "mul of \"images\" (float32 [images.0, 8, 16, 16]) at dsl_test.cpp:");
    says([&] { images + b; },
         "axis 3 of \"images\" has length 16 and axis 0 of \"b\" has length 8; for a number for each channel "
         "write channel(b)");
    says([&] { b + images; }, "write channel(b)");
    says([&] { input(float32, {8, 3, 4}, "x") + b; }, "for each row write reshape(b, {-1, 1, 1})");
    says([&] { input(float32, {8, 3}, "x") + b; }, "write expand_dims(b, 1)");
    says([&] { input(float32, {2, 3, 8, 5}, "x") + b; }, "for each place of axis 2 write expand_dims(b, 1)");
    says(
        [&] {
            input(float32, {-1, -1, 4, 4}, "x") + b;
        },
        "if b has a number for each channel, write channel(b)");
    says([&] { input(float32, {2, 3, 4, 4}, "x") + b; }, "only an axis of length 1 is broadcast");
}

TEST_CASE("broadcasting") {
    const Expr x = tensor3("x"), row = input(float32, Dims{1, 5}, "row"), s = scalar("s");
    CHECK((x + row).shape_text() == "[x.0, x.1, 5]");
    CHECK((row + x).shape_text() == "[x.0, x.1, 5]");
    CHECK((x * s).shape_text() == "[x.0, x.1, x.2]");
    CHECK((s + 1).rank() == 0);
    const Expr column = input(float32, Dims{5, 1}, "column");
    CHECK((row + column).shape_text() == "[5, 5]");
    const Array a(std::vector<float>{1, 2, 3}, {1, 3}), b(std::vector<float>{10, 20}, {2, 1});
    CHECK(evaluated(constant(a) + constant(b)).to_vector<int>() == std::vector<int>{11, 12, 13, 21, 22, 23});
    // Two symbols are never broadcast; they must turn out equal.
    const Expr v = vector("v"), w = vector("w"), y = v + w;
    const std::vector<Equality> equalities = y.node()->op->equalities(*y.node());
    REQUIRE(equalities.size() == 1);
    CHECK(equalities[0].a.text() == "v.0");
    CHECK(equalities[0].b.text() == "w.0");
    CHECK_THAT(equalities[0].what, ContainsSubstring("\"v\" (float32 [v.0])") && ContainsSubstring("\"w\""));
    CHECK_THROWS_AS(evaluated(y, {v, w}, {Array(std::vector<float>{1}), Array(std::vector<float>{1, 2})}),
                    ShapeError);
    require_gradient([](const std::vector<Expr>& in) { return in[0] * in[1]; },
                     {Array(std::vector<double>{1, 2, 3}, {1, 3}), Array(std::vector<double>{1, 2}, {2, 1})});
}

TEST_CASE("lengths are arithmetic over integer scalars") {
    const Expr i = lscalar("i"), j = iscalar("j");
    const Int symbol = *length_of(i.node());
    CHECK(*length_of(((i + 1) * 128 - i * 128).node()) == Int(128));
    CHECK(*length_of(maximum(i, i + 1).node()) == symbol + 1);
    CHECK(*length_of(floordiv(i * 4 + 3, 4).node()) == symbol);
    CHECK(*length_of(((i * 4 + 3) % 4).node()) == Int(3));
    CHECK(*length_of((-cast(j, int64) + cast(j, int64) + 2).node()) == Int(2));
    CHECK(*length_of(floordiv(i, 0).node()) == Int(0));
    const Int by_zero = *length_of((i % (i * 2) + floordiv(7, i * 2)).node());
    CHECK(evaluate(by_zero, {{symbol.symbol_id(), 0}}) == 0);
    CHECK(evaluate(by_zero, {{symbol.symbol_id(), 2}}) == 2 + 1);
    const Int narrow = *length_of(cast(i, int8).node());
    CHECK(evaluate(narrow, {{symbol.symbol_id(), 300}}) == 44);
    CHECK(evaluate(narrow, {{symbol.symbol_id(), -300}}) == -44);
    CHECK(!length_of((i + cast(scalar("f"), int64)).node()));
    CHECK(range(i * 128, (i + 1) * 128).shape_text() == "[128]");

    const Expr x = matrix("x"), fixed = input(float32, Dims{-1, 7}, "fixed");
    CHECK(*length_of(x.length(-1).node()) == type_of(x).shape[1]);
    CHECK(x.length(0).dtype() == int64);
    CHECK(is_constant(fixed.length(1).node()));
    CHECK(evaluated(x.length(1) * 2, {x}, {Array(float32, {3, 4})}).item<int>() == 8);
    CHECK_THAT(message_of<GraphError>([&] { length_from(sum(cast(x, int32)), "rows", Where::current()); }),
               ContainsSubstring("rows: sum (int64 []) ") && ContainsSubstring("known on the device only"));
    CHECK_THAT(message_of<TypeError>([&] { length_from(x, "rows", Where::current()); }),
               ContainsSubstring("a length is an integer scalar"));
}

TEST_CASE("shared variables") {
    Shared w = shared(Array(std::vector<float>{1, 2}), "w");
    CHECK(w.name() == "w");
    CHECK(w.dtype() == float32);
    CHECK(w.shape() == Dims{2});
    Shared same_storage = w;
    same_storage.set_value(Array(std::vector<float>{3, 4}));
    CHECK(w.get_value().to_vector<int>() == std::vector<int>{3, 4});
    Array copy = w.get_value();
    static_cast<float*>(copy.mutable_data())[0] = 99;
    CHECK(w.get_value().at(0) == 3);
    CHECK(w.state()->version == 2);
    CHECK_THAT(
        message_of<TypeError>([&] {
            w.set_value(Array(std::vector<double>{1, 2}));
        }),
        ContainsSubstring("set_value of the shared variable \"w\"") &&
            ContainsSubstring("it holds float32, the value is float64; convert it, as in value.as(float32)"));
    CHECK_THAT(message_of<ShapeError>([&] { w.set_value(Array(std::vector<float>{1})); }),
               ContainsSubstring("its shape is [2], that of the value [1]"));
    CHECK_THROWS_WITH(Shared().get_value(), ContainsSubstring("empty shared variable"));
    CHECK(w.get_value().to_vector<int>() == std::vector<int>{3, 4});
    // A device that holds a newer value brings it when it is asked for.
    SharedState& state = *w.state();
    state.fetch = [&state] { state.value = Array(std::vector<float>{7, 8}); };
    CHECK(w.get_value().to_vector<int>() == std::vector<int>{7, 8});
    CHECK(evaluated(Expr(w) * 2).to_vector<int>() == std::vector<int>{14, 16});
}

TEST_CASE("names, debugprint and pictures") {
    const Expr x = vector("x");
    const Expr h = exp(x).named("hidden");
    CHECK(h.node()->name == "hidden");
    CHECK(h.node()->op->name == "exp");
    CHECK(x.named("alias").node()->name == "alias");
    const Array values(std::vector<float>{1, 2});
    CHECK(evaluated(x.named("alias"), {x}, {values}).to_vector<int>() == std::vector<int>{1, 2});
    const Expr y = h * h + 1;
    const std::string text = debugprint(y);
    CHECK_THAT(text, ContainsSubstring("#1 add float32 [x.0] at dsl_test.cpp:"));
    CHECK_THAT(text, ContainsSubstring("\n  #2 mul float32 [x.0]"));
    CHECK_THAT(text, ContainsSubstring("\n    #3 exp float32 [x.0] \"hidden\""));
    CHECK_THAT(text, ContainsSubstring("\n      #4 input float32 [x.0] \"x\""));
    CHECK_THAT(text, ContainsSubstring("\n    #3 (exp above)\n"));
    CHECK_THAT(text, ContainsSubstring("constant float32 [] {value = {1}}"));
    const std::string picture = graphviz(Nodes{y.node()});
    CHECK_THAT(picture, ContainsSubstring("digraph bitale {"));
    CHECK_THAT(picture, ContainsSubstring("label=\"hidden = exp\\nfloat32 [x.0]\\ndsl_test.cpp:"));
    CHECK_THAT(picture, ContainsSubstring("n0 -> n1;") && ContainsSubstring("out0"));
}

TEST_CASE(
    "a chain of 100,000 nodes is built, printed, differentiated, evaluated and destroyed on a small stack") {
    bool done = false;
    on_small_stack([&] {
        const Expr x = vector("x", float64);
        {
            Expr y = x;
            for (int i = 0; i < 50'000; ++i) y = sin(y) * 1.5;
            CHECK(topological({y.node()}).size() > 100'000);
            CHECK(debugprint(y).size() > 1'000'000);
            const Expr g = grad(sum(y), x);
            const Array value = evaluated(g, {x}, {Array(std::vector<double>{0.5, -1})});
            CHECK(value.size() == 2);
        }
        done = true;
    });
    CHECK(done);
}

TEST_CASE("a variable and a constant hold copies of what another library lends") {
    // At the beginning of a page: at its end, from_dlpack itself would copy the elements, and free them.
    constexpr std::size_t page = 4096;
    const std::shared_ptr<void> memory(std::aligned_alloc(page, page), std::free);
    auto* elements = static_cast<float*>(memory.get());
    elements[0] = 1, elements[1] = 2;
    const Array lent = from_dlpack(to_dlpack(Array::adopt(float32, {2}, memory)));
    REQUIRE(lent.data() == elements);
    Shared created = shared(lent), set = shared(Array{0.F, 0.F});
    set.set_value(lent);
    const Expr constant_of_it = constant(lent);
    elements[1] = 9;
    CHECK(created.get_value().at(1) == 2);
    CHECK(set.get_value().at(1) == 2);
    CHECK(constant_of_it.node()->attributes.get<std::shared_ptr<const Array>>("value")->at(1) == 2);
}
