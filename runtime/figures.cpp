#include "runtime/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "codegen/group/values.h"
#include "codegen/library/cost.h"
#include "graph/base/lines.h"
#include "graph/base/text.h"
#include "runtime/exec/shares.h"
#include "runtime/report.h"

namespace bitale {

namespace {

double bytes_of_buffer(const Program& program, int buffer, const Lengths& lengths) {
    const Type& type = program.buffers[static_cast<std::size_t>(buffer)].type;
    double bytes = bytes_of(type.dtype);
    for (const Int& n : type.shape) bytes *= lengths(n);
    return bytes;
}

void add_traffic(const Program& program, const Step& step, const Lengths& lengths, StepFigures& to) {
    const auto add = [&](const KernelLaunch& launch) {
        for (const Int& n : launch.reads) to.reads += std::max(0.0, lengths(n));
        for (const Int& n : launch.writes) to.writes += std::max(0.0, lengths(n));
    };
    if (const auto* kernel = std::get_if<KernelStep>(&step.operation)) return add(kernel->launch);
    if (const auto* gemm = std::get_if<GemmStep>(&step.operation)) {
        const auto& [a, b, old_c, bias, c] = gemm->moved;
        for (const Int* n : {&a, &b, &old_c, &bias}) to.reads += std::max(0.0, lengths(*n));
        to.writes += std::max(0.0, lengths(c));
        for (const auto* launch : {&gemm->epilogue, &gemm->pieces_a, &gemm->pieces_b})
            if (*launch) add(**launch);
        return;
    }
    const double bytes = std::max(0.0, lengths(step.bytes));
    const int result = *result_of(step);
    if (program.buffers[static_cast<std::size_t>(result)].kind != BufferInfo::Kind::slice)
        to.writes = std::min(bytes, bytes_of_buffer(program, result, lengths));
    to.reads = bytes - to.writes;
}

// Of one core of a CPU; of a GPU, by what present ones move and compute.
double estimated_seconds(const Step& step, const StepFigures& figures, const Lengths& lengths) {
    if (const auto* kernel = std::get_if<KernelStep>(&step.operation)) {
        double picoseconds = 0;
        for (const std::vector<TaskWork>& phase : kernel->work)
            for (const TaskWork& w : phase) picoseconds += lengths(w.tasks) * lengths(w.picoseconds);
        if (picoseconds > 0) return 1e-12 * picoseconds;
    }
    if (const auto* gemm = std::get_if<GemmStep>(&step.operation)) {
        GemmCall call = gemm->call;
        const auto set = [&](Int& x) { x = Int(std::llround(lengths(x))); };
        for (Int* x : {&call.m, &call.n, &call.k}) set(*x);
        if (call.strides)
            for (GemmStrides::Batch& batch : call.strides->batches) set(batch.count);
        return 1e-9 * (cost_of_product(call, 0, 0).library + cost_of_pieces(call));
    }
    constexpr double launch = 2e-6, bytes_a_second = 2e12, flops_a_second = 2e13;
    const double bytes = figures.reads + figures.writes;
    return launch + std::max(bytes / bytes_a_second, figures.flops / flops_a_second);
}

}  // namespace

Lengths::Lengths(const Program& program, const std::vector<std::int64_t>& values, bool of_last_call) {
    const bool known = !values.empty() && values.size() == program.size_sources.size();
    of_last_call_ = known && of_last_call;
    for (std::size_t s = 0; s < program.size_sources.size(); ++s) {
        const SizeSource& source = program.size_sources[s];
        const std::int64_t value = known             ? values[s]
                                   : source.axis < 0 ? 0
                                                     : static_cast<std::int64_t>(typical(source.value));
        const bool is_length = source.axis >= 0;  // calls in which only other arguments change are not told
        if (values_.emplace(source.symbol, value).second && (is_length || !of_last_call_))
            named_.push_back(fmt::format("{} = {}", printable(source.value.text()), value));
    }
}

std::string Lengths::words() const {
    constexpr std::size_t most = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(named_.size(), most); ++i) text += (i ? ", " : "") + named_[i];
    return text + (named_.size() > most ? ", ..." : "");
}

double Lengths::operator()(const Int& x) const {
    if (x.is_constant()) return static_cast<double>(x.constant());
    const std::vector<AtomPtr> symbols = symbols_of(x);
    const bool known = std::all_of(symbols.begin(), symbols.end(),
                                   [&](const AtomPtr& a) { return values_.contains(a->id); });
    return known ? static_cast<double>(evaluate(x, values_)) : typical(x);
}

std::string Lengths::text(const Shape& shape) const {
    std::string s;
    for (const Int& n : shape) s += fmt::format("{}{:.0f}", s.empty() ? "" : ", ", (*this)(n));
    return "[" + s + "]";
}

Figures figures_of(const Program& program, Lengths lengths, const std::vector<Profile::Row>& rows) {
    Figures f;
    f.lengths = std::move(lengths);
    f.measured = rows.size() == program.once.steps.size() + program.body.steps.size() &&
                 std::any_of(rows.begin(), rows.end(), [](const Profile::Row& r) { return r.calls > 0; });
    for (const Region* region : {&program.once, &program.body})
        for (const Step& step : region->steps) {
            StepFigures s;
            s.step = &step;
            s.number = static_cast<int>(f.steps.size()) + 1;
            s.once = region == &program.once;
            add_traffic(program, step, f.lengths, s);
            s.flops = std::max(0.0, f.lengths(step.flops));
            s.seconds = estimated_seconds(step, s, f.lengths);
            double all = s.once ? 0 : s.seconds;
            if (f.measured) {
                const Profile::Row& row = rows[f.steps.size()];
                s.calls = row.calls;
                s.seconds = row.calls > 0 ? row.seconds / static_cast<double>(row.calls) : 0;
                all = row.seconds;
            }
            s.share = all;
            f.seconds += all;
            f.steps.push_back(s);
        }
    for (StepFigures& s : f.steps) s.share = f.seconds > 0 ? s.share / f.seconds : 0;
    return f;
}

double seconds_on(const Figures& figures, int threads) {
    double seconds = 0;
    for (const StepFigures& s : figures.steps) {
        if (s.once) continue;
        const auto* kernel = std::get_if<KernelStep>(&s.step->operation);
        std::vector<std::vector<TaskCost>> phases;
        for (std::size_t p = 0; kernel && p < kernel->work.size(); ++p) {
            const std::vector<TaskWork>& phase = kernel->work[p];
            std::vector<TaskCost>& costs = phases.emplace_back();
            for (const TaskWork& w : phase)
                costs.push_back(
                    {std::llround(figures.lengths(w.tasks)), std::llround(figures.lengths(w.picoseconds))});
        }
        // Slices of a product are many and alike; what is not shared out stays on one thread.
        double time = phases.empty() ? s.seconds / threads : 0;
        for (const std::vector<TaskCost>& phase : phases) {
            const double work = 1e-12 * total_of(phase);
            const bool shared = !share_out(phase, threads).ranges.empty();
            time += shared ? work / (threads * predicted_efficiency({&phase, 1}, threads)) : work;
        }
        seconds += time;
    }
    return seconds;
}

Profile::Row row_of(const Program& program, const Step& step, int number, const Lengths& lengths,
                    std::int64_t calls, double seconds) {
    StepFigures figures;
    add_traffic(program, step, lengths, figures);
    Profile::Row row{step.title, calls, seconds, text_of(step.fused), number, step_name(program, step)};
    row.bytes = std::llround(figures.reads + figures.writes);
    row.flops = std::llround(std::max(0.0, lengths(step.flops)));
    return row;
}

std::string three_digits(double x) {
    return x == 0 ? "0" : fmt::format("{:.{}f}", x, x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2);
}

std::string bytes_in_words(double bytes) {
    static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
    std::size_t u = 0;
    while (bytes >= 999.5 && u + 1 < std::size(units)) bytes /= 1000, ++u;
    return (u == 0 ? fmt::format("{:.0f}", bytes) : three_digits(bytes)) + " " + units[u];
}

std::string time_in_words(double seconds) {
    static constexpr const char* units[] = {"s", "ms", "us", "ns"};
    std::size_t u = 0;
    while (seconds > 0 && seconds < 0.9995 && u + 1 < std::size(units)) seconds *= 1000, ++u;
    return three_digits(seconds) + " " + units[u];
}

std::string lines_of(const std::vector<Origin>& origins, std::size_t most) {
    std::vector<Where> lines;
    for (const Origin& o : origins)
        if (o.where.line && !is_of_library(o.where)) lines.push_back(o.where);
    const auto key = [](const Where& w) { return std::pair(std::string_view(w.file), w.line); };
    std::sort(lines.begin(), lines.end(), [&](const Where& a, const Where& b) { return key(a) < key(b); });
    lines.erase(std::unique(lines.begin(), lines.end(),
                            [&](const Where& a, const Where& b) { return key(a) == key(b); }),
                lines.end());
    return text_of_lines(lines, most);
}

std::string text_of_lines(const std::vector<Where>& lines, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < lines.size() && i < most; ++i) {
        const bool same_file = i > 0 && std::string_view(lines[i].file) == lines[i - 1].file;
        text += same_file ? fmt::format(", {}", lines[i].line) : (i > 0 ? ", " : "") + lines[i].text();
    }
    if (lines.size() > most) text += fmt::format(" and {} more", lines.size() - most);
    return text;
}

}  // namespace bitale
