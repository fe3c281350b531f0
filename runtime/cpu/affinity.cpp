// Reads the affinity mask, the topology and the cgroup quota of the process.
#include "runtime/cpu/affinity.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace bitale {

namespace {

// The lowest CPU number that shares a core with `cpu`; the number itself where the kernel does not say.
int first_sibling(int cpu) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    int first = cpu;
    return file >> first ? first : cpu;
}

// CPUs' worth of time that a cgroup directory grants; 0: no limit.
double quota_of(const std::string& directory) {
    std::ifstream unified(directory + "/cpu.max");
    std::string quota;
    double period = 0;
    if (unified >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
    std::ifstream quota_file(directory + "/cpu.cfs_quota_us"), period_file(directory + "/cpu.cfs_period_us");
    double granted = 0;
    if (quota_file >> granted && period_file >> period && granted > 0 && period > 0) return granted / period;
    return 0;
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

}  // namespace

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
