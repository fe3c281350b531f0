#include "gpu/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "runtime/exec/frame.h"
#include "runtime/state.h"

using namespace bitale;

namespace bench {

namespace {

// Everything about a plan that depends on the sizes of one call.
struct Sized {
    Sized(const Function& f, const Array& input) : program(f.state().program) {
        Arguments arguments(f.state().signature);
        std::vector<std::int64_t> symbols(arguments.symbols());
        std::vector<const void*> data(f.state().inputs.size());
        arguments.bind({&input, 1}, symbols.data(), data.data());
        const std::vector<std::uint64_t> ids = arguments.symbol_ids();
        for (std::size_t k = 0; k < ids.size(); ++k) values.emplace(ids[k], symbols[k]);
        Frames frames(program, f.state().signature);
        const Frame& frame = frames.find(symbols.data());
        for (const auto& [region, list] :
             {std::pair{&program->once, &frame.once}, {&program->body, &frame.body}})
            for (std::size_t k = 0; k < list->size(); ++k) steps.emplace_back(&region->steps[k], (*list)[k]);
    }
    std::int64_t number(const Int& x) const { return evaluate(x, values); }

    std::shared_ptr<const Program> program;
    std::map<std::uint64_t, std::int64_t> values;
    std::vector<std::pair<const Step*, StepSizes>> steps;
};

LibraryCall call_of(const Step& step, const StepSizes& sizes) {
    return {step.title, std::holds_alternative<ConvStep>(step.operation), sizes.gemm, sizes.conv};
}

}  // namespace

std::string text_of(const LibraryCall& call) {
    if (!call.convolution) {
        const GemmShape& p = call.product;
        return fmt::format("c[{}, {}] = a{} . b{} over {}{}{}, {}", p.m, p.n,
                           p.transpose_a ? " transposed" : "", p.transpose_b ? " transposed" : "", p.k,
                           p.bias ? " + bias" : "", p.relu ? ", relu" : "", name_of(p.precision));
    }
    static const char* const kinds[] = {"convolution", "gradient of the image", "gradient of the filters"};
    const ConvShape& c = call.conv;
    return fmt::format("{}, image [{}], filters [{}]{}, padding {}{}{}, {}", kinds[static_cast<int>(c.kind)],
                       fmt::join(c.image.shape, ", "), fmt::join(c.filters.shape, ", "),
                       c.groups == 1 ? "" : fmt::format(" in {} groups", c.groups), fmt::join(c.pad, " "),
                       c.bias ? " + bias" : "", c.relu ? ", relu" : "", name_of(c.precision));
}

std::int64_t reduced_batch(const std::string& workload) {
    return workload[0] == 'd' || workload[0] == 'e' ? 4 : 24;
}

Json describe(const Function& f, const Array& input) {
    Json list = Json::array();
    if (!f.state().program) return list;
    const Sized sized(f, input);
    const std::vector<Kernel>& kernels = f.kernels();
    for (std::size_t k = 0; k < sized.steps.size(); ++k) {
        const auto& [step, sizes] = sized.steps[k];
        Json entry = {{"name", kernels.at(k).name},         {"title", step->title},
                      {"where", kernels[k].fused},          {"by_library", kernels[k].by_library},
                      {"bytes", sized.number(step->bytes)}, {"flops", sized.number(step->flops)}};
        if (!step->why.empty()) entry["why"] = step->why;
        if (kernels[k].by_library) entry["call"] = text_of(call_of(*step, sizes));
        if (const KernelLaunch* launch = kernel_of(*step)) {
            const KernelText& text = sized.program->kernels[static_cast<std::size_t>(launch->kernel)];
            Json phases = Json::array();
            for (std::size_t p = 0; p < text.entries.size(); ++p) {
                Json phase = {{"entry", text.entries[p]}};
                if (p < sizes.tasks.size()) phase["blocks"] = sizes.tasks[p];
                if (p < text.cuda_threads.size()) phase["threads"] = text.cuda_threads[p];
                if (const std::string r = f.state().executable->resources(text.entries[p]); !r.empty())
                    phase["resources"] = r;
                phases.push_back(std::move(phase));
            }
            entry["phases"] = std::move(phases);
        }
        list.push_back(std::move(entry));
    }
    return list;
}

std::vector<LibraryCall> library_calls(const Function& f, const Array& input) {
    std::vector<LibraryCall> calls;
    if (!f.state().program) return calls;
    for (const auto& [step, sizes] : Sized(f, input).steps)
        if (std::holds_alternative<GemmStep>(step->operation) ||
            std::holds_alternative<ConvStep>(step->operation))
            calls.push_back(call_of(*step, sizes));
    return calls;
}

}  // namespace bench
