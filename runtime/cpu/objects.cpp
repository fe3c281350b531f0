// Looks in memory, then on disk, then compiles what is missing; loads all.
#include "runtime/cpu/objects.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>

#include "codegen/print/comments.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cache/sha256.h"
#include "runtime/cache/workshop.h"

namespace bitale {

namespace {

constexpr const char* format = "bitale-kernels-3";
constexpr std::size_t kernels_per_unit = 16;  // a file's fixed cost is then below a tenth
// A file costs 25 ms, and 10 ms for each KB of kernels: below this length a second file gains little.
// mode=fast_compile takes less for each KB.
constexpr std::size_t small_text = 12 << 10, small_fast_text = 20 << 10;
constexpr std::size_t most_long_units = 8;

// Kernels are plain functions: no start-up code, and no library but what the compiler itself may call. What
// it takes from libc is in the process already; looking through the libraries of C++ would cost 20 ms a file.
// Sanitizers bring libraries of their own.
std::vector<std::string> link_flags() {
    if (!std::string(BITALE_SANITIZE).empty()) return {};
    return {"-nostdlib", "-lm", "-lgcc"};
}

// What the keys of all units of a program share. The prelude is longer than most units: it is digested once.
std::string common_key(const TranslationUnit& unit, const HostCompiler& compiler) {
    std::string text = std::string(format) + "\n" + compiler.identity + "\n";
    for (const std::vector<std::string>& flags : {compile_flags(), link_flags()})
        for (const std::string& flag : flags) text += flag + " ";
    const std::string_view prelude = std::string_view(unit.text).substr(0, unit.after_prelude);
    return sha256(text + "\n" + without_comments(prelude));
}

std::string key_of(const TranslationUnit& unit, const std::string& common) {
    return sha256(common + "\n" + without_comments(std::string_view(unit.text).substr(unit.after_prelude)))
        .substr(0, 32);
}

// Far fewer than what a process may map; a kernel takes some 0.1 MB.
constexpr std::size_t most_unused_objects = 256;

// Leaked: functions in static variables drop their kernels at the very end.
LoadedObjects& loaded_objects() {
    static LoadedObjects& objects = *new LoadedObjects(most_unused_objects);
    return objects;
}

struct Missing {
    std::size_t unit = 0;
    std::string key;
};

class Loader {
  public:
    Loader(const Program& program, const HostCompiler& compiler, int parallel, Where where)
        : compiler_(compiler),
          parallel_(parallel),
          work_{.key = {}, .of = "of function " + in_quotes(program.name), .where = where},
          cache_(options().cache ? cache_directory() : "", options().cache_bytes) {
        if (options().cache && !cache_.usable())
            warn("compiled kernels are not kept between runs: " + cache_.problem());
    }

    std::vector<LoadedObjects::Use> load(const std::vector<TranslationUnit>& units, LoadedKernels& result) {
        std::vector<LoadedObjects::Use> handles(units.size());
        std::vector<Missing> missing;
        const std::string common = units.empty() ? "" : common_key(units[0], compiler_);
        for (std::size_t i = 0; i < units.size(); ++i) {
            const std::string key = key_of(units[i], common);
            if ((handles[i] = loaded_objects().find(key))) {
                ++result.from_memory;
            } else if ((handles[i] = from_disk(key, units[i]))) {
                ++result.from_disk;
            } else {
                missing.push_back({i, key});
            }
        }
        if (missing.empty()) return handles;
        for (const Missing& m : missing) work_.key += m.key;
        build_somewhere(usable() ? &cache_ : nullptr, work_,
                        [&](Workshop& workshop) { build(workshop, units, missing, handles, result); });
        return handles;
    }

  private:
    bool usable() const { return options().cache && cache_.usable(); }

    LoadedObjects::Use from_disk(const std::string& key, const TranslationUnit& unit) const {
        if (!usable()) return nullptr;
        const std::optional<std::string> path = cache_.find(key);
        if (!path) return nullptr;
        std::string problem;
        LoadedObjects::Use handle = loaded_objects().open(key, *path, problem, unit.entries);
        if (!handle) log(1, "cached object not usable: " + problem);
        return handle;
    }

    // What is compiled is loaded before the cache gets it: whatever becomes of it there, this process has it.
    void build(Workshop& workshop, const std::vector<TranslationUnit>& units,
               const std::vector<Missing>& missing, std::vector<LoadedObjects::Use>& handles,
               LoadedKernels& result) {
        std::vector<CompileJob> jobs;
        std::vector<const Missing*> built;
        for (const Missing& m : missing) {
            if (handles[m.unit]) continue;  // by an attempt that failed later
            built.push_back(&m);
            jobs.push_back({workshop.add(m.key + ".cpp", units[m.unit].text),
                            workshop.path() + "/" + m.key + ".so", link_flags(), units[m.unit].subject});
        }
        compile_all(compiler_, jobs, parallel_);
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            std::string problem;
            LoadedObjects::Use handle =
                loaded_objects().open(built[j]->key, jobs[j].object, problem, units[built[j]->unit].entries);
            if (!handle) throw CompileError(unusable(jobs[j], problem));
            ++result.compiler_runs;
            handles[built[j]->unit] = std::move(handle);
            if (!usable() || !workshop.path().starts_with(cache_.directory())) continue;
            if (const std::string unkept = cache_.store(built[j]->key, jobs[j].object, jobs[j].source);
                !unkept.empty())
                warn("compiled kernels are not kept between runs: " + unkept);
        }
    }

    std::string unusable(const CompileJob& job, const std::string& problem) const {
        const std::string cure = cure_for(problem);
        return fmt::format(
            "the compiled kernels cannot be loaded: {}\n  compiling: {}\n  compiler: {}\n  source: {}\n{}\n",
            problem, job.subject, fmt::join(compiler_.command, " "), job.source,
            cure.empty() ? "  The compiler ended without an error, and did not do its work; the variable "
                           "BITALE_CXX, or\n  compiler= in BITALE_FLAGS, names another one."
                         : "Cure: " + cure);
    }

    const HostCompiler& compiler_;
    const int parallel_;
    Work work_;
    DiskCache cache_;
};

}  // namespace

namespace {

// A power of two, so that two cores, or four, are busy to the end.
std::size_t units_for(const Program& program) {
    std::size_t all = 0, longest = 0;
    for (const KernelText& kernel : program.kernels) {
        all += kernel.body.size();
        longest = std::max(longest, kernel.body.size());
    }
    const std::size_t small = options().mode == Options::Mode::fast_compile ? small_fast_text : small_text;
    // More of them than this do not end sooner: the longest kernel is one function.
    const std::size_t useful = longest > 0 ? (all + longest - 1) / longest : 1;
    std::size_t units = 1;
    while (units < most_long_units && units < useful && units * 2 <= program.kernels.size() &&
           all > 2 * units * small)
        units *= 2;
    return std::max(units, (program.kernels.size() + kernels_per_unit - 1) / kernels_per_unit);
}

}  // namespace

std::vector<TranslationUnit> translation_units(const Program& program) {
    const std::size_t count = program.kernels.size();
    if (count == 0) return {};
    const std::size_t units = units_for(program);
    // The longest first, each to the unit that is shortest so far.
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return program.kernels[a].body.size() > program.kernels[b].body.size();
    });
    std::vector<TranslationUnit> list(units);
    std::vector<std::size_t> length(units, 0);
    for (const std::size_t k : order) {
        const auto at =
            static_cast<std::size_t>(std::min_element(length.begin(), length.end()) - length.begin());
        list[at].kernels.push_back(static_cast<int>(k));
        length[at] += program.kernels[k].body.size() + 1;
    }
    for (TranslationUnit& unit : list) {
        std::sort(unit.kernels.begin(), unit.kernels.end());
        unit.text = program.prelude + "\n";
        unit.after_prelude = unit.text.size();
        for (const int k : unit.kernels) {
            const KernelText& kernel = program.kernels[static_cast<std::size_t>(k)];
            unit.text += kernel.body + "\n";
            unit.subject += (unit.subject.empty() ? "" : ", ") + kernel.name;
            unit.entries.insert(unit.entries.end(), kernel.entries.begin(), kernel.entries.end());
        }
        unit.subject = "the kernels " + unit.subject + " of function " + in_quotes(program.name);
    }
    return list;
}

LoadedKernels load_kernels(const Program& program, const HostCompiler& compiler, int parallel, Where where) {
    LoadedKernels result;
    result.entries.resize(program.kernels.size());
    const std::vector<TranslationUnit> units = translation_units(program);
    result.objects = Loader(program, compiler, parallel, where).load(units, result);
    for (std::size_t u = 0; u < units.size(); ++u)
        for (const int k : units[u].kernels) {
            const KernelText& kernel = program.kernels[static_cast<std::size_t>(k)];
            for (const std::string& entry : kernel.entries) {
                void* symbol = dlsym(result.objects[u].get(), entry.c_str());
                BITALE_CHECK(symbol, "kernel " + kernel.name + " has no entry " + entry);
                result.entries[static_cast<std::size_t>(k)].push_back(reinterpret_cast<KernelEntry>(symbol));
            }
        }
    log(1, fmt::format("{}: {} kernels in {} objects: {} from memory, {} from disk, {} compiled",
                       program.name, program.kernels.size(), units.size(), result.from_memory,
                       result.from_disk, result.compiler_runs));
    return result;
}

}  // namespace bitale
