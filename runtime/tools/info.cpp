// bitale-info: what this installation can do, and why something is missing.
#include "runtime/info.h"

#include <cstdio>
#include <cstring>
#include <exception>

int main(int argc, char** argv) {
    try {
        if (argc == 1) {
            std::fputs(bitale::info_text().c_str(), stdout);
            return 0;
        }
        if (argc == 2 && std::strcmp(argv[1], "--cache-clear") == 0) {
            std::fputs(bitale::clear_cache().c_str(), stdout);
            return 0;
        }
        const bool help = std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0;
        std::fputs(
            "usage: bitale-info [--cache-clear | --help]\n"
            "Shows version, devices, libraries, processor, host compiler and kernel cache.\n"
            "  --cache-clear  removes the compiled kernels on disk\n",
            help ? stdout : stderr);
        return help ? 0 : 2;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bitale-info: %s\n", e.what());
        return 1;
    }
}
