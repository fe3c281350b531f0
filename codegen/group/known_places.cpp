#include "codegen/group/known_places.h"

#include <cstddef>

#include "codegen/nest/arithmetic.h"
#include "codegen/nest/compose.h"

namespace bitale {

std::vector<bool> name_known_places(Values& values) {
    std::vector<bool> numbers(values.list.size(), false);
    const auto is_number = [&](Operand of) { return numbers[static_cast<std::size_t>(of.value())]; };
    for (std::size_t i = 0; i < values.list.size(); ++i) {
        Value& value = values.list[i];
        if (!value.nest.body || value.storage != Value::Storage::inlined) continue;
        numbers[i] = is_arithmetic(value.nest, is_number);
        if (value.nest.lets.empty() || value.nest.combine != Combine::none) continue;
        const Nest named = without_known_lets(compose(value.nest, [&](int operand) -> const Nest* {
            return is_number(Operand::of_value(operand))
                       ? &values.list[static_cast<std::size_t>(operand)].nest
                       : nullptr;
        }));
        if (named.lets.size() < value.nest.lets.size()) value.nest = simplify(named);
    }
    return numbers;
}

}  // namespace bitale
