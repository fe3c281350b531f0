#include "codegen/program.h"

#include "graph/base/overloaded.h"

namespace bitale {

std::vector<int> buffers_of(const Step& step) {
    std::vector<int> list;
    const auto add = [&](const std::vector<int>& buffers) {
        list.insert(list.end(), buffers.begin(), buffers.end());
    };
    std::visit(Overloaded{[&](const KernelStep& s) { add(s.launch.buffers); },
                          [&](const GemmStep& s) {
                              add({s.a, s.b, s.c});
                              if (s.bias) add({*s.bias});
                              for (const auto* launch : {&s.epilogue, &s.pieces_a, &s.pieces_b})
                                  if (*launch) add((*launch)->buffers);
                          },
                          [&](const ConvStep& s) {
                              for (const int* buffer : in_order(s.call.kind, s)) add({*buffer});
                              if (s.bias) add({*s.bias});
                          },
                          [&](const CopyStep& s) {
                              add({s.from, s.to});
                          },
                          [&](const RoutineStep& s) {
                              add(s.operands);
                              add({s.result, s.workspace});
                          }},
               step.operation);
    return list;
}

std::optional<int> result_of(const Step& step) {
    using Result = std::optional<int>;
    return std::visit(
        Overloaded{[](const KernelStep&) { return Result(); }, [](const GemmStep& s) { return Result(s.c); },
                   [](const ConvStep& s) { return Result(*in_order(s.call.kind, s).back()); },
                   [](const CopyStep& s) { return Result(s.to); },
                   [](const RoutineStep& s) { return Result(s.result); }},
        step.operation);
}

const KernelLaunch* kernel_of(const Step& step) {
    if (const auto* kernel = std::get_if<KernelStep>(&step.operation)) return &kernel->launch;
    const auto* gemm = std::get_if<GemmStep>(&step.operation);
    return gemm && gemm->epilogue ? &*gemm->epilogue : nullptr;
}

}  // namespace bitale
