// The storage behind a shared variable. Handles (bitale::Shared) copy the pointer; functions read and write
// it.
#pragma once

#include <functional>
#include <string>

#include "bitale/array.h"
#include "bitale/error.h"
#include "graph/base/turns.h"
#include "graph/types/shape.h"

namespace bitale {

struct SharedState {
    std::string name;
    Where where;                  // where the user created it
    TurnLock turns;               // guards what follows
    Array value;                  // the newest copy unless `fetch` is set
    std::uint64_t version = 1;    // grows with every write, by set_value or by an update
    std::function<void()> fetch;  // set by a device that holds a newer copy; brings it into `value`
    const void* home = nullptr;   // that device, while `fetch` is set

    // Brings the newest value into `value`; the caller writes. When the device cannot give it, its
    // error is thrown each time: `value` is never taken for the newest one.
    void bring_home() {
        if (!fetch) return;
        fetch();
        fetch = nullptr;
    }
};

}  // namespace bitale
