#include "codegen/group/integer_ranges.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codegen/nest/integers.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

constexpr IntRange everything{};

IntRange all_of(DType dtype) {
    return is_float(dtype) || dtype == DType::uint64 ? everything : range_of(dtype);
}

IntRange united(const IntRange& a, const IntRange& b) {
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// An operation that wraps where the dtype ends.
IntRange in_dtype(const IntRange& r, DType dtype) {
    return !is_saturated(r) && holds(dtype, r) ? r : all_of(dtype);
}

IntRange of_constant(const Array& constant) {
    constexpr std::int64_t most_elements = 1 << 16;
    if (constant.size() < 1 || constant.size() > most_elements || constant.dtype() == DType::uint64)
        return all_of(constant.dtype());
    const std::vector<std::int64_t> numbers = constant.to_vector<std::int64_t>();
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    return {*least, *most};
}

}  // namespace

IntegerRanges::IntegerRanges(const Values& values) {
    ranges_.reserve(values.list.size());
    for (const Value& value : values.list) ranges_.push_back(of_value(value));
}

IntRange IntegerRanges::of_value(const Value& value) const {
    const Node& node = *value.node;
    const DType dtype = node.type.dtype;
    if (is_float(dtype)) return everything;
    if (is_constant(value.node)) return of_constant(constant_value(value.node));
    const Nest& nest = value.nest;
    if (!nest.body || value.by_library) return all_of(dtype);
    switch (nest.combine) {
        case Combine::max:
        case Combine::min: {
            const bool some = std::all_of(nest.reduced.begin(), nest.reduced.end(),
                                          [](const Loop& l) { return l.extent.range().low >= 1; });
            if (!some) return all_of(dtype);
            [[fallthrough]];
        }
        case Combine::none: return in_dtype(of_scalar(*nest.body, node), dtype);
        case Combine::argmax:
        case Combine::argmin: {
            const std::int64_t points =
                nest.reduced.size() == 1 ? nest.reduced[0].extent.range().high : IntRange::highest;
            return in_dtype({0, std::max<std::int64_t>(points - 1, 0)}, dtype);
        }
        default: return all_of(dtype);
    }
}

IntRange IntegerRanges::of_scalar(const ScalarNode& s, const Node& node) const {
    if (is_float(s.dtype)) return everything;
    const auto of = [&](const Scalar& x) { return x ? of_scalar(*x, node) : IntRange{0, 0}; };
    switch (s.kind) {
        case ScalarNode::Kind::constant: return {s.integer, s.integer};
        case ScalarNode::Kind::index: return in_dtype(s.index.range(), s.dtype);
        case ScalarNode::Kind::read: {
            const IntRange& own = ranges_[static_cast<std::size_t>(s.operand.value())];
            return s.guards.empty() ? own : united(own, of(s.otherwise));
        }
        case ScalarNode::Kind::cast: return in_dtype(of(s.arguments[0]), s.dtype);
        case ScalarNode::Kind::select: return united(of(s.arguments[0]), of(s.otherwise));
        case ScalarNode::Kind::apply: return in_dtype(of_map(s, node), s.dtype);
    }
    return everything;
}

IntRange IntegerRanges::of_map(const ScalarNode& s, const Node& node) const {
    std::vector<IntRange> x;
    for (const Scalar& argument : s.arguments) x.push_back(of_scalar(*argument, node));
    switch (opcode_of(*s.op)) {
        case Opcode::where: return united(x[1], x[2]);
        case Opcode::clip:  // some operand, or between the bounds
            if (x[1].high > x[2].low) return united(x[0], united(x[1], x[2]));
            return {std::max(x[1].low, std::min(x[0].low, x[2].low)),
                    std::min(x[2].high, std::max(x[0].high, x[1].high))};
        case Opcode::bitwise_and:
            if (x[0].low >= 0 && x[1].low >= 0) return {0, std::min(x[0].high, x[1].high)};
            if (x[1].low >= 0) return {0, x[1].high};
            return x[0].low >= 0 ? IntRange{0, x[0].high} : everything;
        case Opcode::shift_right: return x[0].low >= 0 ? IntRange{0, x[0].high} : everything;
        default: break;
    }
    // By the algebra of lengths, where the value is this operation alone. Quotients by 0 are 0.
    const bool divides = opcode_of(*s.op) == Opcode::other && x.size() == 2 && x[1].low <= 0;
    if (s.op != node.op || !s.op->as_length || divides) return everything;
    std::vector<Int> numbers;
    for (const IntRange& range : x) {
        if (is_saturated(range)) return everything;
        numbers.push_back(range.low == range.high ? Int(range.low) : Int::symbol("x", range));
    }
    return s.op->as_length(node, numbers).range();
}

}  // namespace bitale
