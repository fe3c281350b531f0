// A program of a user, however it comes by Bitale.
#include <bitale/bitale.h>

#include <cstdio>

using namespace bitale;

int main() {
    const Expr x = vector("x");
    const double value = eval(sum(x * x), {{x, {1.F, 2.F, 3.F}}});
    std::printf("%g\n", value);
    try {
        x + input(float32, {3}, "three") + input(float32, {4}, "four");
    } catch (const ShapeError& e) {  // thrown in the library, caught here
        return value == 14 ? 0 : 1;
    }
    return 1;
}
