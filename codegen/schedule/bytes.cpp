#include "codegen/schedule/bytes.h"

#include <algorithm>

#include "codegen/nest/integers.h"
#include "codegen/nest/product.h"

namespace bitale {

namespace {

constexpr std::int64_t shortest_run = 16;

bool mentions(const Nest& nest, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    return std::any_of(
               nest.lets.begin(), nest.lets.end(),
               [&](const Let& l) { return varies(nest, l.value, variable) || depends_on(l.extent, id); }) ||
           std::any_of(nest.reduced.begin(), nest.reduced.end(),
                       [&](const Loop& l) { return depends_on(l.extent, id); });
}

// (byte >> shift) & mask
struct Bits {
    const ScalarNode* byte = nullptr;
    Int shift;
    int mask = 0;
};

// Elements that share bytes, as unpack reads them.
std::optional<Bits> bits_of_byte(const ScalarNode& s) {
    const auto is = [](const ScalarNode& x, Opcode opcode) {
        return x.dtype == DType::uint8 && applies(x, opcode);
    };
    if (!is(s, Opcode::bitwise_and) || s.arguments[1]->kind != ScalarNode::Kind::constant) return {};
    const ScalarNode& shifted = *s.arguments[0];
    if (!is(shifted, Opcode::shift_right) || shifted.arguments[1]->kind != ScalarNode::Kind::index) return {};
    const Int& shift = shifted.arguments[1]->index;
    const std::int64_t mask = s.arguments[1]->integer;
    // The bits of the byte alone: those of its neighbour come in above.
    const IntRange range = shift.range();
    if (mask < 1 || range.low < 0 || range.high > 7 || mask > (255 >> range.high)) return {};
    return Bits{shifted.arguments[0].get(), shift, static_cast<int>(mask)};
}

}  // namespace

const ScalarNode& summand(const Nest& nest) {
    const ScalarNode& body = *nest.body;
    const bool wraps = body.kind == ScalarNode::Kind::cast && body.dtype == nest.accumulator &&
                       is_integer(body.dtype) && bits_of(body.dtype) >= bits_of(body.arguments[0]->dtype);
    return inside_casts(wraps ? body.arguments[0] : nest.body);
}

std::optional<ByteRun> byte_run(const Nest& nest, const std::vector<Loop>& reduced,
                                const std::vector<Place>& places) {
    if (nest.combine != Combine::sum || !is_integer(nest.accumulator) || !nest.guards.empty()) return {};
    const ScalarNode* body = &summand(nest);
    Int shift = 0;
    int mask = 255;
    if (const std::optional<Bits> bits = bits_of_byte(*body)) {
        body = bits->byte;
        shift = bits->shift;
        mask = bits->mask;
    }
    if (body->kind != ScalarNode::Kind::read || !body->guards.empty()) return {};
    const Place& place = places[static_cast<std::size_t>(body->operand.place())];
    if (bytes_of(place.dtype) != 1 || (mask != 255 && place.dtype != DType::uint8)) return {};
    ByteRun run{body->operand.place(), body->at, 1, reduced, shift, mask};
    const Int offset = offset_of(place, body->at);
    while (!run.outer.empty()) {
        const Loop& last = run.outer.back();
        if (const std::uint64_t id = last.variable.symbol_id()) {
            const Int step = substitute(offset, {{id, last.variable + 1}}) - offset;
            if (!(step == run.length) || depends_on(step, id) || depends_on(shift, id) ||
                mentions(nest, last.variable))
                break;
            for (Int& x : run.at) x = substitute(x, {{id, Int(0)}});
        }
        run.length = run.length * last.extent;
        run.outer.pop_back();
    }
    if (run.length.range().high < shortest_run) return {};
    return run;
}

}  // namespace bitale
