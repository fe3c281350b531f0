#include "codegen/library/made.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "codegen/nest/walk.h"

namespace bitale {

bool is_made(const Value& operand) {
    return operand.storage == Value::Storage::inlined || operand.storage == Value::Storage::staged;
}

std::vector<int> read_by_call(const Values& values, int value) {
    const LibraryCall& call = *values.list[static_cast<std::size_t>(value)].by_library;
    std::vector<int> read;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
        const int operand = call.operands[i];
        if (i < 2 && is_made(values.list[static_cast<std::size_t>(operand)]))
            for_each_read(made_operand(values, value, static_cast<int>(i)),
                          [&](const ScalarNode& s) { read.push_back(s.operand.value()); });
        else
            read.push_back(operand);
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    return read;
}

Nest made_operand(const Values& values, int value, int side) {
    const LibraryCall& call = *values.list[static_cast<std::size_t>(value)].by_library;
    // Before its bias.
    const int product = call.absorbed.empty() ? value : call.absorbed.front();
    const Nest& whole = values.list[static_cast<std::size_t>(product)].nest;
    Nest r;
    r.parallel = side == 0 ? std::vector<Loop>{whole.parallel[0], whole.reduced[0]}
                           : std::vector<Loop>{whole.reduced[0], whole.parallel[1]};
    r.body = whole.body->arguments[static_cast<std::size_t>(side)];
    r.dtype = r.accumulator = r.body->dtype;
    return fully_composed_nest(values, r);
}

}  // namespace bitale
