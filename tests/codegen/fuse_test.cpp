// Loops over the same points become one, but only where that changes no result.
#include "codegen/kernel/fuse.h"

#include <algorithm>
#include <cstdint>

#include "graph/ir/op.h"
#include "ops/registry.h"
#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

constexpr std::int64_t length = 1000;

class LoopsToFuse {
  public:
    LoopsToFuse() {
        register_all_ops();
        ir.phases.resize(1);
        ir.phases[0].segments.resize(1);
    }

    int global(DType dtype = DType::float32, Shape extents = {Int(length + 1)}) {
        ir.places.push_back({Place::Scope::global, dtype, std::move(extents), ir.buffers++, true});
        return static_cast<int>(ir.places.size()) - 1;
    }
    Stmts& body() { return ir.phases[0].segments[0].body; }

    // place[j] = from[j + shift] * 2
    void doubled(int place, int from, std::int64_t shift = 0, std::int64_t end = length) {
        const Int j = Int::symbol("j", {0, end - 1});
        const DType dtype = ir.places[static_cast<std::size_t>(from)].dtype;
        const Scalar x = place_read(dtype, from, {j + shift});
        body().push_back(
            loop(j, 0, end, Binding::simd,
                 {set(place, {j}, scalar_apply(find_op("mul"), dtype, {x, scalar_integer(dtype, 2)}))}));
    }

    std::int64_t loops() {
        fuse_loops(ir);
        verify(ir, {});
        return std::count_if(body().begin(), body().end(),
                             [](const Stmt& s) { return s.kind == Stmt::Kind::loop; });
    }

    KernelIR ir;
};

}  // namespace

TEST_CASE("loops that meet at the same elements become one") {
    LoopsToFuse k;
    const int a = k.global(), b = k.global(), c = k.global();
    k.doubled(b, a);
    k.body().push_back(comment("another"));
    k.doubled(c, b);
    k.doubled(a, b);
    CHECK(k.loops() == 1);
    CHECK(k.body().front().kind == Stmt::Kind::comment);
    REQUIRE(k.body().back().body.size() == 3);
    CHECK(k.body().back().body[0].place == b);
    CHECK(k.body().back().body[1].place == c);
    CHECK(k.body().back().body[2].place == a);
}

TEST_CASE("loops stay apart where one needs what another iteration of the other writes, or still reads it") {
    LoopsToFuse later;
    const int a = later.global(), b = later.global(), c = later.global();
    later.doubled(b, a);
    later.doubled(c, b, 1);
    CHECK(later.loops() == 2);
    LoopsToFuse earlier;
    const int x = earlier.global(), y = earlier.global(), z = earlier.global();
    earlier.doubled(y, x, 1);
    earlier.doubled(x, z);
    CHECK(earlier.loops() == 2);
}

TEST_CASE("loops stay apart that share nothing, are short, or differ in length or in width") {
    LoopsToFuse apart;
    const int a = apart.global(), b = apart.global(), c = apart.global(), d = apart.global();
    apart.doubled(b, a);
    apart.doubled(d, c);
    CHECK(apart.loops() == 2);
    LoopsToFuse lengths;
    const int e = lengths.global(), f = lengths.global();
    lengths.doubled(f, e);
    lengths.doubled(f, e, 0, length - 1);
    CHECK(lengths.loops() == 2);
    LoopsToFuse brief;
    const int g = brief.global(), h = brief.global();
    brief.doubled(h, g, 0, 100);
    brief.doubled(h, g, 0, 100);
    CHECK(brief.loops() == 2);
    LoopsToFuse wide;
    const int u = wide.global(DType::float64), v = wide.global(DType::float64);
    wide.doubled(v, u);
    wide.doubled(u, v);
    CHECK(wide.loops() == 2);
}

TEST_CASE("a statement between two loops keeps them apart") {
    LoopsToFuse k;
    const int a = k.global(), b = k.global();
    k.doubled(b, a);
    k.body().push_back(set(a, {Int(0)}, scalar_integer(DType::float32, 1)));
    k.doubled(b, a);
    CHECK(k.loops() == 2);
}

TEST_CASE("an element that all iterations write is no place to meet") {
    LoopsToFuse k;
    const int a = k.global(), total = k.global(DType::float32, {Int(1)});
    for (int i = 0; i < 2; ++i) {
        const Int j = Int::symbol("j", {0, length - 1});
        k.body().push_back(
            loop(j, 0, length, Binding::simd, {set(total, {Int(0)}, place_read(DType::float32, a, {j}))}));
    }
    CHECK(k.loops() == 2);
}
