#include "codegen/nest/channels.h"

#include <cstdint>
#include <optional>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Partial results of all lanes and channels stay near the registers. Channels that fill lanes by themselves
// need no terms beside them.
bool is_few(std::int64_t channels) {
    constexpr std::int64_t most = 31, lanes = 16, half = 8;
    return channels <= most && (channels < lanes || channels % half != 0);
}

}  // namespace

int channel_loop(const Nest& nest) {
    auto i = static_cast<int>(nest.parallel.size()) - 1;
    while (i >= 0 && !nest.parallel[static_cast<std::size_t>(i)].variable.symbol_id()) --i;
    return i;
}

bool has_interleaved_channels(const Nest& nest, const ShapeOf& shape_of) {
    const int number = channel_loop(nest);
    if (gives_places(nest.combine) || nest.reduced.empty() || number < 0 || !nest.guards.empty() ||
        !nest.lets.empty() || multiplies_matrices(nest))
        return false;
    const Loop &channel = nest.parallel[static_cast<std::size_t>(number)], &term = nest.reduced.back();
    const std::uint64_t c = channel.variable.symbol_id(), k = term.variable.symbol_id();
    if (!k || !channel.extent.is_constant() || !is_few(channel.extent.constant())) return false;
    for (const Loop& l : nest.reduced)
        if (depends_on(l.extent, c)) return false;
    bool any = false;
    const bool other = any_part(nest.body, [&](const ScalarNode& s) {
        if (s.kind == ScalarNode::Kind::index) return depends_on(s.index, c) || depends_on(s.index, k);
        if (!s.guards.empty()) return true;
        if (s.kind != ScalarNode::Kind::read) return false;
        const Int offset = offset_of(s, shape_of);
        const std::optional<Int> by_term = stride_of(offset, term.variable),
                                 by_channel = stride_of(offset, channel.variable);
        if (!by_term || !by_channel) return true;
        if (by_term->is(0) || by_channel->is(0)) return false;
        any = true;
        return !by_channel->is(1) || !(*by_term == channel.extent);
    });
    return any && !other;
}

}  // namespace bitale
