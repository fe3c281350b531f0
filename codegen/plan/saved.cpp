#include "codegen/plan/saved.h"

#include <algorithm>
#include <cstddef>

#include "codegen/library/made.h"
#include "codegen/nest/walk.h"

namespace bitale {

std::vector<bool> saved_for_gradients(const Values& values) {
    std::vector<bool> read_by_gradient(values.list.size(), false);
    // Users first: what is computed anew where it is read hands on who reads it.
    for (std::size_t v = values.list.size(); v-- > 0;) {
        const Value& value = values.list[v];
        const bool passed_on = value.storage != Value::Storage::stored && read_by_gradient[v];
        if (!passed_on && !is_of_gradient(*value.node)) continue;
        const auto mark = [&](int operand) { read_by_gradient[static_cast<std::size_t>(operand)] = true; };
        if (value.by_library)
            for (const int operand : read_by_call(values, static_cast<int>(v))) mark(operand);
        else if (value.nest.body)
            for_each_read(value.nest, [&](const ScalarNode& s) { mark(s.operand.value()); });
    }
    std::vector<bool> saved(values.list.size(), false);
    for (std::size_t v = 0; v < saved.size(); ++v) {
        const Node& node = *values.list[v].node;
        // Places of maxima and masks are found by the forward computation, though grad asks for them.
        const bool forward = !is_of_gradient(node) || !is_float(node.type.dtype);
        saved[v] = forward && read_by_gradient[v];
    }
    return saved;
}

}  // namespace bitale
