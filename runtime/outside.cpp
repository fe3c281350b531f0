#include "runtime/outside.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "graph/base/float_mode.h"
#include "graph/base/log.h"

extern char** environ;  // NOLINT: POSIX

namespace bitale::outside {

namespace {

// Where the usual PATH has the program; a file that is not there if it has none.
std::string in_usual_folder(const std::string& program) {
    for (const char* folder : {"/usr/local/bin/", "/usr/bin/", "/bin/"})
        if (access((folder + program).c_str(), X_OK) == 0) return folder + program;
    return "/usr/bin/" + program;
}

}  // namespace

std::optional<std::thread> start_thread(std::function<void()> work) {
    if (refused(Door::thread)) return std::nullopt;
    try {
        return std::thread([work = std::move(work)] {
            const DefaultFloatMode mode;  // not that of whoever made the first call
            work();
        });
    } catch (const std::system_error&) {
        return std::nullopt;
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

int start_program(pid_t* process, const char* program, const posix_spawn_file_actions_t* actions,
                  const posix_spawnattr_t* attributes, char* const* arguments) {
    int code = 0;
    if (refused(Door::spawn, &code)) return code;
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    std::vector<char*> variables;
    const bool is_trusted = getauxval(AT_SECURE) == 0;
    if (is_trusted) {
        if (getenv("PATH"))
            return (std::strchr(program, '/') ? posix_spawn : posix_spawnp)(process, program, actions,
                                                                            attributes, arguments, environ);
        for (char** variable = environ; variable && *variable; ++variable) variables.push_back(*variable);
    }
    variables.insert(variables.end(), {path, nullptr});
    const std::string found = std::strchr(program, '/') ? program : in_usual_folder(program);
    return posix_spawn(process, found.c_str(), actions, attributes, arguments, variables.data());
}

void* load_library(const std::string& path, int flags, std::string* problem) {
    if (refused(Door::load)) {
        if (problem) *problem = path + ": no memory";
        return nullptr;
    }
    occupy_closed_streams();
    void* handle = dlopen(path.c_str(), flags);
    if (const char* why = handle || !problem ? nullptr : dlerror()) *problem = why;
    return handle;
}

}  // namespace bitale::outside

namespace bitale {

void warn_of_fewer_threads(std::size_t wanted, std::size_t got) {
    warn("the system refuses threads: " + std::to_string(got) + " of " + std::to_string(wanted) +
         " do the work, more slowly (ulimit -u, or the container's pids.max)");
}

void run_on_threads(std::size_t threads, const std::function<void()>& work) {
    std::mutex mutex;
    std::exception_ptr failure;
    const auto guarded = [&] {
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    if (threads > 1) others.reserve(threads - 1);
    while (others.size() + 1 < threads) {
        // By reference: a copy might find no memory, and the others run already.
        std::optional<std::thread> thread = outside::start_thread(std::ref(guarded));
        if (!thread) break;
        others.push_back(*std::move(thread));
    }
    const std::size_t got = others.size() + 1;
    guarded();
    for (std::thread& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
    if (got < threads) warn_of_fewer_threads(threads, got);
}

}  // namespace bitale
