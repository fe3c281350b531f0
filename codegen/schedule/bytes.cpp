#include "codegen/schedule/bytes.h"

#include <algorithm>

#include "codegen/nest/product.h"

namespace bitale {

namespace {

constexpr std::int64_t shortest_run = 32;

bool mentions(const Nest& nest, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    return std::any_of(
               nest.lets.begin(), nest.lets.end(),
               [&](const Let& l) { return varies(nest, l.value, variable) || depends_on(l.extent, id); }) ||
           std::any_of(nest.reduced.begin(), nest.reduced.end(),
                       [&](const Loop& l) { return depends_on(l.extent, id); });
}

}  // namespace

std::optional<ByteRun> byte_run(const Nest& nest, const std::vector<Loop>& reduced,
                                const std::vector<Place>& places) {
    if (nest.combine != Combine::sum || !is_integer(nest.accumulator) || !nest.guards.empty()) return {};
    const ScalarNode* body = nest.body.get();
    while (body->kind == ScalarNode::Kind::cast && is_integer(body->dtype) &&
           bits_of(body->dtype) >= bits_of(body->arguments[0]->dtype))
        body = body->arguments[0].get();
    if (body->kind != ScalarNode::Kind::read || !body->guards.empty()) return {};
    const Place& place = places[static_cast<std::size_t>(body->operand)];
    if (bytes_of(place.dtype) != 1) return {};
    ByteRun run{body->operand, body->at, 1, reduced};
    const Int offset = offset_of(place, body->at);
    while (!run.outer.empty()) {
        const Loop& last = run.outer.back();
        if (const std::uint64_t id = last.variable.symbol_id()) {
            const Int step = substitute(offset, {{id, last.variable + 1}}) - offset;
            if (!(step == run.length) || depends_on(step, id) || mentions(nest, last.variable)) break;
            for (Int& x : run.at) x = substitute(x, {{id, Int(0)}});
        }
        run.length = run.length * last.extent;
        run.outer.pop_back();
    }
    if (run.length.range().high < shortest_run) return {};
    return run;
}

}  // namespace bitale
