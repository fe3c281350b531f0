// A program of a user, however it comes by Bitale.
#include <bitale/bitale.h>

#include <cstdio>

using namespace bitale;

int main() {
    const Expr x = vector("x");
    const double value = eval(sum(x * x), {{x, {1.F, 2.F, 3.F}}});
    std::printf("%g\n", value);
    try {
        dot(x, matrix("w")[0] + input(float32, {2, 3, 4}, "y"));
    } catch (const ShapeError& e) {  // thrown in the library, caught here
        return value == 14 ? 0 : 1;
    }
    return 1;
}
