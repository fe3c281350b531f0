// Uses an installed Bitale.
#include <bitale/bitale.h>

#include <cstdio>

using namespace bitale;

int main() {
    const Expr x = vector("x");
    const double value = eval(sum(x * x), {{x, Array(std::vector<float>{1, 2, 3})}});
    std::printf("%g\n", value);
    return value == 14 ? 0 : 1;
}
