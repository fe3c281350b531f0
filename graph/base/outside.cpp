#include "graph/base/outside.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "graph/base/faults.h"

namespace bitale::outside {

namespace {

// A write past a limit of file sizes, or into a pipe that nobody reads, raises a signal that would end the
// program. It goes to the thread that writes, which keeps it off meanwhile and takes it away afterwards.
class WithoutSignals {
  public:
    WithoutSignals() {
        sigset_t pending;
        sigemptyset(&ours_);
        sigpending(&pending);
        for (const int s : {SIGXFSZ, SIGPIPE})
            if (sigismember(&pending, s) == 0) sigaddset(&ours_, s);
        pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    }
    ~WithoutSignals() {
        const int code = errno;
        const timespec now{};
        while (sigtimedwait(&ours_, nullptr, &now) > 0 || errno == EINTR) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = code;
    }
    WithoutSignals(const WithoutSignals&) = delete;
    WithoutSignals& operator=(const WithoutSignals&) = delete;

  private:
    sigset_t ours_{}, before_{};
};

bool shut(Door door) {
    int code = 0;
    if (!refused(door, &code)) return false;
    errno = code;
    return true;
}

#if defined(BITALE_FAULTS)
void tell(FileEvent::What what, int file, const std::string& path, const std::string& other = "",
          std::string_view bytes = {});
#define BITALE_TELL(...) tell(FileEvent::What::__VA_ARGS__)
#else
#define BITALE_TELL(...) static_cast<void>(0)
#endif

constexpr int first_number = STDERR_FILENO + 1;

bool is_stream(int file) { return file >= 0 && file < first_number; }

}  // namespace

void occupy_closed_streams() {
    const auto all_are_taken = [] {
        for (int stream = 0; stream < first_number; ++stream)
            if (fcntl(stream, F_GETFD) < 0) return false;
        return true;
    };
    if (all_are_taken()) return;
    // A link as such can be opened by no path either: a save to /dev/stdout stays an error.
    for (const char* path : {"/proc/self", "/dev/null", "/"}) {
        int file = -1;
        while (is_stream(file = ::open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC))) {
        }
        if (file < 0) continue;
        close(file);
        return;
    }
}

int open_file(const std::string& path, int flags, unsigned mode) {
    if (shut(Door::open)) return -1;
    if (has_nul(path)) {
        errno = EINVAL;
        return -1;
    }
    constexpr int attempts = 10;
    for (int i = 0; i < attempts;) {
        occupy_closed_streams();
        const int file = ::open(path.c_str(), flags | O_CLOEXEC, mode);
        if (file < 0 && errno == EINTR) continue;
        if (!is_stream(file)) {
            if (file >= 0) BITALE_TELL(opened, file, path);
            return file;
        }
        // The program has closed a stream just now, and may have printed into a file that was made.
        if ((flags & O_EXCL) != 0) unlink(path.c_str());
        close(file);
        ++i;
    }
    errno = EMFILE;
    return -1;
}

int open_again(int file) { return fcntl(file, F_DUPFD_CLOEXEC, first_number); }

int open_pipe(int (&ends)[2]) {
    occupy_closed_streams();
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    bool complete = true;
    for (int& end : ends) {
        if (!is_stream(end)) continue;
        const int low = std::exchange(end, open_again(end));
        complete = complete && end >= 0;
        close(low);
    }
    if (complete) return 0;
    for (const int end : ends)
        if (end >= 0) close(end);
    errno = EMFILE;
    return -1;
}

int sync_file(int file) {
    if (shut(Door::sync)) return -1;
    int status = 0;
    do {
        status = fsync(file);
    } while (status < 0 && errno == EINTR);
    if (status == 0) BITALE_TELL(synced, file, "");
    return status;
}

int rename_file(const std::string& from, const std::string& to) {
    if (shut(Door::rename)) return -1;
    const int status = std::rename(from.c_str(), to.c_str());
    if (status == 0) BITALE_TELL(renamed, -1, from, to);
    return status;
}

int remove_file(const std::string& path) {
    if (shut(Door::remove)) return -1;
    const int status = unlink(path.c_str());
    if (status == 0) BITALE_TELL(removed, -1, path);
    return status;
}

int remove_folder(const std::string& path) { return shut(Door::remove) ? -1 : rmdir(path.c_str()); }

int make_folder(const std::string& path, unsigned mode) {
    return shut(Door::folder) ? -1 : mkdir(path.c_str(), mode);
}

int make_folders(const std::string& path) {
    struct stat s {};
    for (std::size_t at = 0; at != std::string::npos;) {
        at = path.find('/', at + 1);
        const std::string part = path.substr(0, at);
        if (stat(part.c_str(), &s) == 0 && S_ISDIR(s.st_mode)) continue;
        if (make_folder(part, 0777) != 0 && errno != EEXIST) return -1;
    }
    if (stat(path.c_str(), &s) == 0 && !S_ISDIR(s.st_mode)) errno = ENOTDIR;
    return S_ISDIR(s.st_mode) ? 0 : -1;
}

bool write_all(int file, std::string_view bytes) {
    constexpr std::size_t most = std::size_t{1} << 30;
    const WithoutSignals quiet;
    while (!bytes.empty()) {
        if (shut(Door::write)) return false;
        const ssize_t n = ::write(file, bytes.data(), std::min(most, bytes.size()));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            if (n == 0) errno = ENOSPC;
            return false;
        }
        BITALE_TELL(written, file, "", "", bytes.substr(0, static_cast<std::size_t>(n)));
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

void* aligned_memory(std::size_t alignment, std::size_t bytes) {
    void* p = nullptr;
    return shut(Door::memory) || posix_memalign(&p, alignment, bytes) != 0 ? nullptr : p;
}

std::string unpredictable_name(std::string_view beginning) {
    unsigned long long bits = 0;
    // A system that old: nothing depends on it but that two names differ, which O_EXCL makes sure of.
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
        bits = static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch().count()) *
               0x9e3779b97f4a7c15u;
    char number[17];
    std::snprintf(number, sizeof number, "%016llx", bits);
    return std::string(beginning) + number;
}

#if !defined(BITALE_FAULTS)

bool refused(Door, int*) { return false; }

}  // namespace bitale::outside

#else

}  // namespace bitale::outside

#include <charconv>
#include <mutex>
#include <thread>

namespace bitale::outside {

namespace {

constexpr const char* names[doors] = {"memory",  "open",   "write",        "sync",   "rename",
                                      "remove",  "folder", "spawn",        "thread", "load",
                                      "library", "launch", "device_memory"};

struct State {
    std::mutex mutex;
    std::optional<Fault> fault;
    Uses uses;
    std::function<void(const FileEvent&)> observer;
    State() {
        const char* text = secure_getenv("FAULTS");
        if (!text || !*text) return;
        fault = parse_fault(text);
        if (fault) return;
        std::fprintf(stderr, "[bitale] FAULTS=%s is no fault: DOOR:NUMBER[+][:kill|:wait=MS]\n", text);
        std::abort();
    }
};
State& state() {
    static State& s = *new State;
    return s;
}

// As the system would say it.
int code_of(Door door) {
    switch (door) {
        case Door::write: return ENOSPC;
        case Door::sync:
        case Door::remove: return EIO;
        case Door::rename:
        case Door::folder: return EACCES;
        case Door::open: return EMFILE;
        case Door::spawn:
        case Door::thread: return EAGAIN;
        default: return ENOMEM;
    }
}

void tell(FileEvent::What what, int file, const std::string& path, const std::string& other,
          std::string_view bytes) {
    std::function<void(const FileEvent&)> observer;
    {
        const std::lock_guard lock(state().mutex);
        observer = state().observer;
    }
    if (observer) observer({what, file, path, other, std::string(bytes)});
}

}  // namespace

const char* name_of(Door door) { return names[static_cast<int>(door)]; }

std::optional<Fault> parse_fault(std::string_view text) {
    Fault fault;
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view door = text.substr(0, colon);
    if (door != "any") {
        const auto* at = std::find(std::begin(names), std::end(names), door);
        if (at == std::end(names)) return std::nullopt;
        fault.door = static_cast<Door>(at - std::begin(names));
    }
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + colon + 1, end, fault.number);
    if (problem != std::errc() || fault.number < 1) return std::nullopt;
    std::string_view rest(stop, static_cast<std::size_t>(end - stop));
    if (rest.starts_with('+')) {
        fault.onwards = true;
        rest.remove_prefix(1);
    }
    if (rest.empty()) return fault;
    if (rest == ":kill") {
        fault.what = Fault::What::kill;
        return fault;
    }
    constexpr std::string_view wait = ":wait=";
    if (!rest.starts_with(wait)) return std::nullopt;
    fault.what = Fault::What::wait;
    const auto [last, wrong] = std::from_chars(rest.data() + wait.size(), end, fault.milliseconds);
    return wrong == std::errc() && last == end ? std::optional(fault) : std::nullopt;
}

void plant(const std::optional<Fault>& fault) {
    const std::lock_guard lock(state().mutex);
    state().fault = fault;
    state().uses = {};
}

Uses uses() {
    const std::lock_guard lock(state().mutex);
    return state().uses;
}

void observe(std::function<void(const FileEvent&)> observer) {
    const std::lock_guard lock(state().mutex);
    state().observer = std::move(observer);
}

bool refused(Door door, int* code) {
    Fault::What what = Fault::What::fail;
    int milliseconds = 0;
    {
        State& s = state();
        const std::lock_guard lock(s.mutex);
        const std::int64_t all = ++s.uses.all, own = ++s.uses.of[static_cast<std::size_t>(door)];
        if (!s.fault || (s.fault->door && *s.fault->door != door)) return false;
        const std::int64_t number = s.fault->door ? own : all;
        if (number < s.fault->number || (number > s.fault->number && !s.fault->onwards)) return false;
        ++s.uses.met;
        s.uses.last_met = door;
        what = s.fault->what;
        milliseconds = s.fault->milliseconds;
    }
    if (what == Fault::What::kill) kill(getpid(), SIGKILL);
    if (what == Fault::What::wait) {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        return false;
    }
    if (code) *code = code_of(door);
    return true;
}

}  // namespace bitale::outside

#endif
