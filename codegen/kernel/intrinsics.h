// Intrinsics: statements that stand for a few instructions or for a helper of codegen/device. Each is a row
// of the table in intrinsics.cpp with its operands, effects, cost and text; verify(), traffic, work, hazards
// and the printer ask the row and know no intrinsic by name. A new one costs a row, and its helper where it
// needs one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

enum class Use : std::uint8_t { none, read, written, both };

struct Intrinsic {
    struct Operand {
        enum class Kind : std::uint8_t {
            none,
            scalar,     // a variable
            vector,     // a register of neighbouring elements, or an array of a task as a whole
            registers,  // a CPU's: several registers of lanes
            memory,     // elements from an index on
        };
        Kind kind = Kind::none;
        Use use = Use::none;
        // Of memory: the number that says how many neighbouring elements, or one of the following.
        int count = 0;
        static constexpr int as_vector = -1;  // as many as the vector operand has
        static constexpr int scratch = -2;    // memory of the task alone: no traffic
    };
    // What a call costs, with the numbers that it has in the first turn of the loops around it.
    struct Amounts {
        const std::vector<Int>& numbers;
        const std::vector<std::int64_t>& constants;
        std::int64_t registers = 1;  // of the operand that is read
        std::int64_t lanes = 1;      // 32-bit elements of a register
        Int registers_of(std::size_t number) const { return ceildiv(numbers[number], lanes); }
    };

    std::string_view name;
    std::array<Operand, 3> operands{};
    // {0}: operand, memory by its address; {n0}: number; {c0}: constant; {values}: scalars, separated by
    // commas; {width}: elements of the vector. Empty on devices that do not have the intrinsic.
    std::string_view cpu{}, cuda{};
    Int (*operations)(const Amounts&) = nullptr;  // simple ones, scalar or on a whole register
    bool streams = false;                         // stores past the caches: a fence ends the function
};

// f(operand of the row, operand of the call).
template <class F>
void for_each_operand(const Call& call, F&& f) {
    for (std::size_t i = 0; i < call.operands.size(); ++i) f(call.intrinsic->operands[i], call.operands[i]);
}

// CUDA: vector = the elements of place `from` from `at` on; and back, no more than `most` elements.
Stmt vector_load(int vector, int from, std::vector<Int> at);
Stmt vector_store(int to, std::vector<Int> at, int vector, Int most);
// CPU: the first `count` elements of scratch to `to` from `at` on, past the caches.
Stmt streaming_store(int to, std::vector<Int> at, int scratch, Int count);
// CPU: `place` = the sum of `count` 8-bit elements from `at` on; or of what remains of them after a shift by
// `shift` bits to the right, under a mask.
Stmt sum_bytes(int place, int from, std::vector<Int> at, Int count);
Stmt sum_bits(int place, int from, std::vector<Int> at, Int count, Int shift, int mask);
// CPU: to each of `width` neighbouring elements from `at` on, of 32 or 64 bits, the sum of a column of 8-bit
// elements: `rows` of them, the first from `first` on, `far` elements from one row to the next.
Stmt add_columns(int to, std::vector<Int> at, int from, std::vector<Int> first, Int rows, Int width, Int far);
// CPU: lane by lane the greatest or least of all registers of `from`, or its position among them (int32).
Stmt best_of_registers(int to, int from, Combine combine);
// CPU: to `list` from `at` on, how many of `count` neighbouring elements from `first` on are not 0, then
// their numbers; behind the last there is room for a register of them.
Stmt list_nonzeros(int list, std::vector<Int> at, const Scalar& first, Int count);
// CPU: a row of elements from `from` on, sorted by their number modulo `phases`: `count` of each phase to
// place `to` from `at` on, a phase `far` elements behind the last; elements are needed below `there` alone.
// Writes whole registers. And back: `count` elements from phases that lie `far` elements apart.
Stmt deinterleave(int to, std::vector<Int> at, Int far, const Scalar& from, std::int64_t phases, Int count,
                  Int there);
Stmt interleave(int to, std::vector<Int> at, Int count, const Scalar& from, std::int64_t phases, Int far);
// CPU: `count` elements from `from` on, each `times` times, to place `to` from `at` on. Reads and writes
// whole registers.
Stmt repeat(int to, std::vector<Int> at, const Scalar& from, std::int64_t times, Int count);
// CPU: to 16 elements of `sums` from 0 on the sums of 16 rows of 16 floats, as a tree.
Stmt add_up_rows(int sums, int rows);
// CPU: random words of `count` elements, as `word`, an operation on key, counter and first element, gives
// them; both words of each unless there is no place `second`.
Stmt random_words(int first, int second, const Scalar& word, Int count);
// To `order` from `at` on the positions, in order, of the first `wanted` of `count` neighbouring elements
// from `first` on, equal ones as they come. `room`: sorting_words of 64 bits for each element. A GPU sorts
// with all threads of the block, after a barrier.
Stmt sort_row(int order, std::vector<Int> at, Combine combine, const Scalar& first, const Scalar& room,
              Int count, Int wanted);
// CPU: a trap where the variable is outside the range that it was made with.
Stmt check_range(const Int& variable);
// CPU: `bytes` from place[at] on will be read soon.
Stmt prefetch(int place, std::vector<Int> at, std::int64_t bytes);

}  // namespace bitale
