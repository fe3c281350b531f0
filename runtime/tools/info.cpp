// bitale-info: what this installation can do, and why something is missing.
#include "runtime/info.h"

#include <cstdio>
#include <exception>
#include <string>

namespace {

constexpr const char* usage =
    "usage: bitale-info [--json | --version | --cache-clear | --help]\n"
    "Shows version, devices, libraries, processor, host compiler and kernel cache.\n"
    "  --json         the same as a JSON object\n"
    "  --version      the version alone\n"
    "  --cache-clear  removes the compiled kernels on disk\n";

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::string option = argc == 2 ? argv[1] : "";
        if (argc == 1)
            print(bitale::info_text());
        else if (option == "--json")
            print(bitale::info_json());
        else if (option == "--version")
            print("bitale " + bitale::version() + "\n");
        else if (option == "--cache-clear")
            print(bitale::clear_cache());
        else if (option == "--help" || option == "-h")
            print(usage);
        else {
            std::fputs(usage, stderr);
            return 2;
        }
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bitale-info: %s\n", e.what());
        return 1;
    }
}
