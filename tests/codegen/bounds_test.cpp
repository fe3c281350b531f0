// Bounds of indices inside of loops whose lengths are not known, each against all values that it can have.
#include "codegen/kernel/bounds.h"

#include <cstdint>

#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

// p = 0 .. 6 * n - 1
struct Points {
    Points() {
        n = Int::symbol("n", {0, 1 << 20});
        p = Int::symbol("p", {0, std::int64_t{6} << 20});
        bounds.enter(loop(p, 0, 6 * n, Binding::serial, {}));
    }
    Int n, p;
    Bounds bounds;
};

}  // namespace

TEST_CASE("a quotient of a quotient by an unknown length is bounded") {
    Points k;
    const Int image = floordiv(floordiv(k.p, 2), k.n);
    CHECK(k.bounds.non_negative(image));
    CHECK(k.bounds.below(image, 4));
    CHECK(k.bounds.below(image, 3));
    CHECK_FALSE(k.bounds.below(image, 2));
    CHECK(k.bounds.below(floordiv(k.p, 2), 3 * k.n));
    CHECK_FALSE(k.bounds.below(floordiv(k.p, 2), 3 * k.n - 1));
    CHECK(k.bounds.non_negative(floordiv(k.p - 2, 2) + 1));
    CHECK_FALSE(k.bounds.non_negative(floordiv(k.p - 3, 2) + 1));
}

TEST_CASE("a quotient by 0 is 0, so a bound below 0 is none") {
    Points k;
    const Int m = Int::symbol("m", {0, 9});
    // For n = 0, floordiv(-7, n) is 0.
    CHECK_FALSE(k.bounds.non_negative(-1 - floordiv(Int(0) - 7, m)));
    CHECK(k.bounds.non_negative(-1 - floordiv(Int(0) - 7, m + 1)));
}

// Rows of a task, 64 at a time, and behind those that fill registers of 16 the rest.
TEST_CASE("the rows behind whole registers are bounded where the task's number is") {
    const Int n = Int::symbol("n", {0, 1 << 20}), task = Int::symbol("task", {0, 1 << 14}),
              row = Int::symbol("row", {0, 15}), rows = min(64, n - 64 * task),
              whole = 16 * floordiv(rows, 16);
    const auto inside = [&](const Int& tasks, const Int& behind) {
        Bounds bounds;
        bounds.enter(loop(task, 0, tasks, Binding::serial, {}));
        bounds.enter(loop(row, 0, behind, Binding::serial, {}));
        return bounds.non_negative(row + whole) && bounds.below(row + whole, 64);
    };
    CHECK(inside(ceildiv(n, 64), rows - whole));
    CHECK_FALSE(inside(ceildiv(n, 64) + 1, rows - whole));
    CHECK_FALSE(inside(ceildiv(n, 64), rows - whole + 1));
}

TEST_CASE("minima are bounded by both of their sides") {
    const Int n = Int::symbol("n", {0, 100}), i = Int::symbol("i", {0, 99});
    Bounds bounds;
    bounds.enter(loop(i, 0, n, Binding::serial, {}));
    CHECK(bounds.non_negative(min(7, n - 1 - i)));
    CHECK_FALSE(bounds.non_negative(min(7, n - 2 - i)));
    CHECK_FALSE(bounds.non_negative(min(-1, n - 1 - i)));
}

TEST_CASE("a remainder by a minimum is below it") {
    const Int task = Int::symbol("task", {0, 64}), p = Int::symbol("p", {0, 1000});
    const auto of_rows = [&](const Int& rows) { return p - floordiv(p, rows) * rows; };
    const Int last = min(2, 129 - 2 * task), empty = min(2, 128 - 2 * task);
    const Bounds bounds;
    CHECK(bounds.non_negative(of_rows(last)));
    CHECK(bounds.below(of_rows(last), 2));
    CHECK(bounds.below(of_rows(last), last));
    CHECK_FALSE(bounds.below(of_rows(last), 1));
    CHECK_FALSE(bounds.non_negative(of_rows(last) - 1));
    // By 0 the quotient is 0, and the rest is all of it.
    CHECK(bounds.non_negative(of_rows(empty)));
    CHECK_FALSE(bounds.below(of_rows(empty), 2));
}

TEST_CASE("indices are bounded by the guards around them") {
    Bounds bounds;
    const Int row = Int::symbol("row", {0, 1});
    bounds.enter(loop(row, 0, 2, Binding::serial, {}));
    const Int at = 3 * row + 1;  // 1 and 4
    CHECK_FALSE(bounds.below(at, 4));
    const std::vector<Guard> inside{{at, 0, 4}}, behind{{row, 1, 2}}, wider{{at, 0, 5}};
    bounds.assume(inside);
    CHECK(bounds.below(at, 4));
    CHECK(bounds.below(at - 1, 3));
    CHECK_FALSE(bounds.below(at, 3));
    CHECK(bounds.non_negative(3 - at));
    bounds.forget(inside);
    CHECK_FALSE(bounds.below(at, 4));
    bounds.assume(wider);
    CHECK_FALSE(bounds.below(at, 4));
    bounds.assume(behind);
    CHECK(bounds.non_negative(at - 1));
    CHECK_FALSE(bounds.non_negative(at - 5));
    bounds.forget(behind);
    bounds.forget(wider);
    CHECK_FALSE(bounds.non_negative(row - 1));
}
