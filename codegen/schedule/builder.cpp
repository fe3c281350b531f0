#include "codegen/schedule/builder.h"

namespace bitale {

std::vector<Int> unflattened(const Int& position, const Shape& shape) {
    std::vector<Int> at(shape.size());
    Int rest = position;
    for (std::size_t d = shape.size(); d-- > 0;) {
        at[d] = d == 0 ? rest : mod(rest, shape[d]);
        rest = floordiv(rest, shape[d]);
    }
    return at;
}

int KernelBuilder::global(int buffer, DType dtype, const Shape& extents, bool written) {
    auto [at, fresh] = places_.try_emplace(buffer, static_cast<int>(ir.places.size()));
    if (fresh) {
        Place place;
        place.dtype = dtype;
        place.extents = extents;
        place.buffer = static_cast<int>(buffers.size());
        ir.places.push_back(std::move(place));
        buffers.push_back(buffer);
        ir.buffers = static_cast<int>(buffers.size());
    }
    ir.places[at->second].written |= written;
    return at->second;
}

int KernelBuilder::scratch(Place::Scope scope, DType dtype, Shape extents, std::vector<Part> parts) {
    Place place;
    place.scope = scope;
    place.dtype = dtype;
    place.extents = std::move(extents);
    place.written = true;
    place.parts = std::move(parts);
    ir.places.push_back(std::move(place));
    return static_cast<int>(ir.places.size()) - 1;
}

std::int64_t KernelBuilder::bytes_of_segment() const {
    std::int64_t bytes = 0;
    for (std::size_t p = first_of_segment_; p < ir.places.size(); ++p)
        if (const Place& place = ir.places[p];
            place.scope == Place::Scope::local && !in_turns_.contains(static_cast<int>(p)))
            bytes += count_of(place.extents).range().high * bytes_of(place.dtype);
    return bytes;
}

}  // namespace bitale
