#include "graph/ir/op.h"

#include <map>
#include <mutex>

#include "graph/base/turns.h"

namespace bitale {

namespace {

struct Registry {
    ForkMutex mutex;
    std::map<std::string, std::unique_ptr<const Op>> ops;
};

// Leaked: nodes held by static variables outlive main.
Registry& registry() {
    static Registry& r = *new Registry;
    return r;
}

}  // namespace

const Op* register_op(Op op) {
    const std::lock_guard lock(registry().mutex);
    std::string name = op.name;
    auto [at, fresh] = registry().ops.emplace(name, std::make_unique<const Op>(std::move(op)));
    BITALE_CHECK(fresh, "two ops are named " + name);
    return at->second.get();
}

const Op* find_op(const std::string& name) {
    const std::lock_guard lock(registry().mutex);
    const auto at = registry().ops.find(name);
    return at == registry().ops.end() ? nullptr : at->second.get();
}

std::vector<const Op*> all_ops() {
    const std::lock_guard lock(registry().mutex);
    std::vector<const Op*> r;
    for (const auto& [name, op] : registry().ops) r.push_back(op.get());
    return r;
}

}  // namespace bitale
