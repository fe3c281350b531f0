// Rounding modes, and flushing of small numbers to zero, of the threads that call.
#include <cfenv>
#include <string>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// Not how a thread usually rounds, and, with `flushed`, no small numbers. Restored.
class OtherFloatMode {
  public:
    OtherFloatMode(int rounding, bool flushed) {
        fegetenv(&before_);
        fesetround(rounding);
#if defined(__x86_64__)
        if (flushed) _mm_setcsr(_mm_getcsr() | 0x8040);
#else
        (void)flushed;
#endif
    }
    ~OtherFloatMode() { fesetenv(&before_); }
    OtherFloatMode(const OtherFloatMode&) = delete;
    OtherFloatMode& operator=(const OtherFloatMode&) = delete;

  private:
    fenv_t before_{};
};

}  // namespace

TEST_CASE("calls round to nearest whatever their thread has set, and leave that as it was",
          "[core][runtime][numerics]") {
    for (const std::string& device : all_devices())
        for (const int threads : {1, 2}) {
            Options chosen = options();
            chosen.threads = threads;
            const ScopedOptions scoped(chosen);
            CAPTURE(device, threads);
            // Both the sum of constants and the products would be other ones.
            const auto made = [&] {
                const Expr x = matrix("x"), i = lscalar("i");
                const Expr y = tanh(x) * 0.3F + constant(Array{0.1F}) * constant(Array{0.7F}) + x * 1e-38F;
                return std::pair(function({x}, {y, sum(y)}, {.device = device}),
                                 function({i}, cast(i, float32) * 0.3F, {.device = device}));
            };
            const std::int64_t rows = device == "cpu" ? 500 : 8;
            const Array value = uniform_values({rows, 300}, -1, 1, 5), small = value * 1e-37F;
            std::vector<Array> wanted;
            const auto results = [&](std::pair<Function, Function> f) {
                std::vector<Array> list;
                for (const Array& x : {value, small}) {
                    const Results r = f.first(x);
                    list.insert(list.end(), {r[0], r[1]});
                }
                list.push_back(f.second.loop(0, 9)[0]);
                return list;
            };
            const auto before = made();
            {
                const OtherFloatMode first(FE_UPWARD, true);
                wanted = results(before);
            }
            const auto check = [&](const std::vector<Array>& got) {
                REQUIRE(got.size() == wanted.size());
                for (std::size_t k = 0; k < got.size(); ++k) CHECK(same(got[k], wanted[k]));
            };
            check(results(before));
            for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
                std::vector<Array> called, built;
                int then = -1, within = -1;
                {
                    const OtherFloatMode mode(rounding, true);
                    called = results(before);
                    built = results(made());
                    Function loop = before.second;
                    loop.loop(0, 3, {.on_progress = [&](const Progress&) { within = fegetround(); }});
                    then = fegetround();
                }
                CHECK(then == rounding);
                CHECK(within == rounding);
                check(called);
                check(built);
            }
        }
}
