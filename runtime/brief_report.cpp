// The report of one screen: kernels by share, lines by share, stored buffers by size.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>

#include "graph/base/lines.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/pool.h"
#include "runtime/figures.h"
#include "runtime/report.h"
#include "runtime/state.h"

namespace bitale {

namespace {

constexpr std::size_t width = 80, most_kernels = 8, most_lines = 6, most_buffers = 6;

// Cut between characters of UTF-8.
std::string cut(const std::string& text, std::size_t columns) {
    if (text.size() <= columns) return text;
    std::size_t end = columns - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
    return text.substr(0, end) + "...";
}

// Cut between words, for half of a file's name names no file; a single word stays whole.
std::string fitted(const std::string& text, std::size_t columns) {
    if (text.size() <= columns) return text;
    std::size_t end = text.rfind(' ', columns - 4);
    if (end == std::string::npos || end == 0) end = text.find(' ', 1);
    return end == std::string::npos ? text : text.substr(0, end) + " ...";
}

// The text in lines below each other, cut between words, `indent` in front of each.
std::string wrapped(std::string text, const std::string& indent) {
    std::string lines;
    while (indent.size() + text.size() > width) {
        std::size_t end = text.rfind(' ', width - indent.size());
        if (end == std::string::npos || end == 0) end = text.find(' ', 1);
        if (end == std::string::npos) break;
        lines += indent + text.substr(0, end) + "\n";
        text.erase(0, end + 1);
    }
    return lines + indent + text + "\n";
}

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

// How long the machine needs for the bytes and the operations of a step.
double seconds_at_roof(const StepFigures& s, const Roof& roof) {
    return std::max((s.reads + s.writes) / roof.bytes_per_second, s.flops / roof.flops_per_second);
}

// Of the time that a step takes, the part in which the machine could do the same.
std::string part_of_roof(const StepFigures& s, const Roof& roof) {
    const double bound = seconds_at_roof(s, roof);
    if (s.seconds <= 0 || bound <= 0) return "-";
    const double part = bound / s.seconds;
    return part > 1 ? "cached" : fmt::format("{:.0f} %", 100 * part);
}

std::string flops_in_words(double flops) {
    const char* units[] = {"", " k", " M", " G", " T"};
    std::size_t u = 0;
    while (flops >= 999.5 && u + 1 < std::size(units)) flops /= 1000, ++u;
    return three_digits(flops) + units[u];
}

// The lines of the statements that the step computes, as opposed to those that it computes on the way: those
// of most operations first.
std::string lines_of_parts(const Step& step, const Lengths& lengths) {
    struct Line {
        Where where;
        double flops = 0;
    };
    std::array<std::vector<Line>, 2> lines;  // of values, of gradients
    for (const StepPart& part : step.parts) {
        const Where& where = part.origin.where;
        if (where.line == 0 || is_of_library(where)) continue;
        std::vector<Line>& list = lines[part.origin.of_gradient ? 1 : 0];
        auto at = std::find_if(list.begin(), list.end(), [&](const Line& l) {
            return l.where.line == where.line && std::string_view(l.where.file) == where.file;
        });
        if (at == list.end()) at = list.insert(list.end(), Line{where});
        at->flops += std::max(0.0, lengths(part.flops));
    }
    constexpr std::size_t most = 8;
    std::array<std::string, 2> texts;
    std::array<double, 2> heaviest{};
    for (const std::size_t side : {0U, 1U}) {
        std::vector<Line>& list = lines[side];
        std::stable_sort(list.begin(), list.end(),
                         [](const Line& a, const Line& b) { return a.flops > b.flops; });
        std::vector<Where> sorted;
        for (const Line& l : list) sorted.push_back(l.where);
        if (list.empty()) continue;
        heaviest[side] = list[0].flops;
        texts[side] = (side == 1 ? "gradient of " : "") + text_of_lines(sorted, most);
    }
    if (heaviest[1] > heaviest[0]) std::swap(texts[0], texts[1]);
    return texts[0] + (texts[0].empty() || texts[1].empty() ? "" : "; ") + texts[1];
}

std::string rate(double amount, double seconds) {
    return amount > 0 && seconds > 0 ? three_digits(1e-9 * amount / seconds) : "-";
}

std::vector<const StepFigures*> by_share(const Figures& f) {
    std::vector<const StepFigures*> sorted;
    for (const StepFigures& s : f.steps) sorted.push_back(&s);
    std::stable_sort(sorted.begin(), sorted.end(), [](const StepFigures* a, const StepFigures* b) {
        return std::tie(a->share, a->seconds) > std::tie(b->share, b->seconds);
    });
    return sorted;
}

void add_kernels(std::string& to, const Program& program, const Figures& f, const std::optional<Roof>& roof) {
    to += fmt::format("\n  {:>3} {:>7} {:>9} {:>9} {:>9}", "#", "share", "per call", "reads", "writes");
    to += f.measured ? fmt::format(" {:>7} {:>8}", "GB/s", "GFLOP/s") : fmt::format(" {:>9}", "flop");
    to += roof && f.measured ? fmt::format(" {:>7}\n", "roof") : "\n";
    const std::vector<const StepFigures*> sorted = by_share(f);
    for (std::size_t i = 0; i < std::min(sorted.size(), most_kernels); ++i) {
        const StepFigures& s = *sorted[i];
        to += fmt::format("  {:>3} {:>7} {:>9} {:>9} {:>9}", s.number, percent(s.share),
                          time_in_words(s.seconds), bytes_in_words(s.reads), bytes_in_words(s.writes));
        to += f.measured
                  ? fmt::format(" {:>7} {:>8}", rate(s.reads + s.writes, s.seconds), rate(s.flops, s.seconds))
                  : fmt::format(" {:>9}", flops_in_words(s.flops));
        to += roof && f.measured ? fmt::format(" {:>7}\n", part_of_roof(s, *roof)) : "\n";
        const std::string name = step_name(program, *s.step), lines = lines_of_parts(*s.step, f.lengths);
        std::string what = fitted(printable(s.step->title), 2 * width);
        if (!lines.empty()) what += "; " + lines;
        to += wrapped(name + (s.once ? " (once): " : ": ") + what, "      ");
    }
    if (sorted.size() <= most_kernels) return;
    double rest = 0;
    for (std::size_t i = most_kernels; i < sorted.size(); ++i) rest += sorted[i]->share;
    to += fmt::format("      and {} more, {} together\n", sorted.size() - most_kernels, percent(rest));
}

// The text of a line, where the source is at hand.
class Sources {
  public:
    std::string line(const Where& where) {
        const auto [at, fresh] = files_.try_emplace(where.file);
        if (fresh) {
            std::ifstream file = opened(where.file);
            for (std::string text; at->second.size() < 100'000 && std::getline(file, text);)
                at->second.push_back(text);
        }
        if (where.line > at->second.size()) return "";
        const std::string& text = at->second[where.line - 1];
        return printable(text.substr(std::min(text.find_first_not_of(" \t"), text.size())));
    }

  private:
    // A relative path begins where the compiler ran, often in a folder above that of the program.
    static std::ifstream opened(const std::filesystem::path& path) {
        std::ifstream file(path);
        if (file || path.is_absolute()) return file;
        std::error_code none;
        std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", none);
        constexpr int most_above = 4;
        for (int i = 0; i < most_above && folder.has_relative_path() && !file.is_open(); ++i) {
            folder = folder.parent_path();
            file.clear();
            file.open(folder / path);
        }
        return file;
    }

    std::map<std::string, std::vector<std::string>> files_;
};

struct LineShare {
    Where where;
    double share = 0, of_gradient = 0;
};

// The time of a step is shared out among the statements that it computes by their operations.
std::vector<LineShare> lines_by_share(const Figures& f) {
    std::map<std::pair<std::string, unsigned>, LineShare> lines;
    for (const StepFigures& s : f.steps) {
        double flops = 0;
        for (const StepPart& part : s.step->parts) flops += std::max(0.0, f.lengths(part.flops));
        for (const StepPart& part : s.step->parts) {
            const Where& where = part.origin.where;
            if (where.line == 0 || is_of_library(where)) continue;
            const double own = flops > 0 ? std::max(0.0, f.lengths(part.flops)) / flops
                                         : 1.0 / static_cast<double>(s.step->parts.size());
            LineShare& line = lines[{where.file, where.line}];
            line.where = where;
            line.share += own * s.share;
            if (part.origin.of_gradient) line.of_gradient += own * s.share;
        }
    }
    std::vector<LineShare> sorted;
    for (const auto& [key, line] : lines) sorted.push_back(line);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const LineShare& a, const LineShare& b) { return a.share > b.share; });
    return sorted;
}

void add_lines(std::string& to, const Figures& f) {
    std::vector<LineShare> lines = lines_by_share(f);
    std::erase_if(lines, [](const LineShare& l) { return l.share < 0.0005; });
    if (lines.empty()) return;
    double calls = 1;
    for (const StepFigures& s : f.steps)
        if (f.measured && !s.once) calls = std::max(calls, static_cast<double>(s.calls));
    to +=
        fmt::format("\n  {:>7} {:>9} {:>8}  your line, with its gradient\n", "share", "per call", "gradient");
    Sources sources;
    for (std::size_t i = 0; i < std::min(lines.size(), most_lines); ++i) {
        const LineShare& l = lines[i];
        const std::string gradient = l.of_gradient > 0.0005 ? percent(l.of_gradient) : "";
        std::string text = fmt::format("  {:>7} {:>9} {:>8}  {}", percent(l.share),
                                       time_in_words(l.share * f.seconds / calls), gradient, l.where.text());
        constexpr std::size_t least = 10;
        if (const std::string source = sources.line(l.where); !source.empty() && text.size() + least < width)
            text += "  " + cut(source, width - text.size() - 2);
        to += text + "\n";
    }
    if (lines.size() > most_lines) {
        double rest = 0;
        for (std::size_t i = most_lines; i < lines.size(); ++i) rest += lines[i].share;
        to += fmt::format("  {:>7}{:21}in {} more\n", percent(rest), "", lines.size() - most_lines);
    }
}

struct Uses {
    bool read = false, written = false;
};

Uses uses_of(const Step& step, int buffer) {
    Uses uses;
    const auto add = [&](const KernelLaunch& launch) {
        const auto& [number, buffers, sizes, reads, writes] = launch;
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            if (buffers[i] != buffer) continue;
            uses.read = uses.read || (i < reads.size() && !reads[i].is(0));
            uses.written = uses.written || (i < writes.size() && !writes[i].is(0));
        }
    };
    if (const auto* kernel = std::get_if<KernelStep>(&step.operation)) {
        add(kernel->launch);
        return uses;
    }
    if (const auto* gemm = std::get_if<GemmStep>(&step.operation)) {
        uses.read = buffer == gemm->a || buffer == gemm->b || buffer == gemm->bias ||
                    (buffer == gemm->c && !gemm->moved.old_c.is(0));
        uses.written = buffer == gemm->c;
        for (const auto* launch : {&gemm->epilogue, &gemm->pieces_a, &gemm->pieces_b})
            if (*launch) add(**launch);
        return uses;
    }
    const auto* routine = std::get_if<RoutineStep>(&step.operation);
    const std::vector<int> buffers = buffers_of(step);
    uses.read = std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
    uses.written = buffer == result_of(step) || (routine && buffer == routine->workspace);
    return uses;
}

// "by 2, for 4, 6": the steps that write it, and those that read it.
std::string users_of(const Figures& f, int buffer) {
    std::string by, for_whom;
    for (const StepFigures& s : f.steps) {
        const auto [read, written] = uses_of(*s.step, buffer);
        if (written) by += (by.empty() ? "by " : ", ") + std::to_string(s.number);
        if (read && !written) for_whom += (for_whom.empty() ? "for " : ", ") + std::to_string(s.number);
    }
    return by + (by.empty() || for_whom.empty() ? "" : ", ") + for_whom;
}

void add_buffers(std::string& to, const Program& program, const Figures& f) {
    std::vector<std::pair<double, int>> sorted;
    double all = 0;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const BufferInfo& info = program.buffers[b];
        if (info.kind != BufferInfo::Kind::arena) continue;
        double bytes = bytes_of(info.type.dtype);
        for (const Int& n : info.type.shape) bytes *= f.lengths(n);
        all += bytes;
        sorted.emplace_back(bytes, static_cast<int>(b));
    }
    if (sorted.empty()) {
        to += "\nNothing is stored between kernels.\n";
        return;
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    to += fmt::format("\nStored between kernels, {} in all:\n", bytes_in_words(all));
    for (std::size_t i = 0; i < std::min(sorted.size(), most_buffers); ++i) {
        const auto [bytes, b] = sorted[i];
        const BufferInfo& info = program.buffers[static_cast<std::size_t>(b)];
        to += fitted(fmt::format("  {:>9}  {} {} {}, {}", bytes_in_words(bytes), printable(info.name),
                                 name_of(info.type.dtype), f.lengths.text(info.type.shape), users_of(f, b)),
                     width) +
              "\n";
        const std::string lines = lines_of(info.origins, 4);
        to += wrapped((info.reason.empty() ? std::string("read by another kernel") : info.reason) +
                          (lines.empty() ? "" : "; " + lines),
                      "             ");
    }
    if (sorted.size() > most_buffers)
        to += fmt::format("             and {} smaller one{}\n", sorted.size() - most_buffers,
                          sorted.size() - most_buffers == 1 ? "" : "s");
}

// "It reads max_pool (922 kB) of 2, which is stored: a maximum, read once it is complete.", of the largest
// value that keeps the step from being one with another.
std::string what_is_between(const Program& program, const Figures& f, const StepFigures& step) {
    double most = 0;
    std::string text;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const BufferInfo& info = program.buffers[b];
        const int buffer = static_cast<int>(b);
        if (info.kind != BufferInfo::Kind::arena || info.reason.empty()) continue;
        const Uses own = uses_of(*step.step, buffer);
        if (!own.read && !own.written) continue;
        std::string others;
        for (const StepFigures& s : f.steps) {
            const Uses uses = uses_of(*s.step, buffer);
            if (&s != &step && (own.written ? uses.read : uses.written))
                others += (others.empty() ? "" : ", ") + std::to_string(s.number);
        }
        double bytes = bytes_of(info.type.dtype);
        for (const Int& n : info.type.shape) bytes *= f.lengths(n);
        if (others.empty() || bytes <= most) continue;
        most = bytes;
        text = fmt::format(" It {} {} ({}) {} {}, which is stored: {}.", own.written ? "writes" : "reads",
                           printable(info.name), bytes_in_words(bytes), own.written ? "for" : "of", others,
                           info.reason);
    }
    return text;
}

// The step in which most time would be won if it came up to the roof; where there is no roof, or none is
// below it, the one that takes most. How far it is from there, what bounds it, and what it waits for.
std::string advice(const Program& program, const Figures& f, const std::optional<Roof>& roof) {
    const StepFigures* best = nullptr;
    double most = 0;
    const auto choose = [&](bool by_roof) {
        for (const StepFigures& s : f.steps) {
            const double bound = by_roof && s.seconds > 0 ? seconds_at_roof(s, *roof) / s.seconds : 0;
            const double gain = s.share * (1 - std::min(bound, 1.0));
            if (gain > most) most = gain, best = &s;
        }
        return best != nullptr;
    };
    const bool below = roof && f.measured && choose(true);
    if (!below && !choose(false)) return "";
    std::string text = fmt::format("Look first at {}: {} of the {}.", best->number, percent(best->share),
                                   f.measured ? "time" : "estimated time");
    if (below) {
        const double least = seconds_at_roof(*best, *roof);
        const bool by_bytes = least > best->flops / roof->flops_per_second;
        text += fmt::format(
            " It takes {}, and at the roof {}, for its {}: the function would take {} less.",
            time_in_words(best->seconds), time_in_words(least),
            by_bytes ? bytes_in_words(best->reads + best->writes) : flops_in_words(best->flops) + " flop",
            percent(most));
    }
    return "\n" + wrapped(text + what_is_between(program, f, *best), "");
}

std::string time_text(const Figures& f, const Device& device) {
    if (f.measured) {
        std::int64_t calls = 0;
        for (const StepFigures& s : f.steps) calls = std::max(calls, s.once ? 0 : s.calls);
        return wrapped(
            fmt::format("{} per call by the profile of {} calls; bytes and flop of the last one",
                        time_in_words(f.seconds / static_cast<double>(std::max<std::int64_t>(calls, 1))),
                        calls),
            "  ");
    }
    const bool on_cores = std::any_of(f.steps.begin(), f.steps.end(), [](const StepFigures& s) {
        const auto* kernel = std::get_if<KernelStep>(&s.step->operation);
        return kernel && !kernel->work.empty();
    });
    const std::string lengths = f.lengths.words();
    std::string text =
        fmt::format("{}{} per call, estimated", time_in_words(f.seconds), on_cores ? " of one core" : "");
    if (f.lengths.of_last_call())
        text += " for the last call's lengths" + (lengths.empty() ? "" : " (" + lengths + ")");
    else if (!lengths.empty())
        text += " for " + lengths;
    if (device.name() == "cpu") {
        const int threads = process_pool(options().threads).threads();
        text += fmt::format("; about {} on {} thread{}", time_in_words(seconds_on(f, threads)), threads,
                            threads == 1 ? "" : "s");
    }
    return wrapped(text, "  ");
}

// "8 launches per call, 3 of them calls of oneDNN".
std::string launches_text(const Function::State& state) {
    const Program& program = *state.program;
    std::string text = fmt::format("{} launch{} per call", program.body.steps.size(),
                                   program.body.steps.size() == 1 ? "" : "es");
    if (!program.once.steps.empty())
        text += fmt::format(", {} more after shared variables have changed", program.once.steps.size());
    const auto by_library = std::count_if(state.kernels->begin(), state.kernels->end(),
                                          [](const Kernel& k) { return k.by_library; });
    const auto by_onednn = [](const Step& step) {
        const auto* gemm = std::get_if<GemmStep>(&step.operation);
        return gemm && gemm->call.dtype != DType::float64 && gemm_library().present;
    };
    const auto& steps = program.body.steps;
    if (by_library > 0)
        text += fmt::format("; {} by {}", by_library,
                            state.device->name() != "cpu"                        ? "libraries"
                            : std::any_of(steps.begin(), steps.end(), by_onednn) ? gemm_library().name
                                                                                 : "a routine of Bitale");
    return wrapped(text + fmt::format("; built in {:.2f} s", state.compile_seconds), "  ");
}

}  // namespace

std::string brief_report(const Function::State& state, const std::vector<std::int64_t>& planned) {
    const Program& program = *state.program;
    std::vector<std::int64_t> symbols;
    std::vector<Profile::Row> rows;
    if (state.executable) {
        const std::lock_guard lock(state.device->turns());
        symbols = state.executable->last_symbols();
        if (state.profile) rows = state.executable->profile();
    }
    const bool has_run = !symbols.empty();
    const Figures f = figures_of(program, Lengths(program, has_run ? symbols : planned, has_run), rows);
    std::string s = launches_text(state);
    if (f.steps.empty()) return s;
    s += time_text(f, *state.device);
    const std::optional<Roof> roof = f.measured ? state.device->roof() : std::nullopt;
    if (roof)
        s += fmt::format("  roof of this machine: {:.1f} GB/s, {:.0f} GFLOP/s of float32, measured now\n",
                         1e-9 * roof->bytes_per_second, 1e-9 * roof->flops_per_second);
    add_kernels(s, program, f, roof);
    s += advice(program, f, roof);
    add_lines(s, f);
    add_buffers(s, program, f);
    const char* measure = f.measured ? "" : "With .profile = true, times are measured. ";
    return s + "\n" +
           wrapped(std::string(measure) +
                       "report(Detail::complete) has all that is fused, scheduled, checked and stored.",
                   "");
}

}  // namespace bitale
