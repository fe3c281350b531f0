#include "runtime/cuda/demand.h"

#include "runtime/cuda/context.h"

namespace bitale::cuda {

NeedsGpu::NeedsGpu(Context& context) {
    if (context.is_forked()) return;
    demand_ = &context.demand();
    const std::lock_guard lock(demand_->mutex_);
    ++demand_->number_;
    if (demand_->words_) demand_->words_->write(demand_->stop_, 1);
}

NeedsGpu::~NeedsGpu() {
    if (!demand_) return;
    const std::lock_guard lock(demand_->mutex_);
    --demand_->number_;
}

LoopInStream::LoopInStream(Context& context, MappedWords& words, std::size_t stop)
    : demand_(context.demand()) {
    const std::lock_guard lock(demand_.mutex_);
    words.write(stop, demand_.number_ > 0 ? 1 : 0);
    demand_.words_ = &words;
    demand_.stop_ = stop;
}

LoopInStream::~LoopInStream() {
    const std::lock_guard lock(demand_.mutex_);
    demand_.words_ = nullptr;
}

}  // namespace bitale::cuda
