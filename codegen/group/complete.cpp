#include "codegen/group/complete.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"

namespace bitale {

bool ends_reduction(const Value& value, const Values& values) {
    bool found = false;
    for_each_read(value.nest, [&](const ScalarNode& s) {
        const Value& operand = values.list[static_cast<std::size_t>(s.operand.value())];
        const bool alone = operand.users.size() == 1 && !operand.required;
        const bool same = operand.shape == value.shape && alone;
        if (!same || operand.by_library || !operand.nest.body) return;
        found =
            found || (operand.nest.combine != Combine::none ? !tree_of(operand.nest, values.shapes()).split
                                                            : ends_reduction(operand, values));
    });
    return found;
}

bool joins_reduction(const Value& value, const Values& values) {
    constexpr std::size_t enough = 3;
    if (!ends_reduction(value, values)) return false;
    std::vector<const Value*> maps{&value}, arrays;
    for (std::size_t next = 0; next < maps.size() && arrays.size() < enough; ++next)
        for_each_read(maps[next]->nest, [&](const ScalarNode& s) {
            const Value& operand = values.list[static_cast<std::size_t>(s.operand.value())];
            if (!(operand.shape == value.shape)) return;
            const bool is_map =
                operand.nest.body && operand.nest.combine == Combine::none && !operand.by_library;
            std::vector<const Value*>& list = is_map ? maps : arrays;
            if (std::find(list.begin(), list.end(), &operand) == list.end()) list.push_back(&operand);
        });
    return arrays.size() >= enough;
}

}  // namespace bitale
