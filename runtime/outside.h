// More doors to the outside, of what only runs where programs run: threads, other programs, shared libraries.
// Calls of libraries and launches ask outside::refused() themselves: what is behind them is a table of
// functions (tests/layout/doors.cmake has the list of files).
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "graph/base/outside.h"

namespace bitale::outside {

// Nothing where the system makes no further thread, or has no memory for it.
std::optional<std::thread> start_thread(std::function<void()> work);

// As posix_spawn, or with a bare name posix_spawnp: an errno, or 0. The program gets our own environment,
// with the usual PATH where we have none. A process that runs with more rights than whoever started it takes
// neither PATH nor any other variable from there: several of them tell a compiler what to run.
int start_program(pid_t* process, const char* program, const posix_spawn_file_actions_t* actions,
                  const posix_spawnattr_t* attributes, char* const* arguments);

// As dlopen: null, and dlerror() or `problem` says why.
void* load_library(const std::string& path, int flags, std::string* problem = nullptr);

}  // namespace bitale::outside

namespace bitale {

// Runs `work` on up to `threads` threads, the caller's among them, and on fewer, with a warning, where the
// system refuses more. Returns when all have ended; the first exception of any of them is thrown then.
void run_on_threads(std::size_t threads, const std::function<void()>& work);
// That warning.
void warn_of_fewer_threads(std::size_t wanted, std::size_t got);

}  // namespace bitale
