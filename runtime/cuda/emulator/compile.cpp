#include "runtime/cuda/emulator/compile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "bitale/error.h"
#include "codegen/print/comments.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cache/sha256.h"
#include "runtime/cache/workshop.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cuda/emulator/checks.h"

namespace bitale::cuda {

namespace {

std::string bytes_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Behind those of every object: such code runs rarely and is compiled often. Watched: calls before each
// access are asked for, the library that usually serves them is not.
std::vector<std::string> more_flags(const HostCompiler& compiler, Watch watch) {
    // With checks, optimisation takes clang too long: compile_flags() does without.
    if (watch == Watch::nothing)
        return std::string(BITALE_SANITIZE).empty() ? std::vector<std::string>{"-O1"}
                                                    : std::vector<std::string>{};
    std::vector<std::string> list = {"-O1",
                                     "-fno-tree-vectorize",
                                     "-fno-exceptions",
                                     "-g1",
                                     "-fno-sanitize=address,undefined",
                                     "-fsanitize=thread",
                                     "-nodefaultlibs",
                                     "-lm",
                                     "-lc",
                                     "-lgcc"};
    if (watch != Watch::counts) return list;
    // A load of what is stored right after it counts like any other; and loops are unrolled as often as they
    // ask for, however long they are.
    if (compiler.identity.find("clang") != std::string::npos)
        list.insert(list.end(), {"-mllvm", "-tsan-instrument-read-before-write=1"});
    else
        for (const char* limit : {"max-unrolled-insns", "max-average-unrolled-insns", "max-unroll-times"})
            list.push_back(fmt::format("--param={}=100000", limit));
    return list;
}

std::string key_of(const std::string& text, const HostCompiler& compiler, Watch watch) {
    std::string all = "bitale-emulated-7\n" + compiler.identity + "\n";
    for (const std::string& flag : compile_flags()) all += flag + " ";
    for (const std::string& flag : more_flags(compiler, watch)) all += flag + " ";
    // Lines of a watched text are named, so the comments count there.
    return sha256(all + "\n" + (watch == Watch::nothing ? without_comments(text) : text)).substr(0, 32);
}

struct Job {
    std::size_t text = 0;
    std::string key, source;
};

}  // namespace

EmulatedModules compile_emulated(const std::vector<std::string>& texts) {
    const CompilerSearch search = find_compiler();
    if (!search.found) throw CompileError("the emulator needs a host compiler: " + search.problem);
    const HostCompiler& compiler = *search.found;
    DiskCache cache(options().cache ? cache_directory() : "", options().cache_bytes);
    const bool cached = options().cache && cache.usable();
    const Watch watch = emulator_watches();

    EmulatedModules modules;
    modules.images.resize(texts.size());
    std::vector<Job> jobs;
    for (std::size_t u = 0; u < texts.size(); ++u) {
        const std::string text = emulated_text(texts[u], watch), key = key_of(text, compiler, watch);
        if (std::optional<std::string> found = cached ? cache.read(key) : std::nullopt) {
            modules.images[u] = *std::move(found);
            continue;
        }
        jobs.push_back({u, key, text});
    }
    std::string key;
    for (const Job& job : jobs) key += job.key;
    if (!jobs.empty())
        build_somewhere(
            cached ? &cache : nullptr, {.key = key, .of = "of the emulator"}, [&](Workshop& workshop) {
                std::vector<CompileJob> list;
                for (const Job& job : jobs)
                    list.push_back({workshop.add(job.key + ".cpp", job.source),
                                    workshop.path() + "/" + job.key + ".so", more_flags(compiler, watch)});
                compile_all(compiler, list, static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
                for (std::size_t j = 0; j < jobs.size(); ++j)
                    modules.images[jobs[j].text] = bytes_of_file(list[j].object);
            });
    if (cached)
        for (const Job& job : jobs)
            if (const std::string problem = cache.keep(job.key, modules.images[job.text], job.source);
                !problem.empty())
                warn("compiled kernels are not kept between runs: " + problem);
    modules.compiler_runs = static_cast<int>(jobs.size());
    return modules;
}

}  // namespace bitale::cuda
