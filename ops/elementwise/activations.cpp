// Activations that are written with other elementwise operations.
#include <new>
#include <numbers>

#include "bitale/ops.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"

namespace bitale {

Expr silu(const Expr& x, Where where) try {
    require_present("silu", {&x}, where);
    return mul({x, where}, {sigmoid({x, where}), where});
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr gelu(const Expr& x, Where where) try {
    require_present("gelu", {&x}, where);
    const Expr half = mul({x, where}, {0.5, where});
    return mul({half, where}, {erfc({mul({x, where}, {-std::numbers::sqrt2 / 2, where}), where}), where});
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
