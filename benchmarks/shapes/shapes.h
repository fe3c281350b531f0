// What the rows (h) of scripts/bench compute: graphs, and values that the peers can make too.
#pragma once

#include <bitale/bitale.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/serve.h"

namespace bench {

// What a row's function updates. The targets, in this order, are what is compared with a peer's results.
using bitale::Updates;

// The update of a row of shapes.json.
Updates update_of(const Json& row);

// By families; `row.op` is one of theirs, else nothing.
Updates reductions(const Json& row);
Updates convolutions(const Json& row);
Updates products(const Json& row);
Updates data_sets(const Json& row);
Updates others(const Json& row);

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
