// Walks over the bodies of nests. What several expressions share is visited, or rebuilt, once: by every path
// to it, a body of n parts that are each used twice would take 2^n visits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "graph/ir/nest.h"

namespace bitale {

// Calls f for every distinct part, operands first: of a scalar, or of the body and the lets.
void for_each_part(const Scalar& scalar, const std::function<void(const ScalarNode&)>& f);
void for_each_part(const Nest& nest, const std::function<void(const ScalarNode&)>& f);
// Whether f holds for one of the parts; no more are looked at then.
bool any_part(const Scalar& scalar, const std::function<bool(const ScalarNode&)>& f);

// Calls f for every distinct read in body and lets.
void for_each_read(const Nest& nest, const std::function<void(const ScalarNode&)>& f);
void for_each_read(const Scalar& scalar, const std::function<void(const ScalarNode&)>& f);
// The indices that are values of the scalar.
void for_each_index(const Scalar& scalar, const std::function<void(const Int& index)>& f);

// Operands first: f gets a copy of each part with its operands rebuilt, and gives what replaces it. Where it
// gives null, so does the whole.
Scalar rebuild(const Scalar& scalar, const std::function<Scalar(std::shared_ptr<ScalarNode>)>& f);
// Of the body and the lets, for which f gives no null.
Nest rebuild(const Nest& nest, const std::function<Scalar(std::shared_ptr<ScalarNode>)>& f);
// Body and lets with each read replaced by f's result.
Nest map_reads(const Nest& nest, const std::function<Scalar(const Scalar&)>& f);

bool depends_on(const Guard& guard, std::uint64_t symbol_id);
// Whether the symbol occurs in an index, a guard or a value; false for null.
bool depends_on(const Scalar& scalar, std::uint64_t symbol_id);
bool depends_on(const ScalarNode& scalar, std::uint64_t symbol_id);

bool is_zero(const Scalar& scalar);  // the constant
bool is_positive_zero(const Scalar& scalar);

// Equal in structure.
bool same_scalars(const Scalar& a, const Scalar& b);

}  // namespace bitale
