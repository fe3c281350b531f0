#include "runtime/cuda/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "graph/base/options.h"
#include "runtime/cuda/emulator/blocks.h"
#include "runtime/cuda/emulator/compile.h"
#include "runtime/cuda/emulator/memory.h"
#include "runtime/cuda/library_bounds.h"

namespace bitale::cuda {

namespace {

// As blocks of the GPU's memory are: behind the elements a tail that kernels may read, of zeros.
Array host_array(DType dtype, std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(count * bytes_of(dtype));
    void* block = nullptr;
    if (allocate_mapped(&block, bytes + tail_bytes) != success)
        throw OutOfMemory(fmt::format("launches=compare: {:.1f} MB do not fit into the host's memory",
                                      static_cast<double>(bytes) / 1e6));
    std::memset(static_cast<char*>(block) + bytes, 0, tail_bytes);
    return Array::adopt(dtype, {count}, std::shared_ptr<void>(block, [](void* b) { release_host(b); }));
}

// Digits enough to tell any two numbers of the dtype apart.
std::string text_of_element(const Array& a, std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    if (a.dtype() == int64) return fmt::format("{}", a.view<std::int64_t>()[at]);
    if (a.dtype() == uint64) return fmt::format("{}", a.view<std::uint64_t>()[at]);
    if (a.dtype() == float64) return fmt::format("{}", a.at(i));
    return fmt::format("{}", static_cast<float>(a.at(i)));
}

struct Differences {
    std::int64_t count = 0, first = 0;
    void add(std::int64_t i) {
        if (count++ == 0) first = i;
    }
};

// Elements of other bits, but for NaN of any kind.
Differences differences(const Array& got, const Array& expected) {
    Differences d;
    if (std::memcmp(got.data(), expected.data(), static_cast<std::size_t>(got.bytes())) == 0) return d;
    const auto size = static_cast<std::size_t>(bytes_of(got.dtype()));
    const char *a = static_cast<const char*>(got.data()), *b = static_cast<const char*>(expected.data());
    for (std::int64_t i = 0; i < got.size(); ++i, a += size, b += size)
        if (std::memcmp(a, b, size) != 0 && !(std::isnan(got.at(i)) && std::isnan(expected.at(i)))) d.add(i);
    return d;
}

bool is_set(const Array& error_word) { return error_word.view<std::int64_t>()[0] != 0; }

}  // namespace

std::vector<std::string> Comparison::compiled(const Program& program, const std::vector<CudaUnit>& units) {
    if (options().emulator_checks)
        throw Error(
            fmt::format("{}: launches=compare copies whole buffers, also what nobody has written yet, which "
                        "emulator=checked takes for a mistake; they go one at a time",
                        program.name));
    std::vector<std::string> texts;
    for (const CudaUnit& unit : units) texts.push_back(unit.text);
    try {
        return compile_emulated(texts).images;
    } catch (const CompileError& e) {
        throw CompileError(fmt::format("launches=compare, of {}: {}", program.name, e.what()));
    }
}

Comparison::Comparison(Context& context, std::shared_ptr<const Program> program,
                       const std::vector<std::string>& images)
    : context_(context), program_(std::move(program)) {
    for (const std::string& image : images) {
        std::string problem;
        modules_.push_back(Module::load(image, problem));
        if (!modules_.back())
            throw CompileError(
                fmt::format("launches=compare, of {}: the emulator does not load its kernels: {}",
                            program_->name, problem));
    }
}

Array Comparison::download(const ComparedBuffer& buffer) {
    Array a = host_array(buffer.dtype, buffer.count);
    const Download whole{a.mutable_data(), buffer.there, a.bytes()};
    if (a.bytes() > 0) context_.transfers().download({&whole, 1});
    return a;
}

void Comparison::remember() {
    remembered_.clear();
    for (const int s : program_->updated) {
        const SharedPtr& variable = program_->shared[static_cast<std::size_t>(s)];
        const Array& value = variable->value;
        void* there = context_.resident(variable);
        remembered_.emplace_back(there, download({there, value.size(), value.dtype(), "", false}));
    }
}

void Comparison::before(std::vector<ComparedBuffer> buffers) {
    copies_.clear();
    places_.clear();
    for (ComparedBuffer& b : buffers) {
        const auto same = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& c) {
            return b.there && c.buffer.there == b.there && c.buffer.count == b.count;
        });
        places_.push_back(static_cast<std::size_t>(same - copies_.begin()));
        if (same != copies_.end()) continue;
        Array here = download(b);
        copies_.push_back({std::move(b), std::move(here)});
    }
}

void Comparison::kernel(const std::string& entry, const LaunchConfig& config, std::vector<char> arguments,
                        const LaunchWords& words) {
    const EmulatedKernel* kernel = nullptr;
    for (const std::unique_ptr<Module>& m : modules_)
        if (!kernel) kernel = m->find(entry);
    if (!kernel) throw DeviceError(words() + ": launches=compare does not find the kernel");
    for (std::size_t i = 0; i < places_.size(); ++i) {
        void* here = operand(i).mutable_data();
        std::memcpy(&arguments[i * sizeof here], &here, sizeof here);
    }
    void* list[] = {arguments.data()};
    const std::string problem = run_blocks(*kernel, config.grid, config.block, 0, list);
    if (!problem.empty()) fail(fmt::format("{}: the emulator refuses the same launch: {}", words(), problem));

    std::vector<Array> got;
    for (const Copy& c : copies_) got.push_back(download(c.buffer));
    for (std::size_t c = 0; c < copies_.size(); ++c) {
        // Which of several failed checks is told first is nobody's promise, nor what follows from it.
        if (!copies_[c].buffer.is_error_word || !is_set(got[c]) || !is_set(copies_[c].here)) continue;
        return;
    }
    for (std::size_t c = 0; c < copies_.size(); ++c) {
        const Copy& copy = copies_[c];
        const Differences d = differences(got[c], copy.here);
        if (d.count == 0) continue;
        fail(fmt::format(
            "{}: of {}, element {} is {} on device {}, and {} when the emulator repeats the launch; {} of {} "
            "elements differ",
            words(), copy.buffer.name, d.first, text_of_element(got[c], d.first), context_.name(),
            text_of_element(copy.here, d.first), d.count, got[c].size()));
    }
}

void Comparison::product(const GemmShape& shape, const LaunchWords& words) {
    std::vector<double> bounds;
    const float* bias = shape.bias ? floats(3) : nullptr;
    multiply_with_bounds(shape, floats(0), floats(1), bias, static_cast<float*>(operand(2).mutable_data()),
                         bounds);
    within(bounds, words);
}

void Comparison::convolution(const ConvShape& shape, const LaunchWords& words) {
    std::vector<Array*> buffers;
    for (std::size_t i = 0; i < places_.size(); ++i) buffers.push_back(&operand(i));
    std::vector<double> bounds;
    convolve_with_bounds(shape, buffers, bounds);
    within(bounds, words);
}

void Comparison::within(const std::vector<double>& bounds, const LaunchWords& words) {
    const Copy& result = copies_[places_[2]];
    const Array got = download(result.buffer);
    Differences d;
    for (std::size_t i = 0; i < bounds.size(); ++i)
        if (!is_within(floats(2)[i], got.view<float>()[i], bounds[i])) d.add(static_cast<std::int64_t>(i));
    if (d.count == 0) return;
    fail(
        fmt::format("{}: of {}, element {} is {} on device {}, and {} by plain loops, which rounding "
                    "explains up to {:.3g}; "
                    "{} of {} elements differ",
                    words(), result.buffer.name, d.first, text_of_element(got, d.first), context_.name(),
                    text_of_element(result.here, d.first), bounds[static_cast<std::size_t>(d.first)], d.count,
                    got.size()));
}

void Comparison::fail(const std::string& text) {
    for (const auto& [there, value] : remembered_) context_.upload(there, value.data(), value.bytes());
    context_.synchronize();
    throw DeviceError(text);
}

}  // namespace bitale::cuda
