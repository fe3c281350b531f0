// Places that have a part of a value: indices say which element of the whole value is meant, and a kernel
// that reads or writes another part than the task has is refused.
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/kernel/intrinsics.h"
#include "codegen/kernel/tails.h"
#include "graph/base/check.h"
#include "ops/registry.h"
#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

constexpr std::int64_t columns = 8;

// Tasks of some rows of a value with columns; a copy of the rows in scratch, or in a buffer.
struct KernelInParts {
    KernelInParts() {
        register_all_ops();
        task = Int::symbol("task", {0, 99});
        rows = Int::symbol("rows", {1, 400});
        sizes.insert(rows.symbol_id());
        ir.phases.resize(1);
        ir.phases[0].segments.resize(1);
        ir.phases[0].segments[0].task = task;
        ir.phases[0].segments[0].tasks = 100;
        out = add({Place::Scope::global, DType::float32, {rows, Int(columns)}, ir.buffers++, true});
    }

    int add(Place place) {
        ir.places.push_back(std::move(place));
        return static_cast<int>(ir.places.size()) - 1;
    }
    int copy(std::int64_t block, Place::Scope scope = Place::Scope::local) {
        const bool global = scope == Place::Scope::global;
        const int place = add({scope,
                               DType::float32,
                               {global ? rows : Int(block), Int(columns)},
                               global ? ir.buffers++ : -1,
                               true,
                               {{0, task * block, block}}});
        if (global) return place;
        body().push_back(declare(place));
        body().push_back(set(place, {task * block, Int(0)}, scalar_constant(DType::float32, 0)));
        return place;
    }
    Stmts& body() { return ir.phases[0].segments[0].body; }

    // out[to, j] = place[row, j] for all columns
    Stmt reads(int place, const Int& row, const Int& to = 0) {
        const Int j = Int::symbol("j", {0, columns - 1});
        return loop(j, 0, columns, Binding::simd,
                    {set(out, {to, j}, place_read(DType::float32, place, {row, j}))});
    }
    bool accepts(Stmts statements) {
        KernelIR whole = ir;
        append(whole.phases[0].segments[0].body, std::move(statements));
        try {
            verify(whole, sizes);
            return true;
        } catch (const InternalError&) {
            return false;
        }
    }

    KernelIR ir;
    std::set<std::uint64_t> sizes;  // symbols of the call
    Int task, rows;
    int out = -1;
};

}  // namespace

TEST_CASE("indices into scratch are those of the value, positions those from the task's part on") {
    KernelInParts k;
    const int one = k.copy(1), four = k.copy(4), memory = k.copy(4, Place::Scope::global);
    const auto offset = [&](int place, const Int& row) {
        return offset_of(k.ir.places[static_cast<std::size_t>(place)], {row, Int(3)});
    };
    CHECK(offset(one, k.task) == Int(3));
    CHECK(offset(four, k.task * 4 + 2) == Int(2 * columns + 3));
    CHECK(offset(memory, k.task * 4 + 2) == (k.task * 4 + 2) * columns + 3);
}

TEST_CASE("a copy of one row is that of the task") {
    for (const Place::Scope scope : {Place::Scope::local, Place::Scope::global}) {
        KernelInParts k;
        const int copy = k.copy(1, scope);
        CHECK(k.accepts({k.reads(copy, k.task)}));
        const Int known = Int::symbol("known", {0, 99});
        k.sizes.insert(known.symbol_id());
        for (const Int& row : {k.task + 1, k.rows - 1 - k.task, Int(0), Int(1), known, 2 * k.task})
            CHECK_FALSE(k.accepts({k.reads(copy, row)}));
        k.sizes.erase(known.symbol_id());
        const Stmts by_value{let(known, scalar_integer(DType::int64, 3), k.rows)};
        Stmts gathered = by_value;
        gathered.push_back(k.reads(copy, known));
        CHECK_FALSE(k.accepts(gathered));
    }
}

TEST_CASE("rows of a block are those of the task, however its loops are cut") {
    KernelInParts k;
    const int copy = k.copy(4);
    const Int first = k.task * 4, in = Int::symbol("in", {0, 3}), tile = Int::symbol("tile", {0, 3}),
              wide = Int::symbol("wide", {0, 400});
    const auto over = [&](const Int& v, const Int& end, Stmts body, std::int64_t step = 1) {
        return Stmts{loop(v, 0, end, Binding::serial, std::move(body), step)};
    };
    CHECK(k.accepts(over(in, min(4, k.rows - first), {k.reads(copy, first + in)})));
    CHECK_FALSE(k.accepts(over(in, min(4, k.rows - first), {k.reads(copy, first + in + 1)})));
    CHECK_FALSE(k.accepts(over(in, min(4, k.rows - first), {k.reads(copy, in)})));
    CHECK_FALSE(k.accepts(over(in, min(4, k.rows - first), {k.reads(copy, first + 3 - 2 * in)})));
    CHECK(k.accepts(over(in, min(4, k.rows - first), {k.reads(copy, first + 3 - in)})));
    // A variable of which the loop alone says how far it goes.
    CHECK(k.accepts(over(wide, min(k.rows - first, 4), {k.reads(copy, first + wide)})));
    CHECK_FALSE(k.accepts(over(wide, min(k.rows - first, 5), {k.reads(copy, first + wide)})));
    // Tiles of two rows, written out, and of three with what is left over.
    CHECK(k.accepts(over(tile, 4, {k.reads(copy, first + tile + 1)}, 2)));
    CHECK_FALSE(k.accepts(over(tile, 4, {k.reads(copy, first + tile + 2)}, 2)));
    CHECK(k.accepts(over(tile, 4, over(in, min(3, 4 - tile), {k.reads(copy, first + tile + in)}), 3)));
    CHECK_FALSE(k.accepts(over(tile, 4, over(in, 3, {k.reads(copy, first + tile + in)}), 3)));
    // Lanes beyond the last row fill up a register; what they compute is not read.
    const Int lane = Int::symbol("lane", {0, 7});
    const auto filled = [&](std::int64_t count) {
        return filled_lanes(
            lane, count, 8,
            {set(k.out, {first, Int(0)}, place_read(DType::float32, copy, {first + lane, Int(0)}))});
    };
    CHECK(k.accepts({filled(4)}));
    CHECK_FALSE(k.accepts({filled(5)}));
    // Rows and columns as one axis.
    const Int point = Int::symbol("point", {0, 4 * columns - 1});
    const auto joined = [&](const Int& row) {
        return loop(point, 0, 4 * columns, Binding::simd,
                    {set(k.out, {first + floordiv(point, columns), mod(point, columns)},
                         place_read(DType::float32, copy, {row, mod(point, columns)}))});
    };
    CHECK(k.accepts({joined(first + floordiv(point, columns))}));
    CHECK_FALSE(k.accepts({joined(first + floordiv(point, columns - 1))}));
    // Also over columns of which only the call tells how many there are.
    const Int n = Int::symbol("n"), all = Int::symbol("all");
    k.sizes.insert(n.symbol_id());
    const auto unknown = [&](const Int& end, const Int& row) {
        return loop(all, 0, end * n, Binding::threads,
                    {set(k.out, {row, Int(0)}, place_read(DType::float32, copy, {row, Int(0)}))});
    };
    CHECK(k.accepts({unknown(min(4, k.rows - first), first + floordiv(all, n))}));
    CHECK_FALSE(k.accepts({unknown(min(5, k.rows - first), first + floordiv(all, n))}));
    CHECK_FALSE(k.accepts({unknown(min(4, k.rows - first), first + floordiv(all, n) + 1)}));
}

TEST_CASE("whatever a statement loads or stores is of the task's part") {
    KernelInParts k;
    const int copy = k.copy(1), sum = k.add({Place::Scope::private_, DType::float32, {}, -1, true}),
              four = k.add({Place::Scope::vector, DType::float32, {Int(4)}, -1, true}),
              list = k.add({Place::Scope::local, DType::int32, {Int(64)}, -1, true}),
              row = k.add({Place::Scope::local, DType::float32, {Int(64)}, -1, true});
    for (const int place : {sum, four, list, row}) k.body().push_back(declare(place));
    k.body().push_back(vector_load(four, copy, {k.task, Int(0)}));
    k.body().push_back(set(sum, {}, scalar_constant(DType::float32, 0)));
    k.body().push_back(set(row, {Int(0)}, scalar_constant(DType::float32, 0)));
    const auto statements = [&](const Int& at) {
        const Scalar element = place_read(DType::float32, copy, {at, Int(0)}),
                     one = scalar_integer(DType::float32, 1);
        return std::vector<Stmt>{
            set(copy, {at, Int(0)}, one),
            accumulate(copy, {at, Int(0)}, Combine::sum, one),
            set(sum, {}, element),
            vector_load(four, copy, {at, Int(0)}),
            vector_store(copy, {at, Int(0)}, four, 4),
            streaming_store(copy, {at, Int(0)}, row, columns),
            sum_bytes(sum, copy, {at, Int(0)}, columns),
            list_nonzeros(list, {Int(0)}, element, columns),
            deinterleave(row, {Int(0)}, 4, element, 2, 4, columns),
            interleave(row, {Int(0)}, columns, element, 2, 4),
            deinterleave(copy, {at, Int(0)}, 4, place_read(DType::float32, row, {Int(0)}), 2, 4, 8)};
    };
    const std::vector<Stmt> own = statements(k.task), other = statements(k.task + 1);
    for (std::size_t i = 0; i < own.size(); ++i) {
        INFO("statement " << i);
        CHECK(k.accepts({own[i]}));
        CHECK_FALSE(k.accepts({other[i]}));
    }
}

TEST_CASE("a task that has some channels of a row reads no others") {
    KernelInParts k;
    const Int part = Int::symbol("part", {0, 1}), j = Int::symbol("j", {0, 3});
    k.sizes.insert(part.symbol_id());
    const int copy = k.add({Place::Scope::local,
                            DType::float32,
                            {Int(1), Int(4)},
                            -1,
                            true,
                            {{0, k.task, 1}, {1, part * 4, 4}}});
    k.body().push_back(declare(copy));
    k.body().push_back(set(copy, {k.task, part * 4}, scalar_constant(DType::float32, 0)));
    const auto reads = [&](const Int& column) {
        return loop(j, 0, 4, Binding::serial,
                    {set(k.out, {k.task, part * 4 + j}, place_read(DType::float32, copy, {k.task, column}))});
    };
    CHECK(k.accepts({reads(part * 4 + j)}));
    CHECK_FALSE(k.accepts({reads(j)}));
    CHECK_FALSE(k.accepts({reads(part * 4 + j + 1)}));
}

TEST_CASE("a task that has a part of a buffer, among others that have theirs, reads and writes no other") {
    KernelInParts k;
    const int memory = k.add({Place::Scope::global, DType::float32, {k.rows, Int(10)}, k.ir.buffers++, true});
    const Int row = floordiv(k.task, 3), first = mod(k.task, 3) * 4, j = Int::symbol("j", {0, 3});
    const Int count = min(4, 10 - first);
    const auto over = [&](const Int& end, Stmt inner) {
        return loop(j, 0, end, Binding::serial, {std::move(inner)});
    };
    const auto reads = [&](const Int& at, const Int& column) {
        return set(k.out, {row, j}, place_read(DType::float32, memory, {at, column}));
    };
    const auto writes = [&](const Int& at, const Int& column) {
        return set(memory, {at, column}, scalar_integer(DType::float32, 1));
    };
    // Nobody said so.
    CHECK(k.accepts({over(10, reads(row, j))}));
    k.ir.phases[0].segments[0].parts[memory] = {{0, row, 1}, {1, first, 4}};
    CHECK(k.accepts({over(count, reads(row, first + j)), over(count, writes(row, first + j))}));
    CHECK_FALSE(k.accepts({over(10, reads(row, j))}));
    CHECK_FALSE(k.accepts({over(count, reads(row, first + j + 1))}));
    CHECK_FALSE(k.accepts({over(count, reads(k.task, first + j))}));
    CHECK_FALSE(k.accepts({over(count, writes(row, j))}));
    // In a segment of other tasks it is as before.
    Segment other;
    other.task = Int::symbol("other", {0, 9});
    other.tasks = 10;
    k.ir.phases[0].segments.push_back(other);
    k.ir.phases[0].segments[1].body = {set(memory, {other.task, Int(0)}, scalar_integer(DType::float32, 1))};
    CHECK(k.accepts({}));
}

TEST_CASE("a symbol that is neither declared around its use nor a length of the call is refused") {
    KernelInParts k;
    const int memory = k.add({Place::Scope::global, DType::int64, {k.rows}, k.ir.buffers++, true});
    const Int lost = Int::symbol("lost", {0, 7}), i = Int::symbol("i", {0, 7});
    const Scalar one = scalar_integer(DType::int64, 1);
    const auto over = [&](const Int& end, Stmt inner) {
        return loop(i, 0, end, Binding::serial, {std::move(inner)});
    };
    // All places where a statement mentions a symbol, with one that is there in its stead.
    const auto statements = [&](const Int& x) {
        const Scalar read = place_read(DType::int64, memory, {x}),
                     guarded = place_read(DType::int64, memory, {Int(0)}, {{x, 0, 4}}, one);
        return std::vector<Stmt>{
            over(x, set(memory, {i}, one)),
            over(8, set(memory, {i + x}, one)),
            over(8, set(memory, {i}, scalar_index(DType::int64, i * x))),
            over(8, set(memory, {i}, read)),
            over(8, set(memory, {i}, guarded)),
            over(8, set(memory, {i}, scalar_apply(find_op("add"), DType::int64, {one, read}))),
            when({{x, 0, 4}}, {set(memory, {Int(0)}, one)}),
            when({{Int(0), 0, x}}, {set(memory, {Int(0)}, one)}),
            check(1, one, 0, x, 0),
            prefetch(memory, {x}, 64)};
    };
    const std::vector<Stmt> good = statements(k.rows), of_task = statements(k.task), bad = statements(lost);
    for (std::size_t n = 0; n < bad.size(); ++n) {
        INFO("statement " << n);
        CHECK(k.accepts({good[n]}));
        CHECK(k.accepts({of_task[n]}));
        CHECK_FALSE(k.accepts({bad[n]}));
        // A variable is known where its statement stands in the loop, and not behind it.
        CHECK(k.accepts({loop(lost, 0, 8, Binding::serial, {bad[n]})}));
        CHECK_FALSE(k.accepts({loop(lost, 0, 8, Binding::serial, {}), bad[n]}));
        CHECK(k.accepts({let(lost, one, 8), bad[n]}));
        CHECK_FALSE(k.accepts({bad[n], let(lost, one, 8)}));
    }
    k.ir.phases[0].segments[0].tasks = lost;
    CHECK_FALSE(k.accepts({}));
    k.ir.phases[0].segments[0].tasks = k.rows;
    CHECK(k.accepts({}));
    k.add({Place::Scope::global, DType::float32, {lost}, k.ir.buffers++, false});
    CHECK_FALSE(k.accepts({}));
}

TEST_CASE("scratch is written before it is read, unless nothing runs") {
    const auto reads_first = [](std::int64_t turns, std::int64_t tasks) {
        KernelInParts k;
        k.ir.phases[0].segments[0].tasks = tasks;
        const int sum = k.add({Place::Scope::private_, DType::float32, {}, -1, true});
        k.body().push_back(declare(sum));
        const Int j = Int::symbol("j", {0, columns - 1});
        k.body().push_back(loop(j, 0, turns, Binding::serial,
                                {set(k.out, {k.task, j}, place_read(DType::float32, sum, {}))}));
        const bool before = k.accepts({});
        KernelInParts other;
        const int written = other.add({Place::Scope::private_, DType::float32, {}, -1, true});
        other.body().push_back(declare(written));
        other.body().push_back(set(written, {}, scalar_constant(DType::float32, 0)));
        other.body().push_back(set(other.out, {other.task, Int(0)}, place_read(DType::float32, written, {})));
        CHECK(other.accepts({}));
        return before;
    };
    CHECK_FALSE(reads_first(4, 100));
    CHECK(reads_first(0, 100));
    CHECK(reads_first(4, 0));
}
