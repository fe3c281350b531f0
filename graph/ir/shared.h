// The storage behind a shared variable. Handles (bitale::Shared) copy the pointer; functions read and write
// it.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <utility>

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
    // Values before. The end of one may be foreign code, the deleter of Array::adopt: whoever writes takes
    // them along and lets go of them when he has no lock any more.
    std::list<Array> replaced;

    // Brings the newest value into `value`; the caller writes. When the device cannot give it, its
    // error is thrown each time: `value` is never taken for the newest one.
    void bring_home() {
        if (!fetch) return;
        fetch();
        fetch = nullptr;
    }
    // `next` has nodes of new values, one of which becomes the value of this variable: nothing can fail.
    void take_value(std::list<Array>& next) noexcept {
        std::swap(value, next.front());
        replaced.splice(replaced.end(), next, next.begin());
    }
    // To write the value in place; one that somebody else holds too is copied before. Throws OutOfMemory.
    void* data_to_write();
};

// To write a variable without a call.
class WritingValue {
  public:
    explicit WritingValue(SharedState& variable) : variable_(variable), writing_(variable.turns) {}
    ~WritingValue() { replaced_.splice(replaced_.end(), variable_.replaced); }
    WritingValue(const WritingValue&) = delete;
    WritingValue& operator=(const WritingValue&) = delete;

  private:
    SharedState& variable_;
    std::list<Array> replaced_;  // ends after the lock
    const Writing writing_;
};

}  // namespace bitale
