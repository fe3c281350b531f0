// The executor of generated programs on host memory. Nothing is allocated between the arguments and the
// results once the sizes of a call have been seen.
#include "runtime/exec/call_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "graph/base/memory.h"
#include "graph/base/options.h"
#include "graph/base/overloaded.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "graph/types/saturated.h"
#include "runtime/exec/stacked.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

using Kind = BufferInfo::Kind;

namespace {

Launcher::Reserved reserved_for(const Program& program, const GemmStep& step, const StepSizes& sizes) {
    std::size_t most = 0;
    for (const std::optional<KernelLaunch>* launch : {&step.epilogue, &step.pieces_a, &step.pieces_b})
        if (*launch) most = std::max(most, (*launch)->buffers.size());
    const BufferInfo& result = program.buffers[static_cast<std::size_t>(step.c)];
    return {&sizes.gemm, result.kind != Kind::slice, most};
}

// Kernels read past the end of a buffer, in lanes whose results nobody wants. Integers that the arena had
// there before are denormal floats, of which a product takes a hundred cycles: of ten filters of 5 x 5, every
// 25th one. Of what is longer, or as long as the batch, lanes pass the end seldom.
constexpr std::int64_t tail_bytes = 64, short_bytes = 64 << 10;

// Nothing where its end does not matter.
std::optional<std::int64_t> short_floats(const BufferInfo& buffer) {
    const DType dtype = buffer.type.dtype;
    if (buffer.kind != Kind::arena || (dtype != DType::float32 && dtype != DType::float64)) return {};
    std::int64_t bytes = bytes_of(dtype);
    for (const Int& length : buffer.type.shape) {
        if (!length.is_constant()) return {};
        bytes = saturated::product(bytes, length.constant());
    }
    return bytes <= short_bytes ? std::optional(bytes) : std::nullopt;
}

}  // namespace

CallState::CallState(const Build& build, std::unique_ptr<Launcher> launcher, Meters& meters,
                     ArenaBytes& arenas, LastSymbols& last_symbols)
    : program_(build.program),
      arguments_(build.signature),
      launcher_(std::move(launcher)),
      frames_(program_, build.signature, launcher_->threads()),
      profile_(build.profile),
      arenas_(arenas),
      last_symbols_(last_symbols),
      pointers_(program_->buffers.size(), nullptr),
      updated_(program_->shared.size(), false),
      argument_data_(program_->inputs.size()),
      symbols_(arguments_.symbols()),
      output_buffers_(program_->outputs.size(), program_->buffers.size()),
      limit_(build),
      once_values_(*program_) {
    std::vector<bool> begun(program_->buffers.size(), false);
    plan(program_->once, once_, meters, begun);
    plan(program_->body, body_, meters, begun);
    for (const int s : program_->updated) updated_.at(static_cast<std::size_t>(s)) = true;
    for (std::size_t b = 0; b < pointers_.size(); ++b) {
        const BufferInfo& info = program_->buffers[b];
        if (info.kind == Kind::output) output_buffers_.at(static_cast<std::size_t>(info.index)) = b;
        if (info.kind == Kind::errors) pointers_[b] = errors_.words.data();
        if (info.kind == Kind::counters) {
            counters_.emplace_back(info.type.dtype, static_dims(info.type.shape));
            pointers_[b] = counters_.back().mutable_data();
        }
    }
    for (const std::size_t b : output_buffers_)
        BITALE_CHECK(b < pointers_.size(), "a result without a buffer");
}

CallState::~CallState() { arenas_.add(-arena_bytes_); }

void CallState::plan(const Region& region, std::vector<StepPlan>& plans, Meters& meters,
                     std::vector<bool>& begun) {
    for (const Step& step : region.steps) {
        const std::size_t number = once_.size() + body_.size();
        StepPlan& p = plans.emplace_back();
        p.meter = &meters[number];
        p.step = &step;
        p.first_pointer = step_pointers_.size();
        const std::vector<int> buffers = buffers_of(step);
        step_pointers_.resize(step_pointers_.size() + buffers.size());
        for (const int buffer : buffers) {
            const auto b = static_cast<std::size_t>(buffer);
            if (begun[b]) continue;
            begun[b] = true;
            if (const std::optional<std::int64_t> bytes = short_floats(program_->buffers[b]))
                p.short_floats.emplace_back(b, *bytes);
        }
    }
}

OwnMemory own_memory_of(const Program& program, const Frame& frame, const Frame* before,
                        const Launcher& launcher) {
    std::vector<Launcher::Reserved> calls;
    const auto add = [&](const Region& region, const std::vector<StepSizes>& sizes) {
        for (std::size_t i = 0; i < region.steps.size(); ++i)
            if (const auto* gemm = std::get_if<GemmStep>(&region.steps[i].operation))
                calls.push_back(reserved_for(program, *gemm, sizes[i]));
    };
    for (const Frame* f : {&frame, before})
        if (f) {
            add(program.once, f->once);
            add(program.body, f->body);
        }
    OwnMemory own;
    if (const std::int64_t bytes = launcher.reserved_bytes(calls); bytes > 0)
        own.pieces.push_back({MemoryPlan::Kind::workspace, "products",
                              "slices of products and pieces of their operands, of each thread", bytes});
    if (!calls.empty())
        own.notes.emplace_back("memory of oneDNN itself while it computes, below 1 MB per thread");
    return own;
}

void CallState::limit_arena(const Frame& frame, std::span<const Array> arguments, std::int64_t steps) {
    const bool is_as_before = frame.number == last_frame_;
    if (!is_as_before) {
        last_symbols_.set(symbols_);
        last_frame_ = frame.number;
    }
    const FittingCall call = limit_.check(frame, symbols_, arguments, steps, [&] {
        return own_memory_of(*program_, frame, nullptr, *launcher_);
    });
    if (call.most == INT64_MAX) return;
    // What other sizes have left may grow by all that these need: fewer rows can need more for their
    // products.
    const std::int64_t workspace = launcher_->reserved_alive() + (is_as_before ? 0 : call.workspace);
    if (std::max(arena_.bytes(), call.arena) + workspace > call.most) drop_arena();
}

void CallState::admit(const Frame& frame, std::span<const Array> arguments, std::int64_t steps) {
    limit_arena(frame, arguments, steps);
    const std::int64_t limit = options().memory_limit;
    if (limit <= 0) return;
    std::int64_t more = 0;
    for (const std::int64_t bytes : frame.output_bytes)
        more += pooled_bytes(saturated::product(bytes, std::max<std::int64_t>(steps, 1)));
    const std::int64_t arena = Arena::block_bytes(frame.placement->bytes);
    if (arena > arena_.bytes()) more += arena - arena_.bytes();
    const auto alive = [] { return host_ledger().now(); };
    if (alive() + more > limit) trim_host_memory();
    if (alive() + more > limit) IdleMemory::give_all_back();
    if (alive() + more <= limit) return;
    throw OutOfMemory(fmt::format(
        "{} more beside the {} that are alive are {} more than memory_limit in "
        "BITALE_FLAGS allows, {}",
        bytes_text(more), bytes_text(alive()), bytes_text(alive() + more - limit), bytes_text(limit)));
}

void CallState::begin() {
    for (std::size_t b = 0; b < pointers_.size(); ++b) {
        const BufferInfo& info = program_->buffers[b];
        const auto index = static_cast<std::size_t>(info.index);
        // Kernels take plain pointers; what they must not write they do not write.
        if (info.kind == Kind::shared) {
            SharedState& variable = *program_->shared[index];
            pointers_[b] =
                updated_[index] ? variable.data_to_write() : const_cast<void*>(variable.value.data());
        } else if (info.kind == Kind::input) {
            pointers_[b] = const_cast<void*>(argument_data_[index]);
        } else if (info.kind == Kind::constant) {
            pointers_[b] = const_cast<void*>(program_->constants[index].data());
        }
    }
}

void CallState::use(const Frame& frame) {
    if (placement_ != frame.placement) {
        placement_ = nullptr;  // where memory runs out, the next call starts without any
        if (arena_.grow(frame.placement->bytes, options().memory_limit)) once_values_.forget();
        placement_ = frame.placement;
        arenas_.add(arena_.bytes() - arena_bytes_);
        arena_bytes_ = arena_.bytes();
        for (std::size_t b = 0; b < pointers_.size(); ++b)
            if (program_->buffers[b].kind == Kind::arena && placement_->offsets[b] >= 0)
                pointers_[b] = arena_.base() + placement_->offsets[b];
        once_values_.place(*placement_);
    }
    if (!once_values_.are_due()) return;
    if (!run_steps(once_, frame.once)) fail();
    once_values_.computed();
}

void CallState::launch(const StepPlan& plan, const StepSizes& sizes) {
    for (const auto& [b, bytes] : plan.short_floats)
        std::memset(static_cast<char*>(pointers_[b]) + bytes, 0, tail_bytes);
    void** const first = step_pointers_.data() + plan.first_pointer;
    void** next = first;
    std::visit(
        Overloaded{
            [&](const KernelStep& s) {
                gather(s.launch.buffers, next);
                for (std::size_t phase = 0; phase < sizes.tasks.size(); ++phase)
                    if (sizes.tasks[phase] > 0)
                        launcher_->kernel(s.launch.kernel, static_cast<int>(phase), first, sizes.sizes.data(),
                                          sizes.tasks[phase],
                                          phase < sizes.shares.size() ? &sizes.shares[phase] : nullptr);
            },
            [&](const GemmStep& s) { launch(s, sizes, first); },
            [&](const ConvStep& s) {
                launcher_->conv(sizes.conv, {pointer(s.image), pointer(s.filters), pointer(s.output),
                                             s.bias ? pointer(*s.bias) : nullptr});
            },
            [&](const CopyStep& s) { launcher_->copy(pointer(s.to), pointer(s.from), sizes.copy_bytes); },
            [&](const RoutineStep& s) {
                gather(s.operands, next);
                *next++ = pointer(s.result);
                *next++ = pointer(s.workspace);
                // Levels are such that nothing has been committed yet (codegen/group/group.cpp).
                if (!launcher_->routine(sizes.routine, first))
                    throw Error(fmt::format("{} did not converge; shared variables are as before the call",
                                            plan.step->title));
            }},
        plan.step->operation);
}

void CallState::launch(const GemmStep& step, const StepSizes& sizes, void** pointers) {
    const auto slice_kernel = [&](const std::optional<KernelLaunch>& launch,
                                  const std::vector<std::int64_t>& own_sizes) {
        if (!launch) return SliceKernel{};
        const SliceKernel kernel{launch->kernel, pointers, launch->buffers.size(), own_sizes.data()};
        gather(launch->buffers, pointers);
        return kernel;
    };
    const GemmData data{pointer(step.a), pointer(step.b), step.bias ? pointer(*step.bias) : nullptr,
                        pointer(step.c)};
    launcher_->gemm(sizes.gemm, data,
                    {slice_kernel(step.epilogue, sizes.sizes), slice_kernel(step.pieces_a, sizes.pieces[0]),
                     slice_kernel(step.pieces_b, sizes.pieces[1])});
}

// False when the error word was set before the first step that commits, or at the end.
bool CallState::run_steps(std::vector<StepPlan>& plans, const std::vector<StepSizes>& sizes) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const auto* gemm = std::get_if<GemmStep>(&plans[i].step->operation);
        if (!gemm) continue;
        const Launcher::Reserved call = reserved_for(*program_, *gemm, sizes[i]);
        launcher_->reserve(*call.shape, call.stored, call.buffers);
    }
    bool committing = false;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        if (plans[i].step->commits && !committing) {
            if (errors_.words[0] != 0) return false;
            committing = true;
        }
        if (!profile_) {
            launch(plans[i], sizes[i]);
            continue;
        }
        const auto start = std::chrono::steady_clock::now();
        launch(plans[i], sizes[i]);
        plans[i].meter->add(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return errors_.words[0] == 0;
}

void CallState::step(const Frame& frame) {
    errors_.words[0] = 0;
    use(frame);
    if (!run_steps(body_, frame.body)) fail();
}

void CallState::fail() const {
    const auto check = static_cast<std::size_t>(errors_.words[0] - 1);
    BITALE_CHECK(check < program_->checks.size(), "the error word names an unknown check");
    throw IndexError(
        fault_text(program_->checks[check].message, errors_.words[1], errors_.words[2], errors_.words[3]));
}

void CallState::count_versions() {
    if (!launcher_->computes()) return;
    for (const int s : program_->updated) ++program_->shared[static_cast<std::size_t>(s)]->version;
}

std::vector<Array> CallState::run(std::span<const Array> arguments) {
    arguments_.bind(arguments, symbols_.data(), argument_data_.data());
    const Frame& frame = frames_.find(symbols_.data());
    admit(frame, arguments, 0);
    std::vector<Array> results;
    results.reserve(frame.outputs.size());
    for (std::size_t i = 0; i < frame.outputs.size(); ++i) {
        Array& a = results.emplace_back(
            pooled_array(program_->outputs[i].dtype, frame.outputs[i], options().memory_limit));
        pointers_[output_buffers_[i]] = a.mutable_data();
        if (!launcher_->computes()) std::memset(a.mutable_data(), 0, static_cast<std::size_t>(a.bytes()));
    }
    begin();
    step(frame);
    count_versions();
    return results;
}

std::vector<Array> CallState::loop(const LoopCall& call, CallStates<CallState>& all) {
    const std::int64_t steps = call.steps;
    arguments_.bind(call.arguments, symbols_.data(), argument_data_.data());
    const auto frame_of_first_step = [&]() -> Frame {
        arguments_.set_scalar(0, call.value(0), symbols_.data());
        return frames_.find(symbols_.data());
    };
    const Frame first = steps > 0 ? in_step(call, 0, frame_of_first_step) : frames_.find(symbols_.data());
    StackedResults stacked = all.with_room([&] {
        admit(first, call.arguments, steps);
        return StackedResults(*program_, first, steps, options().memory_limit);
    });
    for (std::size_t i = 0; i < first.outputs.size() && !launcher_->computes(); ++i)
        std::memset(stacked.next(i), 0, static_cast<std::size_t>(steps * first.output_bytes[i]));
    const auto begin_with_room = [&] { all.with_room([&] { begin(); }); };
    begin_with_room();
    std::int64_t counted = 0;  // steps that are part of the variables' versions
    const auto count = [&] {
        if (stacked.done() > counted) count_versions();
        counted = stacked.done();
    };
    const auto body = [&](std::int64_t, std::int64_t value) {
        arguments_.set_scalar(0, value, symbols_.data());
        const Frame& frame = frames_.find(symbols_.data());
        stacked.check(frame);
        for (std::size_t i = 0; i < output_buffers_.size(); ++i)
            pointers_[output_buffers_[i]] = stacked.next(i);
        all.with_room([&] {
            limit_arena(frame, call.arguments, steps);
            step(frame);
        });
        stacked.advance();
        all.tidy();
    };
    const auto pause = [&] {
        count();
        call.lock->let_others();
        begin_with_room();
    };
    try {
        for_each_step(call, body, pause);
    } catch (...) {
        count();
        throw;
    }
    count();
    return stacked.take();
}

}  // namespace bitale
