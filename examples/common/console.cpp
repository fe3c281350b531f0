// Tables, a progress bar and Ctrl-C.
#include "common/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

using namespace bitale;

namespace {

// What the signal handler may touch.
std::atomic<Function*> running{nullptr};
std::atomic<bool> stop_asked{false};

void on_interrupt(int) {
    std::signal(SIGINT, SIG_DFL);
    stop_asked = true;
    if (Function* f = running) f->request_stop();
}

// Redraws a bar on stderr ten times a second.
class ProgressBar {
  public:
    ProgressBar(const Function& f, std::int64_t steps) : thread_([this, &f, steps] { draw(f, steps); }) {}
    ~ProgressBar() {
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

  private:
    void draw(const Function& f, std::int64_t steps) {
        constexpr std::int64_t width = 40;
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, std::chrono::milliseconds(100), [this] { return done_; })) {
            const std::int64_t done = std::min(f.steps_done(), steps), filled = done * width / steps;
            fmt::print(stderr, "\r  [{}{}] {}/{} ", std::string(filled, '='),
                       std::string(width - filled, ' '), done, steps);
        }
        fmt::print(stderr, "\r\033[K");
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
};

}  // namespace

Console::Console(const Settings& settings) : settings_(settings) { std::signal(SIGINT, on_interrupt); }
Console::~Console() { std::signal(SIGINT, SIG_DFL); }
bool Console::interrupted() const { return stop_asked; }

Results Console::watch(Function& f, std::int64_t steps, const std::function<Results()>& run) const {
    running = &f;
    if (stop_asked) f.request_stop();
    struct Reset {
        ~Reset() { running = nullptr; }
    } reset;
    if (settings_.quiet || isatty(STDERR_FILENO) == 0) return run();
    const ProgressBar bar(f, steps);
    return run();
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
    fmt::print("  a training step is {} kernels and library calls, compiled in {:.2f} s\n\n", run.kernels,
               run.compile_seconds);
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
    if (interrupted()) fmt::print("\n  stopped by Ctrl-C after a whole step\n");
    const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
    fmt::print("\n  training images on the device {:.2f} MB ({}), at most {:.2f} MB in all,\n",
               megabytes(run.data_bytes), settings_.storage, megabytes(run.peak_bytes));
    fmt::print("  {} kernels and library calls a step, compile time {:.2f} s\n", run.kernels,
               run.compile_seconds);
}
