#include "gpu/compare.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace bench {

Difference difference(const bitale::Array& got, const bitale::Array& expected) {
    if (got.shape() != expected.shape())
        throw std::runtime_error("shapes differ: " + bitale::text_of(got.shape()) + " and " +
                                 bitale::text_of(expected.shape()));
    const std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
    Difference d;
    d.same = bitale::same(got, expected);
    double scale = 0, worst = -1, squares = 0, differences = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
        if (std::isfinite(b[k])) {
            scale = std::max(scale, std::abs(b[k]));
            squares += b[k] * b[k];
        }
        const bool alike = a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]));
        const bool number = std::isfinite(a[k]) && std::isfinite(b[k]);
        if (!alike && !number) ++d.not_numbers;
        const double by = alike ? 0 : number ? std::abs(a[k] - b[k]) : INFINITY;
        differences += by * by;
        if (by <= worst) continue;
        worst = by;
        d.at = static_cast<std::int64_t>(k);
        d.got = a[k];
        d.expected = b[k];
    }
    d.largest = worst <= 0 ? 0 : scale > 0 ? worst / scale : worst;
    d.rms = std::sqrt(differences / (squares > 0 ? squares : 1));
    return d;
}

Json json_of(const Difference& d) {
    Json entry = {{"same_bits", d.same}, {"difference", d.largest}, {"rms", d.rms}};
    if (!d.same) entry.update({{"at", d.at}, {"got", d.got}, {"expected", d.expected}});
    if (d.not_numbers > 0) entry["not_numbers"] = d.not_numbers;
    return entry;
}

}  // namespace bench
