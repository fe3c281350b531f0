// Networks by their description, with data, in the way the examples write them.
#include "common/networks.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <vector>

using namespace bitale;
using Json = nlohmann::json;

namespace bench {

namespace {

Json read_description() {
    std::ifstream file(NETWORKS);
    if (!file) throw std::runtime_error(std::string("no file ") + NETWORKS);
    return Json::parse(file);
}

struct Images {
    Array images, labels;
};

// Bytes and labels by chance: the time of a step does not depend on what the images show.
Images made_up(const Dims& shape) {
    std::mt19937_64 engine(1);
    Array images(uint8, shape), labels(uint8, {shape[0]});
    auto* bytes = static_cast<std::uint8_t*>(images.mutable_data());
    for (std::int64_t k = 0; k < images.size(); ++k) bytes[k] = static_cast<std::uint8_t>(engine());
    bytes = static_cast<std::uint8_t*>(labels.mutable_data());
    for (std::int64_t k = 0; k < labels.size(); ++k) bytes[k] = static_cast<std::uint8_t>(engine() % 10);
    return {images, labels};
}

Images load(const std::string& name, const Json& data, bool test) {
    const std::int64_t count = data.at(test ? "test" : "train").get<std::int64_t>();
    Dims shape{count};
    for (const Json& length : data.at("shape")) shape.push_back(length.get<std::int64_t>());
    if (name != "mnist") return made_up(shape);
    const std::string prefix = std::string(MNIST_DIRECTORY) + (test ? "/t10k" : "/train");
    return {load_idx(prefix + "-images-idx3-ubyte.gz").reshaped(shape),
            load_idx(prefix + "-labels-idx1-ubyte.gz")};
}

// The layers on normalised pixels [batch, channels, height, width]; returns the probabilities.
class Network {
  public:
    Network(const Json& layers, Dims shape) : layers_(layers), shape_(std::move(shape)) {}

    Expr probabilities(Expr h) {
        for (const Json& layer : layers_) {
            const auto kind = layer[0].get<std::string>();
            if (kind == "conv") {
                const auto filters = layer[1].get<std::int64_t>(), kernel = layer[2].get<std::int64_t>();
                const bool padded = layer[3] == "half";
                h = conv2d(h, param(glorot_uniform({filters, shape_[0], kernel, kernel}, seed())),
                           {.border_mode = padded ? half : valid});
                const std::int64_t lost = padded ? 0 : kernel - 1;
                shape_ = {filters, shape_[1] - lost, shape_[2] - lost};
            } else if (kind == "bias") {
                h = h + channel(param(zeros({shape_[0]})));
            } else if (kind == "pool") {
                const auto window = layer[1].get<std::int64_t>(), stride = layer[2].get<std::int64_t>();
                h = max_pool(h, window, {.stride = Size2(stride)});
                shape_ = {shape_[0], (shape_[1] - window) / stride + 1, (shape_[2] - window) / stride + 1};
            } else if (kind == "dense") {
                const auto units = layer[1].get<std::int64_t>(), from = count_of(shape_);
                if (shape_.size() != 1) h = flatten(h, 2);
                const Expr w = param(glorot_uniform({from, units}, seed()));
                h = dot(h, w) + param(zeros({units}));
                shape_ = {units};
            } else if (kind == "dropout") {
                h = dropout(h, layer[1].get<double>(), random);
            } else if (kind == "relu") {
                h = relu(h);
            } else if (kind == "tanh") {
                h = tanh(h);
            } else {
                throw std::runtime_error("unknown layer " + kind);
            }
        }
        return softmax(h);
    }

    std::vector<Shared> params;
    RandomStream random{1};

  private:
    Shared param(const Array& value) {
        params.push_back(shared(value, "p" + std::to_string(params.size())));
        return params.back();
    }
    std::uint64_t seed() const { return params.size() + 1; }

    Json layers_;
    Dims shape_;
};

Updates updates_of(const Json& optimizer, const Expr& loss, const std::vector<Shared>& params) {
    const auto name = optimizer.at("name").get<std::string>();
    const auto rate = optimizer.at("rate").get<double>();
    if (name == "sgd") return sgd(loss, params, rate);
    if (name == "momentum")
        return momentum(loss, params, rate, {.momentum = optimizer.at("momentum").get<double>()});
    if (name == "adam") return adam(loss, params, rate);
    if (name == "adadelta") return adadelta(loss, params, rate);
    throw std::runtime_error("unknown optimizer " + name);
}

}  // namespace

Workload compile_tiny(bool output) {
    const Expr i = lscalar("i");
    const Shared total = shared(std::int64_t{0}, "total");
    const Expr next = total + i;
    FunctionOptions options{.updates = {{total, next}}};
    Workload r{.step = {}, .steps = 1'000'000};
    r.step = output ? function({i}, {next}, std::move(options)) : function({i}, {}, std::move(options));
    return r;
}

Workload compile(const std::string& name, const std::string& storage) {
    const Json description = read_description();
    const Json& workloads = description.at("workloads");
    if (!workloads.contains(name)) throw std::runtime_error("unknown workload " + name);
    const Json& workload = workloads.at(name);
    const bool evaluation = workload.contains("evaluates");
    const Json& network = evaluation ? workloads.at(workload["evaluates"].get<std::string>()) : workload;
    const auto data_name = workload.at("data").get<std::string>();
    const Json& data = description.at("data").at(data_name);
    const auto batch = workload.at("batch").get<std::int64_t>();

    Images set = load(data_name, data, evaluation);
    if (storage == "float32") set.images = set.images.as(float32);
    const std::int64_t count = set.images.shape()[0];
    const Shared images = shared(set.images, "images"), labels = shared(set.labels, "labels"),
                 order = shared(permutation(count, 1), "order");
    const Expr i = lscalar("i");
    const Slice chunk{i * batch, (i + 1) * batch};
    const Expr stored = evaluation ? images[chunk] : images[order[chunk]];
    const Expr y = cast(evaluation ? labels[chunk] : labels[order[chunk]], int32);
    const Expr pixels = cast(stored, float32);
    const Expr x = data.at("normalise") == "mean" ? (pixels - mean(pixels)) / 128 : (pixels - 128) / 64;

    const Dims& shape = set.images.shape();
    Network net(network.at("layers"), {shape[1], shape[2], shape[3]});
    const Expr probabilities = net.probabilities(x);
    const Expr loss = mean(categorical_crossentropy(probabilities, y));
    Workload r{.step = {}, .steps = count / batch, .evaluation = evaluation};
    if (evaluation) {
        r.step = function({i}, {loss, sum(neq(argmax(probabilities, {1}), y))}, {.name = name});
    } else {
        r.step =
            function({i}, {loss},
                     {.updates = updates_of(network.at("optimizer"), loss, net.params) + net.random.updates(),
                      .name = name});
    }
    return r;
}

}  // namespace bench
