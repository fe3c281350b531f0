#include "runtime/cuda/loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "bitale/error.h"
#include "graph/base/check.h"
#include "runtime/cuda/slices.h"
#include "runtime/exec/stacked.h"

namespace bitale::cuda {

namespace {

constexpr std::int64_t bytes_per_block = std::int64_t{4} << 10, most_copy_blocks = 1024;
// Steps that are launched before the first of them is done: enough to hide the launch.
constexpr std::int64_t most_ahead = 4;
// Steps whose sizes are looked at before the first of them is launched: others wait for that too.
constexpr std::int64_t most_steps = std::int64_t{1} << 16;

using Clock = std::chrono::steady_clock;

std::atomic<std::chrono::nanoseconds>& longest() {
    static std::atomic<std::chrono::nanoseconds> time{std::chrono::milliseconds(10)};
    return time;
}

// Whether a captured step of one frame serves the other.
bool same_step(const Frame& a, const Frame& b) {
    return a.placement == b.placement && a.output_bytes == b.output_bytes && a.once == b.once &&
           a.body == b.body;
}

}  // namespace

std::chrono::nanoseconds longest_launch() { return longest(); }
void set_longest_launch(std::chrono::nanoseconds time) { longest() = time; }

CudaRunner::Loop::Loop(CudaRunner& runner)
    : runner_(runner), context_(runner.context_), words_(context_), state_(context_), values_(context_) {
    const std::size_t results = runner.output_buffers_.size();
    state_text_.resize(sizeof(LoopState) + results * sizeof(LoopResult));
    state_.grow(static_cast<std::int64_t>(state_text_.size()));
    for (std::size_t i = 0; i < results; ++i) results_.push_back(std::make_unique<DeviceBlock>(context_));
}

std::int64_t CudaRunner::Loop::bytes(std::int64_t steps, std::size_t results) {
    constexpr std::int64_t tails = 2 * 64;
    return static_cast<std::int64_t>(sizeof(LoopState) + results * sizeof(LoopResult)) +
           steps * static_cast<std::int64_t>(sizeof(std::int64_t)) + tails;
}

void CudaRunner::Loop::begin(const LoopCall& call, const std::vector<std::int64_t>& bytes) {
    call_ = &call;
    if (call.values) {
        const std::int64_t values_bytes = call.steps * static_cast<std::int64_t>(sizeof(std::int64_t));
        values_.grow(values_bytes);
        context_.upload(values_.data(), call.values, values_bytes);
    }
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i]->grow(bytes[i] * call.steps);
    words_.write(progress, 0);
}

void CudaRunner::Loop::set_up(const Frame& frame, std::int64_t first, std::int64_t end) {
    const std::size_t index = runner_.input_buffers_[0];
    LoopState state;
    if (call_->values) state.values = values_.data();
    state.first = call_->first;
    state.position = first;
    state.end = end;
    if (index < runner_.pointers_.size()) {
        // The first step's index comes from here, the others from the end of the step before.
        state.index = runner_.pointers_[index];
        state.index_bytes = bytes_of(runner_.program_->inputs[0].dtype);
        runner_.arguments_.set_scalar(0, call_->value(first), runner_.symbols_.data());
        context_.upload(state.index, runner_.argument_data_[0], state.index_bytes);
    }
    state.results = static_cast<std::int64_t>(results_.size());
    std::memcpy(state_text_.data(), &state, sizeof state);
    for (std::size_t i = 0; i < results_.size(); ++i) {
        const LoopResult result{runner_.pointers_[runner_.output_buffers_[i]], results_[i]->data(),
                                frame.output_bytes[i]};
        std::memcpy(&state_text_[sizeof state + i * sizeof result], &result, sizeof result);
    }
    context_.upload(state_.data(), state_text_.data(), static_cast<std::int64_t>(state_text_.size()));
}

void CudaRunner::Loop::end_step(const CapturedStep& step, LoopKernel kernel, Stream stream,
                                ConditionalHandle handle, std::int64_t steps) {
    const std::int64_t bytes = step.result_bytes();
    AdvanceArguments arguments;
    arguments.state = state_.data();
    if (runner_.has_errors()) arguments.errors = runner_.errors();
    arguments.stop = words_.there(stop);
    arguments.progress = words_.there(progress);
    arguments.handle = handle;
    arguments.collects = bytes <= small_results ? 1 : 0;
    arguments.steps = steps;
    const LoopKernels& kernels = runner_.loop_kernels_;
    const LaunchWords words = [this] { return "which ends a step of " + runner_.program_->name; };
    const LaunchNote note{runner_.program_};
    if (bytes > small_results)
        kernels.launch(LoopKernel::collect, &arguments,
                       static_cast<unsigned>(std::min(bytes / bytes_per_block, most_copy_blocks)), stream,
                       words, note);
    kernels.launch(kernel, &arguments, 1, stream, words, note);
}

// Waits until so many steps are done, or until there is nothing to wait for. Passes on what the host should
// know, and what it wishes.
std::int64_t CudaRunner::Loop::follow(std::int64_t until, double seconds_of_step) {
    constexpr int patience = 100;
    constexpr std::chrono::microseconds nap{50};
    constexpr double soon = 200e-6;  // a nap takes longer than it says, and the GPU would wait for its end
    for (int round = 0;; ++round) {
        const Status status = context_.progress("a loop");
        const std::int64_t done = words_.read(progress);
        call_->tell(done);
        if (ends_early()) words_.write(stop, 1);
        if (status == success || done >= until) return done;
        if (round < patience ||
            (seconds_of_step > 0 && static_cast<double>(until - done) * seconds_of_step < soon))
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(nap);
    }
}

// A WHILE node with so many steps in its body. Between them nobody asks the host or tells it anything.
bool CudaRunner::Loop::capture_turns(const Frame& frame, CapturedStep& step,
                                     std::unique_ptr<LaunchGraph>& graph, std::int64_t steps) {
    const auto body = [&](Stream stream, ConditionalHandle handle) {
        for (std::int64_t k = 1; k < steps; ++k) {
            runner_.launch_body(frame, stream);
            end_step(step, LoopKernel::go_on, stream);
        }
        runner_.launch_body(frame, stream);
        end_step(step, LoopKernel::repeat, stream, handle, steps);
    };
    return runner_.captured(graph, Graphs::Most::step, [&] {
        return runner_.gpu_.graphs.capture_loop(graph_words(*runner_.program_, "a loop"), runner_.program_,
                                                body);
    });
}

// The steps up to `end` as one launch of whole turns and one of the steps that are left over. The second is
// launched at once: where the first ends before its time, it does one step more, or none after an error.
bool CudaRunner::Loop::issue_turns(const Frame& frame, CapturedStep& step, std::int64_t end) {
    const std::int64_t left = end - issued_;
    if (left < 2 || runner_.most() != Graphs::Most::loop || !capture_turns(frame, step, step.loop, 1))
        return false;
    if (!step.turns) step.steps_of_turn = most_steps_of_turn(step.nodes());
    const std::int64_t steps = step.steps_of_turn;
    const bool by_turns = steps > 1 && left >= steps;
    if (by_turns && !capture_turns(frame, step, step.turns, steps)) return false;
    if (issued_ == first_) begun_ = Clock::now();
    if (by_turns) step.turns->launch();
    if (!by_turns || left % steps > 0) step.loop->launch();
    issued_ = end;
    return true;
}

// Puts the steps up to `end` into the stream: as turns, or one by one, a few of them ahead of the GPU.
void CudaRunner::Loop::issue(const Frame& frame, CapturedStep& step, std::int64_t end) {
    const auto plain = [&] {
        if (issued_ == first_) begun_ = Clock::now();
        if (runner_.profile_)
            runner_.launch_timed(runner_.body_, frame.body, step.has_run);
        else
            runner_.launch_body(frame, context_.stream());
        end_step(step, LoopKernel::advance, context_.stream());
        runner_.committing_ = false;
        ++issued_;
        step.has_run = true;
    };
    if (!step.has_run) plain();
    if (issue_turns(frame, step, end)) return;
    while (issued_ < end && !call_->stopped() && (issued_ == first_ || !ends_early())) {
        if (follow(issued_ - most_ahead + 1) <= issued_ - most_ahead) return;  // a step has failed
        const bool as_graph =
            runner_.most() != Graphs::Most::off && runner_.captured(step.step, Graphs::Most::off, [&] {
                return runner_.gpu_.graphs.capture(graph_words(*runner_.program_, "a step"), runner_.program_,
                                                   [&](Stream stream) {
                                                       runner_.launch_body(frame, stream);
                                                       end_step(step, LoopKernel::advance, stream);
                                                   });
            });
        if (!as_graph) {
            plain();
            continue;
        }
        if (issued_ == first_) begun_ = Clock::now();
        step.step->launch();
        ++issued_;
    }
}

// After a failure: the steps that were launched whole are done, and count.
void CudaRunner::Loop::end_early() {
    try {
        context_.synchronize();
        const std::int64_t done = words_.read(progress);
        call_->tell(done);
        if (!runner_.committing_ && done > 0) runner_.count_versions();
    } catch (const Error&) {  // the GPU is of no use any more, and says so whenever it is asked
    }
    runner_.give_up_step();
}

// Where the host launches step by step, it looks before each whether somebody waits. Whole turns leave no
// steps over.
std::int64_t CudaRunner::Loop::most_of_slice(const CapturedStep& step) const {
    const double time = std::chrono::duration<double>(longest_launch()).count();
    if (runner_.most() != Graphs::Most::loop) return most_steps;
    if (step.seconds == 0) return 1;
    const auto steps =
        static_cast<std::int64_t>(std::clamp(time / step.seconds, 1.0, static_cast<double>(most_steps)));
    return steps > step.steps_of_turn ? steps - steps % step.steps_of_turn : steps;
}

std::int64_t CudaRunner::Loop::run_slice(const Frame& frame, CapturedStep& step, std::int64_t first,
                                         std::int64_t end) {
    set_up(frame, first, end);
    first_ = issued_ = first;
    runner_.committing_ = false;
    try {
        const LoopInStream in_stream(context_, words_, stop);
        issue(frame, step, end);
        runner_.note(step);
        follow(end, step.seconds);
        context_.synchronize();
    } catch (...) {
        end_early();
        throw;
    }
    const std::int64_t done = words_.read(progress);
    call_->tell(done);
    const std::chrono::duration<double> took = Clock::now() - begun_;
    if (done > first) step.seconds = took.count() / static_cast<double>(done - first);
    return done;
}

std::int64_t CudaRunner::Loop::run(const Frame& frame, std::int64_t first, std::int64_t end) {
    CapturedStep& step = runner_.steps_.find(frame, runner_.pointers_);
    for (std::int64_t done = first;;) {
        const std::int64_t until = std::min(end, done + most_of_slice(step));
        const std::int64_t before = std::exchange(done, run_slice(frame, step, done, until));
        if (done < until || done == end || done == before || ends_early()) return done;
    }
}

std::vector<Array> CudaRunner::loop(const LoopCall& call) {
    std::optional<StackedResults> stacked;
    LoopCall rest = call;
    for (;;) {
        const std::int64_t done = run_steps(rest, stacked);
        rest.ended(done);
        if (done == rest.steps || call.stopped()) return stacked->take();
        rest = rest.rest(done);
        try {
            if (call.lock) call.lock->let_others();
        } catch (const Error&) {
            rethrow_in_step(rest.told, rest.value(0));
        }
        if (call.stopped()) return stacked->take();
    }
}

std::int64_t CudaRunner::run_steps(const LoopCall& call, std::optional<StackedResults>& stacked) {
    const std::int64_t steps = call.steps;
    const auto value = [&](std::int64_t step) { return call.value(step); };
    context_.enter();
    context_.settle(true);
    arguments_.bind(call.arguments, symbols_.data(), argument_data_.data());
    const auto frame_of_first_step = [&]() -> Frame {
        arguments_.set_scalar(0, value(0), symbols_.data());
        return frames_.find(symbols_.data());
    };
    const Frame first = steps > 0 ? in_step(call, 0, frame_of_first_step) : frames_.find(symbols_.data());
    if (steps > 0) admit(first, call.arguments, steps);
    if (!stacked) stacked.emplace(*program_, first, steps);
    if (steps == 0) return 0;
    context_.begins(program_);
    clear_errors();
    place(first, call.arguments);
    if (!loop_) loop_ = std::make_unique<Loop>(*this);
    loop_->begin(call, first.output_bytes);

    std::int64_t done = 0;
    while (done < steps && !(call.stopped() || (done > 0 && loop_->ends_early()))) {
        // As many steps as one captured step serves; then, if there is one, the step that cannot be made.
        Frame frame;
        std::int64_t end = done;
        std::exception_ptr refusal;
        try {
            for (; end < steps && end - done < most_steps && !call.stopped(); ++end) {
                arguments_.set_scalar(0, value(end), symbols_.data());
                const Frame& next = frames_.find(symbols_.data());
                stacked->check(next);
                check_limit(next, call.arguments, steps);
                if (end == done) frame = next;
                if (!same_step(frame, next)) break;
            }
        } catch (const Error&) {
            refusal = std::current_exception();
        }
        if (end > done) {
            // Sizes are asked for as they are in these steps.
            arguments_.set_scalar(0, value(done), symbols_.data());
            use(frame);
            done = loop_->run(frame, done, end);
            if (done > 0) count_versions();
        }
        try {
            if (done < end && has_errors()) check_errors();
            if (done == end && refusal) std::rethrow_exception(refusal);
        } catch (const Error&) {
            rethrow_in_step(call.told + done, value(done));
        }
        if (done < end) break;  // asked to
    }
    std::vector<Download> parts;
    stacked->add(
        [&](std::size_t i, char* to, std::int64_t bytes) {
            parts.push_back({to, loop_->collected(i), bytes});
        },
        done);
    context_.transfers().download(parts);
    return done;
}

}  // namespace bitale::cuda
