#include "codegen/group/windows.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool has_windows(const Value& user) {
    return user.nest.body && !user.by_library && adds_products(user.nest) && !is_matrix_product(user.nest);
}

// Read with other axes than it has in memory, if it is not stored itself.
bool is_view(const Value& value) {
    const Nest& nest = value.nest;
    return nest.body && !value.required && nest.body->kind == ScalarNode::Kind::read &&
           nest.body->guards.empty() && nest.reduced.empty() && nest.lets.empty();
}

// For each axis of the value, whether what is in memory has it too.
std::vector<bool> axes_in_memory(const Values& values, const Value& value) {
    std::vector<bool> r(value.shape.size(), true);
    if (!is_view(value)) return r;
    const ScalarNode& read = *value.nest.body;
    const std::vector<bool> below =
        axes_in_memory(values, values.list[static_cast<std::size_t>(read.operand.value())]);
    for (std::size_t d = 0; d < r.size(); ++d) {
        r[d] = false;
        for (std::size_t k = 0; k < below.size(); ++k)
            r[d] = r[d] || (below[k] && read.at[k] == value.nest.parallel[d].variable);
    }
    return r;
}

// Along one of the axes that are false.
bool reads_beyond(const Nest& user, int number, const std::vector<bool>& axes) {
    bool found = false;
    for_each_read(user, [&](const ScalarNode& s) {
        if (s.operand.value() != number) return;
        for (std::size_t d = 0; d < axes.size(); ++d)
            found = found || (!axes[d] && std::any_of(s.guards.begin(), s.guards.end(),
                                                      [&](const Guard& g) { return g.value == s.at[d]; }));
    });
    return found;
}

}  // namespace

bool is_copied_for_windows(const Values& values, int number, bool is_looked_up, const Target& target) {
    const Value& value = values.list[static_cast<std::size_t>(number)];
    if (!target.has_vectors()) return false;
    const std::vector<bool> axes = axes_in_memory(values, value);
    return std::any_of(value.users.begin(), value.users.end(), [&](int number_of_user) {
        const Value& user = values.list[static_cast<std::size_t>(number_of_user)];
        return has_windows(user) && (is_looked_up || reads_beyond(user.nest, number, axes));
    });
}

bool is_copied_with_border(const Values& values, int number, const Target& target) {
    const Value& value = values.list[static_cast<std::size_t>(number)];
    if (!target.has_vectors()) return false;
    return std::any_of(value.users.begin(), value.users.end(), [&](int number_of_user) {
        const Value& user = values.list[static_cast<std::size_t>(number_of_user)];
        bool guarded = false;
        if (has_windows(user))
            for_each_read(user.nest, [&](const ScalarNode& s) {
                guarded = guarded || (s.operand.value() == number && !s.guards.empty());
            });
        return guarded;
    });
}

}  // namespace bitale
