// Rows in order (Combine::order): a task copies each of its rows, of a transpose some at a time, sorts, and
// keeps the positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/segment.h"

namespace bitale {

// Where a member is sorted: the task's number among all of its segment, how many these are, and how much
// scratch each uses already.
struct OrderTask {
    Int task, tasks;
    std::int64_t& used_bytes;
};

// Nothing where it is no order.
std::optional<RowsOfMember> rows_of_order(const Nest& nest);
// How many rows a task has, where one of the nests is an order; 0 where none is.
std::int64_t rows_of_orders_on_gpu(const std::vector<Nest>& nests, const Target& target);

Stmts schedule_order(const Member& member, const OrderTask& task, const SegmentContext& context,
                     KernelBuilder& builder);

// An order of a vector, by itself: one task. `placed`: its nest with reads of places.
Segment schedule_order_of_vector(int value, const Nest& placed, const SegmentContext& context,
                                 KernelBuilder& builder, const std::string& title);

}  // namespace bitale
