// Reads the affinity mask, the topology and the cgroup quota of the process; asks for slices.
#include "runtime/cpu/affinity.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "graph/base/numbers.h"

namespace bitale {

namespace {

// The lowest CPU number that shares a core with `cpu`; the number itself where the kernel does not say.
int first_sibling(int cpu) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string list;  // "0,4" or "0-1", of which a stream would read "0,4" as one number in some locales
    int first = cpu;
    if (file >> list) std::from_chars(list.data(), list.data() + list.size(), first);
    return first;
}

// CPUs' worth of time that a cgroup directory grants; 0: no limit.
double quota_of(const std::string& directory) {
    std::ifstream unified(directory + "/cpu.max");
    std::string quota, period;
    if (!(unified >> quota >> period)) {
        std::ifstream quota_file(directory + "/cpu.cfs_quota_us"),
            period_file(directory + "/cpu.cfs_period_us");
        quota_file >> quota;
        period_file >> period;
    }
    // None is "max", or -1 in the files of old.
    const double granted = number_in(quota).value_or(0), per = number_in(period).value_or(0);
    return granted > 0 && per > 0 ? granted / per : 0;
}

// The smallest quota on the way from the process's cgroup up to the root; 0: no limit.
double cgroup_quota() {
    double least = 0;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (!controllers.empty() && controllers.find("cpu") == std::string::npos) continue;
        const std::string mount = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controllers;
        std::string path = line.substr(second + 1);
        for (;;) {
            const double quota = quota_of(mount + (path == "/" ? "" : path));
            if (quota > 0 && (least == 0 || quota < least)) least = quota;
            if (path.empty() || path == "/") break;
            path.resize(path.rfind('/'));
        }
    }
    return least;
}

// What sched_getattr and sched_setattr take, of which C libraries have no declaration.
struct SchedulingAttributes {
    std::uint32_t size = sizeof(SchedulingAttributes), policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 0, deadline = 0, period = 0;  // nanoseconds
};

constexpr std::uint64_t short_slice = 100'000;  // nanoseconds, the least that Linux takes
constexpr std::chrono::milliseconds calm{100};

bool get(SchedulingAttributes& now) {
    return syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) == 0 && now.policy == SCHED_OTHER;
}

// The slices that there were; 0: they cannot be set.
std::uint64_t set_slices(std::uint64_t nanoseconds) {
    SchedulingAttributes now;
    if (!get(now)) return 0;
    const std::uint64_t before = std::exchange(now.runtime, nanoseconds);
    return syscall(SYS_sched_setattr, 0, &now, 0) == 0 ? before : 0;
}

}  // namespace

std::uint64_t Slices::current() {
    SchedulingAttributes now;
    return get(now) ? now.runtime : 0;
}

void Slices::shorten() {
    last_ = std::chrono::steady_clock::now();
    if (before_ == 0) before_ = set_slices(short_slice);
}

void Slices::restore_if_calm() {
    if (std::chrono::steady_clock::now() - last_ < calm) return;
    set_slices(std::exchange(before_, 0));
}

std::vector<int> usable_cores() {
    std::vector<int> cores;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
        std::vector<int> taken;
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (!CPU_ISSET(cpu, &mask)) continue;
            const int core = first_sibling(cpu);
            if (std::find(taken.begin(), taken.end(), core) != taken.end()) continue;
            taken.push_back(core);
            cores.push_back(cpu);
        }
    }
    if (cores.empty())
        for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
            cores.push_back(static_cast<int>(i));
    if (const double quota = cgroup_quota(); quota > 0) {
        const auto most = static_cast<std::size_t>(std::max(1.0, quota + 0.5));
        if (cores.size() > most) cores.resize(most);
    }
    return cores;
}

}  // namespace bitale
