#include "codegen/kernel/intrinsics.h"

#include <utility>

#include "graph/base/check.h"

namespace bitale {

namespace {

using IntrinsicOperand = Intrinsic::Operand;
using Kind = IntrinsicOperand::Kind;
using Amounts = Intrinsic::Amounts;

Int nothing(const Amounts&) { return 0; }
Int load_and_store(const Amounts&) { return 2; }
Int all_registers(const Amounts& a) { return 2 * a.registers; }
// A load and two additions for each register of bytes.
Int sum_of_bytes(const Amounts& a) { return ceildiv(a.numbers[0], 4 * a.lanes) * 4; }
// Half a register of elements at a time.
Int random_rounds(const Amounts& a) { return a.registers_of(0) * 120; }
// A load, a part of a store, and four additions for each register of bytes.
Int sums_of_columns(const Amounts& a) {
    return ceildiv(a.numbers[0] * a.numbers[1], 4 * a.lanes) * 6 + a.registers_of(1) * 4;
}
// Some passes, of a count and a move each.
Int sorting_passes(const Amounts& a) { return a.numbers[0] * 40; }

constexpr IntrinsicOperand to_scalar{Kind::scalar, Use::written}, to_vector{Kind::vector, Use::written},
    from_vector{Kind::vector, Use::read}, to_registers{Kind::registers, Use::written},
    from_registers{Kind::registers, Use::read};

constexpr IntrinsicOperand reads(int count) { return {Kind::memory, Use::read, count}; }
constexpr IntrinsicOperand writes(int count) { return {Kind::memory, Use::written, count}; }

// ---- the table

constexpr Intrinsic load_row{.name = "vector load",
                             .operands = {to_vector, reads(IntrinsicOperand::as_vector)},
                             .cuda = "{0} = b_fetch<{width}>({1});",
                             .operations = load_and_store};

constexpr Intrinsic store_row{.name = "vector store",
                              .operands = {writes(IntrinsicOperand::as_vector), from_vector},
                              .cuda = "b_put({0}, {1}, {n0});",
                              .operations = load_and_store};

constexpr Intrinsic streaming_row{.name = "streaming store",
                                  .operands = {writes(0), from_vector},
                                  .cpu = "b_leave({0}, {1}, {n0});",
                                  .operations = [](const Amounts& a) { return a.registers_of(0) * 2; },
                                  .streams = true};

constexpr Intrinsic bytes_row{.name = "sum of bytes",
                              .operands = {to_scalar, reads(0)},
                              .cpu = "{0} = b_sum_bytes({1}, {n0});",
                              .operations = sum_of_bytes};

constexpr Intrinsic bits_row{.name = "sum of bits",
                             .operands = {to_scalar, reads(0)},
                             .cpu = "{0} = b_sum_bits<{c0}>({1}, {n0}, {n1});",
                             .operations = sum_of_bytes};

constexpr Intrinsic columns_row{.name = "sums of columns of bytes",
                                .operands = {IntrinsicOperand{Kind::memory, Use::both, 1}, reads(3)},
                                .cpu = "b_add_columns({0}, {1}, {n0}, {n1}, {n2});",
                                .operations = sums_of_columns};

constexpr Intrinsic max_row{.name = "max of registers",
                            .operands = {to_registers, from_registers},
                            .cpu = "{0}[0] = b_best<false>({1});",
                            .operations = all_registers};

constexpr Intrinsic min_row{.name = "min of registers",
                            .operands = {to_registers, from_registers},
                            .cpu = "{0}[0] = b_best<true>({1});",
                            .operations = all_registers};

constexpr Intrinsic argmax_row{.name = "argmax of registers",
                               .operands = {to_registers, from_registers},
                               .cpu = "{0}[0] = b_first_best<false>({1});",
                               .operations = all_registers};

constexpr Intrinsic argmin_row{.name = "argmin of registers",
                               .operands = {to_registers, from_registers},
                               .cpu = "{0}[0] = b_first_best<true>({1});",
                               .operations = all_registers};

// A comparison, and a list, for each register of elements.
constexpr Intrinsic nonzeros_row{.name = "list of nonzeros",
                                 .operands = {writes(IntrinsicOperand::scratch), reads(0)},
                                 .cpu = "b_nonzeros({0}, {1}, {n0});",
                                 .operations = [](const Amounts& a) { return a.registers_of(0) * 8; }};

// A register of each phase: loads, stores, and all but one of them are to be chosen from each.
constexpr Intrinsic deinterleave_row{.name = "deinterleave",
                                     .operands = {writes(IntrinsicOperand::scratch), reads(1)},
                                     .cpu = "b_apart<{c0}>({1}, {n0}, {n1}, {0}, {n2});",
                                     .operations = [](const Amounts& a) {
                                         return a.registers_of(0) * (a.constants[0] * (a.constants[0] + 1));
                                     }};

constexpr Intrinsic interleave_row{
    .name = "interleave",
    .operands = {writes(0), reads(IntrinsicOperand::scratch)},
    .cpu = "b_together<{c0}>({0}, {n0}, {1}, {n1});",
    .operations = [](const Amounts& a) { return a.registers_of(0) * (a.constants[0] + 1); }};

constexpr Intrinsic repeat_row{
    .name = "repeat",
    .operands = {writes(IntrinsicOperand::scratch), reads(0)},
    .cpu = "b_repeat<{c0}>({1}, {n0}, {0});",
    .operations = [](const Amounts& a) { return a.registers_of(0) * (2 * a.constants[0] + 1); }};

// Two shuffles and an addition for each two registers.
constexpr Intrinsic rows_row{
    .name = "sums of rows",
    .operands = {writes(IntrinsicOperand::scratch), reads(IntrinsicOperand::scratch)},
    .cpu = "b_add_up_rows({1}, {0});",
    .operations = [](const Amounts&) { return Int(64); }};

constexpr Intrinsic first_words_row{.name = "random words",
                                    .operands = {writes(IntrinsicOperand::scratch)},
                                    .cpu = "b_draw({0}, {values}, {n0});",
                                    .operations = random_rounds};

constexpr Intrinsic both_words_row{
    .name = "pairs of random words",
    .operands = {writes(IntrinsicOperand::scratch), writes(IntrinsicOperand::scratch)},
    .cpu = "b_draw({0}, {1}, {values}, {n0});",
    .operations = random_rounds};

constexpr Intrinsic sort_up_row{
    .name = "sort, ascending",
    .operands = {writes(1), reads(0), IntrinsicOperand{Kind::memory, Use::both, IntrinsicOperand::scratch}},
    .cpu = "b_sort_row<false>({0}, {1}, {2}, {n0}, {n1});",
    .cuda = "b_sort_row<false>({0}, {1}, {2}, {n0}, {n1});",
    .operations = sorting_passes};

constexpr Intrinsic sort_down_row{
    .name = "sort, descending",
    .operands = {writes(1), reads(0), IntrinsicOperand{Kind::memory, Use::both, IntrinsicOperand::scratch}},
    .cpu = "b_sort_row<true>({0}, {1}, {2}, {n0}, {n1});",
    .cuda = "b_sort_row<true>({0}, {1}, {2}, {n0}, {n1});",
    .operations = sorting_passes};

constexpr Intrinsic prefetch_row{.name = "prefetch",
                                 .operands = {IntrinsicOperand{Kind::memory, Use::none}},
                                 .cpu = "b_ask({0}, {c0});",
                                 .operations = nothing};

constexpr Intrinsic range_row{
    .name = "check of a range", .cpu = "b_in_range({n0}, {n1}, {n2});", .operations = nothing};

// ---- calls

Stmt call(const Intrinsic& row, std::vector<Memory> operands, std::vector<Int> numbers = {},
          std::vector<std::int64_t> constants = {}) {
    Stmt s;
    s.kind = Stmt::Kind::call;
    s.call = {&row, std::move(operands), std::move(numbers), std::move(constants), {}};
    return s;
}

Memory whole(int place) { return {place, {}}; }

Memory memory_of(const Scalar& first) {
    BITALE_CHECK(first->kind == ScalarNode::Kind::read && first->guards.empty(),
                 "an intrinsic reads elements that are not in memory");
    return {first->operand.place(), first->at};
}

}  // namespace

Stmt vector_load(int vector, int from, std::vector<Int> at) {
    return call(load_row, {whole(vector), {from, std::move(at)}});
}

Stmt vector_store(int to, std::vector<Int> at, int vector, Int most) {
    return call(store_row, {{to, std::move(at)}, whole(vector)}, {std::move(most)});
}

Stmt streaming_store(int to, std::vector<Int> at, int scratch, Int count) {
    return call(streaming_row, {{to, std::move(at)}, whole(scratch)}, {std::move(count)});
}

Stmt sum_bytes(int place, int from, std::vector<Int> at, Int count) {
    return call(bytes_row, {whole(place), {from, std::move(at)}}, {std::move(count)});
}

Stmt sum_bits(int place, int from, std::vector<Int> at, Int count, Int shift, int mask) {
    return call(bits_row, {whole(place), {from, std::move(at)}}, {std::move(count), std::move(shift)},
                {mask});
}

Stmt add_columns(int to, std::vector<Int> at, int from, std::vector<Int> first, Int rows, Int width,
                 Int far) {
    Int all = rows * far;
    return call(columns_row, {{to, std::move(at)}, {from, std::move(first)}},
                {std::move(rows), std::move(width), std::move(far), std::move(all)});
}

Stmt best_of_registers(int to, int from, Combine combine) {
    const Intrinsic& row = combine == Combine::argmax   ? argmax_row
                           : combine == Combine::argmin ? argmin_row
                           : combine == Combine::min    ? min_row
                                                        : max_row;
    return call(row, {whole(to), whole(from)});
}

Stmt list_nonzeros(int list, std::vector<Int> at, const Scalar& first, Int count) {
    return call(nonzeros_row, {{list, std::move(at)}, memory_of(first)}, {std::move(count)});
}

Stmt deinterleave(int to, std::vector<Int> at, Int far, const Scalar& from, std::int64_t phases, Int count,
                  Int there) {
    return call(deinterleave_row, {{to, std::move(at)}, memory_of(from)},
                {std::move(count), std::move(there), std::move(far)}, {phases});
}

Stmt interleave(int to, std::vector<Int> at, Int count, const Scalar& from, std::int64_t phases, Int far) {
    return call(interleave_row, {{to, std::move(at)}, memory_of(from)}, {std::move(count), std::move(far)},
                {phases});
}

Stmt repeat(int to, std::vector<Int> at, const Scalar& from, std::int64_t times, Int count) {
    return call(repeat_row, {{to, std::move(at)}, memory_of(from)}, {std::move(count)}, {times});
}

Stmt add_up_rows(int sums, int rows) { return call(rows_row, {{sums, {Int(0)}}, {rows, {Int(0), Int(0)}}}); }

Stmt random_words(int first, int second, const Scalar& word, Int count) {
    Stmt s = second >= 0 ? call(both_words_row, {{first, {0}}, {second, {0}}}, {std::move(count)})
                         : call(first_words_row, {{first, {0}}}, {std::move(count)});
    s.call.values = word->arguments;
    return s;
}

Stmt sort_row(int order, std::vector<Int> at, Combine combine, const Scalar& first, const Scalar& room,
              Int count, Int wanted) {
    return call(combine == Combine::order_down ? sort_down_row : sort_up_row,
                {{order, std::move(at)}, memory_of(first), memory_of(room)},
                {std::move(count), std::move(wanted)});
}

Stmt check_range(const Int& variable) {
    const IntRange range = variable.range();
    return call(range_row, {}, {variable, range.low, range.high});
}

Stmt prefetch(int place, std::vector<Int> at, std::int64_t bytes) {
    return call(prefetch_row, {{place, std::move(at)}}, {}, {bytes});
}

}  // namespace bitale
