#include "runtime/picture.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "graph/show/dot.h"
#include "runtime/cache/workshop.h"
#include "runtime/cpu/program.h"
#include "runtime/report.h"
#include "runtime/state.h"

namespace bitale {

namespace {

Clusters clusters_of(const Program& program) {
    Clusters clusters;
    for (const Region* region : {&program.once, &program.body})
        for (const Step& step : region->steps) {
            const auto number = static_cast<int>(clusters.titles.size());
            clusters.titles.push_back(fmt::format("{}. {}{}", number + 1, step_name(program, step),
                                                  region == &program.once ? ", once" : ""));
            for (const NodePtr& node : step.nodes)
                if (node->op->kind != OpKind::leaf) clusters.of.emplace(node.get(), number);
        }
    for (std::size_t o = 0; o < program.outputs.size(); ++o)
        clusters.roots.push_back(fmt::format("output {}", o));
    for (const int updated : program.updated)
        clusters.roots.push_back("new " + program.shared[static_cast<std::size_t>(updated)]->name);
    while (clusters.roots.size() < program.drawn.size()) clusters.roots.emplace_back("check");
    return clusters;
}

}  // namespace

std::string picture_of(const Function::State& state) {
    if (!state.program) return graphviz((state.optimised ? *state.optimised : *state.plain).roots());
    if (!state.program->drawn.empty()) return graphviz(state.program->drawn, clusters_of(*state.program));
    const Program program = readable_program(state);
    return graphviz(program.drawn, clusters_of(program));
}

std::string svg_of(const std::string& dot, int seconds) {
    constexpr const char* cure =
        "; Graphviz draws graphs as SVG: apt-get install graphviz, or give the text of graphviz() to another "
        "program that reads it";
    const Workshop workshop(temporary_folder());
    const std::string from = workshop.add("graph.dot", dot), to = workshop.path() + "/graph.svg";
    Ended ended;
    try {
        ended = run_program({"dot", "-Tsvg", "-o", to, from}, seconds);
    } catch (const CompileError&) {
        throw Error(std::string("the program dot cannot be started") + cure);
    }
    if (ended.how == Ended::How::too_long)
        throw Error(
            fmt::format("dot has not drawn the graph after {} s: it is too large for Graphviz; draw a part "
                        "of it, by graph_svg(x) of an expression inside",
                        seconds));
    std::string svg;
    if (ended.succeeded()) {
        std::ifstream file(to, std::ios::binary);
        svg.assign(std::istreambuf_iterator<char>(file), {});
    }
    if (svg.empty())
        throw Error("dot has not drawn the graph: " + printable(ended.said.substr(0, 1000)) + cure);
    return svg;
}

}  // namespace bitale
