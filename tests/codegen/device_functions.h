// The helper functions of generated code, compiled into a test. Their types differ from <cstdint>'s in name
// only.
#pragma once

namespace bitale::device {
// The files have no #include and no #pragma once, and rely on this order.
// clang-format off
#include <cmath>

#include "codegen/device/base.h"
#include "codegen/device/convert.h"
#include "codegen/device/integer.h"
#include "codegen/device/index.h"
#include "codegen/device/philox.h"
#include "codegen/device/real.h"
#include "codegen/device/exp_f32.h"
#include "codegen/device/log_f32.h"
#include "codegen/device/trig_f32.h"
#include "codegen/device/special_f32.h"
#include "codegen/device/inverse_f32.h"
#include "codegen/device/exp_f64.h"
#include "codegen/device/log_f64.h"
#include "codegen/device/trig_f64.h"
#include "codegen/device/erf_f64.h"
#include "codegen/device/inverse_f64.h"
#include "codegen/device/sort.h"
// clang-format on
}  // namespace bitale::device

// Every function of one real number: X(name, the C++ expression of x that it approximates).
#define BITALE_REAL_FUNCTIONS(X)                                                  \
    X(exp, std::exp(x))                                                           \
    X(exp2, std::exp2(x))                                                         \
    X(expm1, std::expm1(x))                                                       \
    X(tanh, std::tanh(x))                                                         \
    X(sigmoid, x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x))) \
    X(sinh, std::sinh(x))                                                         \
    X(cosh, std::cosh(x))                                                         \
    X(log, std::log(x))                                                           \
    X(log2, std::log2(x))                                                         \
    X(log10, std::log10(x))                                                       \
    X(log1p, std::log1p(x))                                                       \
    X(softplus, (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))))            \
    X(sin, std::sin(x))                                                           \
    X(cos, std::cos(x))                                                           \
    X(tan, std::tan(x))                                                           \
    X(asin, std::asin(x))                                                         \
    X(acos, std::acos(x))                                                         \
    X(atan, std::atan(x))                                                         \
    X(asinh, std::asinh(x))                                                       \
    X(acosh, std::acosh(x))                                                       \
    X(atanh, std::atanh(x))                                                       \
    X(cbrt, std::cbrt(x))                                                         \
    X(erf, std::erf(x))                                                           \
    X(erfc, std::erfc(x))                                                         \
    X(sqrt, std::sqrt(x))                                                         \
    X(abs, std::fabs(x))                                                          \
    X(floor, std::floor(x))                                                       \
    X(ceil, std::ceil(x))                                                         \
    X(trunc, std::trunc(x))                                                       \
    X(round, std::rint(x))                                                        \
    X(sign, x > 0 ? 1 : x < 0 ? -1 : x)                                           \
    X(relu, x < 0 ? 0 : x)
