#include "runtime/cuda/cuda_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/options.h"
#include "graph/ir/array_bytes.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/library_memory.h"
#include "runtime/cuda/loop.h"
#include "runtime/cuda/outside.h"
#include "runtime/storage/host_memory.h"

namespace bitale::cuda {

using Kind = BufferInfo::Kind;

namespace {

constexpr std::int64_t most_blocks = 65535;  // kernels stride over their tasks
constexpr std::int64_t error_bytes = 128;
constexpr std::size_t error_words = 4;

std::int64_t bytes_of_constant_buffer(const BufferInfo& info) {
    std::int64_t count = 1;
    for (const std::int64_t n : static_dims(info.type.shape)) count *= n;
    return count * bytes_of(info.type.dtype);
}

// The most that convolutions of the program work in, 0 where there are none; negative where a library has not
// chosen yet.
std::int64_t conv_workspace(const Backend& backend, const Program& program, const Frame& frame) {
    std::int64_t most = 0;
    const auto look = [&](const Region& region, const std::vector<StepSizes>& sizes) {
        for (std::size_t i = 0; i < region.steps.size(); ++i) {
            if (!std::holds_alternative<ConvStep>(region.steps[i].operation)) continue;
            const std::int64_t bytes = backend.conv_workspace(sizes[i].conv);
            if (bytes < 0) return false;
            most = std::max(most, bytes);
        }
        return true;
    };
    return look(program.once, frame.once) && look(program.body, frame.body) ? most : -1;
}

// As loop() asks of a function.
bool may_loop(const Build& build) {
    const auto& inputs = build.signature.inputs;
    return !inputs.empty() && inputs[0].type.rank() == 0 && is_integer(inputs[0].type.dtype);
}

// Copies that look at the error word are kernels of ours.
bool commits_copies(const Program& program) {
    return std::any_of(program.body.steps.begin(), program.body.steps.end(), [](const Step& s) {
        return std::holds_alternative<CopyStep>(s.operation) && s.commits;
    });
}

}  // namespace

CudaRunner::CudaRunner(const Build& build, Gpu& gpu, Kernels kernels)
    : build_(build),
      program_(build.program),
      function_limit_(build_),
      arguments_(build.signature),
      frames_(program_, build.signature),
      gpu_(gpu),
      context_(gpu.context),
      loop_kernels_(*kernels.of_loops),
      separate_buffers_(gpu.context.exact_blocks),
      profile_(build.profile),
      nothing_begins_(context_),
      nothing_ends_(context_),
      blocks_(program_->buffers.size()),
      pointers_(program_->buffers.size(), nullptr),
      argument_data_(program_->inputs.size()),
      symbols_(arguments_.symbols()),
      input_buffers_(program_->inputs.size(), program_->buffers.size()),
      output_buffers_(program_->outputs.size(), program_->buffers.size()),
      errors_buffer_(program_->buffers.size()),
      arena_(context_),
      once_values_(*program_) {
    context_.enter();
    if (profile_)
        for (OwnedEvent* event : {&nothing_begins_, &nothing_ends_})
            context_.check(context_.runtime().cudaEventCreateWithFlags(event->put(), 0),
                           "cudaEventCreateWithFlags");
    find_entries(std::move(kernels));
    plan(program_->once, once_);
    plan(program_->body, body_);
    fill_constant_buffers();
}

// What was launched may still use the memory; and nobody waits for its error word after this. All of that
// happens without the device's turn, and giving memory back waits for the GPU.
CudaRunner::~CudaRunner() {
    leaving_.emplace(context_);
    try {
        context_.enter();
        context_.synchronize();
    } catch (...) {
        // Every later use of the device says the same; words for that may have had no memory.
    }
}

CudaRunner::Kernels CudaRunner::compiled(const Build& build, Gpu& gpu, Turn* turn) {
    gpu.context.enter();
    const Program& program = *build.program;
    Kernels kernels;
    kernels.of_loops = &gpu.kernels.prepare(turn);
    if (may_loop(build) || commits_copies(program)) kernels.of_loops->require();
    kernels.units = cuda_units(program);
    if (options().compare_launches)
        kernels.images_to_compare =
            without_turn(turn, [&] { return Comparison::compiled(program, kernels.units); });
    kernels.loaded = load_units(gpu.context, program, kernels.units, turn);
    return kernels;
}

void CudaRunner::find_entries(Kernels kernels) {
    const LoadedUnits& loaded = kernels.loaded;
    compiler_runs_ = loaded.images.compiler_runs;
    resources_ = loaded.images.resources;
    kernels_.resize(program_->kernels.size());
    for (std::size_t u = 0; u < kernels.units.size(); ++u) {
        for (const int k : kernels.units[u].kernels)
            for (const std::string& entry : program_->kernels[static_cast<std::size_t>(k)].entries) {
                KernelFunction function = nullptr;
                context_.check(context_.runtime().cudaLibraryGetKernel(&function, loaded.libraries[u].get(),
                                                                       entry.c_str()),
                               "cudaLibraryGetKernel");
                kernels_[static_cast<std::size_t>(k)].push_back(function);
            }
    }
    if (options().compare_launches)
        comparison_ = std::make_unique<Comparison>(context_, program_, kernels.images_to_compare);
    libraries_ = std::move(kernels.loaded.libraries);
}

void CudaRunner::plan(const Region& region, std::vector<StepPlan>& plans) {
    for (const Step& s : region.steps) {
        StepPlan& p = plans.emplace_back(context_);
        p.step = &s;
        if (const auto* kernel = std::get_if<KernelStep>(&s.operation))
            p.phases = kernels_.at(static_cast<std::size_t>(kernel->launch.kernel));
        if (!profile_) continue;
        for (OwnedEvent* event : {&p.begins, &p.ends})
            context_.check(context_.runtime().cudaEventCreateWithFlags(event->put(), 0),
                           "cudaEventCreateWithFlags");
    }
}

void CudaRunner::fill_constant_buffers() {
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
    for (const std::size_t b : output_buffers_)
        BITALE_CHECK(b < pointers_.size(), "a result without a buffer");
}

// ---- memory ----

void CudaRunner::drop_arena() {
    arena_.drop();
    placement_ = nullptr;
    for (const std::vector<std::size_t>* buffers : {&input_buffers_, &output_buffers_})
        for (const std::size_t b : *buffers)
            if (b < blocks_.size() && blocks_[b]) blocks_[b]->drop();
}

void CudaRunner::place(const Frame& frame, std::span<const Array> arguments) {
    for (std::size_t i = 0; i < input_buffers_.size(); ++i) {
        const std::size_t b = input_buffers_[i];
        if (b >= pointers_.size()) continue;
        const std::int64_t bytes = arguments[i].size() * bytes_of(program_->inputs[i].dtype);
        blocks_[b]->grow(bytes);
        pointers_[b] = blocks_[b]->data();
        context_.upload(pointers_[b], argument_data_[i], bytes);
    }
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
    if (comparison_) comparison_->remember();
    use(frame);
}

void CudaRunner::use(const Frame& frame) {
    if (placement_ != frame.placement) {
        placement_ = nullptr;  // where memory runs out, the next call starts without any
        if (separate_buffers_)
            place_separately(frame);
        else if (arena_.grow(frame.placement->bytes, DeviceBlock::Contents::zeros))
            // What lies behind a buffer, and may be read, changes with the sizes: a gap, or a buffer that is
            // not computed yet. So every byte of the arena is written once.
            once_values_.forget();
        placement_ = frame.placement;
        for (std::size_t b = 0; b < pointers_.size(); ++b)
            if (!separate_buffers_ && program_->buffers[b].kind == Kind::arena && placement_->offsets[b] >= 0)
                pointers_[b] = static_cast<char*>(arena_.data()) + placement_->offsets[b];
        once_values_.place(*placement_);
    }
    if (!once_values_.are_due() || once_.empty()) return;
    if (profile_) {
        launch_timed(once_, frame.once, false);
    } else {
        for (std::size_t i = 0; i < once_.size(); ++i) launch(once_[i], frame.once[i], context_.stream());
    }
    if (has_errors()) check_errors();
    once_values_.computed();
}

void CudaRunner::place_separately(const Frame& frame) {
    once_values_.forget();
    for (std::size_t b = 0; b < pointers_.size(); ++b) {
        if (program_->buffers[b].kind != Kind::arena || frame.placement->offsets[b] < 0) continue;
        if (!blocks_[b]) blocks_[b] = std::make_unique<DeviceBlock>(context_);
        blocks_[b]->grow(bytes_of_buffer(b));
        pointers_[b] = blocks_[b]->data();
    }
}

std::int64_t CudaRunner::bytes_of_buffer(std::size_t buffer) const {
    std::map<std::uint64_t, std::int64_t> values;
    const std::vector<std::uint64_t> ids = arguments_.symbol_ids();
    for (std::size_t i = 0; i < ids.size(); ++i) values.emplace(ids[i], symbols_[i]);
    const Type& type = program_->buffers[buffer].type;
    Dims lengths;
    for (const Int& length : type.shape) lengths.push_back(evaluate(length, values));
    return bytes_of(type.dtype, lengths);
}

// Workspaces on a GPU are as large for one size as for another.
OwnMemory CudaRunner::own_memory(const Program& program, const Frame& frame, const Frame* /*before*/) const {
    const Backend& backend = context_.backend();
    OwnMemory own = library_memory(program, static_cast<bool>(backend.gemm_algorithm));
    if (backend.conv_workspace) {
        const std::int64_t bytes = conv_workspace(backend, program, frame);
        if (bytes > 0)
            own.pieces.push_back({MemoryPlan::Kind::workspace, "cuDNN",
                                  "workspace of the library of convolutions, one for the device", bytes});
        if (bytes < 0)
            own.notes.push_back(
                fmt::format("the workspace of cuDNN, which is chosen at a first call, at most {}",
                            bytes_text(Cudnn::most_workspace)));
    }
    own.place = separate_buffers_ ? OwnMemory::Place::gpu_separate : OwnMemory::Place::gpu;
    own.pieces.push_back({MemoryPlan::Kind::staging, "transfers",
                          "pinned memory between the host and the GPU, one for the device",
                          Transfers::pinned_bytes, true});
    return own;
}

std::int64_t CudaRunner::workspace_alive(const Program& program) const {
    const Backend& backend = context_.backend();
    const bool is_there = backend.has_multiplied && backend.has_multiplied() && has_steps<GemmStep>(program);
    return is_there ? static_cast<std::int64_t>(CublasLt::workspace_bytes) : 0;
}

void CudaRunner::check_limit(const Frame& frame, std::span<const Array> arguments, std::int64_t steps) {
    function_limit_.check(frame, symbols_, arguments, steps, [&] {
        OwnMemory own = own_memory(*program_, frame, nullptr);
        if (steps > 0)
            own.pieces.push_back({MemoryPlan::Kind::control, "loop", "where a loop is, and its indices",
                                  Loop::bytes(steps, output_buffers_.size())});
        return own;
    });
}

void CudaRunner::admit(const Frame& frame, std::span<const Array> arguments, std::int64_t steps) {
    last_symbols_ = symbols_;
    if (!function_limit_.is_set()) return;
    check_limit(frame, arguments, steps);
    const auto fit = [](DeviceBlock& block, std::int64_t bytes) {
        if (block.bytes() > bytes) block.drop();
    };
    if (arena_.bytes() > frame.placement->bytes) {
        arena_.drop();
        placement_ = nullptr;
    }
    for (std::size_t i = 0; i < input_buffers_.size(); ++i)
        if (const std::size_t b = input_buffers_[i]; b < blocks_.size())
            fit(*blocks_[b], arguments[i].size() * bytes_of(program_->inputs[i].dtype));
    for (std::size_t i = 0; i < output_buffers_.size(); ++i)
        fit(*blocks_[output_buffers_[i]], frame.output_bytes[i]);
}

// ---- launches ----

void CudaRunner::launch(const KernelStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream) {
    // struct { void* buffers[]; i64 sizes[]; }, each of at least one element.
    const std::vector<int>& buffers = step.launch.buffers;
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
    const KernelText& kernel = program_->kernels[static_cast<std::size_t>(step.launch.kernel)];
    for (std::size_t phase = 0; phase < sizes.tasks.size(); ++phase) {
        if (sizes.tasks[phase] <= 0) continue;
        LaunchConfig config;
        config.grid.x = static_cast<unsigned>(std::min(sizes.tasks[phase], most_blocks));
        config.block.x = static_cast<unsigned>(kernel.cuda_threads.at(phase));
        config.stream = stream;
        const auto words = [&] { return kernel_words(*program_, *plan.step, phase, config); };
        if (comparison_) comparison_->before(compared_buffers(*plan.step));
        context_.launched(start_kernel(context_.runtime(), config, plan.phases.at(phase), arguments), stream,
                          std::cref(words), {program_, plan.step, phase});
        // One that differs has put back what it wrote.
        if (comparison_)
            comparison_->kernel(kernel.entries.at(phase), config, launch_arguments_, std::cref(words));
        if (plan.step->commits && stream == context_.stream()) committing_ = true;  // one phase is enough
    }
}

std::vector<ComparedBuffer> CudaRunner::compared_buffers(const Step& step) const {
    std::vector<ComparedBuffer> list;
    for (const int number : buffers_of(step)) {
        const auto b = static_cast<std::size_t>(number);
        const BufferInfo& info = program_->buffers[b];
        const DType dtype = info.type.dtype;
        list.push_back({pointers_[b], bytes_of_buffer(b) / bytes_of(dtype), dtype,
                        buffer_words(info) + " " + text_of(info.type), info.kind == Kind::errors});
    }
    return list;
}

void CudaRunner::call_library(const StepPlan& plan, const StepSizes& sizes, Stream stream,
                              const std::function<void()>& call,
                              const std::function<void(const LaunchWords&)>& compare) {
    const auto words = [&] { return call_words(*program_, *plan.step, sizes); };
    if (comparison_) comparison_->before(compared_buffers(*plan.step));
    try {
        call();
    } catch (const OutOfMemory& e) {
        throw OutOfMemory(words() + ": " + e.what());
    } catch (const DeviceError& e) {
        // Libraries meet the faults of kernels before them too, and say so in words of their own.
        context_.library_failed(stream, fmt::format("{} ({})", words(), e.what()));
        throw DeviceError(fmt::format("{}: {}", words(), e.what()));
    }
    context_.launched(success, stream, std::cref(words), {program_, plan.step});
    note_call(plan, sizes);
    if (!comparison_) return;
    const auto named = [&] {
        const std::string choice = library_choice(*plan.step);
        return choice.empty() ? words() : fmt::format("{}, {}", words(), choice);
    };
    compare(std::cref(named));
}

void CudaRunner::launch(const GemmStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream) {
    const auto floats = [&](int buffer) { return static_cast<float*>(pointer(buffer)); };
    call_library(
        plan, sizes, stream,
        [&] {
            context_.backend().gemm(sizes.gemm, floats(step.a), floats(step.b),
                                    step.bias ? floats(*step.bias) : nullptr, floats(step.c), stream);
        },
        [&](const LaunchWords& words) { comparison_->product(sizes.gemm, words); });
}

void CudaRunner::launch(const ConvStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream) {
    call_library(
        plan, sizes, stream,
        [&] {
            const ConvData data{pointer(step.image), pointer(step.filters), pointer(step.output),
                                step.bias ? pointer(*step.bias) : nullptr};
            context_.backend().conv(sizes.conv, data, stream);
        },
        [&](const LaunchWords& words) { comparison_->convolution(sizes.conv, words); });
}

void CudaRunner::launch(const CopyStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream) {
    const auto words = [&] { return call_words(*program_, *plan.step, sizes); };
    const LaunchNote note{program_, plan.step};
    void *const from = pointer(step.from), *const to = pointer(step.to);
    // Kernels look at the error word themselves before they write shared variables; a copy cannot.
    if (plan.step->commits && has_errors()) {
        const CommitArguments arguments{errors(), from, to, sizes.copy_bytes};
        const std::int64_t blocks = (sizes.copy_bytes + 4095) / 4096;
        loop_kernels_.launch(LoopKernel::commit, &arguments,
                             static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, 1024)), stream,
                             std::cref(words), note);
    } else {
        context_.copy(to, from, sizes.copy_bytes, stream, std::cref(words), note);
    }
}

void CudaRunner::launch(const RoutineStep& step, const StepPlan& /*plan*/, const StepSizes& /*sizes*/,
                        Stream /*stream*/) {
    BITALE_CHECK(false, "a GPU has no routine " + step.call.name);
}

void CudaRunner::launch(const StepPlan& plan, const StepSizes& sizes, Stream stream) {
    std::visit([&](const auto& operation) { launch(operation, plan, sizes, stream); }, plan.step->operation);
    if (plan.step->commits && stream == context_.stream()) committing_ = true;
}

void CudaRunner::launch_body(const Frame& frame, Stream stream) {
    for (std::size_t i = 0; i < body_.size(); ++i) launch(body_[i], frame.body[i], stream);
}

Graphs::Most CudaRunner::most() const {
    if (profile_ || comparison_) return Graphs::Most::off;
    return std::min(limit_, gpu_.graphs.most());
}

void CudaRunner::execute(const Frame& frame) {
    CapturedStep& step = steps_.find(frame, pointers_);
    const bool as_graph =
        step.has_run && most() != Graphs::Most::off && captured(step.call, Graphs::Most::off, [&] {
            return gpu_.graphs.capture(graph_words(*program_, "a call"), program_,
                                       [&](Stream stream) { launch_body(frame, stream); });
        });
    if (as_graph) {
        step.call->launch();
        committing_ = true;
    } else if (profile_)
        launch_timed(body_, frame.body, step.has_run);
    else
        launch_body(frame, context_.stream());
    step.has_run = true;
    note(step);
}

void CudaRunner::note(const CapturedStep& step) {
    launched_ = true;
    if (const std::size_t nodes = step.nodes(); nodes > 0) nodes_ = nodes;
}

std::string CudaRunner::launches() const {
    const Targets* targets = context_.backend().targets.get();
    const std::string note = targets ? targets->note() : "";
    return how_launched() + (note.empty() ? "" : "; machine code is for " + note);
}

std::string CudaRunner::how_launched() const {
    if (!launched_) return "none yet";
    const Graphs::Most most = this->most();
    const std::string nodes =
        nodes_ > 0 ? fmt::format("; a step is {} nodes", nodes_) : "; no step is captured yet";
    if (most == Graphs::Most::loop) {
        const std::int64_t turn = nodes_ > 0 ? most_steps_of_turn(nodes_) : 1;
        const std::string turns =
            turn > 1 ? fmt::format(" of {} steps a turn, and one more for steps left over", turn) : "";
        return fmt::format(
            "a loop is one launch, of a graph with a WHILE node{}; a call is one launch of a graph{}", turns,
            nodes);
    }
    const std::string why = profile_               ? "the profile"
                            : comparison_          ? "launches=compare"
                            : why_limited_.empty() ? gpu_.graphs.why_not_more()
                                                   : why_limited_;
    const std::string what = most == Graphs::Most::step
                                 ? "a step is one launch of a graph" + nodes
                                 : fmt::format("one for each of the {} steps of the body", body_.size());
    return what + "; not more, because of " + why;
}

// ---- errors ----

void CudaRunner::throw_error(const std::int64_t* words) {
    if (words[0] == 0) return;
    context_.zero(errors(), error_bytes);
    const auto check = static_cast<std::size_t>(words[0] - 1);
    BITALE_CHECK(check < program_->checks.size(), "the error word names an unknown check");
    throw IndexError(fault_text(program_->checks[check].message, words[1], words[2], words[3]));
}

void CudaRunner::check_errors() {
    std::int64_t words[error_words];
    const Download whole{words, errors(), sizeof words};
    context_.transfers().download({&whole, 1});
    throw_error(words);
}

void CudaRunner::clear_errors() {
    if (!call_check_ || !call_check_->failed.exchange(false)) return;
    context_.zero(errors(), error_bytes);
}

// Makes what watch_errors() needs.
void CudaRunner::prepare_to_watch() {
    if (has_errors() && !call_check_)
        call_check_ = std::make_shared<CallCheck>(context_, [program = program_](const std::int64_t* words) {
            return fmt::format(
                "{} (in an earlier call of {}, which nobody waited for; it and the calls of {} after it "
                "changed nothing)",
                fault_text(program->checks.at(static_cast<std::size_t>(words[0] - 1)).message, words[1],
                           words[2], words[3]),
                program->name, program->name);
        });
}

void CudaRunner::watch_errors() {
    if (!has_errors()) return;
    context_.check(context_.runtime().cudaMemcpyAsync(call_check_->copied.here(0), errors(),
                                                      error_words * sizeof(std::int64_t), device_to_host,
                                                      context_.stream()),
                   "copying from the GPU");
    context_.watch(call_check_);
}

void CudaRunner::count_versions() noexcept {
    committing_ = false;
    for (const int s : program_->updated) context_.wrote(program_->shared[static_cast<std::size_t>(s)]);
}

// After a failure: what was launched of the step cannot be taken back.
void CudaRunner::give_up_step() noexcept {
    if (!std::exchange(committing_, false)) return;
    for (const int s : program_->updated) context_.lost(program_->shared[static_cast<std::size_t>(s)]);
}

// ---- calls ----

std::vector<Array> CudaRunner::run(std::span<const Array> arguments) {
    const bool waits = !output_buffers_.empty();
    context_.enter();
    context_.settle(waits);
    arguments_.bind(arguments, symbols_.data(), argument_data_.data());
    const Frame& frame = frames_.find(symbols_.data());
    admit(frame, arguments, 0);
    context_.begins(program_);
    clear_errors();
    place(frame, arguments);
    // What has to be there after the launch is made before it.
    std::vector<Array> results;
    std::vector<Download> parts;
    for (std::size_t i = 0; i < frame.outputs.size(); ++i) {
        Array& a = results.emplace_back(pooled_array(program_->outputs[i].dtype, frame.outputs[i]));
        parts.push_back({a.mutable_data(), pointers_[output_buffers_[i]], frame.output_bytes[i]});
    }
    std::int64_t words[error_words] = {};
    if (has_errors()) parts.push_back({words, errors(), sizeof words});
    if (waits)
        context_.transfers().reserve(parts.size());
    else
        prepare_to_watch();
    committing_ = false;
    try {
        execute(frame);
        if (waits)
            context_.transfers().download(parts);
        else
            watch_errors();
    } catch (...) {
        give_up_step();
        throw;
    }
    throw_error(words);
    count_versions();
    return results;
}

}  // namespace bitale::cuda
