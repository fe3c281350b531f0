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
    const auto show = [](const Progress& p) { fmt::print(stderr, "\r\033[K  {} ", p.text()); };
    const LoopOptions options{
        .every = std::max<std::int64_t>(steps / 50, 1), .on_progress = show, .stop = stop};
    Results results = f.loop(0, steps, options);
    fmt::print(stderr, "\r\033[K");
    return results;
}

void Console::summary(const RunResults& run, const std::vector<Shared>& params) const {
    if (settings_.quiet) return;
    std::string options;
    for (const Choice& choice : settings_.choices)
        options += fmt::format("{}{} {}", options.empty() ? " (" : ", ", choice.name, choice.value);
    fmt::print("{}{}: images as {}, minibatches of {}, seed {}\n", settings_.example,
               options.empty() ? "" : options + ")", settings_.storage, settings_.batch, settings_.seed);
    if (!run.source.empty()) fmt::print("data: {}\n", run.source);
    fmt::print("\n  {:<12} {:<20} {:>12}\n", "parameter", "shape", "values");
    std::int64_t total = 0;
    for (const Shared& param : params) {
        fmt::print("  {:<12} {:<20} {:>12}\n", param.name(), text_of(param.shape()), count_of(param.shape()));
        total += count_of(param.shape());
    }
    fmt::print("  {:<33} {:>12}\n\n", "total", total);
    fmt::print("  a training step is {} launches of kernels and library calls, compiled in {:.2f} s\n\n",
               run.kernels, run.compile_seconds);
    const char* measure = settings_.accuracy ? "accuracy" : "error";
    fmt::print("  {:>5}  {:>10} {:>8}  {:>10} {:>8}  {:>8}  {:>9}\n", "epoch", "train loss", measure,
               run.judge + " loss", measure, "seconds", "images/s");
    std::fflush(stdout);
}

double Console::shown(const Score& score) const {
    return 100 * (settings_.accuracy ? 1 - score.error : score.error);
}

void Console::row(const EpochResult& e, std::int64_t images) const {
    if (settings_.quiet) return;
    fmt::print("  {:>5}  {:>10.4f} {:>7.2f}%  {:>10.4f} {:>7.2f}%  {:>8.2f}  {:>9.0f}\n", e.epoch,
               e.train.loss, shown(e.train), e.judged.loss, shown(e.judged), e.seconds,
               static_cast<double>(images) / std::max(e.seconds, 1e-9));
    std::fflush(stdout);
}

void Console::scores(const std::vector<SetResult>& trained) const {
    if (settings_.quiet || trained.empty()) return;
    fmt::print("\n  as trained  {:>10} {:>8}\n", "loss", settings_.accuracy ? "accuracy" : "error");
    for (const SetResult& r : trained)
        fmt::print("  {:<10}  {:>10.4f} {:>7.2f}%\n", r.set, r.score.loss, shown(r.score));
}

void Console::end(const RunResults& run) const {
    if (settings_.quiet) return;
    if (interrupted())
        fmt::print("\n  stopped by {} after a whole step\n", signal_seen == SIGTERM ? "SIGTERM" : "Ctrl-C");
    const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
    fmt::print("\n  training images on the device {:.2f} MB ({}), at most {:.2f} MB in all,\n",
               megabytes(run.data_bytes), settings_.storage, megabytes(run.peak_bytes));
    fmt::print("  {} launches a step, compile time {:.2f} s\n", run.kernels, run.compile_seconds);
}

void Console::report(const Function& f) const {
    if (!settings_.quiet) fmt::print("\n{}", f.report());
}
