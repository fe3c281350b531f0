#include "codegen/library/made.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include "codegen/nest/walk.h"
#include "graph/base/check.h"

namespace bitale {

namespace {

// The same element of the value that the cast which is read converts.
Scalar before_cast(const Values& values, const ScalarNode& read) {
    const Value& cast = values.list[static_cast<std::size_t>(read.operand.value())];
    BITALE_CHECK(is_widened_byte(cast), "an integer product reads no cast");
    auto r = std::make_shared<ScalarNode>(read);
    r->dtype = cast.nest.body->arguments[0]->dtype;
    r->operand = cast.nest.body->arguments[0]->operand;
    return r;
}

}  // namespace

bool is_widened_byte(const Value& value) {
    if (value.nest.combine != Combine::none || !value.nest.body || value.nest.dtype != DType::int32)
        return false;
    const ScalarNode& body = *value.nest.body;
    return body.kind == ScalarNode::Kind::cast && body.arguments[0]->kind == ScalarNode::Kind::read &&
           bytes_of(body.arguments[0]->dtype) == 1;
}

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
    const GemmCall& gemm = std::get<GemmCall>(call.call);
    const DType dtype = side == 0 ? gemm.dtype_of_a() : gemm.dtype_of_b();
    r.body = whole.body->arguments[static_cast<std::size_t>(side)];
    if (r.body->dtype != dtype) r.body = before_cast(values, *r.body);
    r.dtype = r.accumulator = r.body->dtype;
    return fully_composed_nest(values, r);
}

}  // namespace bitale
