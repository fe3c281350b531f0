// Whitening of image patches as a newcomer writes it: by hand from eigenvalues, and by zca().
#include <bitale/bitale.h>

#include <algorithm>
#include <cmath>
#include <iostream>

using namespace bitale;

int main() try {
    // 2000 patches of 6 x 6 pixels that resemble their neighbours: sums of noise along rows and columns.
    const std::int64_t count = 2000, d = 36;
    Expr noise = tensor3("noise");
    const Array patches = eval(reshape(cumsum(cumsum(noise, 1), 2), {count, d}),
                               {{noise, uniform_values({count, 6, 6}, -1, 1, 1)}});

    Expr x = matrix("x");
    const double epsilon = 1e-5;
    Expr mean_of = mean(x, 0), centered = x - mean_of;
    auto [w, v] = eigh(dot(transpose(centered), centered) / cast(x.length(0), float32));
    Expr by_hand = dot(v / sqrt(maximum(w, 0) + epsilon), transpose(v));
    Zca z = zca(x, epsilon);
    Function fit = function({x}, {mean_of, by_hand, z.mean, z.matrix}, {.name = "fit"});
    auto [mean_hand, matrix_hand, mean_zca, matrix_zca] = fit(patches).unpack<4>();
    Function largest = function({x}, max(abs(x)));
    std::cout << "difference " << double(largest(matrix_hand - matrix_zca)) / double(largest(matrix_zca))
              << '\n';

    // The covariance of what is whitened is the identity.
    Expr white = dot(x - Expr(mean_zca), Expr(matrix_zca));
    Expr covariance = dot(transpose(white), white) / cast(x.length(0), float32);
    const Array c = eval(covariance, {{x, patches}});
    double off = 0, on = 0;
    for (std::int64_t i = 0; i < d; ++i)
        for (std::int64_t j = 0; j < d; ++j)
            (i == j ? on : off) = std::max(i == j ? on : off, std::abs(c.at(i * d + j) - (i == j)));
    std::cout << "diagonal off by " << on << ", others by " << off << '\n';
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
