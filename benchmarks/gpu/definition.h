// Elements of products and convolutions by their definition, in float64.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/exec/launcher.h"

namespace bench {

// Values in [-1, 1].
std::vector<float> random_floats(std::int64_t count, unsigned seed);

// Some elements of a result, and where they are in memory.
struct Sample {
    std::vector<std::size_t> places;
    std::vector<double> expected;
    // Root mean square of the errors, of that of what is expected.
    double error_of(const std::vector<float>& got) const;
};

struct ProductData {
    std::vector<float> a, b, bias;
};
ProductData random_data(const bitale::GemmShape& shape);
Sample sample_of(const bitale::GemmShape& shape, const ProductData& data, int count);

struct ConvolutionData {
    std::vector<float> image, filters, output, bias;
};
ConvolutionData random_data(const bitale::ConvShape& shape);
Sample sample_of(const bitale::ConvShape& shape, const ConvolutionData& data, int count);

}  // namespace bench
