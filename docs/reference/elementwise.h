// The rows of include/bitale/elementwise_table.h as declarations with comments for Doxygen.
#pragma once

#include <string>
#include <vector>

namespace reference {

// Comment lines as they are written, without slashes, to a Doxygen comment.
std::string documentation(const std::vector<std::string>& lines, const std::string& indent);

// A group for each section of the table below `parent`, and one for each op: what it computes, for which
// dtypes, and its gradient. `table` is the text of elementwise_table.h, whose comments belong to the rows.
std::string elementwise_ops(const std::string& table, const std::string& parent);

// "Linear algebra" -> "linear_algebra".
std::string slug(const std::string& title);

}  // namespace reference
