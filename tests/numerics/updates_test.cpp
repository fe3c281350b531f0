// Updates of shared variables on the CPU device: everything reads the old values, in place or not.
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Outputs and new values of two calls.
std::vector<Array> two_calls(const std::string& device) {
    Random random(1);
    const Dims shape{7, 33};
    const Array first = random_array(float32, shape, random), second = random_array(float32, shape, random);
    Shared a = shared(first, "a"), b = shared(second, "b"), c = shared(first, "c"), d = shared(first, "d"),
           n = shared(Array(std::vector<std::uint16_t>{0, 1, 65535}), "n"), e = shared(second, "e");
    const Expr x(a), y(b), z(c), w(d), v(e);
    const Expr both = tanh(z * 3) + 1, whole = (Expr(n) * 3 + 1) % 17;
    Function f = function(
        {}, {both, both * 2, x, x + y, sum(w), dot(w, transpose(w)), v[{colon, Slice{.step = -1}}], whole},
        {.updates = {{a, y},  // a swap
                     {b, x},
                     {c, both},  // an output too
                     {d, w - mean(w, {0})},
                     {e, flip(v, 1) + sum(v)},  // reads other elements than it writes
                     {n, whole}},
         .device = device});
    std::vector<Array> all;
    for (int call = 0; call < 2; ++call) {
        const Results r = f.call({});
        for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
        for (const Shared& s : {a, b, c, d, e, n}) all.push_back(s.get_value());
    }
    return all;
}

}  // namespace

TEST_CASE("outputs and updates read the old values") {
    const std::vector<Array> got = two_calls(tested_device()), expected = two_calls("reference");
    for (std::size_t k = 0; k < got.size(); ++k) {
        INFO("value " << k % 14 << " of call " << k / 14);
        CHECK(difference(got[k], expected[k], {.absolute = 2e-5, .relative = 2e-5}) == "");
    }
}

TEST_CASE("a product is a new value, whoever reads the old one") {
    const auto two_calls_of_products = [](const std::string& device) {
        Random random(2);
        const Dims square{64, 64};
        const auto fresh = [&](const char* name) {
            return shared(random_array(float32, square, random, -0.2, 0.2), name);
        };
        // Large enough for a library: alone, read by an output, by another product, by itself, and twice.
        Shared x = fresh("x"), alone = fresh("alone"), shown = fresh("shown"), other = fresh("other"),
               own = fresh("own"), twice = fresh("twice"), old = fresh("old");
        const Expr product = dot(x, transpose(Expr(x))), by_old = dot(x, old);
        const Array kept = alone.get_value();
        Function f = function({}, {Expr(shown) * 2, by_old},
                              {.updates = {{alone, dot(transpose(Expr(x)), x)},
                                           {shown, dot(x, other)},
                                           {own, dot(own, x)},
                                           {twice, product},
                                           {other, product + Expr(other)},
                                           {old, by_old}},
                               .device = device});
        std::vector<Array> all;
        for (int call = 0; call < 2; ++call) {
            const Results r = f.call({});
            for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
            for (const Shared& s : {alone, shown, other, own, twice, old}) all.push_back(s.get_value());
        }
        all.push_back(kept);
        return all;
    };
    const std::vector<Array> got = two_calls_of_products(tested_device()),
                             expected = two_calls_of_products("reference");
    for (std::size_t k = 0; k < got.size(); ++k) {
        INFO("value " << k % 8 << " of call " << k / 8);
        CHECK(difference(got[k], expected[k], {.absolute = 2e-5, .relative = 2e-5}) == "");
    }
}

TEST_CASE("a product alone is computed where its shared variable is") {
    const Shared a = shared(zeros({64, 96}, float32), "a"), b = shared(zeros({96, 80}, float32), "b"),
                 c = shared(zeros({64, 80}, float32), "c");
    const Function f = function({}, {}, {.updates = {{c, dot(a, b)}}, .device = tested_device()});
    CHECK(f.report(Detail::complete).find("copy of") == std::string::npos);
}

// A long sum ends in the second phase of the last kernel, where new values are copied into their variables
// too: by tasks that may run at once.
TEST_CASE("new values that the last phase computes, or whose old ones it reads") {
    Random random(5);
    const Array numbers = random_array(float32, {300, 700}, random, -1, 1);
    const Expr x = matrix("x");
    const auto two_calls = [&](const std::string& device) {
        const Shared s = shared(Array(2.0f), "s"), t = shared(Array(3.0f), "t"), u = shared(Array(5.0f), "u"),
                     a = shared(Array(7.0f), "a"), b = shared(Array(11.0f), "b");
        const Expr all = sum(x), most = max(x);
        Function f =
            function({x}, {s * 2, all * t, a - b, tanh(all) + u},
                     {.updates = {{s, most}, {t, u * 2 + 1}, {u, all}, {a, b}, {b, a}}, .device = device});
        std::vector<Array> values;
        for (int call = 0; call < 2; ++call) {
            const Results r = f.call({&numbers, 1});
            for (std::size_t k = 0; k < r.size(); ++k) values.push_back(r[k]);
            for (const Shared& v : {s, t, u, a, b}) values.push_back(v.get_value());
        }
        return values;
    };
    const std::vector<Array> expected = two_calls("reference");
    for (int turn = 0; turn < 20; ++turn) {
        const std::vector<Array> got = two_calls(tested_device());
        for (std::size_t k = 0; k < got.size(); ++k) {
            INFO("value " << k % 9 << " of call " << k / 9);
            CHECK(difference(got[k], expected[k], {.absolute = 1e-3, .relative = 1e-5}) == "");
        }
    }
}

// Maxima and their positions come from one pass, wherever in the graph they stand: what reads the old value
// between the two still has to find it.
TEST_CASE("maxima are new values, whoever reads the old ones") {
    struct Case {
        bool channels_last;
        std::int64_t channels, window;
    };
    for (const Case& c : {Case{false, 5, 2}, Case{false, 5, 3}, Case{true, 16, 2}, Case{true, 16, 3}}) {
        const auto two_calls_of_pooling = [&](const std::string& device) {
            Random random(3);
            const Dims image = c.channels_last ? Dims{3, 17, 17, c.channels} : Dims{3, c.channels, 17, 17},
                       small{3, c.channels, 8, 8};
            const Array values = random_array(float32, image, random, -1, 1);
            Shared old = shared(random_array(float32, small, random, -1, 1), "old");
            const Expr weights = constant(random_array(float32, small, random, -1, 1)),
                       x = input(float32, image, "x"),
                       first = c.channels_last ? transpose(x, {0, 3, 1, 2}) : x,
                       pooled = max_pool(first, c.window, {.stride = 2}),
                       gradient = grad(sum(pooled * weights), x),
                       even = c.channels_last ? transpose(gradient, {0, 3, 1, 2}) : gradient;
            const Slice every_second{.start = 0, .stop = 16, .step = 2};
            const Expr reader = even[{colon, colon, every_second, every_second}] + Expr(old) * 3;
            Function f = function({x}, {gradient, reader}, {.updates = {{old, pooled}}, .device = device});
            std::vector<Array> all;
            for (int call = 0; call < 2; ++call) {
                const Results r = f(values);
                for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
                all.push_back(old.get_value());
            }
            return all;
        };
        const std::vector<Array> got = two_calls_of_pooling(tested_device()),
                                 expected = two_calls_of_pooling("reference");
        for (std::size_t k = 0; k < got.size(); ++k) {
            INFO(c.channels << " channels, windows of " << c.window << ", value " << k % 3 << " of call "
                            << k / 3);
            CHECK(difference(got[k], expected[k], {.absolute = 2e-5, .relative = 2e-5}) == "");
        }
    }
}
