// Expressions of C that need nothing but their operands' texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

std::string literal(DType dtype, double number, std::int64_t integer);
// Of elements in memory. On a CPU a boolean is a byte: lanes beyond the end of a row read what may be none.
const char* stored_type(DType dtype, bool cuda);
// What an op is in C, of operands a, b, c.
std::string text_of_op(const ScalarNode& s);
std::string cast_call(DType to, const std::string& value, DType from);
// The C expression of a map row over the given operand texts: a, b, c stand for them as whole identifiers.
std::string instantiate(const std::string& text, const std::vector<std::string>& arguments);
// Whether a value comes before the best one so far, of whose position `there` is the text, if there may be
// none yet. Of equal values the first stays; a NaN is better than numbers.
std::string better_than(bool least, DType dtype, const std::string& value, const std::string& best,
                        const std::string& there);
// Two partial results as one: of sums, products, maxima, minima and logical reductions.
std::string combined(Combine combine, DType dtype, const std::string& a, const std::string& b);

}  // namespace bitale
