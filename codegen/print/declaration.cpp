#include "codegen/print/declaration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "codegen/print/c_family.h"
#include "codegen/print/expressions.h"

namespace bitale {

bool is_variable(const Place& place) {
    return place.scope == Place::Scope::private_ && place.extents.empty();
}

namespace {

// Rows of floats end within a register, so that loads of the last one reach beyond the array.
bool has_open_end(const Place& place) {
    return (place.dtype == DType::float32 || place.dtype == DType::float64) && !place.extents.empty() &&
           place.extents.back().constant() * bytes_of(place.dtype) % readable_past_end != 0;
}

}  // namespace

std::string declaration_of(const Place& place, int number, bool cuda, const SharedMemory& shared) {
    const char* const type = c_type(place.dtype);
    if (place.scope == Place::Scope::vector && !cuda)
        return fmt::format("b_lanes<{}, {}>::type p{}[{}];", type, place.extents[1].constant(), number,
                           place.extents[0].constant());
    if (place.scope == Place::Scope::vector)
        return fmt::format("b_vector<{}, {}> p{};", type, place.extents[0].constant(), number);
    if (is_variable(place)) return fmt::format("{} p{};", type, number);
    const std::int64_t count = std::max<std::int64_t>(count_of(place.extents).constant(), 1),
                       size = count + (cuda ? 0 : readable_past_end / bytes_of(place.dtype));
    if (!cuda && has_open_end(place)) return fmt::format("B_ARRAY({}, p{}, {});", type, number, count);
    if (!cuda || place.scope != Place::Scope::local)
        return fmt::format("B_ALIGN {} p{}[{}];", stored_type(place.dtype, cuda), number, size);
    const auto used = shared.offsets.find(number);
    if (used == shared.offsets.end()) return "";
    return fmt::format("B_SHARED({}, p{}, {}, {});", type, number, size, used->second);
}

}  // namespace bitale
