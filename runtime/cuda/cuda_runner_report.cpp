// What a CudaRunner tells about its steps: the algorithms of library calls, times, resources of kernels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/gpu_facts.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/figures.h"

namespace bitale::cuda {

void CudaRunner::note_call(const StepPlan& plan, const StepSizes& sizes) {
    constexpr std::size_t most_sizes = 8;
    std::vector<StepSizes>& known = library_calls_[plan.step];
    if (known.size() < most_sizes && std::find(known.begin(), known.end(), sizes) == known.end())
        known.push_back(sizes);
}

std::string CudaRunner::library_choice(const Step& step) const {
    const Backend& backend = context_.backend();
    const bool product = std::holds_alternative<GemmStep>(step.operation);
    if (!product && !std::holds_alternative<ConvStep>(step.operation)) return "";
    if (product ? !backend.gemm_algorithm : !backend.conv_algorithm) return "";
    const auto at = library_calls_.find(&step);
    if (at == library_calls_.end()) return "its algorithm is chosen at the first call";
    std::vector<std::string> texts;
    for (const StepSizes& sizes : at->second)
        if (std::string text =
                product ? backend.gemm_algorithm(sizes.gemm) : backend.conv_algorithm(sizes.conv);
            !text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end())
            texts.push_back(std::move(text));
    return fmt::format("computed by {}", fmt::join(texts, "; for other sizes by "));
}

double CudaRunner::seconds_between(const OwnedEvent& first, const OwnedEvent& last) {
    float milliseconds = 0;
    context_.check(context_.runtime().cudaEventElapsedTime(&milliseconds, first.get(), last.get()),
                   "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1000;
}

// The event before a launch is stamped as soon as the GPU comes to it. Where the GPU has nothing else to do,
// that is long before the host has got the launch out; so it is kept from coming there.
void CudaRunner::launch_timed(std::vector<StepPlan>& plans, const std::vector<StepSizes>& sizes, bool again) {
    // A queue of a GPU has room for a thousand launches or so, and who finds it full waits.
    constexpr std::size_t most_held = 64;
    constexpr int empty_pairs = 8;
    const auto record = [&](const OwnedEvent& event) {
        context_.check(context_.runtime().cudaEventRecord(event.get(), context_.stream()), "cudaEventRecord");
    };
    for (std::size_t first = 0; first < plans.size(); first += most_held) {
        const std::size_t end = std::min(plans.size(), first + most_held);
        bool held = false;
        {
            const ClosedGate gate(gate_, context_, again);
            held = gate.held();
            record(nothing_begins_);
            for (int k = 0; k < empty_pairs; ++k) record(nothing_ends_);
            for (std::size_t i = first; i < end; ++i) {
                record(plans[i].begins);
                launch(plans[i], sizes[i], context_.stream());
                record(plans[i].ends);
            }
        }
        context_.synchronize();
        const double nothing = held ? seconds_between(nothing_begins_, nothing_ends_) / empty_pairs : 0;
        for (std::size_t i = first; i < end; ++i) {
            plans[i].seconds += seconds_between(plans[i].begins, plans[i].ends) - nothing;
            ++plans[i].calls;
        }
    }
}

std::string CudaRunner::resources(const std::string& entry) const {
    for (const KernelResources& r : resources_)
        if (r.entry == entry) return text_of(r);
    return "";
}

std::vector<Profile::Row> CudaRunner::profile() const {
    std::vector<Profile::Row> rows;
    if (!profile_) return rows;
    const Lengths lengths(*program_, last_symbols_);
    for (const std::vector<StepPlan>* plans : {&once_, &body_})
        for (const StepPlan& p : *plans)
            rows.push_back(row_of(*program_, *p.step, static_cast<int>(rows.size()) + 1, lengths, p.calls,
                                  std::max(p.seconds, 0.0)));
    return rows;
}

std::vector<LaunchCounts> CudaRunner::counts() const {
    std::vector<LaunchCounts> all;
    const Backend& backend = context_.backend();
    if (!backend.counts) return all;
    const std::optional<GpuFacts> gpu = gpu_facts(program_->target);
    int number = 0;
    std::set<KernelFunction> listed;  // steps may share a kernel
    for (const std::vector<StepPlan>* plans : {&once_, &body_})
        for (const StepPlan& p : *plans) {
            ++number;
            for (const KernelFunction phase : p.phases) {
                if (!listed.insert(phase).second) continue;
                FunctionAttributes attributes;
                context_.check(context_.runtime().cudaFuncGetAttributes(&attributes, phase),
                               "cudaFuncGetAttributes");
                for (LaunchCounts& launch : backend.counts(phase)) {
                    launch.number = number;
                    if (gpu)
                        launch.waves = static_cast<std::int64_t>(
                            std::ceil(static_cast<double>(launch.blocks) /
                                      blocks_at_once(*gpu, static_cast<double>(launch.threads),
                                                     static_cast<double>(attributes.shared_bytes))));
                    all.push_back(std::move(launch));
                }
            }
        }
    return all;
}

}  // namespace bitale::cuda
