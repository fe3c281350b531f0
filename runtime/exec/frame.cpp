// Sizes of steps, buffers and results for given symbols.
#include "runtime/exec/frame.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include <fmt/format.h>

#include "graph/base/overloaded.h"
#include "graph/ir/array_bytes.h"

namespace bitale {

Frames::Frames(std::shared_ptr<const Program> program, const Signature& signature, int threads)
    : program_(std::move(program)),
      symbol_ids_(symbols_of(signature)),
      threads_(threads),
      table_(symbol_ids_),
      checks_(signature.checks, symbol_ids_, signature, table_) {
    once_ = compile(program_->once);
    body_ = compile(program_->body);
    for (const Type& type : program_->outputs) {
        std::vector<int>& axes = output_shapes_.emplace_back();
        for (const Int& length : type.shape) axes.push_back(table_.add(length));
    }
    for (const BufferInfo& buffer : program_->buffers)
        if (buffer.kind == BufferInfo::Kind::arena)
            arena_counts_.push_back(table_.add(count_of(buffer.type.shape)));
    slots_.resize(table_.slots());
    used_ = table_.used_symbols();
    std::set<int> results(arena_counts_.begin(), arena_counts_.end());
    for (const std::vector<StepSlots>* steps : {&once_, &body_})
        for (const StepSlots& s : *steps) {
            for (const std::vector<int>* list : {&s.sizes, &s.tasks, &s.call, &s.pieces[0], &s.pieces[1]})
                results.insert(list->begin(), list->end());
            if (s.copy >= 0) results.insert(s.copy);
        }
    for (const std::vector<int>& axes : output_shapes_) results.insert(axes.begin(), axes.end());
    results_.assign(results.begin(), results.end());
}

std::vector<Frames::StepSlots> Frames::compile(const Region& region) {
    std::vector<StepSlots> r;
    for (const Step& step : region.steps) {
        StepSlots& slots = r.emplace_back();
        std::visit([&](const auto& operation) { compile(operation, slots); }, step.operation);
    }
    return r;
}

void Frames::compile(const KernelStep& step, StepSlots& to) {
    add(step.launch.sizes, to.sizes);
    add(step.tasks, to.tasks);
    if (threads_ == 0) return;
    for (const std::vector<TaskWork>& phase : step.work) {
        std::vector<int>& work = to.work.emplace_back();
        for (const TaskWork& w : phase)
            work.insert(work.end(), {table_.add(w.tasks), table_.add(w.picoseconds)});
    }
}

void Frames::compile(const GemmStep& step, StepSlots& to) {
    if (step.epilogue) add(step.epilogue->sizes, to.sizes);
    if (step.pieces_a) add(step.pieces_a->sizes, to.pieces[0]);
    if (step.pieces_b) add(step.pieces_b->sizes, to.pieces[1]);
    const GemmCall& call = step.call;
    add(std::array{call.m, call.n, call.k}, to.call);
    if (!call.strides) return;
    const GemmStrides& s = *call.strides;
    add(std::array{s.first_a, s.first_b, s.row_a, s.row_b, s.row_c}, to.call);
    for (const GemmStrides::Batch& batch : s.batches)
        add(std::array{batch.count, batch.a, batch.b, batch.c}, to.call);
}

void Frames::compile(const ConvStep& step, StepSlots& to) {
    for (const ConvTensor* t : {&step.call.image, &step.call.filters, &step.call.output}) {
        add(t->shape, to.call);
        add(t->strides, to.call);
    }
}

void Frames::compile(const CopyStep& step, StepSlots& to) {
    const Type& type = program_->buffers.at(static_cast<std::size_t>(step.from)).type;
    to.copy = table_.add(count_of(type.shape) * bytes_of(type.dtype));
}

void Frames::compile(const RoutineStep& step, StepSlots& to) { add(step.call.sizes, to.call); }

GemmShape Frames::gemm_shape(const GemmCall& call, const std::vector<int>& slots) const {
    GemmShape r;
    r.m = slot(slots[0]);
    r.n = slot(slots[1]);
    r.k = slot(slots[2]);
    r.transpose_a = call.transpose_a;
    r.transpose_b = call.transpose_b;
    r.bias = call.bias;
    r.relu = call.relu;
    r.precision = call.precision;
    r.parameter = call.parameter;
    r.dtype = call.dtype;
    r.unsigned_a = call.unsigned_a;
    r.alpha = call.alpha;
    r.beta = call.beta;
    r.slice_rows = call.slice_rows;
    r.slice_columns = call.slice_columns;
    r.slice_depth = call.slice_depth;
    r.made_a = call.made_a;
    r.made_b = call.made_b;
    r.piece_depth = call.piece_depth;
    r.symmetric = call.symmetric;
    if (!call.strides) return r;
    r.strided = true;
    std::size_t next = 3;
    for (std::int64_t* x : {&r.first_a, &r.first_b, &r.row_a, &r.row_b, &r.row_c}) *x = slot(slots[next++]);
    r.batches.resize(call.strides->batches.size());
    for (GemmShape::Batch& batch : r.batches)
        for (std::int64_t* x : {&batch.count, &batch.a, &batch.b, &batch.c}) *x = slot(slots[next++]);
    return r;
}

ConvShape Frames::conv_shape(const ConvCall& call, const std::vector<int>& slots) const {
    ConvShape r;
    r.kind = call.kind;
    std::size_t next = 0;
    for (ConvSizes* t : {&r.image, &r.filters, &r.output}) {
        for (std::int64_t& length : t->shape) length = slot(slots[next++]);
        for (std::int64_t& stride : t->strides) stride = slot(slots[next++]);
    }
    r.stride = call.stride;
    r.pad = call.pad;
    r.dilation = call.dilation;
    r.flip = call.flip;
    r.bias = call.bias;
    r.relu = call.relu;
    r.precision = call.precision;
    r.groups = call.groups;
    return r;
}

RoutineShape Frames::routine_shape(const RoutineCall& call, const std::vector<int>& slots) const {
    RoutineShape r{call.name, call.dtype, {}, call.by_library};
    for (const int s : slots) r.sizes.push_back(slot(s));
    return r;
}

std::vector<Shares> Frames::shares(const StepSlots& step) const {
    std::vector<Shares> r;
    for (const std::vector<int>& work : step.work) {
        std::vector<TaskCost> costs;
        for (std::size_t k = 0; k + 1 < work.size(); k += 2)
            costs.push_back({slot(work[k]), slot(work[k + 1])});
        r.push_back(share_out(costs, threads_));
    }
    return r;
}

std::vector<StepSizes> Frames::evaluate(const Region& region, const std::vector<StepSlots>& slots) const {
    std::vector<StepSizes> r(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
        for (const int s : slots[i].sizes) r[i].sizes.push_back(slot(s));
        for (std::size_t side = 0; side < r[i].pieces.size(); ++side)
            for (const int s : slots[i].pieces[side]) r[i].pieces[side].push_back(slot(s));
        for (const int s : slots[i].tasks) r[i].tasks.push_back(slot(s));
        r[i].shares = shares(slots[i]);
        std::visit(
            Overloaded{[](const KernelStep&) {},
                       [&](const GemmStep& s) { r[i].gemm = gemm_shape(s.call, slots[i].call); },
                       [&](const ConvStep& s) { r[i].conv = conv_shape(s.call, slots[i].call); },
                       [&](const CopyStep&) { r[i].copy_bytes = slot(slots[i].copy); },
                       [&](const RoutineStep& s) { r[i].routine = routine_shape(s.call, slots[i].call); }},
            region.steps[i].operation);
    }
    return r;
}

std::shared_ptr<const Placement> Frames::place(const std::int64_t* symbols) {
    std::vector<std::int64_t> counts;
    for (const int c : arena_counts_) counts.push_back(slot(c));
    for (const Placed& p : placed_)
        if (p.counts == counts) return p.placement;
    std::map<std::uint64_t, std::int64_t> values;
    for (std::size_t i = 0; i < symbol_ids_.size(); ++i) values.emplace(symbol_ids_[i], symbols[i]);
    auto placement = std::make_shared<const Placement>(plan_arena(*program_, values));
    most_bytes_ = std::max(most_bytes_, placement->bytes);
    if (placed_.size() < most_frames) placed_.emplace_back();
    placed_[next_placed_] = {std::move(counts), placement};
    next_placed_ = (next_placed_ + 1) % most_frames;
    return placement;
}

std::int64_t Frames::bytes_of_result(std::size_t number, const Dims& dims) const try {
    return bytes_of(program_->outputs[number].dtype, dims);
} catch (const ShapeError& e) {
    for (const BufferInfo& buffer : program_->buffers)
        if (buffer.kind == BufferInfo::Kind::output && buffer.index == static_cast<int>(number) &&
            !buffer.origins.empty())
            throw ShapeError(buffer.origins[0].where,
                             fmt::format("result {} of the function: {}", number, e.what()));
    throw;
}

// From the slots.
std::unique_ptr<Frame> Frames::make(const std::int64_t* symbols) {
    static std::atomic<std::uint64_t> frames{0};
    auto frame = std::make_unique<Frame>();
    frame->number = ++frames;
    frame->placement = place(symbols);
    frame->once = evaluate(program_->once, once_);
    frame->body = evaluate(program_->body, body_);
    for (std::size_t i = 0; i < output_shapes_.size(); ++i) {
        Dims& dims = frame->outputs.emplace_back();
        for (const int s : output_shapes_[i]) dims.push_back(slot(s));
        frame->output_bytes.push_back(bytes_of_result(i, dims));
    }
    return frame;
}

bool Frames::newest_fits(const std::int64_t* symbols) const {
    if (newest_symbols_.size() != used_.size() || frames_.empty()) return false;
    for (std::size_t i = 0; i < used_.size(); ++i)
        if (newest_symbols_[i] != symbols[used_[i]]) return false;
    return true;
}

void Frames::remember(const std::int64_t* symbols) {
    newest_symbols_.resize(used_.size());
    for (std::size_t i = 0; i < used_.size(); ++i) newest_symbols_[i] = symbols[used_[i]];
}

const Frame& Frames::find(const std::int64_t* symbols) {
    if (newest_fits(symbols)) return *frames_[newest_].frame;
    newest_symbols_.clear();  // should anything throw
    table_.evaluate(symbols, slots_.data());
    checks_.verify(symbols, slots_.data());
    const auto fits = [&](const Known& known) {
        for (std::size_t i = 0; i < results_.size(); ++i)
            if (known.sizes[i] != slot(results_[i])) return false;
        return true;
    };
    std::size_t at = newest_;
    if (at >= frames_.size() || !fits(frames_[at]))
        for (at = 0; at < frames_.size() && !fits(frames_[at]);) ++at;
    if (at == frames_.size()) {
        Known made;
        made.frame = make(symbols);
        for (const int r : results_) made.sizes.push_back(slot(r));
        if (frames_.size() < most_frames) {
            frames_.push_back(std::move(made));
        } else {
            at = next_victim_;
            next_victim_ = (next_victim_ + 1) % most_frames;
            frames_[at] = std::move(made);
        }
    }
    newest_ = at;
    remember(symbols);
    return *frames_[newest_].frame;
}

}  // namespace bitale
