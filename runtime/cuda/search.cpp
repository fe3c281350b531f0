#include "runtime/cuda/search.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <set>
#include <utility>

#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "runtime/outside.h"

namespace bitale::cuda {

namespace {

std::string variable(const char* name) {
    const char* value = secure_getenv(name);
    return value ? value : "";
}

std::vector<std::string> folders_in(std::string_view text) {
    std::vector<std::string> folders = split(text, ":");
    std::erase(folders, "");
    return folders;
}

std::vector<std::string> expanded(const std::string& pattern) {
    std::vector<std::string> paths;
    glob_t found{};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
        for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
    globfree(&found);
    return paths;
}

// The folders with the packages of Python installations.
std::vector<std::string> python_folders() {
    std::vector<std::string> prefixes;
    if (const std::string environment = variable("VIRTUAL_ENV"); !environment.empty())
        prefixes.push_back(environment);
    if (const std::string home = variable("HOME"); !home.empty()) prefixes.push_back(home + "/.local");
    for (const std::string& folder : folders_in(variable("PATH")))
        if (access((folder + "/python3").c_str(), X_OK) == 0) prefixes.push_back(folder + "/..");
    prefixes.insert(prefixes.end(), {"/usr/local", "/usr"});
    std::vector<std::string> folders;
    for (const std::string& prefix : prefixes)
        for (const char* packages :
             {"/lib/python3*/site-packages", "/lib/python3*/dist-packages", "/lib/python3/dist-packages"})
            for (std::string& folder : expanded(prefix + packages)) folders.push_back(std::move(folder));
    return folders;
}

class Candidates {
  public:
    explicit Candidates(const LibraryName& name) : name_(name) {}

    void bare() { add(""); }
    // A toolkit's prefix, or a folder that holds the files, or one with Python packages.
    void folder(const std::string& path) {
        for (const char* inside : {"/lib64/", "/lib/", "/"}) add(path + inside);
        packages(path);
    }
    void packages(const std::string& path) {
        for (const int major : name_.majors) add_existing(fmt::format("{}/nvidia/cu{}/lib/", path, major));
        add_existing(fmt::format("{}/nvidia/{}/lib/", path, name_.wheel));
    }
    std::vector<std::string> list() && { return std::move(list_); }

  private:
    std::string file(int major) const { return fmt::format("{}.so.{}", name_.stem, major); }
    void add(const std::string& folder) {
        for (const int major : name_.majors) keep(folder + file(major));
    }
    void add_existing(const std::string& folder) {
        for (const int major : name_.majors)
            if (access((folder + file(major)).c_str(), R_OK) == 0) keep(folder + file(major));
    }
    void keep(std::string path) {
        if (seen_.insert(path).second) list_.push_back(std::move(path));
    }

    const LibraryName& name_;
    std::vector<std::string> list_;
    std::set<std::string> seen_;
};

// NVRTC finds its builtins by bare name only, and has no path of its own to look in: opened first, they are
// already there when it asks.
void open_builtins(const std::string& folder) {
    for (const std::string& builtins : expanded(folder + "/libnvrtc-builtins.so.*"))
        outside::load_library(builtins, RTLD_NOW | RTLD_GLOBAL);
}

std::string folder_of(void* library) {
    char folder[PATH_MAX] = "";
    return dlinfo(library, RTLD_DI_ORIGIN, folder) == 0 ? folder : "";
}

// cuDNN opens an NVRTC of its own accord when it plans with engines that it compiles, from these folders
// beside its own. Whether their builtins are there must not depend on whether we have opened NVRTC.
void open_builtins_for_cudnn(const std::string& folder) {
    for (const char* beside : {"", "/../../cuda_nvrtc/lib", "/../../cu13/lib"})
        open_builtins(folder + beside);
}

}  // namespace

std::vector<std::string> library_candidates(const LibraryName& name) {
    Candidates candidates(name);
    for (const std::string& folder : folders_in(options().cuda_home)) candidates.folder(folder);
    candidates.bare();
    for (const char* home : {"CUDA_HOME", "CUDA_PATH"})
        for (const std::string& folder : folders_in(variable(home))) candidates.folder(folder);
    candidates.folder("/usr/local/cuda");
    for (const std::string& folder : python_folders()) candidates.packages(folder);
    return std::move(candidates).list();
}

std::string file_identity(const std::string& path) {
    char real[PATH_MAX];
    struct stat s {};
    if (!realpath(path.c_str(), real) || stat(real, &s) != 0) return "";
    return fmt::format("{} {} {}.{}", real, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

SharedLibrary::SharedLibrary(const LibraryName& name, const Judge& judge) {
    void* close = nullptr;
    std::string close_path;
    std::vector<std::string> others;  // than that one
    for (const std::string& path : library_candidates(name)) {
        const bool is_file = path.find('/') != std::string::npos;
        if (is_file && access(path.c_str(), R_OK) != 0) continue;
        if (is_file && name.stem == "libnvrtc") open_builtins(path.substr(0, path.rfind('/')));
        handle_ = outside::load_library(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle_) {
            const char* words = dlerror();
            const std::string why = words ? words : path;
            if (is_file) passed_over_.push_back(why);
            if (is_file) others.push_back(why);
            if (problem_.empty()) problem_ = why;
            continue;
        }
        if (handle_ == close) {  // under another name
            dlclose(handle_);
            continue;
        }
        path_ = path;
        const Verdict verdict = judge ? judge(*this) : Verdict{};
        if (verdict.serves == Serves::yes) {
            if (name.stem == "libcudnn") open_builtins_for_cudnn(folder_of(handle_));
            problem_.clear();
            log(1, fmt::format("{}: opened {}", name.title, path));
            for (const std::string& other : passed_over_)
                log(1, fmt::format("{}: passed over {}", name.title, other));
            return;
        }
        if (!verdict.why.empty()) passed_over_.push_back(verdict.why);
        if (verdict.serves == Serves::comes_close && !close) {
            close = handle_;
            close_path = path;
        } else {
            if (!verdict.why.empty()) others.push_back(verdict.why);
            // So that the loader does not take it for another of the same name. Nothing of one that lacks
            // functions has been used.
            if (verdict.serves == Serves::no) dlclose(handle_);
        }
    }
    handle_ = close;
    path_ = close_path;
    if (close) {
        problem_.clear();
        passed_over_ = std::move(others);
    } else if (!passed_over_.empty()) {
        problem_ = fmt::format("{}", fmt::join(passed_over_, "; "));
    }
}

void* SharedLibrary::symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

}  // namespace bitale::cuda
