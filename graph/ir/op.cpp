#include "graph/ir/op.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "graph/base/turns.h"

namespace bitale {

namespace {

struct Registry {
    ForkMutex mutex;
    std::map<std::string, std::unique_ptr<const Op>> ops;
    std::array<std::atomic<const Op*>, static_cast<std::size_t>(Opcode::count)> by_opcode{};
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
    if (const Opcode opcode = opcode_of(*at->second); opcode != Opcode::other) {
        const Op* const before =
            registry().by_opcode[static_cast<std::size_t>(opcode)].exchange(at->second.get());
        BITALE_CHECK(!before, "two ops have the opcode of " + name);
    }
    return at->second.get();
}

const Op* find_op(const std::string& name) {
    const std::lock_guard lock(registry().mutex);
    const auto at = registry().ops.find(name);
    return at == registry().ops.end() ? nullptr : at->second.get();
}

const Op* op_of(Opcode opcode) {
    const Op* const op = registry().by_opcode[static_cast<std::size_t>(opcode)].load();
    BITALE_CHECK(op, "no op has the opcode " + std::to_string(static_cast<int>(opcode)));
    return op;
}

Opcode opcode_of(const Op& op) { return op.map ? op.map->opcode : Opcode::other; }

std::vector<const Op*> all_ops() {
    const std::lock_guard lock(registry().mutex);
    std::vector<const Op*> r;
    for (const auto& [name, op] : registry().ops) r.push_back(op.get());
    return r;
}

}  // namespace bitale
