// For std::visit: one function object made of a lambda for each alternative.
#pragma once

namespace bitale {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace bitale
