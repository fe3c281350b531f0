// clang-format off
// Every elementwise operation: one row each. A row declares the function, its dtype rule, its C text in
// kernels, its reference, its derivative, and where tests draw arguments; nothing else has to be written.
//
//   BITALE_UNARY  (name, rule, text, reference, gradient, cost, traits, low, high)
//   BITALE_BINARY (name, rule, text, reference, gradient_a, gradient_b, cost, traits, low, high)
//   BITALE_TERNARY(name, rule, text, reference, gradient_a, gradient_b, gradient_c, cost, traits, low, high)
//
// rule       same: the operands' common dtype, also of the result · floating: the same, integers become
//            float32 · logical: boolean result · selecting: the first operand becomes boolean ·
//            random_bits: uint64 -> uint32
// text       C over a, b, c, which have the operands' dtype; its value is converted to the result's dtype.
//            May call the helpers of codegen/device. Text(x, y): x for floats, y for integers (where C would
//            overflow).
// reference  C++ over a, b, c: doubles for every float dtype, else the integers themselves
// gradient   an Expr over g (of the output), a, b, c and y (the output); `none` where no gradient can flow
// cost       cycles an element, roughly: 1 for an add, 4 for a division, 20 for exp
// traits     plain, or any of commutative | zero_to_zero | non_decreasing | floats_only | integers_only
//            (booleans too) | numbers_only (no booleans) | as_length(the op on lengths) |
//            of_integers_called(what reports say of integers) |
//            known(the Opcode by which code generation knows it)
// low, high  where tests draw floating-point arguments from: inside the domain

// ---- Arithmetic: integers wrap; x // 0 and x % 0 are 0 for integers ---------------------------------------
BITALE_BINARY(add, same, Text("a + b", "b_add(a, b)"), reference::add(a, b), g, g, 1,
              commutative | as_length([](const Int& a, const Int& b) { return a + b; }) | known(Opcode::add),
              -4, 4)
BITALE_BINARY(sub, same, Text("a - b", "b_sub(a, b)"), reference::sub(a, b), g, -g, 1,
              numbers_only | as_length([](const Int& a, const Int& b) { return a - b; }) |
              known(Opcode::sub), -4, 4)
BITALE_BINARY(mul, same, Text("a * b", "b_mul(a, b)"), reference::mul(a, b), g * b, g * a, 1,
              commutative | as_length([](const Int& a, const Int& b) { return a * b; }) | known(Opcode::mul),
              -4, 4)
// True division; two integers give float32.
BITALE_BINARY(div, floating, "a / b", a / b, g / b, -(g * y) / b, 4, known(Opcode::div), 0.5, 4)
// The exact quotient rounded toward minus infinity. A quotient that was rounded before might have reached the
// next whole number.
BITALE_BINARY(floordiv, same, "b_floordiv(a, b)", reference::floordiv(a, b), zeros_like(a), zeros_like(b), 8,
              numbers_only | as_length([](const Int& a, const Int& b) { return floordiv(a, b); }), 0.5, 4)
// a - b * floordiv(a, b): it has the sign of b.
BITALE_BINARY(mod, same, "b_mod(a, b)", reference::mod(a, b), g, -g * floordiv(a, b), 8,
              numbers_only | as_length(table_row::remainder), 0.5, 4)
// a to the power b. Integers wrap; a negative exponent gives the reciprocal rounded toward zero, and 0 for
// base 0.
BITALE_BINARY(pow, same, "b_pow(a, b)", reference::pow(a, b), where(eq(b, 0), 0, g * b * pow(a, b - 1)),
              where(eq(a, 0), 0, g * y * log(a)), 40, numbers_only, 0.5, 3)
// The negative; integers wrap.
BITALE_UNARY(neg, same, Text("-a", "b_neg(a)"), reference::neg(a), -g, 1,
             zero_to_zero | numbers_only | as_length([](const Int& a) { return -a; }) | known(Opcode::neg),
             -4, 4)
// The absolute value.
BITALE_UNARY(abs, same, "b_abs(a)", reference::abs(a), g * sign(a), 1, zero_to_zero, -4, 4)
// -1, 0 or 1; NaN stays NaN.
BITALE_UNARY(sign, same, "b_sign(a)", reference::sign(a), zeros_like(a), 2, zero_to_zero | non_decreasing,
             -4, 4)
// The magnitude of a with the sign of b.
BITALE_BINARY(copysign, floating, "b_copysign(a, b)", std::copysign(a, b), where(eq(y, a), g, -g),
              zeros_like(b), 1, plain, -4, 4)
BITALE_UNARY(sqr, same, Text("a * a", "b_mul(a, a)"), reference::mul(a, a), g * a * 2, 1, zero_to_zero |
             known(Opcode::sqr), -4, 4)
BITALE_UNARY(reciprocal, floating, "1 / a", 1 / a, -g * y * y, 4, plain, 0.5, 4)
// The larger operand. NaN wins. Of equal operands the first is taken, and gets the whole gradient.
BITALE_BINARY(maximum, same, "b_maximum(a, b)", reference::maximum(a, b), where(lt(a, b), 0, g),
              where(lt(a, b), g, 0), 1,
              as_length([](const Int& a, const Int& b) { return max(a, b); }) | known(Opcode::maximum), -4, 4)
// The smaller operand. NaN wins. Of equal operands the first is taken, and gets the whole gradient.
BITALE_BINARY(minimum, same, "b_minimum(a, b)", reference::minimum(a, b), where(gt(a, b), 0, g),
              where(gt(a, b), g, 0), 1,
              as_length([](const Int& a, const Int& b) { return min(a, b); }) | known(Opcode::minimum), -4, 4)
// a, but b where a < b, and c where a > c; where b > c, b wins. NaN stays NaN.
BITALE_TERNARY(clip, same, "b_clip(a, b, c)", reference::clip(a, b, c),
               where(logical_or(lt(a, b), gt(a, c)), 0, g),
               where(lt(a, b), g, 0), where(logical_and(ge(a, b), gt(a, c)), g, 0), 2, known(Opcode::clip),
               -4, 4)

// ---- Exponentials and powers ------------------------------------------------------------------------------
// e to the power a.
BITALE_UNARY(exp, floating, "b_exp(a)", std::exp(a), g * y, 20, non_decreasing, -4, 4)
// 2 to the power a.
BITALE_UNARY(exp2, floating, "b_exp2(a)", std::exp2(a), g * y * 0.69314718055994530942, 20, non_decreasing,
             -4, 4)
// exp(a) - 1, without cancellation near 0.
BITALE_UNARY(expm1, floating, "b_expm1(a)", std::expm1(a), g * (y + 1), 25, zero_to_zero | non_decreasing,
             -4, 4)
// The natural logarithm; NaN below 0, -inf at 0.
BITALE_UNARY(log, floating, "b_log(a)", std::log(a), g / a, 20, non_decreasing, 0.2, 4)
// The logarithm to base 2.
BITALE_UNARY(log2, floating, "b_log2(a)", std::log2(a), g / (a * 0.69314718055994530942), 20, non_decreasing,
             0.2, 4)
// The logarithm to base 10.
BITALE_UNARY(log10, floating, "b_log10(a)", std::log10(a), g / (a * 2.30258509299404568402), 20,
             non_decreasing, 0.2, 4)
// log(1 + a), without cancellation near 0.
BITALE_UNARY(log1p, floating, "b_log1p(a)", std::log1p(a), g / (a + 1), 25, zero_to_zero | non_decreasing,
             -0.5, 4)
// The square root; NaN below 0.
BITALE_UNARY(sqrt, floating, "b_sqrt(a)", std::sqrt(a), g * 0.5 / y, 6, zero_to_zero | non_decreasing, 0.2, 4)

// The cube root, with the sign of a. The derivative at 0 is infinite.
BITALE_UNARY(cbrt, floating, "b_cbrt(a)", reference::cbrt(a), g / (y * y * 3), 30, zero_to_zero | non_decreasing, 0.2,
             4)

// ---- Trigonometry -----------------------------------------------------------------------------------------
// The sine of a in radians.
BITALE_UNARY(sin, floating, "b_sin(a)", std::sin(a), g * cos(a), 25, zero_to_zero, -4, 4)
// The cosine of a in radians.
BITALE_UNARY(cos, floating, "b_cos(a)", std::cos(a), -g * sin(a), 25, plain, -4, 4)
// The tangent of a in radians.
BITALE_UNARY(tan, floating, "b_tan(a)", std::tan(a), g * (y * y + 1), 35, zero_to_zero, -1.2, 1.2)
// The inverse sine, in [-pi / 2, pi / 2]; NaN outside [-1, 1].
BITALE_UNARY(asin, floating, "b_asin(a)", std::asin(a), g / sqrt(1 - a * a), 30,
             zero_to_zero | non_decreasing, -0.9, 0.9)
// The inverse cosine, in [0, pi]; NaN outside [-1, 1].
BITALE_UNARY(acos, floating, "b_acos(a)", std::acos(a), -g / sqrt(1 - a * a), 30, plain, -0.9, 0.9)
// The inverse tangent, in [-pi / 2, pi / 2].
BITALE_UNARY(atan, floating, "b_atan(a)", std::atan(a), g / (a * a + 1), 30, zero_to_zero | non_decreasing,
             -4, 4)
// The angle of the point (b, a) from the axis of b, in [-pi, pi], with the sign of a. Theano's arctan2. The
// gradient at (0, 0) is 0.
BITALE_BINARY(atan2, floating, "b_atan2(a, b)", std::atan2(a, b),
              where(eq(a * a + b * b, 0), 0, g * b / (a * a + b * b)),
              where(eq(a * a + b * b, 0), 0, -(g * a) / (a * a + b * b)), 45, plain, 0.5, 4)
// The hyperbolic sine, (exp(a) - exp(-a)) / 2.
BITALE_UNARY(sinh, floating, "b_sinh(a)", std::sinh(a), g * cosh(a), 30, zero_to_zero | non_decreasing, -3, 3)
// The hyperbolic cosine, (exp(a) + exp(-a)) / 2.
BITALE_UNARY(cosh, floating, "b_cosh(a)", std::cosh(a), g * sinh(a), 30, plain, -3, 3)
// The hyperbolic tangent, (exp(a) - exp(-a)) / (exp(a) + exp(-a)), without overflow.
BITALE_UNARY(tanh, floating, "b_tanh(a)", std::tanh(a), g * (1 - y * y), 25, zero_to_zero | non_decreasing,
             -3, 3)

// The inverse hyperbolic sine, log(a + sqrt(a * a + 1)), without overflow or cancellation.
BITALE_UNARY(asinh, floating, "b_asinh(a)", std::asinh(a), g / sqrt(a * a + 1), 45,
             zero_to_zero | non_decreasing, -4, 4)
// The inverse hyperbolic cosine, log(a + sqrt(a * a - 1)), without overflow or cancellation; NaN below 1.
BITALE_UNARY(acosh, floating, "b_acosh(a)", std::acosh(a), g / sqrt((a - 1) * (a + 1)), 45, plain, 1.1, 4)
// The inverse hyperbolic tangent, log((1 + a) / (1 - a)) / 2, without cancellation; NaN outside [-1, 1].
BITALE_UNARY(atanh, floating, "b_atanh(a)", std::atanh(a), g / ((1 - a) * (1 + a)), 45, zero_to_zero, -0.9, 0.9)

// ---- Neural networks and special functions ----------------------------------------------------------------
// 1 / (1 + exp(-a)), without overflow.
BITALE_UNARY(sigmoid, floating, "b_sigmoid(a)", reference::sigmoid(a), g * y * (1 - y), 25, non_decreasing,
             -4, 4)
// log(1 + exp(a)), without overflow.
BITALE_UNARY(softplus, floating, "b_softplus(a)", reference::softplus(a), g * sigmoid(a), 45, non_decreasing,
             -4, 4)
// log(exp(a) + exp(b)), without overflow. Two equal infinities give that infinity.
BITALE_BINARY(logaddexp, floating, "b_logaddexp(a, b)", reference::logaddexp(a, b),
              g * sigmoid(where(eq(a, b), 0, a - b)), g * sigmoid(where(eq(a, b), 0, b - a)), 50, commutative,
              -4, 4)
// log(1 - exp(a)), without cancellation; NaN above 0.
BITALE_UNARY(log1mexp, floating, "b_log1mexp(a)", reference::log1mexp(a), -g / expm1(-a), 60, plain, -4, -0.2)
// log(cosh(a)), without overflow, and without cancellation near 0.
BITALE_UNARY(logcosh, floating, "b_logcosh(a)", reference::logcosh(a), g * tanh(a), 55, zero_to_zero, -4, 4)
// maximum(a, 0): the rectified linear unit. NaN stays NaN. The gradient at 0 is 0.
BITALE_UNARY(relu, same, "b_relu(a)", reference::relu(a), where(gt(y, 0), g, 0), 1,
             zero_to_zero | non_decreasing | of_integers_called("maximum") | known(Opcode::relu), -4, 4)
// The error function: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to a.
BITALE_UNARY(erf, floating, "b_erf(a)", std::erf(a), g * 1.12837916709551257390 * exp(-(a * a)), 30,
             zero_to_zero | non_decreasing, -3, 3)
// 1 - erf(a), without cancellation.
BITALE_UNARY(erfc, floating, "b_erfc(a)", std::erfc(a), g * -1.12837916709551257390 * exp(-(a * a)), 30,
             plain, -3, 3)

// ---- Rounding: integers stay as they are ------------------------------------------------------------------
// The greatest whole number that is not above a.
BITALE_UNARY(floor, same, Text("b_floor(a)", "a"), reference::floor(a), zeros_like(a), 1,
             zero_to_zero | non_decreasing, -4, 4)
// The least whole number that is not below a.
BITALE_UNARY(ceil, same, Text("b_ceil(a)", "a"), reference::ceil(a), zeros_like(a), 1,
             zero_to_zero | non_decreasing, -4, 4)
// a rounded toward 0.
BITALE_UNARY(trunc, same, Text("b_trunc(a)", "a"), reference::trunc(a), zeros_like(a), 1,
             zero_to_zero | non_decreasing, -4, 4)
// a rounded to the nearest whole number, halves to the even one.
BITALE_UNARY(round, same, Text("b_round(a)", "a"), reference::round(a), zeros_like(a), 1,
             zero_to_zero | non_decreasing, -4, 4)

// ---- Comparisons and logic: NaN is unequal to everything, and true ----------------------------------------
BITALE_BINARY(lt, logical, "a < b", a < b, none, none, 1, known(Opcode::lt), -4, 4)
BITALE_BINARY(le, logical, "a <= b", a <= b, none, none, 1, known(Opcode::le), -4, 4)
BITALE_BINARY(gt, logical, "a > b", a > b, none, none, 1, known(Opcode::gt), -4, 4)
BITALE_BINARY(ge, logical, "a >= b", a >= b, none, none, 1, known(Opcode::ge), -4, 4)
BITALE_BINARY(eq, logical, "a == b", a == b, none, none, 1, commutative | known(Opcode::eq), -4, 4)
BITALE_BINARY(neq, logical, "a != b", a != b, none, none, 1, commutative | known(Opcode::neq), -4, 4)
// Whether both are not 0.
BITALE_BINARY(logical_and, logical, Text("a != 0 ? b != 0 : false", "(a != 0) & (b != 0)"), (a != 0) & (b != 0),
              none, none, 1, commutative, -4, 4)
// Whether one of them is not 0, or both.
BITALE_BINARY(logical_or, logical, Text("a != 0 ? true : b != 0", "(a != 0) | (b != 0)"), (a != 0) | (b != 0),
              none, none, 1, commutative, -4, 4)
// Whether exactly one of them is not 0.
BITALE_BINARY(logical_xor, logical, "(a != 0) != (b != 0)", (a != 0) != (b != 0), none, none, 1, commutative,
              -4, 4)
// Whether a is 0.
BITALE_UNARY(logical_not, logical, "a == 0", a == 0, none, 1, known(Opcode::logical_not), -4, 4)
// Whether a is NaN; false for integers.
BITALE_UNARY(isnan, logical, Text("a != a", "0"), reference::isnan(a), none, 1, zero_to_zero, -4, 4)
// Whether a is infinite; false for integers.
BITALE_UNARY(isinf, logical, Text("b_isinf(a)", "0"), reference::isinf(a), none, 1, zero_to_zero, -4, 4)
// b where a is true, c elsewhere. A NaN in the operand that is not taken has no effect, nor has it in the
// gradient.
BITALE_TERNARY(where, selecting, "a ? b : c", a ? b : c, none, where(a, g, 0), where(a, 0, g), 1,
               known(Opcode::where), -4,
               4)

// ---- Bits of integers and booleans ------------------------------------------------------------------------
BITALE_BINARY(bitwise_and, same, "a & b", a & b, none, none, 1, commutative | integers_only |
              known(Opcode::bitwise_and), 0, 4)
BITALE_BINARY(bitwise_or, same, "a | b", a | b, none, none, 1, commutative | integers_only |
              known(Opcode::bitwise_or), 0, 4)
BITALE_BINARY(bitwise_xor, same, "a ^ b", a ^ b, none, none, 1, commutative | integers_only, 0, 4)
// All bits inverted; of a boolean, logical not.
BITALE_UNARY(invert, same, "b_invert(a)", reference::invert(a), none, 1, integers_only, 0, 4)
// a shifted to the left by b bits; 0 where b is negative, or the width of the dtype or more.
BITALE_BINARY(shift_left, same, "b_shift_left(a, b)", reference::shift_left(a, b), none, none, 2,
              integers_only | numbers_only, 0, 4)
// a shifted to the right by b bits, filled with the sign; only the sign is left where b is negative, or the
// width of the dtype or more.
BITALE_BINARY(shift_right, same, "b_shift_right(a, b)", reference::shift_right(a, b), none, none, 2,
              integers_only | numbers_only | known(Opcode::shift_right), 0, 4)

// ---- Random bits: words 0 and 1 of Philox-4x32-10 for (key, counter, index) -------------------------------
BITALE_TERNARY(philox_bits, random_bits, "b_philox(a, b, c)", philox::word(a, b, c, 0),
               none, none, none, 40, integers_only | known(Opcode::random_bits), 0, 4)
BITALE_TERNARY(philox_bits_second, random_bits, "b_philox_second(a, b, c)", philox::word(a, b, c, 1),
               none, none, none, 40, integers_only | known(Opcode::second_random_bits), 0, 4)
// clang-format on
