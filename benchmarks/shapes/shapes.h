// What the rows (h) of scripts/bench compute: graphs, and values that the peers can make too.
#pragma once

#include <bitale/bitale.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/serve.h"

namespace bench {

// The arguments of a row's function, the same at every call. What depends only on shared variables that
// nobody changes may be computed once instead of at each call.
struct Given {
    bitale::Expr operator()(const bitale::Array& value, const std::string& name) {
        values.push_back(value);
        inputs.emplace_back(bitale::input(value.dtype(), value.shape(), name));
        return inputs.back().variable;
    }
    // Of lengths that only a call tells.
    bitale::Expr unknown(const bitale::Array& value, const std::string& name) {
        values.push_back(value);
        inputs.emplace_back(bitale::input(value.dtype(), bitale::Dims(value.shape().size(), -1), name));
        return inputs.back().variable;
    }
    // Of a number of rows that only a call tells.
    bitale::Expr rows(const bitale::Array& value, const std::string& name) {
        bitale::Dims shape = value.shape();
        shape[0] = -1;
        values.push_back(value);
        inputs.emplace_back(bitale::input(value.dtype(), shape, name));
        return inputs.back().variable;
    }
    std::vector<bitale::Input> inputs;
    std::vector<bitale::Array> values;
};

// What a row's function updates. The targets, in this order, are what is compared with a peer's results.
using bitale::Updates;
Updates update_of(const Json& row, Given& given);

// By families; `row.op` is one of theirs, else nothing.
Updates reductions(const Json& row, Given& given);
Updates convolutions(const Json& row, Given& given);
Updates products(const Json& row, Given& given);
Updates data_sets(const Json& row, Given& given);
Updates others(const Json& row, Given& given);

bitale::Dims dims_of(const Json& lengths);

// Element i is low + (high - low) * h(i, salt), where h is the same hash in benchmarks/peers/values.py.
bitale::Array floats(const bitale::Dims& shape, std::uint32_t salt, double low = -1, double high = 1);
bitale::Array bytes(const bitale::Dims& shape, std::uint32_t salt, bitale::DType dtype = bitale::uint8);
// int64, in [0, below).
bitale::Array places(std::int64_t count, std::uint32_t salt, std::int64_t below);

// target <- value, for a target of that shape.
bitale::Update result(const bitale::Dims& shape, const bitale::Expr& value,
                      const std::string& name = "result");

}  // namespace bench
