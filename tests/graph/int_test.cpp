// The integer algebra: identities proven when an expression is built, and random expressions against plain
// numbers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/types/index.h"
#include "graph/types/shape.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

constexpr int symbol_count = 4;

// An expression and what it should evaluate to, for some values of the symbols.
struct Sample {
    Int x;
    std::vector<std::int64_t> numbers;
};

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
    return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

class Generator {
  public:
    explicit Generator(unsigned seed) : random_(seed) {
        const IntRange ranges[symbol_count] = {{0, 9}, {1, 128}, {-20, 20}, {0, IntRange::highest}};
        for (int i = 0; i < symbol_count; ++i)
            symbols_.push_back(Int::symbol("s" + std::to_string(i), ranges[i]));
        constexpr int assignments = 12;
        for (int k = 0; k < assignments; ++k) {
            std::map<std::uint64_t, std::int64_t> values;
            for (int i = 0; i < symbol_count; ++i)
                values[symbols_[static_cast<std::size_t>(i)].symbol_id()] =
                    between(ranges[i].low, std::min<std::int64_t>(ranges[i].high, 60000));
            values_.push_back(values);
        }
    }

    Sample sample(int depth) {
        if (depth == 0) {
            if (between(0, 2) == 0) return of(between(-5, 12));
            return of(symbols_[static_cast<std::size_t>(between(0, symbol_count - 1))]);
        }
        const Sample a = sample(depth - 1);
        if (between(0, 3) == 0) {
            const std::int64_t c = between(0, 5) == 0 ? -between(1, 9) : between(1, 40);
            return between(0, 1) ? combine(a, of(c), floordiv(a.x, c), floor_divide)
                                 : combine(a, of(c), mod(a.x, c), [](std::int64_t x, std::int64_t y) {
                                       return x - y * floor_divide(x, y);
                                   });
        }
        const Sample b = sample(depth - 1);
        switch (between(0, 5)) {
            case 0: return combine(a, b, a.x + b.x, [](std::int64_t x, std::int64_t y) { return x + y; });
            case 1: return combine(a, b, a.x - b.x, [](std::int64_t x, std::int64_t y) { return x - y; });
            case 2:
                if (big(a) || big(b)) return a;
                return combine(a, b, a.x * b.x, [](std::int64_t x, std::int64_t y) { return x * y; });
            case 3:
                return combine(a, b, min(a.x, b.x),
                               [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
            case 4:
                return combine(a, b, max(a.x, b.x),
                               [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
            default: {  // a symbolic divisor that is never 0
                const Int divisor = max(b.x, 1);
                return combine(a, b, floordiv(a.x, divisor), [](std::int64_t x, std::int64_t y) {
                    return floor_divide(x, std::max<std::int64_t>(y, 1));
                });
            }
        }
    }

    const std::vector<std::map<std::uint64_t, std::int64_t>>& values() const { return values_; }
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }

  private:
    Sample of(const Int& x) {
        Sample s{x, {}};
        for (const auto& v : values_) s.numbers.push_back(evaluate(x, v));
        return s;
    }
    template <class F>
    Sample combine(const Sample& a, const Sample& b, const Int& x, F f) {
        Sample s{x, {}};
        for (std::size_t i = 0; i < a.numbers.size(); ++i) s.numbers.push_back(f(a.numbers[i], b.numbers[i]));
        return s;
    }
    static bool big(const Sample& s) {
        for (const std::int64_t n : s.numbers)
            if (std::abs(n) > 1'000'000'000) return true;
        return false;
    }

    std::mt19937 random_;
    std::vector<Int> symbols_;
    std::vector<std::map<std::uint64_t, std::int64_t>> values_;
};

}  // namespace

TEST_CASE("random expressions have the value of the same arithmetic on numbers, within their range") {
    for (unsigned seed = 1; seed <= 400; ++seed) {
        Generator generator(seed);
        const Sample s = generator.sample(static_cast<int>(seed % 4) + 1);
        const IntRange range = s.x.range();
        for (std::size_t i = 0; i < s.numbers.size(); ++i) {
            INFO("seed " << seed << ": " << s.x.text());
            REQUIRE(evaluate(s.x, generator.values()[i]) == s.numbers[i]);
            REQUIRE(range.low <= s.numbers[i]);
            REQUIRE(s.numbers[i] <= range.high);
        }
    }
}

TEST_CASE("equal forms are equal numbers, and ordering is total") {
    Generator generator(7);
    std::vector<Sample> samples;
    for (int i = 0; i < 60; ++i) samples.push_back(generator.sample(2));
    for (const Sample& a : samples)
        for (const Sample& b : samples) {
            CHECK((a.x <=> b.x == 0) == (a.x == b.x));
            if (a.x == b.x) CHECK(a.numbers == b.numbers);
            CHECK(((a.x < b.x) + (b.x < a.x) + (a.x == b.x)) == 1);
        }
}

TEST_CASE("long sums are put together and taken apart") {
    // Some of both, some of one alone, some that cancel, in orders of their own.
    std::vector<Int> symbols;
    for (int i = 0; i < 40; ++i) symbols.push_back(Int::symbol("n"));
    std::mt19937 random(5);
    const auto some = [&] {
        Int sum = static_cast<std::int64_t>(random() % 5) - 2;
        std::vector<std::int64_t> factors;
        for (const Int& s : symbols) {
            factors.push_back(static_cast<std::int64_t>(random() % 4) - 2);
            sum = sum + factors.back() * s;
        }
        return std::pair{sum, factors};
    };
    for (int round = 0; round < 50; ++round) {
        const auto [a, factors_of_a] = some();
        const auto [b, factors_of_b] = some();
        const std::int64_t times = static_cast<std::int64_t>(random() % 3) - 1;
        Int expected = a.constant_term() + times * b.constant_term();
        for (std::size_t i = symbols.size(); i-- > 0;)
            expected = expected + (factors_of_a[i] + times * factors_of_b[i]) * symbols[i];
        CHECK(a + times * b == expected);
        CHECK(a - b == a + Int(-1) * b);
        CHECK((a - b) + b == a);
        CHECK((a - a).is(0));
        CHECK((a + b) - b - a == 0);
    }
}

TEST_CASE("starts of many lengths have few terms, and the values of their sums") {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{65},
                                    std::size_t{257}, std::size_t{900}}) {
        CAPTURE(count);
        std::vector<Int> lengths;
        std::map<std::uint64_t, std::int64_t> values;
        Int sum = 0;
        for (std::size_t k = 0; k < count; ++k) {
            lengths.push_back(Int::symbol("n" + std::to_string(k)));
            values[lengths.back().symbol_id()] = static_cast<std::int64_t>(k * 7 % 5);
            sum = sum + lengths.back();
        }
        const std::vector<Int> starts = starts_of(lengths);
        REQUIRE(starts.size() == count + 1);
        std::int64_t expected = 0;
        for (std::size_t k = 0; k < count; ++k) {
            CHECK(evaluate(starts[k], values) == expected);
            CHECK(starts[k].terms().size() <= 64);
            CHECK(written_out_where_it_cancels(starts[k] + lengths[k] - starts[k + 1]).is(0));
            CHECK(written_out(starts[k + 1] - starts[k]) == lengths[k]);
            expected += values.at(lengths[k].symbol_id());
        }
        CHECK(evaluate(starts.back(), values) == expected);
        CHECK(written_out(starts.back()) == sum);
        CHECK(starts.back().text() == sum.text());
        CHECK(example_of(starts.back() + 1) > 0);
        if (count <= 64) continue;
        CHECK(starts.back().terms().size() == 1);
        CHECK(starts[count - 1].terms().size() < 40);
        // However they are put together, the end is the same.
        std::vector<Int> joined{starts_of({lengths.begin(), lengths.begin() + 65}).back()};
        joined.insert(joined.end(), lengths.begin() + 65, lengths.end());
        CHECK(starts_of(joined).back() == starts.back());
        // A length that is known later.
        const Substitution known{{lengths[3].symbol_id(), 5}};
        values[lengths[3].symbol_id()] = 5;
        CHECK(evaluate(substitute(starts.back(), known), values) == evaluate(starts.back(), values));
        CHECK(evaluate(substitute(starts[40], known), values) == evaluate(starts[40], values));
        CHECK(depends_on(starts[40], lengths[3].symbol_id()));
        CHECK(!depends_on(starts[40], lengths[41].symbol_id()));
    }
}

TEST_CASE("the parts of an axis are as long as the axis") {
    const Int n = Int::symbol("n"), k = Int::symbol("k", {-5, 9}), first = min(n, max(k, 0));
    CHECK(with_parts_joined(min(n, k) + max(0, n - k)) == n);
    CHECK(with_parts_joined(min(n, k) + max(0, k - n)) == k);
    CHECK(with_parts_joined(3 * min(n, k) + 3 * max(0, n - k) + k + 1) == 3 * n + k + 1);
    CHECK(starts_of({first, n - first}).back() == n);
    CHECK(starts_of({max(0, n - 1), min(n, 1), k}).back() == n + k);
    for (const Int& other : {min(n, k) + max(0, n - k - 1), min(n, k) + 2 * max(0, n - k), max(0, n - k)})
        CHECK(with_parts_joined(other) == other);
}

TEST_CASE("formulas that share parts are compared in time that grows with their depth") {
    constexpr int deep = 200;
    const Int n = Int::symbol("n");
    const auto nested = [&](int depth, int last) {
        Int x = n;
        for (int i = 0; i < depth; ++i) x = max(min(x, 2 * x - i), x - (i == last ? 3 : 2));
        return x;
    };
    const Int a = nested(deep, -1), b = nested(deep, -1), c = nested(deep, 9);
    CHECK(a == b);
    CHECK(a != c);
    CHECK((a < c) == !(c < a));
}

TEST_CASE("the length of a minibatch is proven") {
    const Int i = Int::symbol("i", {IntRange::lowest, IntRange::highest});
    CHECK((i + 1) * 128 - i * 128 == Int(128));
    CHECK(((i + 1) * 128 - i * 128).is(128));
    CHECK(i - i == Int(0));
    CHECK((i + 3) * (i - 3) == i * i - 9);
}

TEST_CASE("divisions that come out are carried out") {
    const Int n = Int::symbol("n"), k = Int::symbol("k", {0, 27});
    CHECK(floordiv(n * 28 + k, 28) == n);
    CHECK(mod(n * 28 + k, 28) == k);
    CHECK(floordiv(floordiv(n, 4), 7) == floordiv(n, 28));
    CHECK(floordiv(n * 6, 3) == n * 2);
    // What is less than the common divisor changes no quotient.
    const Int in_block = Int::symbol("in_block", {0, 63});
    CHECK(floordiv(n * 64 + in_block, 16384) == floordiv(n, 256));
    CHECK(floordiv(n * 64 + in_block + 64, 192) == floordiv(n + 1, 3));
    CHECK(floordiv(n * 64 - in_block, 16384) != floordiv(n, 256));
    CHECK(floordiv(n * 64 + in_block + 1, 16384) != floordiv(n, 256));
    CHECK(ceildiv(n * 8, 8) == n);
    CHECK(floordiv(Int(-7), 2).is(-4));
    CHECK(mod(Int(-7), 2).is(1));
    CHECK(mod(Int(7), -2).is(-1));
    CHECK(floordiv(n * k, n + 1).text() != "");
    CHECK(floordiv(n, 0).is(0));
}

TEST_CASE("splitting an index and joining it again is the identity") {
    const Int x = Int::symbol("x", {0, 783});
    const Int row = floordiv(x, 28), column = mod(x, 28);
    CHECK(row * 28 + column == x);
    CHECK(column.range().low == 0);
    CHECK(column.range().high == 27);
    CHECK(row.range().high == 27);
    const Int y = Int::symbol("y");  // any length
    CHECK(floordiv(y, 28) * 28 + mod(y, 28) == y);
    CHECK(floordiv(mod(y, 784), 28).range().high <= 27);
}

TEST_CASE("min and max are decided by ranges") {
    const Int a = Int::symbol("a", {0, 9}), b = Int::symbol("b", {20, 30});
    CHECK(min(a, b) == a);
    CHECK(max(a, b) == b);
    CHECK(max(a, 0) == a);
    CHECK(min(a, 9) == a);
    CHECK(min(a, 5) == min(Int(5), a));
    CHECK(max(a - b, 0).is(0));
}

TEST_CASE("symbols are replaced everywhere inside") {
    const Int n = Int::symbol("n"), m = Int::symbol("m");
    const Int x = floordiv(n + 5, 4) + min(n, 100) * 3;
    CHECK(depends_on(x, n.symbol_id()));
    CHECK_FALSE(depends_on(x, m.symbol_id()));
    CHECK(substitute(x, {{n.symbol_id(), Int(11)}}).is(4 + 33));
    const Int y = substitute(x, {{n.symbol_id(), m * 2}});
    CHECK(evaluate(y, {{m.symbol_id(), 60}}) == floor_divide(125, 4) + 300);
    REQUIRE(symbols_of(y).size() == 1);
    CHECK(symbols_of(y)[0]->id == m.symbol_id());
    CHECK_THROWS(evaluate(y, {}));
}

TEST_CASE("a copy stays what it was when the original is used on") {
    const Int x = Int::symbol("x", {0, 9}), y = Int::symbol("y", {0, 3});
    Int a = 2 * x + y + 1;
    const Int copy = a, longer = a + 5;
    a = a - y;
    CHECK(copy == 2 * x + y + 1);
    CHECK(longer - copy == 5);
    CHECK(a == 2 * x + 1);
    CHECK((copy - copy).is(0));
    CHECK((a - 2 * x).is(1));
    // Ranges of what is no polynomial are those of its operands.
    const Int q = floordiv(a * 3, 4), least = min(x, y * x);
    CHECK((q.range().low == 0 && q.range().high == 14));
    CHECK((least.range().low == 0 && least.range().high == 9));
    CHECK((max(q, least + 20).range().low == 20 && max(q, least + 20).range().high == 29));
}

TEST_CASE("two symbols of one name are different, a symbol of one value is that value") {
    CHECK_FALSE(Int::symbol("n") == Int::symbol("n"));
    CHECK(Int::symbol("one", {1, 1}).is(1));
}

TEST_CASE("lengths beyond 64 bits stay the last ones") {
    constexpr std::int64_t least = INT64_MIN, most = INT64_MAX;
    CHECK((Int(most) + 1).is(most));
    CHECK((Int(least) - 1).is(least));
    CHECK((Int(least) + least).is(least));
    CHECK((0 - Int(least)).is(most));
    CHECK((Int(1) - least).is(most));
    CHECK((Int(std::int64_t{1} << 62) * 4).is(most));
    CHECK((Int(std::int64_t{1} << 62) * -4).is(least));
    CHECK(floordiv(Int(least), -1).is(most));
    CHECK(floordiv(Int(least), 0).is(0));
    CHECK(max(Int(least) - 1, 0).is(0));
    CHECK(min(Int(least), most).is(least));
    const Int n = Int::symbol("n", {IntRange::lowest, IntRange::highest}),
              m = Int::symbol("m", {IntRange::lowest, IntRange::highest});
    CHECK(evaluate(max(m - n, 0), {{n.symbol_id(), 1}, {m.symbol_id(), least}}) == 0);
    CHECK(evaluate(n * m * 4, {{n.symbol_id(), most}, {m.symbol_id(), 2}}) == most);
    CHECK(substitute(n * 8 - 7, {{n.symbol_id(), Int(least)}}).is(least));
    // What is added and taken away again is gone all the same.
    CHECK((n + most + n - most - n - n).is(0));
    CHECK(substitute(n + m, {{n.symbol_id(), Int(most)}}) - most == m);
}

TEST_CASE("shapes print and count") {
    const Int n = Int::symbol("n");
    CHECK(text_of(Shape{n, 28, n * 2 + 1}) == "[n, 28, 2*n + 1]");
    CHECK(count_of(Shape{n, 28, 28}) == n * 784);
    CHECK_FALSE(is_static(Shape{n, 2}));
    CHECK(static_dims(Shape{3, 2}) == Dims{3, 2});
    CHECK(bytes_bound({float32, Shape{Int::symbol("b", {0, 128}), 10}}) == 128 * 10 * 4);
}

TEST_CASE("formulas that share parts over and over take time that is linear in their parts") {
    const Int n = Int::symbol("n"), m = Int::symbol("m", {1, 1000});
    Int x = n;
    for (int i = 0; i < 60; ++i) x = max(x + min(x, 1) + m - 2, 0);
    CHECK(x.text().find("...") != std::string::npos);
    CHECK(x.text().size() < 10'000);
    CHECK(symbols_of(x).size() == 2);
    CHECK(evaluate(x, {{n.symbol_id(), 5}, {m.symbol_id(), 1}}) == 5);
    CHECK(evaluate(x, {{n.symbol_id(), 5}, {m.symbol_id(), 2}}) == 65);
    CHECK(substitute(x, {{n.symbol_id(), 7}, {m.symbol_id(), 1}}).is(7));
    CHECK(hash_of(x) != hash_of(x + 1));
    const Int k = Int::symbol("k");
    CHECK(symbols_of(substitute(x, {{n.symbol_id(), k}})).size() == 2);
}
