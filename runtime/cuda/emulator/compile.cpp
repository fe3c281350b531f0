#include "runtime/cuda/emulator/compile.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "bitale/error.h"
#include "codegen/print/comments.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cache/sha256.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cuda/emulator/checks.h"

namespace bitale::cuda {

namespace {

std::string bytes_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Behind those of every object: such code runs rarely and is compiled often. Checked: calls before each
// access are asked for, the library that usually serves them is not.
std::vector<std::string> more_flags(bool checked) {
    if (!checked) return {"-O1"};
    return {"-O1",
            "-fno-tree-vectorize",
            "-fno-exceptions",
            "-g1",
            "-fno-sanitize=address,undefined",
            "-fsanitize=thread",
            "-nodefaultlibs",
            "-lm",
            "-lc",
            "-lgcc"};
}

std::string key_of(const std::string& text, const HostCompiler& compiler, bool checked) {
    std::string all = "bitale-emulated-5\n" + compiler.identity + "\n";
    for (const std::string& flag : compile_flags()) all += flag + " ";
    for (const std::string& flag : more_flags(checked)) all += flag + " ";
    // The checker names lines of the text, so the comments count there.
    return sha256(all + "\n" + (checked ? text : without_comments(text))).substr(0, 32);
}

struct Job {
    std::size_t text = 0;
    std::string key;
    CompileJob files;
};

// Two files of a fresh name, outside of the cache.
CompileJob temporary_files() {
    const char* base = std::getenv("TMPDIR");
    std::string path = std::string(base && *base ? base : "/tmp") + "/bitale-emulated-XXXXXX.cpp";
    const int file = mkstemps(path.data(), 4);
    if (file < 0) throw CompileError("the generated code cannot be written to " + in_quotes(path));
    close(file);
    return {path, path.substr(0, path.size() - 4) + ".so"};
}

}  // namespace

EmulatedModules compile_emulated(const std::vector<std::string>& texts) {
    const CompilerSearch search = find_compiler();
    if (!search.found) throw CompileError("the emulator needs a host compiler: " + search.problem);
    const HostCompiler& compiler = *search.found;
    DiskCache cache(options().cache ? cache_directory() : "", options().cache_bytes);
    const bool cached = options().cache && cache.usable(), checked = emulator_checks();

    EmulatedModules modules;
    modules.images.resize(texts.size());
    std::vector<Job> jobs;
    for (std::size_t u = 0; u < texts.size(); ++u) {
        const std::string text = emulated_text(texts[u], checked), key = key_of(text, compiler, checked);
        if (const std::optional<std::string> found = cached ? cache.find(key) : std::nullopt) {
            modules.images[u] = bytes_of_file(*found);
            continue;
        }
        Job job{u, key,
                cached ? CompileJob{cache.temporary(key, ".cpp"), cache.temporary(key, ".so")}
                       : temporary_files()};
        job.files.more_flags = more_flags(checked);
        std::ofstream file(job.files.source, std::ios::binary);
        file << text;
        file.close();
        if (!file) throw CompileError("the generated code cannot be written to \"" + job.files.source + "\"");
        jobs.push_back(std::move(job));
    }
    std::vector<CompileJob> list;
    list.reserve(jobs.size());
    for (const Job& job : jobs) list.push_back(job.files);
    compile_all(compiler, list, static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
    for (const Job& job : jobs) {
        modules.images[job.text] = bytes_of_file(job.files.object);
        if (cached && cache.store(job.key, job.files.object, job.files.source)) continue;
        unlink(job.files.object.c_str());
        unlink(job.files.source.c_str());
    }
    modules.compiler_runs = static_cast<int>(jobs.size());
    return modules;
}

}  // namespace bitale::cuda
