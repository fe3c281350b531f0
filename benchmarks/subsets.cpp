// Cliffs: the same sums and maps of some 600,000 elements in many shapes, over every subset of axes, with an
// operand that has another subset of them. Each takes about as long as any other, for it reads as much.
//
//     bench_subsets [--unknown] [--worst N] [TEXT]
//
// prints nanoseconds an element, and the slowest ones as multiples of the median. --unknown: lengths of the
// first axis that only a call tells. TEXT: cases whose names contain it.
#include <bitale/bitale.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace bitale;  // NOLINT

namespace {

using Extents = std::vector<std::int64_t>;

struct Settings {
    bool unknown = false;
    std::size_t worst = 40;
    std::string text;
};

struct Case {
    std::string name;
    double ns = 0;  // an element
};

const std::vector<Extents>& shapes() {
    static const std::vector<Extents>& all = *new std::vector<Extents>{
        {200000, 3},       {60000, 10},       {12000, 50},      {3, 200000},      {10, 60000},
        {6000, 100},       {100, 6000},       {775, 784},       {64, 3136, 3},    {64, 3, 3136},
        {3, 64, 3136},     {128, 10, 480},    {128, 480, 10},   {10, 128, 480},   {400, 5, 300},
        {16, 3, 110, 112}, {16, 110, 112, 3}, {32, 16, 34, 36}, {32, 34, 36, 16}, {8, 12, 80, 80},
        {50, 100, 12, 10}, {1000, 6, 10, 10}};
    return all;
}

Array random_floats(const Extents& shape) {
    static std::mt19937 generator(1);
    std::uniform_real_distribution<float> between(-1, 1);
    std::int64_t count = 1;
    for (const std::int64_t n : shape) count *= n;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& x : values) x = between(generator);
    return Array(values, shape);
}

// Of four axes only some subsets: those that networks and images have.
bool is_taken(std::size_t rank, unsigned axes) {
    constexpr unsigned first = 1, second = 2, third = 4, fourth = 8;
    if (rank < 4) return true;
    for (const unsigned usual :
         {first, second, third, fourth, third | fourth, second | third | fourth, first | third | fourth,
          first | second | third, first | second | third | fourth})
        if (axes == usual) return true;
    return false;
}

std::string digits_of(std::size_t rank, unsigned axes) {
    std::string text;
    for (std::size_t d = 0; d < rank; ++d)
        if (axes >> d & 1U) text += static_cast<char>('0' + d);
    return text;
}

Axes axes_of(std::size_t rank, unsigned axes) {
    std::vector<int> list;
    for (std::size_t d = 0; d < rank; ++d)
        if (axes >> d & 1U) list.push_back(static_cast<int>(d));
    return Axes(list);
}

class Sweep {
  public:
    explicit Sweep(Settings settings) : settings_(std::move(settings)) {}

    void shape(const Extents& shape) {
        const std::size_t rank = shape.size();
        const unsigned all = (1U << rank) - 1;
        const Expr x = input(float32, given(shape, all), "x");
        const Array values = random_floats(shape);
        for (unsigned own = 0; own < all; ++own) {
            if (own != 0 && !is_taken(rank, own)) continue;
            Extents lengths;
            for (std::size_t d = 0; d < rank; ++d) lengths.push_back(own >> d & 1U ? shape[d] : 1);
            const Expr b = input(float32, given(lengths, own), "b");
            const std::string operand = own == 0 ? "" : ", b of axes " + digits_of(rank, own);
            const std::vector<Input> inputs = own == 0 ? std::vector<Input>{x} : std::vector<Input>{x, b};
            std::vector<Array> arguments{values};
            if (own != 0) arguments.push_back(random_floats(lengths));
            if (own != 0) measure("map", shape, operand, inputs, (x - b) * b, arguments);
            for (unsigned over = 1; over <= all; ++over) {
                if (!is_taken(rank, over)) continue;
                const Axes axes = axes_of(rank, over);
                const std::string what = " over " + digits_of(rank, over);
                measure("sum" + what, shape, operand, inputs, sum(own == 0 ? sqr(x) : sqr(x - b), axes),
                        arguments);
                if (own == 0) measure("max" + what, shape, operand, inputs, max(x, axes), arguments);
            }
        }
    }

    void print_worst() {
        if (cases_.empty()) return;
        std::sort(cases_.begin(), cases_.end(), [](const Case& a, const Case& b) { return a.ns > b.ns; });
        const double median = cases_[cases_.size() / 2].ns;
        std::printf("\n%zu cases, median %.3f ns an element; the slowest:\n", cases_.size(), median);
        for (std::size_t k = 0; k < std::min(settings_.worst, cases_.size()); ++k)
            std::printf("%6.1f x  %s\n", cases_[k].ns / median, cases_[k].name.c_str());
    }

  private:
    Dims given(const Extents& lengths, unsigned axes) const {
        Dims r(lengths.begin(), lengths.end());
        if (settings_.unknown && (axes & 1U)) r[0] = -1;
        return r;
    }

    void measure(const std::string& what, const Extents& shape, const std::string& operand,
                 const std::vector<Input>& inputs, const Expr& y, const std::vector<Array>& arguments) {
        constexpr int rounds = 12;
        double count = 1;
        std::string name = what + " of [";
        for (std::size_t d = 0; d < shape.size(); ++d) {
            count *= static_cast<double>(shape[d]);
            name += (d ? ", " : "") + std::to_string(shape[d]);
        }
        name += "]" + operand;
        if (name.find(settings_.text) == std::string::npos) return;
        Function f = function(inputs, y);
        double least = std::numeric_limits<double>::max();
        for (int round = 0; round < rounds; ++round) {
            const auto begin = std::chrono::steady_clock::now();
            f.call(arguments);
            const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
            if (round > 1) least = std::min(least, took.count());
        }
        cases_.push_back({name, least / count});
        std::printf("%7.3f  %s\n", least / count, name.c_str());
        std::fflush(stdout);
    }

    Settings settings_;
    std::vector<Case> cases_;
};

}  // namespace

int main(int argc, char** argv) try {
    Settings settings;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--unknown")
            settings.unknown = true;
        else if (word == "--worst" && i + 1 < argc)
            settings.worst = std::stoul(argv[++i]);
        else if (word.rfind("--", 0) == 0) {
            std::fprintf(stderr, "usage: bench_subsets [--unknown] [--worst N] [TEXT]\n");
            return 2;
        } else
            settings.text = word;
    }
    Sweep sweep(settings);
    for (const Extents& shape : shapes()) sweep.shape(shape);
    sweep.print_worst();
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
