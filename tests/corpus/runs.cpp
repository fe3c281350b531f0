#include "tests/corpus/runs.h"

#include <fmt/format.h>

namespace bitale::corpus {

std::vector<Computed> run(const Graph& graph, Options options) {
    options.disabled.insert("onednn");
    const ScopedOptions scope(std::move(options));
    Function f = function(graph.inputs, graph.outputs,
                          {.updates = graph.updates,
                           .name = graph.name,
                           .device = "cpu",
                           .on_unused_input = OnUnused::ignore,
                           .specialise = false});
    std::vector<Array> arguments;
    for (const Argument& argument : graph.arguments) arguments.push_back(argument.value());
    std::vector<Computed> all;
    for (const std::string& name : graph.output_names) all.push_back({"result " + name, {}});
    for (const Update& update : graph.updates) all.push_back({"new " + update.target.name(), {}});
    for (int call = 0; call < (graph.updates.empty() ? 1 : 2); ++call) {
        const Results results = f.call(arguments);
        std::size_t at = 0;
        for (; at < results.size(); ++at) all[at].values.push_back(results[at]);
        for (const Update& update : graph.updates) all[at++].values.push_back(update.target.get_value());
    }
    return all;
}

std::string checksum(const std::vector<Array>& values) {
    std::uint64_t hash = 0xCBF29CE484222325U;
    const auto add = [&](const void* data, std::size_t bytes) {
        const auto* p = static_cast<const unsigned char*>(data);
        for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ p[i]) * 0x100000001B3U;
    };
    for (const Array& value : values) {
        const std::string type = fmt::format("{} {}", name_of(value.dtype()), text_of(value.shape()));
        add(type.data(), type.size());
        add(value.data(), static_cast<std::size_t>(value.bytes()));
    }
    return fmt::format("{:016x}", hash);
}

std::string checksum_lines(const std::string& graph, const std::vector<Computed>& computed) {
    std::string lines;
    for (const Computed& c : computed)
        lines += fmt::format("{}: {}: {} {}: {}\n", graph, c.name, name_of(c.values[0].dtype()),
                             text_of(c.values[0].shape()), checksum(c.values));
    return lines;
}

}  // namespace bitale::corpus
