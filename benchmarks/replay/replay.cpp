// bitale_replay: plans of the corpus as text files, for scripts/replay, which builds it with the library of
// either commit.
//   bitale_replay --list                        the graphs, a line each
//   bitale_replay GRAPH FOLDER REPEATS          writes FOLDER/TARGET/GRAPH/*
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/corpus/plans.h"

using namespace bitale::corpus;  // NOLINT

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path);
    file << text;
    if (!file.flush()) throw std::runtime_error(path.string() + " cannot be written");
}

std::string two_digits(std::size_t n) { return (n < 10 ? "0" : "") + std::to_string(n); }

void write_plan(const std::filesystem::path& folder, const Plan& plan, double milliseconds) {
    write(folder / "storage.txt", plan.storage);
    write(folder / "nests.txt", plan.nests);
    write(folder / "groups.txt", plan.groups);
    write(folder / "schedule.txt", plan.schedule);
    write(folder / "helpers.txt", plan.helpers);
    for (std::size_t k = 0; k < plan.kernels.size(); ++k)
        write(folder / "kernels" / (two_digits(k + 1) + ".txt"), plan.kernels[k]);
    write(folder / "numbers.txt",
          "nodes " + std::to_string(plan.nodes) + "\nlaunches " + std::to_string(plan.launches) +
              "\nkernels " + std::to_string(plan.kernels.size()) + "\ntext_bytes " +
              std::to_string(plan.text_bytes) + "\narena_bytes " + std::to_string(plan.arena_bytes) +
              "\nmilliseconds " + std::to_string(milliseconds) + "\n");
}

void replay(const std::string& name, const std::filesystem::path& folder, int repeats) {
    for (const auto& [target, description] : targets()) {
        const std::filesystem::path place = folder / target / name;
        try {
            std::vector<double> times;
            Plan plan;
            for (int k = 0; k < std::max(1, repeats); ++k) {
                plan = plan_of(make(name, Purpose::plan), description);
                times.push_back(plan.milliseconds);
            }
            std::sort(times.begin(), times.end());
            write_plan(place, plan, times[times.size() / 2]);
        } catch (const std::exception& e) {  // of one target; InternalError too
            write(place / "error.txt", std::string(e.what()) + "\n");
        }
    }
}

}  // namespace

int main(int count, char** arguments) {
    try {
        if (count == 2 && std::string(arguments[1]) == "--list") {
            for (const std::string& name : names()) std::puts(name.c_str());
            return 0;
        }
        if (count != 4) throw std::invalid_argument("usage: bitale_replay --list | GRAPH FOLDER REPEATS");
        replay(arguments[1], arguments[2], std::atoi(arguments[3]));
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bitale_replay: %s\n", e.what());
        return 1;
    }
}
