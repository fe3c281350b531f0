// Sizes of steps, buffers and results for given symbols.
#include "runtime/exec/frame.h"

#include <algorithm>
#include <map>
#include <set>

namespace bitale {

Frames::Frames(std::shared_ptr<const Program> program, const std::vector<std::uint64_t>& symbol_ids,
               const std::vector<LengthCheck>& checks)
    : program_(std::move(program)), symbol_ids_(symbol_ids), table_(symbol_ids), checks_(checks, table_) {
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
}

std::vector<Frames::StepSlots> Frames::compile(const Region& region) {
    std::vector<StepSlots> r;
    for (const Step& step : region.steps) {
        StepSlots& s = r.emplace_back();
        for (const Int& size : step.sizes) s.sizes.push_back(table_.add(size));
        for (const Int& tasks : step.tasks) s.tasks.push_back(table_.add(tasks));
        if (step.kind == Step::Kind::gemm) {
            s.m = table_.add(step.gemm.m);
            s.n = table_.add(step.gemm.n);
            s.k = table_.add(step.gemm.k);
        } else if (step.kind == Step::Kind::copy) {
            const Type& type = program_->buffers.at(static_cast<std::size_t>(step.buffers.at(0))).type;
            s.copy = table_.add(count_of(type.shape) * bytes_of(type.dtype));
        }
    }
    return r;
}

std::vector<StepSizes> Frames::evaluate(const Region& region, const std::vector<StepSlots>& slots) const {
    std::vector<StepSizes> r(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
        for (const int s : slots[i].sizes) r[i].sizes.push_back(slot(s));
        for (const int s : slots[i].tasks) r[i].tasks.push_back(slot(s));
        const Step& step = region.steps[i];
        if (step.kind == Step::Kind::gemm)
            r[i].gemm = {slot(slots[i].m), slot(slots[i].n), slot(slots[i].k), step.gemm.transpose_a,
                         step.gemm.transpose_b};
        else if (step.kind == Step::Kind::copy)
            r[i].copy_bytes = slot(slots[i].copy);
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

std::unique_ptr<Frame> Frames::make(const std::int64_t* symbols) {
    table_.evaluate(symbols, slots_.data());
    checks_.verify(slots_.data());
    auto frame = std::make_unique<Frame>();
    for (const std::size_t p : used_) frame->symbols.push_back(symbols[p]);
    frame->placement = place(symbols);
    frame->once = evaluate(program_->once, once_);
    frame->body = evaluate(program_->body, body_);
    for (std::size_t i = 0; i < output_shapes_.size(); ++i) {
        Dims& dims = frame->outputs.emplace_back();
        for (const int s : output_shapes_[i]) dims.push_back(slot(s));
        frame->output_bytes.push_back(count_of(dims) * bytes_of(program_->outputs[i].dtype));
    }
    return frame;
}

const Frame& Frames::find(const std::int64_t* symbols) {
    const auto fits = [&](const Frame& frame) {
        for (std::size_t i = 0; i < used_.size(); ++i)
            if (frame.symbols[i] != symbols[used_[i]]) return false;
        return true;
    };
    if (!frames_.empty() && fits(*frames_[newest_])) return *frames_[newest_];
    for (std::size_t i = 0; i < frames_.size(); ++i)
        if (fits(*frames_[i])) return *frames_[newest_ = i];
    std::unique_ptr<Frame> frame = make(symbols);
    if (frames_.size() < most_frames) {
        newest_ = frames_.size();
        frames_.push_back(std::move(frame));
    } else {
        newest_ = next_victim_;
        next_victim_ = (next_victim_ + 1) % most_frames;
        frames_[newest_] = std::move(frame);
    }
    return *frames_[newest_];
}

}  // namespace bitale
