#include "bitale/function.h"

namespace bitale {

void Results::require(std::size_t outputs) const {
    if (values_.size() != outputs)
        throw IndexError("unpack<" + std::to_string(outputs) +
                         ">() takes the results of as many outputs, and the function has " +
                         std::to_string(values_.size()));
}

}  // namespace bitale
