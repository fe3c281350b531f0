// Programs of the preset portable carry libstdc++, whose std::random_device calls arc4random, which glibc has
// since 2.36. With this function they start on glibc 2.35, so on Ubuntu 22.04 too.
#ifdef BITALE_PORTABLE

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() {
    std::uint32_t word = 0;
    if (getentropy(&word, sizeof word) != 0) std::abort();  // as glibc's own
    return word;
}

#endif
