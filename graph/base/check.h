// Internal checks: a failure is a bug of Bitale, never of the user.
#pragma once

#include <stdexcept>
#include <string>

namespace bitale {

class InternalError : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

[[noreturn]] void internal_failure(const char* file, int line, const char* condition,
                                   const std::string& message);

}  // namespace bitale

#define BITALE_CHECK(condition, message)                                                         \
    do {                                                                                         \
        if (!(condition)) ::bitale::internal_failure(__FILE__, __LINE__, #condition, (message)); \
    } while (false)
