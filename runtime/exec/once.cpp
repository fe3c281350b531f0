#include "runtime/exec/once.h"

#include <set>

#include "graph/ir/shared.h"

namespace bitale {

OnceValues::OnceValues(const Program& program) : program_(program) {
    using Kind = BufferInfo::Kind;
    std::set<std::size_t> buffers, shared;
    std::set<int> read;  // by every call; the rest of the arena has other values when `once` is over
    for (const Step& step : program.body.steps)
        for (const int b : buffers_of(step)) read.insert(b);
    for (const Step& step : program.once.steps)
        for (const int b : buffers_of(step)) {
            const BufferInfo& info = program.buffers.at(static_cast<std::size_t>(b));
            if (info.kind == Kind::arena && read.contains(b)) buffers.insert(static_cast<std::size_t>(b));
            if (info.kind == Kind::shared) shared.insert(static_cast<std::size_t>(info.index));
        }
    buffers_.assign(buffers.begin(), buffers.end());
    shared_.assign(shared.begin(), shared.end());
    versions_.resize(shared_.size());
    offsets_.resize(buffers_.size(), -1);
}

void OnceValues::place(const Placement& placement) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const std::int64_t offset = placement.offsets[buffers_[i]];
        if (offsets_[i] != offset) computed_ = false;
        offsets_[i] = offset;
    }
}

bool OnceValues::are_due() {
    for (std::size_t i = 0; i < shared_.size(); ++i) {
        const std::uint64_t version = program_.shared[shared_[i]]->version;
        if (versions_[i] != version) computed_ = false;
        versions_[i] = version;
    }
    return !computed_;
}

}  // namespace bitale
