// A process that goes on for long: kernels of which no two are the same, compiled, run and dropped, then
// loads of small objects that are there already. Prints a line of JSON for each tenth of either: memory and
// mappings must not grow with the numbers.
//
//     bench_longevity [KERNELS [LOADS]]
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/loaded.h"

using namespace bitale;

namespace {

struct Process {
    std::int64_t kilobytes = 0;
    int mappings = 0;
};

Process process() {
    Process p;
    std::ifstream maps("/proc/self/maps"), status("/proc/self/statm");
    for (std::string line; std::getline(maps, line);) ++p.mappings;
    std::int64_t all = 0, resident = 0;
    status >> all >> resident;
    p.kilobytes = resident * sysconf(_SC_PAGESIZE) / 1024;
    return p;
}

class Progress {
  public:
    Progress(const char* what, std::int64_t all) : what_(what), all_(all) {}
    void done(std::int64_t count) const {
        if (count % std::max<std::int64_t>(1, all_ / 10) != 0) return;
        const Process now = process();
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        fmt::print(
            "{{\"what\": \"{}\", \"count\": {}, \"seconds\": {:.1f}, \"resident_kb\": {}, \"mappings\": "
            "{}}}\n",
            what_, count, seconds, now.kilobytes, now.mappings);
        std::fflush(stdout);
    }

  private:
    const char* what_;
    const std::int64_t all_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The digits of the number choose operations; numbers in the text would only be parameters of one kernel.
Expr expression(const Expr& x, std::int64_t number) {
    Expr y = x;
    for (; number > 0; number /= 8) switch (number % 8) {
            case 0: y = y + x; break;
            case 1: y = y * x - y; break;
            case 2: y = maximum(y, x * x); break;
            case 3: y = abs(y) - x; break;
            case 4: y = sqrt(abs(y)); break;
            case 5: y = minimum(y, -x); break;
            case 6: y = where(y > x, y, x * y); break;
            default: y = y / (x * x + 1);
        }
    return y;
}

int compile(std::int64_t kernels) {
    const Expr x = vector("x");
    const Array value = std::vector<float>{0.5F, -2, 3};
    int runs = 0;
    const Progress progress("kernels", kernels);
    for (std::int64_t k = 1; k <= kernels; ++k) {
        Function f = function({x}, expression(x, k) + x, {.device = "cpu"});
        if (Array(f(value)).size() != 3) return 1;
        runs += f.compiler_runs();
        progress.done(k);
    }
    fmt::print("{{\"what\": \"compiler runs\", \"count\": {}}}\n", runs);
    return 0;
}

int load(std::int64_t loads) {
    std::string path = (std::filesystem::temp_directory_path() / "bitale-longevity-XXXXXX").string();
    if (!mkdtemp(path.data())) return 1;
    std::ofstream(path + "/one.cpp") << "extern \"C\" int answer() { static int n = 41; return ++n; }\n";
    CompileJob job{path + "/one.cpp", path + "/one.so", {"-nostdlib"}};
    compile_all(*find_compiler().found, {job}, 1);
    LoadedObjects objects(256);
    const Progress progress("loads", loads);
    int wrong = 0;
    for (std::int64_t i = 1; i <= loads; ++i) {
        const std::string copy = fmt::format("{}/{}.so", path, i);  // the loader knows an object by its file
        std::filesystem::copy_file(job.object, copy);
        std::string problem;
        const LoadedObjects::Use use = objects.open(std::to_string(i), copy, problem);
        std::filesystem::remove(copy);
        wrong += !use || reinterpret_cast<int (*)()>(dlsym(use.get(), "answer"))() != 42;
        progress.done(i);
    }
    std::filesystem::remove_all(path);
    return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options o = options();
    o.cache = false;
    o.mode = Options::Mode::fast_compile;
    const ScopedOptions scoped(o);
    const std::int64_t kernels = argc > 1 ? std::atoll(argv[1]) : 10000,
                       loads = argc > 2 ? std::atoll(argv[2]) : 100000;
    return compile(kernels) + load(loads);
}
