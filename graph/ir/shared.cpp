#include "graph/ir/shared.h"

#include "graph/base/text.h"

namespace bitale {

void* SharedState::data_to_write() {
    if (!value.is_shared()) return value.mutable_data();
    replaced.push_back(value);
    try {
        return value.mutable_data();
    } catch (const OutOfMemory&) {
        replaced.pop_back();
        throw OutOfMemory("no host memory to write the shared variable " + in_quotes(name) +
                          (where.line ? " at " + where.text() : "") + ": a value of it, " +
                          text_of(value.shape()) +
                          ", is still held, as get_value() returned it or set_value() "
                          "took it, so that " +
                          std::to_string(value.bytes()) +
                          " bytes have to be copied; let go of such values before the next step, or keep "
                          "copies of the parts that are needed, as rows() makes them");
    }
}

}  // namespace bitale
