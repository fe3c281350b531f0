// Words of the JSON form of programs, in the order of the enums that they stand for.
#pragma once

namespace bitale::program_names {

inline constexpr const char* buffer_kinds[] = {"arena",  "input",  "shared", "constant",
                                               "output", "errors", "slice",  "counters"};
inline constexpr const char* buffer_roles[] = {"value", "partial_sums", "task_rows", "saved"};
inline constexpr const char* conv_kinds[] = {"forward", "image_gradient", "filter_gradient"};
inline constexpr const char* parameters[] = {"none", "depth", "columns", "rows"};
inline constexpr const char* precisions[] = {"float32", "tf32", "bf16"};
inline constexpr const char* atom_kinds[] = {"symbol", "floordiv", "min", "max"};

}  // namespace bitale::program_names
