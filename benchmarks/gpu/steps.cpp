// gpu_steps: one training step of networks.json on a device, for scripts/gpu_check: whether it is right, how
// long it takes, and of what. Writes all it finds out into one JSON file, item by item.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "common/networks.h"
#include "gpu/clocks.h"
#include "gpu/compare.h"
#include "gpu/describe.h"
#include "gpu/record.h"
#include "gpu/settle.h"
#include "graph/base/options.h"
#include "runtime/exec/device.h"
#include "runtime/state.h"

using namespace bitale;
using bench::Json;

namespace {

struct Settings {
    std::string workload, device, json, check, storage = "uint8", graphs, data;
    std::vector<std::string> only;
    std::int64_t batch = 0, steps = 0, rounds = 0;
    int threads = 0;
    std::uint64_t check_seed = 0;
    bool reduced = false, profile = false;
};

Settings parse(int argc, char** argv) {
    Settings s;
    CLI::App app("One training step of the benchmarks' networks on a device", "gpu_steps");
    app.add_option("--workload", s.workload, "a, b20, b128, c8, c128, d, e, e64 or another of networks.json")
        ->required();
    app.add_option("--device", s.device, "cuda, cuda:1, emulator, cpu; default: Bitale's own choice");
    app.add_option("--json", s.json, "The file of the results");
    app.add_option("--batch", s.batch, "Images of a step; default: the workload's own")
        ->check(CLI::PositiveNumber);
    app.add_option("--check", s.check, "Compare losses and parameters with those of this device");
    app.add_option("--steps", s.steps, "Steps of the comparison; default: 10")->check(CLI::PositiveNumber);
    app.add_option("--rounds", s.rounds, "Rounds of each measurement; default: 7")
        ->check(CLI::PositiveNumber);
    app.add_flag("--profile", s.profile, "Times of each kernel, in a run of its own");
    app.add_flag("--reduced", s.reduced, "Fewer images, rounds and steps: for the emulator");
    app.add_option("--graphs", s.graphs, "The most that one launch may hold")
        ->check(CLI::IsMember({"loop", "step", "off"}));
    app.add_option("--threads", s.threads, "Of the cpu device")->check(CLI::PositiveNumber);
    app.add_option("--storage", s.storage, "How the images are kept")
        ->check(CLI::IsMember({"uint8", "float32"}));
    app.add_option("--data", s.data,
                   "The folder of MNIST's files; default: $BITALE_DATA, else the source tree");
    app.add_option("--only", s.only,
                   "Only this item: build, check, loop, calls, profile, report; may be repeated");
    // So that the tests can see the comparison fail: other initial values on the device of --check.
    app.add_option("--check-seed", s.check_seed, "")->group("");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        std::exit(app.exit(error));
    }
    return s;
}

// Bitale reads its options at the first use, which is yet to come.
void add_flag(const std::string& flag) {
    const char* before = std::getenv("BITALE_FLAGS");
    setenv("BITALE_FLAGS", ((before && *before ? std::string(before) + "," : "") + flag).c_str(), 1);
}

class Steps {
  public:
    explicit Steps(Settings settings) : s_(std::move(settings)) {
        const std::int64_t whole = bench::batch_of(s_.workload);
        std::int64_t images = 0;
        if (s_.reduced) {
            images = bench::reduced_images;
            reduced_ = {{"images", images}};
            if (const std::int64_t few = bench::reduced_batch(s_.workload); s_.batch == 0 && whole > few) {
                s_.batch = few;
                reduced_["batch"] = s_.batch;
            }
        }
        if (s_.steps == 0) s_.steps = s_.reduced ? 2 : 10;
        if (s_.rounds == 0) s_.rounds = s_.reduced ? 2 : 7;
        if (s_.reduced) reduced_.update({{"steps", s_.steps}, {"rounds", s_.rounds}});
        data_ = bench::data_of(s_.workload, s_.data, images);
    }

    int run() {
        Json head = {{"program", "gpu_steps"},
                     {"workload", s_.workload},
                     {"device", s_.device.empty() ? options().device : s_.device},
                     {"batch", s_.batch > 0 ? s_.batch : bench::batch_of(s_.workload)},
                     {"storage", s_.storage},
                     {"images", data_.images.shape()[0]},
                     {"data", data_.source},
                     {"flags", std::getenv("BITALE_FLAGS") ? std::getenv("BITALE_FLAGS") : ""}};
        if (s_.reduced) head["reduced"] = reduced_;
        bench::Record record(s_.json, std::move(head), s_.only);
        record.gone = [&] { return gone(); };
        record_ = &record;
        // Everything else works on what this makes.
        if (!record.wanted("build")) tested_ = compile(s_.device, 0, false);
        if (!record.item("build", [&] { return build(); }) && !tested_) record.stop("there is no function");
        if (!s_.check.empty()) record.item("check", [&] { return check(); });
        record.item("loop", [&] { return measure(false); });
        record.item("calls", [&] { return measure(true); });
        if (s_.profile) record.item("profile", [&] { return profile(); });
        record.item("report", [&] { return report(); });
        return record.finish();
    }

  private:
    std::unique_ptr<bench::Workload> compile(const std::string& device, std::uint64_t seed,
                                             bool profile) const {
        return std::make_unique<bench::Workload>(bench::compile(
            s_.workload, data_,
            {.storage = s_.storage, .device = device, .batch = s_.batch, .seed = seed, .profile = profile}));
    }

    // Why nothing more can be had from the device; empty while it lives.
    std::string gone() const {
        if (!tested_) return "";
        try {
            for (const Shared& p : tested_->params) p.get_value();
            return "";
        } catch (const DeviceError& e) {
            return std::string("the device is gone: ") + e.what();
        }
    }

    Json build() {
        tested_ = compile(s_.device, 0, false);
        const Function& f = tested_->step;
        return {{"summary", f.state().device->summary()},
                {"compile_seconds", f.compile_seconds()},
                {"compiler_runs", f.compiler_runs()},
                {"target", f.state().program ? f.state().program->target : ""},
                {"kernels", bench::describe(f, std::int64_t{0})}};
    }

    Json check();
    Json measure(bool by_calls);
    Json profile();
    bench::Clocks& clocks() {
        if (!clocks_) clocks_ = bench::clocks_of(s_.device.empty() ? options().device : s_.device);
        return *clocks_;
    }

    Json report() {
        const std::string text = tested_->step.report(Detail::complete);
        Json r = {{"text", text},
                  {"launches", tested_->step.state().executable->launches()},
                  {"arena_bytes", tested_->step.peak_bytes()}};
        std::smatch found;
        if (std::regex_search(text, found, std::regex("a step is ([0-9]+) nodes")))
            r["nodes"] = std::stoi(found[1]);
        return r;
    }

    // The next steps, with their losses.
    static std::vector<double> train(bench::Workload& w, std::int64_t& next, std::int64_t count) {
        std::vector<double> losses;
        while (count > 0) {
            const std::int64_t first = next % w.steps, steps = std::min(count, w.steps - first);
            const Results r = w.step.loop(first, first + steps);
            const std::vector<double> some = r[0].to_vector<double>();
            losses.insert(losses.end(), some.begin(), some.end());
            next += steps;
            count -= steps;
        }
        return losses;
    }

    Settings s_;
    Json reduced_;
    bench::DataSet data_;
    std::unique_ptr<bench::Workload> tested_;
    std::int64_t next_ = 0;  // step of tested_
    bench::Record* record_ = nullptr;
    std::optional<bench::Clocks> clocks_;
};

// Generated kernels add in an order that the function fixes, whatever the device: where no library takes part
// on either side, the bits are the same. A library adds in an order of its own. How far that carries was
// measured on a CPU, products by oneDNN against generated ones, at the networks' own sizes and data: after
// one step and after two, parameters differ by at most 2e-6 of the largest magnitude of their array, with
// Adam, which divides gradients that nearly cancel by their own size, by 5e-5. The bound is ten times that.
// Later a relu or a maximum that is nearly undecided may go the other way for one image, which changes single
// elements by a percent; then losses (of ten steps: by 2e-5) and root mean squares (by 4e-3) tell
// what is right.
constexpr double early_bound = 5e-4, loss_bound = 1e-3, late_bound = 4e-2;

Json Steps::check() {
    const std::unique_ptr<bench::Workload> reference = compile(s_.check, s_.check_seed, false);
    // Both from the start.
    std::unique_ptr<bench::Workload> fresh;
    if (next_ > 0) fresh = compile(s_.device, 0, false);
    bench::Workload& tested = fresh ? *fresh : *tested_;
    bool library = false;
    for (const bench::Workload* w : {&tested, reference.get()})
        for (const Kernel& k : w->step.kernels()) library = library || k.by_library;

    Json r = {{"against", s_.check},
              {"steps", s_.steps},
              {"library", library},
              {"bounds",
               {{"two_steps", library ? early_bound : 0},
                {"losses", library ? loss_bound : 0},
                {"last_rms", library ? late_bound : 0}}}};
    std::vector<std::string> wrong;
    Json& parameters = r["parameters"] = Json::array();
    for (const Shared& p : reference->params)
        parameters.push_back({{"name", p.name()}, {"shape", p.shape()}});
    const auto compare = [&](const char* when, bool early) {
        for (std::size_t k = 0; k < tested.params.size(); ++k) {
            const bench::Difference d =
                bench::difference(tested.params[k].get_value(), reference->params[k].get_value());
            parameters[k][when] = bench::json_of(d);
            const bool right = !library ? d.same : early ? d.largest <= early_bound : d.rms <= late_bound;
            if (!right)
                wrong.push_back(fmt::format("{} differs by {:.3g} of its largest magnitude ({})",
                                            tested.params[k].name(), d.largest, when));
        }
    };
    std::int64_t a = 0, b = 0;
    std::vector<double> got, expected;
    const auto steps = [&](std::int64_t count) {
        const std::vector<double> x = train(tested, a, count), y = train(*reference, b, count);
        got.insert(got.end(), x.begin(), x.end());
        expected.insert(expected.end(), y.begin(), y.end());
    };
    // The first step is launched kernel by kernel, the next ones as graphs where there are some.
    steps(1);
    compare("after_first", true);
    if (s_.steps > 1) {
        steps(1);
        compare("after_second", true);
    }
    if (s_.steps > 2) {
        steps(s_.steps - 2);
        compare("after_last", false);
    }
    r["losses"] = {{"got", got}, {"expected", expected}};
    double worst = 0;
    for (std::size_t k = 0; k < got.size(); ++k) {
        const double by = std::abs(got[k] - expected[k]) / std::max(std::abs(expected[k]), 1e-30);
        worst = std::isnan(by) ? INFINITY : std::max(worst, by);
    }
    r["loss_difference"] = worst;
    if (!(worst <= (library ? loss_bound : 0)))
        wrong.push_back(fmt::format("the losses differ by {:.3g}", worst));
    if (!fresh) next_ = a;
    if (wrong.empty()) return r;
    std::string why = fmt::format("{} and {} disagree: ", tested.step.state().device->name(), s_.check);
    for (std::size_t k = 0; k < wrong.size(); ++k) why += (k ? "; " : "") + wrong[k];
    throw bench::Wrong(why, r);
}

// A round is as many steps as take a tenth of a second, at most 5,000, as for the peers (peers/gpu.py).
Json Steps::measure(bool by_calls) {
    using Clock = std::chrono::steady_clock;
    constexpr std::int64_t few = 20, least = 3, most = 5000;
    bench::Workload& w = *tested_;
    double loss = 0;
    const auto run = [&](std::int64_t count) {
        const Clock::time_point start = Clock::now();
        if (by_calls) {
            for (std::int64_t k = 0; k < count; ++k, ++next_) loss = w.step(next_ % w.steps);
        } else {
            loss = train(w, next_, count).back();
        }
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    // Of a function's steps the first is launched kernel by kernel, the second is captured.
    run(2);
    clocks().take();
    const auto rounds = static_cast<int>(s_.rounds);
    const bench::Rounds r =
        s_.reduced ? bench::few_rounds(1, rounds, run)
                   : bench::settled_rounds({few, least, most, rounds}, run, [&] { clocks().note(); });
    std::vector<double> us;
    for (const double seconds : r.seconds) us.push_back(1e6 * seconds);
    Json result = {{"us", 1e6 * r.median()}, {"rounds_us", us}, {"steps_a_round", r.units}, {"loss", loss}};
    if (!s_.reduced) result["warm_up"] = r.warm_up();
    if (Json clocks = this->clocks().take(); !clocks.is_null()) result["clocks"] = std::move(clocks);
    return result;
}

Json Steps::profile() {
    const std::unique_ptr<bench::Workload> w = compile(s_.device, 0, true);
    std::int64_t next = 0;
    train(*w, next, 2);  // libraries choose their algorithms in the first step
    if (!s_.reduced) {
        const auto run = [&](std::int64_t count) {
            const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
            train(*w, next, count);
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        };
        bench::settled_rounds({10, 3, 5000, 0}, run, [] {});
    }
    const std::vector<Profile::Row> before = w->step.profile().rows;
    clocks().take();
    train(*w, next, s_.reduced ? 2 : 50);
    clocks().note();
    const std::vector<Profile::Row> after = w->step.profile().rows;
    Json rows = Json::array();
    double sum = 0;
    for (std::size_t k = 0; k < after.size(); ++k) {
        const std::int64_t calls = after[k].calls - before.at(k).calls;
        const double us =
            calls > 0 ? 1e6 * (after[k].seconds - before[k].seconds) / static_cast<double>(calls) : 0;
        sum += us;
        rows.push_back(
            {{"kernel", after[k].kernel}, {"where", after[k].where}, {"calls", calls}, {"us", us}});
    }
    const Json described = bench::describe(w->step, std::int64_t{0});
    for (std::size_t k = 0; k < rows.size() && k < described.size(); ++k)
        rows[k].update({{"name", described[k]["name"]},
                        {"bytes", described[k]["bytes"]},
                        {"flops", described[k]["flops"]}});
    Json result = {{"us", sum}, {"rows", rows}};
    if (Json clocks = this->clocks().take(); !clocks.is_null()) result["clocks"] = std::move(clocks);
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Settings settings = parse(argc, argv);
        if (!settings.graphs.empty()) add_flag("graphs=" + settings.graphs);
        if (settings.threads > 0) add_flag("threads=" + std::to_string(settings.threads));
        return Steps(settings).run();
    } catch (const std::exception& e) {
        fmt::print(stderr, "gpu_steps: {}\n", e.what());
        return 1;
    }
}
