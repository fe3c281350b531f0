// Every elementwise operation: one row each. A row declares the function, its dtype rule, its C text in kernels, its
// float64 reference, its derivative, and where tests draw arguments; nothing else has to be written.
//
//   BITALE_UNARY (name, rule, text, reference, gradient, cost, traits, low, high)
//   BITALE_BINARY(name, rule, text, reference, gradient_a, gradient_b, cost, traits, low, high)
//
// text: C over a, b; may call the helpers of codegen/device/math.h. reference: C++ over doubles (floats) or the
// integers themselves a, b. gradients: an Expr over g (of the output), a, b and y (the output); `none` where no
// gradient flows.
// Rules: same (the dtype itself), promoted, floating (integers become float32), logical (boolean result).
// Traits: any of commutative | zero_to_zero | non_decreasing | floats_only | integers_only, or plain.
