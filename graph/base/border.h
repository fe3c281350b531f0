// The border of the API: what leaves it for want of memory is OutOfMemory.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "bitale/error.h"

namespace bitale {

// One for each kind of call, made before main: where memory is out there is none for words either, and a copy
// of an error takes none.
class ApiBorder {
  public:
    explicit ApiBorder(const std::string& doing) : error_("no memory is left " + doing) {}
    template <class F>
    decltype(auto) operator()(F&& f) const {
        try {
            return std::forward<F>(f)();
        } catch (const std::bad_alloc&) {
            fail();
        } catch (const std::length_error&) {  // a container of more than there can be
            fail();
        }
    }
    [[noreturn]] void fail() const { throw OutOfMemory(error_); }

  private:
    OutOfMemory error_;
};

}  // namespace bitale
