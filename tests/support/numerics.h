// Random and awkward arrays, and comparison of what two devices compute from them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "ops/oracle/wide.h"

namespace bitale::test {

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    double real(double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(engine_);
    }
    bool chance(int one_in) { return between(1, one_in) == 1; }
    std::uint64_t bits() { return engine_(); }
    template <class T>
    const T& pick(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(list.size()) - 1))];
    }

  private:
    std::mt19937_64 engine_;
};

// Values in [low, high], for integers rounded and clipped to the dtype; booleans are fair coins.
Array random_array(DType dtype, const Dims& shape, Random& random, double low = -3, double high = 3);
// NaN, infinities, -0, extremes, subnormals, small numbers, powers of two and their neighbours of a dtype.
const std::vector<double>& special_floats(DType dtype);
// Filled with special values in an order that pairs each with each other, and random ones of every magnitude.
// Arrays of different `stride` meet in all combinations once they have special_count(dtype) ^ stride
// elements.
Array special_array(DType dtype, const Dims& shape, Random& random, int stride);
int special_count(DType dtype);

struct Tolerance {
    double ulps = 0;  // of the expected value in its own dtype
    double absolute = 0;
    double relative = 0;    // of the expected value
    double of_largest = 0;  // of the largest finite expected magnitude: for sums that cancel
};

// Empty if equal within the tolerance (NaN equals NaN, zeros have their sign when it is 0 ulps); else the
// first element that differs, and how many do.
std::string difference(const Array& got, const Array& expected, const Tolerance& tolerance = {});

// Of several arrays, each within this share of its largest magnitude; a line for each that is not.
std::string differences(const std::vector<Array>& got, const std::vector<Array>& expected, double of_largest);

// The same against a wide result (ops/oracle/wide.h): within what its error says, and some roundings more for
// what rules may rearrange. Elements that rounding may turn into anything are passed over and counted.
std::string difference(const Array& got, const WideValue& expected, std::int64_t* passed_over = nullptr);

// One graph on the tested device (tested_device.h) and the oracle.
struct Case {
    std::string name;
    Expr output;
    Tolerance tolerance{};
};
class OnTwoDevices {
  public:
    OnTwoDevices(const std::vector<Expr>& inputs, std::vector<Case> cases, const std::string& name = "cases");
    // Differences of one call, a line each; empty if there are none.
    std::string operator()(const std::vector<Array>& arguments);
    Function& tested() { return tested_; }

  private:
    std::vector<Case> cases_;
    Function tested_, reference_;
};

}  // namespace bitale::test
