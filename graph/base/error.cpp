#include "bitale/error.h"

#include <cstring>

#include "graph/base/check.h"
#include "graph/base/text.h"

namespace bitale {

std::string Where::text() const {
    if (line == 0) return "?";
    const char* slash = std::strrchr(file, '/');
    return printable(slash ? slash + 1 : file) + ":" + std::to_string(line);
}

void MovedMark::refuse(const char* what, Where where) const {
    if (is_set_)
        throw GraphError(where, std::string(what) +
                                    " is used after it was moved from; assign a value first, or "
                                    "copy instead of moving");
}

void internal_failure(const char* file, int line, const char* condition, const std::string& message) {
    throw InternalError(std::string("internal error (a bug of bitale, please report it): ") + message + " [" +
                        condition + " at " + Where{file, static_cast<unsigned>(line)}.text() + "]");
}

}  // namespace bitale
