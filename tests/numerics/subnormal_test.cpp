// Lanes without a result read what happens to lie in a task's memory: never subnormal numbers, of which a
// product takes a hundred cycles. The processor tells whether it met any.
#include "tests/support/catch.h"

#if defined(__x86_64__)

#include <alloca.h>
#include <fmt/format.h>
#include <xmmintrin.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/options.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr unsigned exceptions = 0x3f, met_subnormal = 2;

// As integers are, which an earlier call left there.
[[gnu::noinline]] void fill_stack_with_subnormals() {
    constexpr std::size_t bytes = 2 << 20;
    auto* const words = static_cast<volatile int*>(alloca(bytes));
    for (std::size_t i = 0; i < bytes / sizeof(int); ++i) words[i] = 3;
}

void check_normal(const std::string& what, const std::vector<Expr>& results) {
    if (!std::string_view(BITALE_SANITIZE).empty()) return;  // it has memory of its own between arrays
    Function f = function({}, results, {.device = "cpu"});
    f.call({});
    fill_stack_with_subnormals();
    _mm_setcsr(_mm_getcsr() & ~exceptions);
    f.call({});
    INFO(what);
    CHECK((_mm_getcsr() & met_subnormal) == 0);
}

// Numbers from 0.5 to 1.
class Factors {
  public:
    explicit Factors(DType dtype) : dtype_(dtype) {}
    Expr operator()(const Dims& shape) {
        return shared(random_array(dtype_, shape, random_, 0.5, 1), fmt::format("x{}", number_++));
    }

  private:
    const DType dtype_;
    Random random_{3};
    int number_ = 0;
};

Options one_thread() {
    Options chosen = options();
    chosen.threads = 1;
    return chosen;
}

}  // namespace

TEST_CASE("products in whole registers meet no subnormal numbers") {
    const ScopedOptions scope(one_thread());
    for (const DType dtype : {float32, float64}) {
        Factors made(dtype);
        for (const auto& [m, k, n] :
             {std::array<int, 3>{3, 5, 7}, {100, 30, 21}, {300, 2000, 10}, {33, 17, 100}, {7, 300, 35}})
            for (const int form : {0, 1, 2, 3}) {
                const Expr a = form % 2 ? transpose(made({k, m})) : made({m, k}),
                           b = form / 2 ? transpose(made({n, k})) : made({k, n});
                check_normal(fmt::format("{} x {} x {}, form {}, {}", m, k, n, form, name_of(dtype)),
                             {dot(a, b), dot(a + 1, b * 2)});
            }
        for (const int form : {0, 1, 2, 3}) {
            const Expr a = form % 2 ? transpose(made({5, 9, 7}), {0, 2, 1}) : made({5, 7, 9}),
                       b = form / 2 ? transpose(made({5, 11, 9}), {0, 2, 1}) : made({5, 9, 11});
            check_normal(fmt::format("batched, form {}, {}", form, name_of(dtype)), {batched_dot(a, b)});
        }
    }
}

TEST_CASE("convolutions in whole registers meet no subnormal numbers") {
    const ScopedOptions scope(one_thread());
    Factors made(float32);
    for (const auto& [channels, height, width, filters, size, step] :
         {std::array<int, 6>{1, 9, 11, 5, 3, 1}, {3, 17, 19, 7, 3, 1}, {3, 20, 21, 16, 4, 4}})
        for (const bool border : {false, true}) {
            const Expr x = made({3, channels, height, width}), w = made({filters, channels, size, size});
            ConvOptions how;
            how.border_mode = border ? half : valid;
            how.subsample = step;
            check_normal(fmt::format("{} x {}, border {}", height, width, border), {conv2d(x, w, how)});
        }
}

#endif
