// Our side of the workloads (a) to (f).
#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/networks.h"
#include "common/serve.h"

using bench::Json;

namespace {

// Steps 0, 1, ... of as many epochs as it takes; in one `loop` an epoch, or one call a step. The last loss,
// or 0 of a function without outputs.
double take_steps(bench::Workload& workload, std::int64_t count, bool by_calls) {
    double last = 0;
    const auto keep = [&](const bitale::Results& results) {
        if (results.size() == 0) return;
        const bitale::Array& losses = results[0];
        if (losses.size() != 0) last = losses.at(losses.size() - 1);
    };
    while (count > 0) {
        const std::int64_t steps = std::min(count, workload.steps);
        if (by_calls) {
            for (std::int64_t k = 0; k < steps; ++k) keep(workload.step(k));
        } else {
            keep(workload.step.loop(0, steps));
        }
        count -= steps;
    }
    return last;
}

// The same calls by several threads at once, each all of them; milliseconds a call.
double milliseconds_by(bench::Workload& workload, std::int64_t threads, std::int64_t steps) {
    std::atomic<std::int64_t> waiting{threads};
    std::atomic<bool> wrong{false};
    const double expected = workload.step(std::int64_t{1});
    const auto work = [&] {
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        for (std::int64_t k = 0; k < steps; ++k)
            if (double(workload.step(std::int64_t{1})) != expected) wrong = true;
    };
    std::vector<std::thread> others;
    const bench::Clock clock;
    for (std::int64_t t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
    if (wrong) throw std::runtime_error("calls at once give other bits than calls alone");
    return clock.seconds() * 1e3 / static_cast<double>(steps * threads);
}

}  // namespace

int main() {
    std::unique_ptr<bench::Workload> workload;
    return bench::serve([&](const Json& request) -> Json {
        if (request.contains("setup")) {
            workload.reset();
            const bench::Clock clock;
            const auto name = request["setup"].get<std::string>();
            workload = std::make_unique<bench::Workload>(
                name == "reading" ? bench::compile_reading()
                : name.starts_with("tiny")
                    ? bench::compile_tiny(name == "tiny-output")
                    : bench::compile(name, bench::data_of(name),
                                     {.storage = request.value("storage", std::string("uint8")),
                                      .clip = request.value("clip", 0.0)}));
            return {{"setup_s", clock.seconds()},
                    {"compile_s", workload->step.compile_seconds()},
                    {"kernels", workload->step.kernels().size()},
                    {"compiler_runs", workload->step.compiler_runs()}};
        }
        if (!workload) throw std::runtime_error("no setup yet");
        if (request.contains("threads"))
            return {{"ms", milliseconds_by(*workload, request["threads"].get<std::int64_t>(),
                                           request.at("steps").get<std::int64_t>())}};
        // A measurement of an evaluation is a pass over all its chunks.
        const std::int64_t per = workload->evaluation ? workload->steps : 1;
        const auto steps = request.at("steps").get<std::int64_t>();
        const bool by_calls = request.value("form", "loop") == "call";
        take_steps(*workload, request.value("warm", std::int64_t{1}) * per, by_calls);
        const bench::Clock clock;
        const double loss = take_steps(*workload, steps * per, by_calls);
        return {{"ms", clock.seconds() * 1e3 / static_cast<double>(steps)}, {"loss", loss}};
    });
}
