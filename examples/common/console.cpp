// Tables, progress, Ctrl-C and SIGTERM.
#include "common/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>

using namespace bitale;

namespace {

// What the signal handler may touch.
const StopToken stop;
std::atomic<int> signal_seen{0};

void on_signal(int number) {
    std::signal(number, SIG_DFL);
    signal_seen = number;
    stop.request();
}

}  // namespace

Console::Console(const Settings& settings) : settings_(settings) {
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, on_signal);
}
Console::~Console() {
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
}
bool Console::interrupted() const { return stop.requested(); }
int Console::status() const { return interrupted() ? 128 + signal_seen : 0; }

Results Console::loop(Function& f, std::int64_t steps) const {
    if (settings_.quiet || isatty(STDERR_FILENO) == 0) return f.loop(0, steps, stop);
    const LoopOptions options{
        .every = std::max<std::int64_t>(steps / 50, 1),
        .on_progress = [](const Progress& p) { fmt::print(stderr, "\r\033[K  {} ", p.text()); },
        .stop = stop};
    Results results = f.loop(0, steps, options);
    fmt::print(stderr, "\r\033[K");
    return results;
}

void Console::summary(const Json& run, const std::string& judge, const Parameters& params) const {
    if (settings_.quiet) return;
    std::string options;
    for (const Choice& choice : settings_.choices)
        options += fmt::format("{}{} {}", options.empty() ? " (" : ", ", choice.name, choice.value);
    fmt::print("{}{}: images as {}, minibatches of {}, seed {}\n", settings_.example,
               options.empty() ? "" : options + ")", settings_.storage, settings_.batch, settings_.seed);
    if (run.contains("source")) fmt::print("data: {}\n", run["source"].get<std::string>());
    fmt::print("\n{}\n", params.summary());
    fmt::print("  a training step is {} launches of kernels and library calls, compiled in {:.2f} s\n\n",
               run["kernels"].get<int>(), run["compile_seconds"].get<double>());
    const char* measure = settings_.accuracy ? "accuracy" : "error";
    fmt::print("  {:>5}  {:>10} {:>8}  {:>10} {:>8}  {:>8}  {:>9}\n", "epoch", "train loss", measure,
               judge + " loss", measure, "seconds", "images/s");
    std::fflush(stdout);
}

double Console::shown(const Score& score) const {
    return 100 * (settings_.accuracy ? 1 - score.error : score.error);
}

void Console::row(int epoch, const Score& train, const Score& judged, double seconds,
                  std::int64_t images) const {
    if (settings_.quiet) return;
    fmt::print("  {:>5}  {:>10.4f} {:>7.2f}%  {:>10.4f} {:>7.2f}%  {:>8.2f}  {:>9.0f}\n", epoch, train.loss,
               shown(train), judged.loss, shown(judged), seconds,
               static_cast<double>(images) / std::max(seconds, 1e-9));
    std::fflush(stdout);
}

void Console::trained(const std::string& set, const Score& score) const {
    if (settings_.quiet) return;
    if (set == "train")
        fmt::print("\n  as trained  {:>10} {:>8}\n", "loss", settings_.accuracy ? "accuracy" : "error");
    fmt::print("  {:<10}  {:>10.4f} {:>7.2f}%\n", set, score.loss, shown(score));
}

void Console::end(const Json& run) const {
    if (settings_.quiet) return;
    if (interrupted())
        fmt::print("\n  stopped by {} after a whole step\n", signal_seen == SIGTERM ? "SIGTERM" : "Ctrl-C");
    fmt::print("\n  training images on the device {:.2f} MB ({}), at most {:.2f} MB in all,\n",
               run["data_bytes"].get<double>() / 1e6, settings_.storage,
               run["peak_bytes"].get<double>() / 1e6);
    fmt::print("  {} launches a step, compile time {:.2f} s\n", run["kernels"].get<int>(),
               run["compile_seconds"].get<double>());
}
