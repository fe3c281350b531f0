#include "runtime/cuda/cudnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "bitale/error.h"
#include "runtime/cuda/library_memory.h"

namespace bitale::cuda {

namespace {

std::int64_t count_of(const ConvSizes& t) { return t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3]; }

}  // namespace

Cudnn::Cudnn(const CudnnTable& library, const RuntimeTable& runtime, MemoryLedger& ledger,
             EngineCache engines, std::function<void()> open_nvrtc)
    : library_(library),
      runtime_(runtime),
      ledger_(ledger),
      engines_(std::move(engines)),
      open_nvrtc_(std::move(open_nvrtc)) {
    require(library_.cudnnCreate(&handle_), "cudnnCreate");
}

void Cudnn::require(int status, const char* what) const {
    if (status != 0)
        throw DeviceError(fmt::format("{} fails: {}", what, library_.cudnnGetErrorString(status)));
}

// One for all plans: steps follow one another on one stream.
void* Cudnn::workspace(std::int64_t bytes) {
    if (bytes == 0) return nullptr;
    if (workspaces_.empty() || workspaces_.back().bytes < bytes) {
        const std::int64_t grown = workspaces_.empty() ? bytes : 2 * workspaces_.back().bytes;
        Workspace w;
        w.bytes = std::min(std::max(bytes, grown), most_workspace);
        w.data = library_workspace(runtime_, ledger_, w.bytes, "cuDNN");
        workspaces_.push_back(w);
    }
    return workspaces_.back().data;
}

std::optional<ConvPlan> Cudnn::plan_from_disk(const ConvShape& shape) {
    const std::optional<ConvEngine> engine = engines_.find(shape);
    if (!engine) return std::nullopt;
    if (engine->runtime_compiled) open_nvrtc_();
    return plan_with(library_, shape, {handle_, ""}, most_workspace, *engine);
}

ConvPlan Cudnn::new_plan(const ConvShape& shape) {
    open_nvrtc_();
    ConvPlan plan = plan_convolution(library_, shape, {handle_, ""}, most_workspace);
    engines_.keep(shape, plan.engine);
    return plan;
}

const Cudnn::Known& Cudnn::plan_of(const ConvShape& shape) {
    for (const Known& k : known_)
        if (k.shape == shape) return k;
    std::optional<ConvPlan> kept = plan_from_disk(shape);
    const bool from_disk = kept.has_value();
    ConvPlan plan = kept ? std::move(*kept) : new_plan(shape);
    void* const data = workspace(plan.workspace);
    known_.push_back({shape, std::move(plan), data, from_disk});
    return known_.back();
}

std::string Cudnn::choice(const ConvShape& shape) const {
    for (const Known& k : known_)
        if (k.shape == shape)
            return "cuDNN's " + text_of(k.plan) + (k.from_disk ? "; as an earlier process chose" : "");
    return "";
}

std::int64_t Cudnn::workspace_of(const ConvShape& shape) const {
    for (const Known& k : known_)
        if (k.shape == shape) return k.plan.workspace;
    return -1;
}

void Cudnn::convolve(const ConvShape& shape, const ConvData& data, Stream stream) {
    const std::int64_t filters = count_of(shape.filters);
    if (count_of(shape.image) == 0 || count_of(shape.output) == 0) {
        // Nothing to sum: only filters are left to be cleared.
        const bool clear = shape.kind == ConvCall::Kind::filter_gradient && filters > 0;
        if (clear &&
            runtime_.cudaMemsetAsync(data.filters, 0, static_cast<std::size_t>(filters) * sizeof(float),
                                     stream) != success)
            throw DeviceError("cudaMemsetAsync fails");
        return;
    }
    const Known& known = plan_of(shape);
    execute(library_, handle_, shape, known.plan, data, known.workspace, stream);
}

}  // namespace bitale::cuda
