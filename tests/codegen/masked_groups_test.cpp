// Loops whose stores and guarded reads become groups of vectors stay scalar where g++ mixes up their masks.
#include "codegen/print/masked_groups.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/print/c_family.h"
#include "ops/registry.h"
#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

constexpr std::int64_t count = 40;

// for j < 40: out[3 j + k] = in[step * j + k - 90] where that is in range, for k < stores
struct GuardedLoop {
    explicit GuardedLoop(int stores, std::int64_t step, bool guarded = true, bool one_place = true) {
        register_all_ops();
        const auto add = [&](bool written) {
            ir.places.push_back({Place::Scope::global, DType::float32, {Int(400)}, ir.buffers++, written});
            return static_cast<int>(ir.places.size()) - 1;
        };
        const int in = add(false), first = add(true), second = add(true);
        const Int j = Int::symbol("j", {0, count - 1});
        Stmts body;
        for (int k = 0; k < stores; ++k) {
            const Int at = j * step + (k - 90);
            const std::vector<Guard> guards =
                guarded ? std::vector<Guard>{{at, 0, count}} : std::vector<Guard>{};
            const Scalar value = place_read(DType::float32, in, {guarded ? at : j * step + k}, guards,
                                            guarded ? scalar_constant(DType::float32, 0.0) : Scalar{});
            body.push_back(set(one_place || k == 0 ? first : second, {j * 3 + k}, value));
        }
        ir.phases.resize(1);
        ir.phases[0].segments.resize(1);
        ir.phases[0].segments[0].task = Int::symbol("task", {0, 0});
        ir.phases[0].segments[0].tasks = 1;
        ir.phases[0].segments[0].body = {loop(j, 0, count, Binding::simd, std::move(body))};
    }
    bool masked_group() const { return has_masked_group(ir.phases[0].segments[0].body[0], ir.places); }
    bool scalar(Dialect dialect) const {
        return print_kernel(ir, dialect).body.find("B_SCALAR_LOOP;") != std::string::npos;
    }

    KernelIR ir;
};

}  // namespace

TEST_CASE("groups of guarded reads") {
    CHECK(GuardedLoop(3, 3).masked_group());
    CHECK(GuardedLoop(2, 2).masked_group());
    CHECK(!GuardedLoop(1, 3).masked_group());
    CHECK(!GuardedLoop(3, 1).masked_group());
    CHECK(!GuardedLoop(3, 3, false).masked_group());
    CHECK(!GuardedLoop(2, 3, true, false).masked_group());
}

TEST_CASE("loops with groups of guarded reads stay scalar on a CPU") {
    CHECK(GuardedLoop(3, 3).scalar(Dialect::cpp));
    CHECK(!GuardedLoop(3, 3).scalar(Dialect::cuda));
    CHECK(!GuardedLoop(3, 3, false).scalar(Dialect::cpp));
}
