// What the public headers need of the compiler. Each of them makes its names visible with a pair of
// `#pragma GCC visibility`: libbitale.so shows those, and hides everything else.
#pragma once

#if __cplusplus < 202002L
#error "Bitale needs C++20: write -std=c++20, or in CMake target_compile_features(NAME PRIVATE cxx_std_20)."
#endif
