#include "bitale/function.h"

namespace bitale {

void Results::require(std::size_t outputs) const {
    if (values_.size() != outputs)
        throw IndexError("unpack<" + std::to_string(outputs) + ">() of the results of a function with " +
                         std::to_string(values_.size()) + (values_.size() == 1 ? " output" : " outputs"));
}

}  // namespace bitale
