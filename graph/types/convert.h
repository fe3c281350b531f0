// The one definition of cast between element types, as every device must compute it.
#pragma once

#include <cmath>
#include <limits>

#include "bitale/dtype.h"

namespace bitale {

// float -> integer truncates and saturates, NaN gives 0; integer -> integer wraps; to boolean is != 0.
template <class To, class From>
To convert(From x) {
    if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
        if constexpr (std::is_same_v<To, From>)
            return x;
        else
            return convert<To>(static_cast<float>(x));
    } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
        return To(static_cast<float>(x));
    } else if constexpr (std::is_same_v<To, bool>) {
        return x != From(0);
    } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
        if (std::isnan(x)) return 0;
        // The limits themselves may not be floats: compare against powers of two.
        const From above = std::ldexp(From(1), std::numeric_limits<To>::digits);
        if (x >= above) return std::numeric_limits<To>::max();
        if (x <= (std::is_signed_v<To> ? -above : From(0))) return std::numeric_limits<To>::min();
        return static_cast<To>(x);
    } else {
        return static_cast<To>(x);
    }
}

}  // namespace bitale
