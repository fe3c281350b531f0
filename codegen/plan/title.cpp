#include "codegen/plan/title.h"

#include <algorithm>

#include "graph/base/text.h"
#include "graph/ir/node.h"
#include "graph/ir/shared.h"

namespace bitale {

void StepTitle::add(const std::string& operation) {
    operations_ += (operations_.empty() ? "" : " + ") + operation;
}

void StepTitle::add(const Graph& graph, const NodePtr& node) {
    for (const SharedUpdate& update : graph.updates)
        if (update.value == node) return updated_.push_back(update.target->name);
    add(title_of(*node));
}

std::string StepTitle::text() const {
    std::string updates;
    const auto belongs_to = [](const std::string& name, const std::string& base) {
        return !base.empty() && name.size() > base.size() && name.starts_with(base + ".");
    };
    for (const std::string& base : updated_) {
        if (std::any_of(updated_.begin(), updated_.end(),
                        [&](const std::string& other) { return belongs_to(base, other); }))
            continue;
        std::string more;
        for (const std::string& name : updated_)
            if (belongs_to(name, base))
                more += (more.empty() ? " (" : ", ") + printable(name.substr(base.size()));
        updates +=
            (updates.empty() ? "update of " : ", ") + in_quotes(base) + more + (more.empty() ? "" : ")");
    }
    return operations_ + (operations_.empty() || updates.empty() ? "" : " + ") + updates;
}

}  // namespace bitale
