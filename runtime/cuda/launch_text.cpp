#include "runtime/cuda/launch_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/base/numbers.h"
#include "graph/base/overloaded.h"
#include "graph/base/text.h"

namespace bitale::cuda {

namespace {

// A kernel of a large network computes dozens of lines; whoever looks for a fault wants to see them.
constexpr std::size_t most_lines = 16, most_lines_of_graph = 5, most_lines_of_note = 3;

struct Lines {
    std::vector<std::string> list;
    void add(std::string line) {
        if (std::find(list.begin(), list.end(), line) == list.end()) list.push_back(std::move(line));
    }
    void add(const Step& step) {
        for (const Origin& origin : step.fused) add(bitale::text_of(origin));
        if (step.fused.empty()) add(step.title);
    }
    std::string text(std::size_t most) const {
        const std::size_t shown = list.size() <= most ? list.size() : most;
        std::string s = fmt::format("{}", fmt::join(list.begin(), list.begin() + shown, ", "));
        return shown == list.size() ? s : s + fmt::format(" and {} more", list.size() - shown);
    }
};

std::string computes(const Step& step) {
    Lines lines;
    lines.add(step);
    return "which computes " + lines.text(most_lines);
}

std::string shape_text(const ConvSizes& tensor) { return fmt::format("[{}]", fmt::join(tensor.shape, ", ")); }

bool names(const std::string& text, const std::string& kernel) {
    const auto inside = [](char c) { return is_letter_or_digit(c) || c == '_'; };
    for (std::size_t at = text.find(kernel); at != std::string::npos; at = text.find(kernel, at + 1)) {
        const std::size_t end = at + kernel.size();
        if ((at == 0 || !inside(text[at - 1])) && (end == text.size() || !inside(text[end]))) return true;
    }
    return false;
}

const std::vector<std::string>& entries_of(const Program& program, const KernelStep& step) {
    return program.kernels.at(static_cast<std::size_t>(step.launch.kernel)).entries;
}

template <class F>
void for_each_step(const Program& program, F&& f) {
    for (const Region* region : {&program.once, &program.body})
        for (const Step& step : region->steps) f(step);
}

}  // namespace

std::string kernel_words(const Program& program, const Step& step, std::size_t phase,
                         const LaunchConfig& config) {
    const std::vector<std::string>& entries = entries_of(program, std::get<KernelStep>(step.operation));
    return fmt::format("kernel {} of {} (phase {} of {}, {} blocks of {} threads), {}", entries.at(phase),
                       program.name, phase + 1, entries.size(), config.grid.x, config.block.x,
                       computes(step));
}

std::string call_words(const Program& program, const Step& step, const StepSizes& sizes) {
    std::string what = "the copy";
    if (std::holds_alternative<GemmStep>(step.operation))
        what = fmt::format("the library's matrix product [{}, {}] . [{}, {}]", sizes.gemm.m, sizes.gemm.k,
                           sizes.gemm.k, sizes.gemm.n);
    if (std::holds_alternative<ConvStep>(step.operation)) {
        static const char* const kinds[] = {"convolution", "convolution's gradient of the image",
                                            "convolution's gradient of the filters"};
        what =
            fmt::format("the library's {}, image {}, filters {}{},", kinds[static_cast<int>(sizes.conv.kind)],
                        shape_text(sizes.conv.image), shape_text(sizes.conv.filters),
                        sizes.conv.groups == 1 ? "" : fmt::format(" in {} groups", sizes.conv.groups));
    }
    return fmt::format("{} of {}, {}", what, program.name, computes(step));
}

std::string graph_words(const Program& program, const char* what) {
    Lines lines;
    for (const Step& step : program.body.steps) lines.add(step);
    return fmt::format("the graph of {} of {}, which computes {}", what, program.name,
                       lines.text(most_lines_of_graph));
}

std::string text_of(const LaunchNote& note) {
    Lines lines;
    if (note.step)
        lines.add(*note.step);
    else if (note.program)
        for (const Step& step : note.program->body.steps) lines.add(step);
    std::string what = note.name ? note.name : "a copy";
    if (note.step && !note.name)
        std::visit(Overloaded{[&](const KernelStep& s) {
                                  what =
                                      fmt::format("{} phase {}", entries_of(*note.program, s).at(note.phase),
                                                  note.phase + 1);
                              },
                              [&](const GemmStep&) { what = "a matrix product of the library"; },
                              [&](const ConvStep&) { what = "a convolution of the library"; },
                              [](const CopyStep&) {}, [](const RoutineStep&) {}},
                   note.step->operation);
    if (note.program) what += " of " + note.program->name;
    return lines.list.empty() ? what : fmt::format("{} ({})", what, lines.text(most_lines_of_note));
}

std::string buffer_words(const BufferInfo& info) {
    using Kind = BufferInfo::Kind;
    const std::string name = info.name.empty() ? "" : " " + in_quotes(info.name);
    switch (info.kind) {
        case Kind::arena: return in_quotes(info.name);
        case Kind::input: return "input" + name;
        case Kind::shared: return "shared variable" + name;
        case Kind::output: return "result" + name;
        case Kind::constant: return "constant" + name;
        case Kind::errors: return "the error word";
        case Kind::slice: return "slice" + name;
        case Kind::counters: return "counters" + name;
    }
    return info.name;
}

std::string lines_of_named_kernels(const Program& program, const std::string& text) {
    Lines found;
    for_each_step(program, [&](const Step& step) {
        const auto* kernel = std::get_if<KernelStep>(&step.operation);
        if (!kernel) return;
        for (const std::string& entry : entries_of(program, *kernel))
            if (names(text, entry))
                found.add(fmt::format("{} of {} computes {}", entry, program.name,
                                      computes(step).substr(sizeof "which computes")));
    });
    return found.text(most_lines);
}

}  // namespace bitale::cuda
