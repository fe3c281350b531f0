// The doors to the outside: what a program asks of the system, and what the system may refuse, is asked here
// and nowhere else (tests/layout/doors.cmake). Behind each door tests can make it refuse
// (graph/base/faults.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bitale::outside {

enum class Door : std::uint8_t {
    memory,  // of tensors; what C++ allocates by itself is failed by an operator new of the test's
    open,
    write,
    sync,
    rename,
    remove,
    folder,
    spawn,
    thread,
    load,     // of a shared library or a compiled object
    library,  // a call of a library that computes
    launch,   // of a kernel on a GPU
    device_memory,
};
constexpr int doors = static_cast<int>(Door::device_memory) + 1;

// Whether the door is shut; `code` is then an errno. False, and nothing else, unless faults are compiled in.
bool refused(Door door, int* code = nullptr);

// The system would read a path up to its first NUL, and so find another file.
inline bool has_nul(std::string_view path) { return path.find('\0') != std::string_view::npos; }

// Where the program has closed standard streams, as daemons do, the system would give their numbers to files,
// and what a thread prints would go into them. This takes the numbers first, for good: nothing can be read
// from what lies there then, nor written to it, as if it were closed. For before what is opened elsewhere;
// the functions below do it themselves.
void occupy_closed_streams();

// As the functions of POSIX, but that they go on after signals: a number below 0, and errno. What they open
// is never a standard stream.
int open_file(const std::string& path, int flags, unsigned mode = 0);  // closed in programs that are started
int open_again(int file);                                              // as dup
int open_pipe(int (&ends)[2]);  // to read and to write; both closed in programs that are started
int sync_file(int file);
int rename_file(const std::string& from, const std::string& to);
int remove_file(const std::string& path);
int remove_folder(const std::string& path);
int make_folder(const std::string& path, unsigned mode);
int make_folders(const std::string& path);  // and those above it; no failure where it is there
// All of it; a limit of file sizes and a reader that went away are errors, no signals.
bool write_all(int file, std::string_view bytes);

// 64-byte aligned and more, given back with std::free; null where there is none.
void* aligned_memory(std::size_t alignment, std::size_t bytes);

// The beginning and sixteen characters that another process cannot foresee.
std::string unpredictable_name(std::string_view beginning);

}  // namespace bitale::outside
