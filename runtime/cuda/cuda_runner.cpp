#include "runtime/cuda/cuda_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>

#include "graph/ir/shared.h"
#include "runtime/exec/stacked.h"
#include "runtime/storage/host_memory.h"

namespace bitale::cuda {

using Kind = BufferInfo::Kind;

namespace {

constexpr std::int64_t most_blocks = 65535;  // kernels stride over their tasks
constexpr std::int64_t error_bytes = 128;

std::int64_t bytes_of_constant_buffer(const BufferInfo& info) {
    std::int64_t count = 1;
    for (const std::int64_t n : static_dims(info.type.shape)) count *= n;
    return count * bytes_of(info.type.dtype);
}

}  // namespace

CudaRunner::CudaRunner(const Build& build, Context& context, const Backend& backend)
    : program_(build.program),
      arguments_(build.signature),
      frames_(program_, arguments_.symbol_ids(), build.signature.checks),
      context_(context),
      backend_(backend),
      separate_buffers_(context.exact_blocks),
      profile_(build.profile),
      blocks_(program_->buffers.size()),
      pointers_(program_->buffers.size(), nullptr),
      argument_data_(program_->inputs.size()),
      symbols_(arguments_.symbols()),
      input_buffers_(program_->inputs.size(), program_->buffers.size()),
      output_buffers_(program_->outputs.size(), program_->buffers.size()),
      errors_buffer_(program_->buffers.size()),
      arena_(context) {
    load(backend);
    plan(program_->once, once_);
    plan(program_->body, body_);
    for (std::size_t b = 0; b < pointers_.size(); ++b) {
        const BufferInfo& info = program_->buffers[b];
        if (info.kind == Kind::arena || info.kind == Kind::shared) continue;
        const auto index = static_cast<std::size_t>(info.index);
        blocks_[b] = std::make_unique<DeviceBlock>(context_);
        if (info.kind == Kind::input) input_buffers_.at(index) = b;
        if (info.kind == Kind::output) output_buffers_.at(index) = b;
        if (info.kind == Kind::errors) {
            errors_buffer_ = b;
            blocks_[b]->grow(error_bytes);
            context_.zero(blocks_[b]->data(), error_bytes);
        } else if (info.kind == Kind::counters) {
            const std::int64_t bytes = bytes_of_constant_buffer(info);
            blocks_[b]->grow(bytes);
            context_.zero(blocks_[b]->data(), bytes);
        } else if (info.kind == Kind::constant) {
            const Array& value = program_->constants.at(index);
            blocks_[b]->grow(value.bytes());
            context_.upload(blocks_[b]->data(), value.data(), value.bytes());
        }
        pointers_[b] = blocks_[b]->data();
    }
    std::set<std::size_t> shared;
    for (const Step& s : program_->once.steps)
        for (const int b : s.buffers)
            if (const BufferInfo& info = program_->buffers.at(static_cast<std::size_t>(b));
                info.kind == Kind::shared)
                shared.insert(static_cast<std::size_t>(info.index));
    once_shared_.assign(shared.begin(), shared.end());
    once_versions_.resize(once_shared_.size());
    if (profile_) {
        context_.check(context_.runtime().cudaEventCreateWithFlags(&first_, 0), "cudaEventCreateWithFlags");
        context_.check(context_.runtime().cudaEventCreateWithFlags(&last_, 0), "cudaEventCreateWithFlags");
    }
}

void CudaRunner::load(const Backend& backend) {
    const std::vector<CudaUnit> units = cuda_units(*program_);
    const Images images = backend.compile(*program_, units);
    compiler_runs_ = images.compiler_runs;
    kernels_.resize(program_->kernels.size());
    for (std::size_t u = 0; u < units.size(); ++u) {
        Library library = nullptr;  // never unloaded: a profiler may still point into it
        context_.check(context_.runtime().cudaLibraryLoadData(&library, images.list[u].data(), nullptr,
                                                              nullptr, 0, nullptr, nullptr, 0),
                       "cudaLibraryLoadData");
        for (const int k : units[u].kernels)
            for (const std::string& entry : program_->kernels[static_cast<std::size_t>(k)].entries) {
                KernelFunction function = nullptr;
                context_.check(context_.runtime().cudaLibraryGetKernel(&function, library, entry.c_str()),
                               "cudaLibraryGetKernel");
                kernels_[static_cast<std::size_t>(k)].push_back(function);
            }
    }
}

void CudaRunner::plan(const Region& region, std::vector<StepPlan>& plans) {
    for (const Step& s : region.steps) {
        StepPlan& p = plans.emplace_back();
        p.step = &s;
        if (s.kind == Step::Kind::kernel) p.phases = kernels_.at(static_cast<std::size_t>(s.kernel));
    }
}

void CudaRunner::bind(std::span<const Array> arguments) {
    arguments_.bind(arguments, symbols_.data(), argument_data_.data());
    for (std::size_t i = 0; i < input_buffers_.size(); ++i) {
        const std::size_t b = input_buffers_[i];
        if (b >= pointers_.size()) continue;
        const std::int64_t bytes = arguments[i].size() * bytes_of(program_->inputs[i].dtype);
        blocks_[b]->grow(bytes);
        pointers_[b] = blocks_[b]->data();
        context_.upload(pointers_[b], argument_data_[i], bytes);
    }
}

// Of the first input, which a loop counts.
void CudaRunner::set_scalar(std::int64_t value) {
    arguments_.set_scalar(0, value, symbols_.data());
    if (const std::size_t b = input_buffers_[0]; b < pointers_.size())
        context_.upload(pointers_[b], argument_data_[0], bytes_of(program_->inputs[0].dtype));
}

void CudaRunner::begin(const Frame& frame) {
    for (std::size_t b = 0; b < pointers_.size(); ++b) {
        const BufferInfo& info = program_->buffers[b];
        if (info.kind == Kind::shared)
            pointers_[b] = context_.resident(program_->shared[static_cast<std::size_t>(info.index)]);
    }
    for (std::size_t i = 0; i < output_buffers_.size(); ++i) {
        const std::size_t b = output_buffers_[i];
        blocks_[b]->grow(frame.output_bytes[i]);
        pointers_[b] = blocks_[b]->data();
    }
}

std::int64_t CudaRunner::bytes_of_buffer(std::size_t buffer) const {
    std::map<std::uint64_t, std::int64_t> values;
    const std::vector<std::uint64_t> ids = arguments_.symbol_ids();
    for (std::size_t i = 0; i < ids.size(); ++i) values.emplace(ids[i], symbols_[i]);
    const Type& type = program_->buffers[buffer].type;
    return evaluate(count_of(type.shape), values) * bytes_of(type.dtype);
}

void CudaRunner::place_separately(const Frame& frame) {
    for (std::size_t b = 0; b < pointers_.size(); ++b) {
        if (program_->buffers[b].kind != Kind::arena || frame.placement->offsets[b] < 0) continue;
        if (!blocks_[b]) blocks_[b] = std::make_unique<DeviceBlock>(context_);
        blocks_[b]->grow(bytes_of_buffer(b));
        pointers_[b] = blocks_[b]->data();
    }
}

std::string CudaRunner::biggest_buffers(const Frame& frame) const {
    // What ends later than it begins is not known here: offsets tell where a buffer begins, the next one's
    // where it must have ended, so types are shown as they are.
    std::vector<std::pair<std::int64_t, std::string>> list;
    for (std::size_t b = 0; b < program_->buffers.size(); ++b) {
        const BufferInfo& info = program_->buffers[b];
        if (info.kind != Kind::arena || frame.placement->offsets[b] < 0) continue;
        const std::int64_t bytes = bytes_of_buffer(b);
        list.emplace_back(bytes, fmt::format("\"{}\" {} ({:.1f} MB)", info.name, text_of(info.type),
                                             static_cast<double>(bytes) / 1e6));
    }
    std::sort(list.rbegin(), list.rend());
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(list.size(), 3); ++i)
        text += (i ? ", " : "") + list[i].second;
    return text;
}

void CudaRunner::use(const Frame& frame) {
    if (placement_ != frame.placement) {
        try {
            if (separate_buffers_)
                place_separately(frame);
            else
                arena_.grow(frame.placement->bytes);
        } catch (const OutOfMemory& e) {
            throw OutOfMemory(fmt::format("{}: {}; the biggest buffers are {}", program_->name, e.what(),
                                          biggest_buffers(frame)));
        }
        once_done_ = false;
        placement_ = frame.placement;
        for (std::size_t b = 0; b < pointers_.size(); ++b)
            if (!separate_buffers_ && program_->buffers[b].kind == Kind::arena && placement_->offsets[b] >= 0)
                pointers_[b] = static_cast<char*>(arena_.data()) + placement_->offsets[b];
    }
    for (std::size_t i = 0; i < once_shared_.size(); ++i) {
        const std::uint64_t version = program_->shared[once_shared_[i]]->version;
        if (once_versions_[i] != version) once_done_ = false;
        once_versions_[i] = version;
    }
    if (once_done_) return;
    run_steps(once_, frame.once);
    check_errors();
    once_done_ = true;
}

void CudaRunner::launch_kernel(const StepPlan& plan, const StepSizes& sizes) {
    // struct { void* buffers[]; i64 sizes[]; }, each of at least one element.
    const std::vector<int>& buffers = plan.step->buffers;
    const std::size_t first_size = std::max<std::size_t>(buffers.size(), 1) * sizeof(void*);
    launch_arguments_.assign(first_size + std::max<std::size_t>(sizes.sizes.size(), 1) * sizeof(std::int64_t),
                             0);
    for (std::size_t i = 0; i < buffers.size(); ++i)
        std::memcpy(&launch_arguments_[i * sizeof(void*)], &pointers_[static_cast<std::size_t>(buffers[i])],
                    sizeof(void*));
    if (!sizes.sizes.empty())
        std::memcpy(&launch_arguments_[first_size], sizes.sizes.data(),
                    sizes.sizes.size() * sizeof(std::int64_t));
    void* arguments[] = {launch_arguments_.data()};
    for (std::size_t phase = 0; phase < sizes.tasks.size(); ++phase) {
        if (sizes.tasks[phase] <= 0) continue;
        LaunchConfig config;
        config.grid.x = static_cast<unsigned>(std::min(sizes.tasks[phase], most_blocks));
        config.block.x = static_cast<unsigned>(
            program_->kernels[static_cast<std::size_t>(plan.step->kernel)].cuda_threads.at(phase));
        config.stream = context_.stream();
        context_.check(context_.runtime().cudaLaunchKernelExC(&config, plan.phases.at(phase), arguments),
                       program_->kernels[static_cast<std::size_t>(plan.step->kernel)].entries[phase].c_str());
    }
}

void CudaRunner::launch(const StepPlan& plan, const StepSizes& sizes) {
    const auto pointer = [&](std::size_t i) {
        return pointers_[static_cast<std::size_t>(plan.step->buffers[i])];
    };
    switch (plan.step->kind) {
        case Step::Kind::kernel: launch_kernel(plan, sizes); break;
        case Step::Kind::gemm:
            backend_.gemm(sizes.gemm, static_cast<const float*>(pointer(0)),
                          static_cast<const float*>(pointer(1)),
                          sizes.gemm.bias ? static_cast<const float*>(pointer(3)) : nullptr,
                          static_cast<float*>(pointer(2)), context_.stream());
            break;
        case Step::Kind::conv: {
            std::array<void*, 4> buffers{};
            for (std::size_t i = 0; i < plan.step->buffers.size(); ++i) buffers.at(i) = pointer(i);
            backend_.conv(sizes.conv, conv_data(sizes.conv, buffers.data()), context_.stream());
            break;
        }
        case Step::Kind::copy: context_.copy(pointer(1), pointer(0), sizes.copy_bytes); break;
    }
}

void CudaRunner::run_steps(std::vector<StepPlan>& plans, const std::vector<StepSizes>& sizes) {
    bool checked = false;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        // Kernels look at the error word themselves; a copy cannot.
        if (plans[i].step->commits && plans[i].step->kind == Step::Kind::copy && !checked) {
            check_errors();
            checked = true;
        }
        if (!profile_) {
            launch(plans[i], sizes[i]);
            continue;
        }
        const RuntimeTable& runtime = context_.runtime();
        context_.check(runtime.cudaEventRecord(first_, context_.stream()), "cudaEventRecord");
        launch(plans[i], sizes[i]);
        context_.check(runtime.cudaEventRecord(last_, context_.stream()), "cudaEventRecord");
        context_.synchronize();
        float milliseconds = 0;
        context_.check(runtime.cudaEventElapsedTime(&milliseconds, first_, last_), "cudaEventElapsedTime");
        plans[i].seconds += static_cast<double>(milliseconds) / 1000;
        ++plans[i].calls;
    }
}

void CudaRunner::check_errors() {
    if (errors_buffer_ >= pointers_.size()) return context_.synchronize();
    std::int64_t words[4];
    context_.download(words, pointers_[errors_buffer_], sizeof words);
    if (words[0] == 0) return;
    context_.zero(pointers_[errors_buffer_], error_bytes);
    const auto check = static_cast<std::size_t>(words[0] - 1);
    BITALE_CHECK(check < program_->checks.size(), "the error word names an unknown check");
    throw IndexError(
        fmt::format("{}: {} at element {}", program_->checks[check].message, words[1], words[2]));
}

void CudaRunner::step(const Frame& frame) {
    use(frame);
    run_steps(body_, frame.body);
    check_errors();
}

void CudaRunner::count_versions() {
    for (const int s : program_->updated) context_.wrote(program_->shared[static_cast<std::size_t>(s)]);
}

std::vector<Array> CudaRunner::run(std::span<const Array> arguments) {
    bind(arguments);
    const Frame& frame = frames_.find(symbols_.data());
    begin(frame);
    step(frame);
    count_versions();
    std::vector<Array> results;
    for (std::size_t i = 0; i < frame.outputs.size(); ++i) {
        Array& a = results.emplace_back(pooled_array(program_->outputs[i].dtype, frame.outputs[i]));
        context_.download(a.mutable_data(), pointers_[output_buffers_[i]], frame.output_bytes[i]);
    }
    return results;
}

std::vector<Array> CudaRunner::loop(const LoopCall& call) {
    const auto steps = static_cast<std::int64_t>(call.values.size());
    bind(call.arguments);
    if (steps > 0) set_scalar(call.values[0]);
    const Frame first = frames_.find(symbols_.data());
    begin(first);
    StackedResults stacked(*program_, first, steps);
    const auto body = [&](std::int64_t, std::int64_t value) {
        set_scalar(value);
        const Frame& frame = frames_.find(symbols_.data());
        stacked.check(frame);
        step(frame);
        stacked.add([&](std::size_t i, char* to, std::int64_t bytes) {
            context_.download(to, pointers_[output_buffers_[i]], bytes);
        });
    };
    try {
        for_each_step(call, body);
    } catch (...) {
        if (stacked.done() > 0) count_versions();
        throw;
    }
    if (stacked.done() > 0) count_versions();
    return stacked.take();
}

std::vector<Profile::Row> CudaRunner::profile() const {
    std::vector<Profile::Row> rows;
    for (const std::vector<StepPlan>* plans : {&once_, &body_})
        for (const StepPlan& p : *plans)
            if (profile_) rows.push_back({p.step->title, p.calls, p.seconds});
    return rows;
}

}  // namespace bitale::cuda
