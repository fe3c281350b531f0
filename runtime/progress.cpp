// What a loop says of itself.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bitale/function.h"

namespace bitale {

namespace {

// "0.31 s", "12 s", "3 min 20 s", "2 h 5 min".
std::string duration_text(double seconds) {
    if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
    const auto whole = static_cast<std::int64_t>(std::min(std::round(seconds), 1e15));
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
    return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string Progress::text() const {
    std::string s = fmt::format("{} of {} steps", done, steps);
    if (part && part->size() > 0 && (*part)[0].rank() == 1 && (*part)[0].size() > 0) {
        double sum = 0;
        for (const double x : (*part)[0].to_vector<double>()) sum += x;
        s += fmt::format(", {:.4g}", sum / static_cast<double>((*part)[0].size()));
    }
    if (seconds > 0) s += fmt::format(", {:.0f} steps/s", static_cast<double>(done) / seconds);
    return s + (done < steps ? ", " + duration_text(seconds_left) + " left" : ", " + duration_text(seconds));
}

void print_progress(const Progress& progress) {
    const bool terminal = isatty(STDERR_FILENO) != 0;
    const bool last = progress.done == progress.steps;
    const std::string line =
        (terminal ? "\r\033[K  " : "  ") + progress.text() + (terminal && !last ? "" : "\n");
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
}

}  // namespace bitale
