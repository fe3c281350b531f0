// A program that uses the library before main and after it: in constructors and destructors of static
// objects. statics MODE: main returns, or a thread ends the process, or one does while another thread's calls
// run. Exit status 0 says that all was right.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "bitale/bitale.h"

using namespace bitale;

namespace {

// Sanitizers of threads take the emulator's fibers for one thread.
#if defined(__SANITIZE_THREAD__)
const char* const devices[] = {"cpu", "reference"};
#else
const char* const devices[] = {"cpu", "emulator", "reference"};
#endif

[[noreturn]] void fail(const char* when, const std::string& why) {
    std::fprintf(stderr, "statics: %s: %s\n", when, why.c_str());
    std::_Exit(1);
}

Function built(const char* device, double factor) {
    const Expr x = matrix("x");
    return function({x}, sum(exp(x) * factor, 1), {.device = device});
}

void require_right(const char* when, Function& f, double factor, std::int64_t rows) {
    const Array r = f(ones({rows, 3}))[0];
    if (r.shape() != Dims{rows}) fail(when, "a wrong shape");
    const double expected = 3 * std::exp(1.0) * factor;
    for (const float x : r.to_vector<float>())
        if (std::abs(x - expected) > 1e-5 * expected) fail(when, std::to_string(x));
}

// The first object of the program to be made, and the last to be destroyed: those of the library are made
// after it.
class FirstAndLast {
  public:
    FirstAndLast() {
        for (const char* device : devices) {
            functions_.push_back(built(device, 0.5));
            require_right("before main", functions_.back(), 0.5, 2);
        }
    }
    ~FirstAndLast() {
        const char* when = "in a destructor after main";
        try {
            for (Function& f : functions_) {
                require_right(when, f, 0.5, 2);
                require_right(when, f, 0.5, 5);  // lengths that no call had
            }
            for (const char* device : devices) {
                Function f = built(device, 0.75);
                require_right(when, f, 0.75, 3);
            }
            // Many parts and their slices: rules keep what they know of the last such array.
            const Expr x = vector("x");
            const std::vector<Expr> parts(20, x);
            const Expr joined = concatenate(parts, 0);
            const Expr slice = joined[Slice{x.length(0) * 3, x.length(0) * 4}];
            if (function({x}, slice * 2.F)(Array{1.F, 2.F})[0].at(1) != 4) fail(when, "a slice of parts");
        } catch (const std::exception& e) {
            fail(when, e.what());
        }
        std::_Exit(0);
    }
    FirstAndLast(const FirstAndLast&) = delete;
    FirstAndLast& operator=(const FirstAndLast&) = delete;

  private:
    std::vector<Function> functions_;
};

FirstAndLast first_and_last;

}  // namespace

int main(int argc, char** argv) {
    const char* mode = argc > 1 ? argv[1] : "return";
    for (const char* device : devices) {
        Function f = built(device, 0.25);
        require_right("in main", f, 0.25, 4);
    }
    if (std::strcmp(mode, "busy") == 0)
        std::thread([] {
            Function f = built("cpu", 1.5);
            for (;;) require_right("in a thread at the end", f, 1.5, 300);
        }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(std::strcmp(mode, "busy") == 0 ? 100 : 0));
    if (std::strcmp(mode, "return") != 0) std::thread([] { std::exit(2); }).join();
    return 2;  // the destructor says 0
}
