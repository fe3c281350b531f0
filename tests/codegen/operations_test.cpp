// Operations of a nest: each part counts as often as the loops that it depends on turn.
#include "codegen/nest/operations.h"

#include "codegen/nest/compose.h"
#include "ops/registry.h"
#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

std::int64_t cost(const char* op) { return find_op(op)->map->cost; }

Scalar apply(const char* op, std::vector<Scalar> arguments) {
    return scalar_apply(find_op(op), DType::float32, std::move(arguments));
}

}  // namespace

TEST_CASE("what is done to an operand of a product counts once an element") {
    register_all_ops();
    Nest nest;
    nest.parallel = {make_loop("m", 8), make_loop("n", 64)};
    nest.reduced = {make_loop("k", 16)};
    nest.combine = Combine::sum;
    const Int m = nest.parallel[0].variable, n = nest.parallel[1].variable, k = nest.reduced[0].variable;
    const Scalar image = apply("exp", {scalar_cast(DType::float32, scalar_read(DType::uint8, 0, {m, k}))});
    nest.body = apply("mul", {image, scalar_read(DType::float32, 1, {k, n})});
    const std::int64_t points = 8 * 64 * 16;
    CHECK(evaluate(operations_of(nest), {}) == points * (cost("mul") + 1) + 8 * 16 * (cost("exp") + 1));
    CHECK(evaluate(operations_of(nest), {}) < points * (cost_of(nest) + 1));
}

TEST_CASE("a part behind an index that is found at run time depends on the loops of that index") {
    register_all_ops();
    Nest nest;
    nest.parallel = {make_loop("i", 5), make_loop("j", 7)};
    const Int i = nest.parallel[0].variable, j = nest.parallel[1].variable;
    const Int row = Int::symbol("row", {0, 99});
    nest.lets = {{row, scalar_cast(DType::int64, scalar_read(DType::int32, 1, {i})), 100}};
    nest.body = apply("mul", {apply("tanh", {scalar_read(DType::float32, 0, {row})}),
                              scalar_select({{j, 0, 3}}, scalar_constant(DType::float32, 2),
                                            scalar_constant(DType::float32, 1))});
    // The cast and tanh once a row, the choice once a column, the product at each point.
    CHECK(evaluate(operations_of(nest), {}) == 5 * (1 + cost("tanh")) + 7 + 35 * cost("mul"));
}

TEST_CASE(
    "without a reduction, and where every part depends on all loops, operations are cost times points") {
    register_all_ops();
    Nest nest;
    nest.parallel = {make_loop("i", 12)};
    const Int i = nest.parallel[0].variable;
    nest.body = apply("exp", {apply("tanh", {scalar_read(DType::float32, 0, {i})})});
    CHECK(evaluate(operations_of(nest), {}) == 12 * cost_of(nest));
}

TEST_CASE("points that a sum skips count no operations") {
    register_all_ops();
    Nest nest;  // the gradient of a row of pixels: each third one has a result of its own
    nest.parallel = {make_loop("x", 30)};
    nest.reduced = {make_loop("k", 6), make_loop("f", 4)};
    nest.combine = Combine::sum;
    const Int x = nest.parallel[0].variable, k = nest.reduced[0].variable, f = nest.reduced[1].variable;
    nest.guards = {{mod(x - k, 3), 0, 1}, {floordiv(x - k, 3), 0, 10}};
    nest.body = apply("mul", {scalar_read(DType::float32, 0, {floordiv(x - k, 3), f}),
                              scalar_read(DType::float32, 1, {k, f})});
    CHECK(evaluate(operations_of(nest), {}) == 30 * 6 * 4 / 3 * (cost("mul") + 1));
}
