// The border of the API: what leaves it for want of memory is OutOfMemory.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "bitale/error.h"

namespace bitale {

// One for each kind of call, whose error is made before main: where memory is out there is none for words
// either, and a copy of an error takes none. Objects of the program's that are made before it or destroyed
// after it call the library too, so a border is never destroyed, and one that is zero does all but word the
// error.
class ApiBorder {
  public:
    explicit ApiBorder(const std::string& doing) : error_(new OutOfMemory("no memory is left " + doing)) {}
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
    [[noreturn]] void fail() const {
        if (!error_) throw OutOfMemory("no memory is left");
        throw OutOfMemory(*error_);
    }

  private:
    const OutOfMemory* error_;
};

}  // namespace bitale
