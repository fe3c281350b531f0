// What the public headers need of the compiler. Each public header encloses its declarations in a pair of
// `#pragma GCC visibility`: libbitale.so exports these, and hides everything else.
#pragma once

#if __cplusplus < 202002L
#error "Bitale needs C++20: write -std=c++20, or in CMake target_compile_features(NAME PRIVATE cxx_std_20)."
#endif
