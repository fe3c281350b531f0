// What a failing call says.
#pragma once

#include <string>

#include "bitale/bitale.h"

namespace bitale::test {

// The message of the Error that f() throws; empty where f() throws none.
template <class F>
std::string error_of(F&& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

}  // namespace bitale::test
