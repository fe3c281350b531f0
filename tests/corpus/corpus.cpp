// Numbers by seed, the Builder, and the list of graphs.
#include "tests/corpus/corpus.h"

#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

namespace bitale::corpus {

namespace {

// Steele, Lea & Flood 2014: std::uniform_real_distribution differs between standard libraries.
std::uint64_t splitmix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

std::map<std::string, Writer>& writers() {
    static auto& map = *new std::map<std::string, Writer>;
    return map;
}

}  // namespace

Array numbers(DType dtype, const Dims& shape, Range range, std::uint64_t seed) {
    std::vector<double> values(static_cast<std::size_t>(count_of(shape)));
    const bool whole = dtype != float32 && dtype != float64 && dtype != float16 && dtype != bfloat16;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double unit = static_cast<double>(splitmix((seed << 32) + i) >> 40) / (1 << 24);
        values[i] = whole ? range.low + std::floor(unit * (range.high - range.low + 1))
                          : range.low + unit * (range.high - range.low);
    }
    return Array(values, shape).as(dtype);
}

Expr Builder::input(DType dtype, const std::vector<Length>& shape, const std::string& name, Range range) {
    Dims lengths, known;
    for (const Length& length : shape) {
        lengths.push_back(length.value);
        known.push_back(length.known ? length.value : -1);
    }
    graph_.arguments.push_back({dtype, lengths, range, 1 + graph_.arguments.size()});
    graph_.inputs.emplace_back(bitale::input(dtype, known, name));
    return graph_.inputs.back().variable;
}

Expr Builder::number(std::int64_t value, const std::string& name) {
    const auto exactly = static_cast<double>(value);
    return input(int64, {}, name, {exactly, exactly});
}

Shared Builder::variable(const Dims& shape, const std::string& name, Range range, DType dtype) {
    const std::uint64_t seed = 1000 + variables_++;
    return shared(purpose_ == Purpose::plan ? Array(dtype, shape) : numbers(dtype, shape, range, seed), name);
}

Shared Builder::weights(const Dims& shape, const std::string& name) {
    std::int64_t fan = count_of(shape) / shape[0];
    if (shape.size() == 2) fan = shape[0];
    const double bound = std::sqrt(3.0 / static_cast<double>(fan));
    parameters_.push_back(variable(shape, name, {-bound, bound}));
    return parameters_.back();
}

Shared Builder::bias(std::int64_t length, const std::string& name) {
    parameters_.push_back(variable({length}, name, {-0.1, 0.1}));
    return parameters_.back();
}

void Builder::output(const Expr& y, const std::string& name) {
    graph_.outputs.push_back(y);
    graph_.output_names.push_back(name);
}

const std::vector<std::string>& names() {
    static const std::vector<std::string>& list = *[] {
        auto* all = new std::vector<std::string>;
        for (const auto& [name, writer] : writers()) all->push_back(name);
        return all;
    }();
    return list;
}

Graph make(const std::string& name, Purpose purpose) {
    const auto at = writers().find(name);
    if (at == writers().end()) throw std::invalid_argument("the corpus has no graph " + name);
    Builder b(name, purpose);
    at->second(b);
    return std::move(b).graph();
}

Registered::Registered(const char* name, Writer writer) { writers().emplace(name, writer); }

}  // namespace bitale::corpus
