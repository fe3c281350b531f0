#include "runtime/cuda/emulator/libraries/cudnn_graph.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "runtime/cuda/types.h"

namespace bitale::emulated {

using Json = nlohmann::json;

std::int64_t DnnTensor::extent() const {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == 0) return 0;
        last += (shape[d] - 1) * strides[d];
    }
    return last + 1;
}

std::int64_t DnnOperation::result() const {
    return kind == cuda::dnn_convolution_image_gradient    ? image
           : kind == cuda::dnn_convolution_filter_gradient ? filters
                                                           : output;
}

std::vector<std::int64_t> DnnOperation::operands() const {
    switch (kind) {
        case cuda::dnn_convolution_forward: return {image, filters};
        case cuda::dnn_convolution_image_gradient: return {filters, output};
        case cuda::dnn_convolution_filter_gradient: return {image, output};
        default: return has_b ? std::vector{x, b} : std::vector{x};
    }
}

void check_graph(DnnGraph& graph) {
    std::set<std::int64_t> results;
    for (const DnnOperation& o : graph.operations)
        if (!results.insert(o.result()).second)
            throw Refusal{dnn_bad_value, "two operations write tensor " + std::to_string(o.result())};
    for (const DnnOperation& o : graph.operations)
        for (const std::int64_t id : o.operands())
            if (graph.tensors.at(id).is_virtual && !results.count(id))
                throw Refusal{dnn_bad_value, "no operation writes virtual tensor " + std::to_string(id)};
    std::vector<DnnOperation> sorted, left = std::move(graph.operations);
    std::set<std::int64_t> written;
    while (!left.empty()) {
        const auto ready = std::find_if(left.begin(), left.end(), [&](const DnnOperation& o) {
            const std::vector<std::int64_t> reads = o.operands();
            return std::all_of(reads.begin(), reads.end(),
                               [&](std::int64_t id) { return !results.count(id) || written.count(id); });
        });
        if (ready == left.end()) throw Refusal{dnn_bad_value, "the operations form a circle"};
        written.insert(ready->result());
        sorted.push_back(*ready);
        left.erase(ready);
    }
    graph.operations = std::move(sorted);
}

std::string plan_text(const DnnGraph& graph, const DnnChoice& choice) {
    Json tensors = Json::array(), nodes = Json::array();
    for (const auto& [id, t] : graph.tensors)
        tensors.push_back({{"name", std::to_string(id)},
                           {"dataType", t.type},
                           {"dim", t.shape},
                           {"stride", t.strides},
                           {"isVirtual", t.is_virtual},
                           {"ptrAlignment", t.alignment}});
    for (const DnnOperation& o : graph.operations)
        if (o.kind == cuda::dnn_pointwise_operation)
            nodes.push_back({{"operation", o.kind},
                             {"pointwiseMode", o.mode},
                             {"mathPrec", o.compute},
                             {"alpha1", o.alpha},
                             {"alpha2", o.alpha2},
                             {"X", o.x},
                             {"B", o.has_b ? Json(o.b) : Json()},
                             {"Y", o.output}});
        else
            nodes.push_back({{"operation", o.kind},
                             {"flipped", o.flipped},
                             {"mathPrec", o.compute},
                             {"alpha", o.alpha},
                             {"beta", o.beta},
                             {"pad", o.pad},
                             {"padAfter", o.pad_after},
                             {"stride", o.stride},
                             {"dilation", o.dilation},
                             {"X", o.image},
                             {"W", o.filters},
                             {"Y", o.output}});
    const Json plan = {{"cudnnVersion", emulated_dnn_version},
                       {"operationGraph", {{"tensors", tensors}, {"nodes", nodes}}},
                       {"engine",
                        {{"engineId", choice.engine},
                         {"smVersion", choice.capability},
                         {"knobChoices", {{"CUDNN_KNOB_TYPE_TILE_SIZE", choice.tile}}}}}};
    return plan.dump();
}

void read_plan(const std::string& text, DnnGraph& graph, DnnChoice& choice) {
    try {
        const Json plan = Json::parse(text);
        if (plan.at("cudnnVersion") != emulated_dnn_version)
            throw Refusal{dnn_other_version, "the plan was made by another version of cuDNN"};
        for (const Json& t : plan.at("operationGraph").at("tensors")) {
            DnnTensor tensor{std::stoll(t.at("name").get<std::string>()),
                             t.at("ptrAlignment"),
                             t.at("dataType"),
                             t.at("isVirtual"),
                             t.at("dim"),
                             t.at("stride")};
            graph.tensors.emplace(tensor.id, std::move(tensor));
        }
        for (const Json& n : plan.at("operationGraph").at("nodes")) {
            DnnOperation o;
            o.kind = n.at("operation");
            o.compute = n.at("mathPrec");
            o.output = n.at("Y");
            if (o.kind == cuda::dnn_pointwise_operation) {
                o.mode = n.at("pointwiseMode");
                o.alpha = n.at("alpha1");
                o.alpha2 = n.at("alpha2");
                o.x = n.at("X");
                if ((o.has_b = !n.at("B").is_null())) o.b = n.at("B");
            } else {
                o.flipped = n.at("flipped");
                o.alpha = n.at("alpha");
                o.beta = n.at("beta");
                o.pad = n.at("pad").get<std::vector<std::int64_t>>();
                o.pad_after = n.at("padAfter").get<std::vector<std::int64_t>>();
                o.stride = n.at("stride").get<std::vector<std::int64_t>>();
                o.dilation = n.at("dilation").get<std::vector<std::int64_t>>();
                o.image = n.at("X");
                o.filters = n.at("W");
            }
            graph.operations.push_back(std::move(o));
        }
        choice.engine = plan.at("engine").at("engineId");
        choice.capability = plan.at("engine").at("smVersion");
        choice.tile = plan.at("engine").at("knobChoices").at("CUDNN_KNOB_TYPE_TILE_SIZE");
    } catch (const Json::exception& e) {
        throw Refusal{dnn_bad_value, std::string("the text of a plan: ") + e.what()};
    }
}

}  // namespace bitale::emulated
