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
            for (const Int* size : {&step.gemm.m, &step.gemm.n, &step.gemm.k})
                s.call.push_back(table_.add(*size));
        } else if (step.kind == Step::Kind::conv) {
            for (const ConvTensor* t : {&step.conv.image, &step.conv.filters, &step.conv.output}) {
                for (const Int& length : t->shape) s.call.push_back(table_.add(length));
                for (const Int& stride : t->strides) s.call.push_back(table_.add(stride));
            }
        } else if (step.kind == Step::Kind::copy) {
            const Type& type = program_->buffers.at(static_cast<std::size_t>(step.buffers.at(0))).type;
            s.copy = table_.add(count_of(type.shape) * bytes_of(type.dtype));
        }
    }
    return r;
}

GemmShape Frames::gemm_shape(const GemmCall& call, const std::vector<int>& slots) const {
    return {slot(slots[0]),   slot(slots[1]), slot(slots[2]), call.transpose_a,
            call.transpose_b, call.bias,      call.relu,      call.precision};
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
    return r;
}

std::vector<StepSizes> Frames::evaluate(const Region& region, const std::vector<StepSlots>& slots) const {
    std::vector<StepSizes> r(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
        for (const int s : slots[i].sizes) r[i].sizes.push_back(slot(s));
        for (const int s : slots[i].tasks) r[i].tasks.push_back(slot(s));
        const Step& step = region.steps[i];
        if (step.kind == Step::Kind::gemm)
            r[i].gemm = gemm_shape(step.gemm, slots[i].call);
        else if (step.kind == Step::Kind::conv)
            r[i].conv = conv_shape(step.conv, slots[i].call);
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
