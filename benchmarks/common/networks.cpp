// Networks by their description, with data, in the way the examples write them.
#include "common/networks.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "networks_text.h"  // generated: networks.json

using namespace bitale;
using Json = nlohmann::json;

namespace bench {

namespace {

const Json& description() {
    static const Json& text = *new Json(Json::parse(networks_text));
    return text;
}

const Json& workload_named(const std::string& name) {
    const Json& workloads = description().at("workloads");
    if (!workloads.contains(name)) throw std::runtime_error("unknown workload " + name);
    return workloads.at(name);
}

// Bytes and labels by chance: the time of a step does not depend on what the images show.
DataSet made_up(const Dims& shape, std::string why) {
    std::mt19937_64 engine(1);
    Array images(uint8, shape), labels(uint8, {shape[0]});
    auto* bytes = static_cast<std::uint8_t*>(images.mutable_data());
    for (std::int64_t k = 0; k < images.size(); ++k) bytes[k] = static_cast<std::uint8_t>(engine());
    bytes = static_cast<std::uint8_t*>(labels.mutable_data());
    for (std::int64_t k = 0; k < labels.size(); ++k) bytes[k] = static_cast<std::uint8_t>(engine() % 10);
    return {images, labels, std::move(why)};
}

// Where MNIST's files are, if the one at `prefix` and the ending is there.
std::optional<std::string> mnist_folder(const std::string& ending) {
    const char* named = std::getenv("BITALE_DATA");
    for (const std::string& folder : {std::string(named ? named : ""), std::string(MNIST_DIRECTORY)})
        if (!folder.empty() && std::filesystem::exists(folder + ending)) return folder;
    return std::nullopt;
}

// The layers on normalised pixels [batch, channels, height, width]; returns the probabilities.
class Network {
  public:
    Network(const Json& layers, Dims shape, std::uint64_t seed)
        : layers_(layers), shape_(std::move(shape)), seed_(seed) {}

    Expr probabilities(Expr h) {
        for (const Json& layer : layers_) {
            ++layer_;
            const auto kind = layer[0].get<std::string>();
            if (kind == "conv") {
                const auto filters = layer[1].get<std::int64_t>(), kernel = layer[2].get<std::int64_t>();
                const bool padded = layer[3] == "half";
                h = conv2d(h, param("w", glorot_uniform({filters, shape_[0], kernel, kernel}, seed())),
                           {.border_mode = padded ? half : valid});
                const std::int64_t lost = padded ? 0 : kernel - 1;
                shape_ = {filters, shape_[1] - lost, shape_[2] - lost};
            } else if (kind == "bias") {
                h = h + channel(param("b", zeros({shape_[0]})));
            } else if (kind == "pool") {
                const auto window = layer[1].get<std::int64_t>(), stride = layer[2].get<std::int64_t>();
                h = max_pool(h, window, {.stride = Size2(stride)});
                shape_ = {shape_[0], (shape_[1] - window) / stride + 1, (shape_[2] - window) / stride + 1};
            } else if (kind == "dense") {
                const auto units = layer[1].get<std::int64_t>(), from = count_of(shape_);
                if (shape_.size() != 1) h = flatten(h, 2);
                const Expr w = param("w", glorot_uniform({from, units}, seed()));
                h = dot(h, w) + param("b", zeros({units}));
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
    Shared param(const char* kind, const Array& value) {
        params.push_back(shared(value, kind + std::to_string(layer_)));
        return params.back();
    }
    std::uint64_t seed() const { return seed_ + params.size() + 1; }

    Json layers_;
    Dims shape_;
    const std::uint64_t seed_;
    int layer_ = -1;
};

Updates updates_of(const Json& optimizer, const Grads& grads) {
    const auto name = optimizer.at("name").get<std::string>();
    const auto rate = optimizer.at("rate").get<double>();
    if (name == "sgd") return sgd(grads, rate);
    if (name == "momentum")
        return momentum(grads, rate, {.momentum = optimizer.at("momentum").get<double>()});
    if (name == "adam") return adam(grads, rate);
    if (name == "adadelta") return adadelta(grads, rate);
    throw std::runtime_error("unknown optimizer " + name);
}

float mean_of(const Array& bytes) {
    double total = 0;
    for (const std::uint8_t byte : bytes.view<std::uint8_t>()) total += byte;
    return static_cast<float>(total / static_cast<double>(bytes.size()));
}

// Rows of a variable that is kept as Setting::storage says.
Expr stored_images(const Array& pixels, const std::string& storage, bool by_mean, const Index& rows) {
    for (const StorageType type : {uint4, uint2, uint1})
        if (storage == name_of(type))
            return shared(pixels, {.storage = type, .scale = 255.0F / type.most(), .name = "images"})[rows];
    Array kept = pixels;
    if (storage == "int8")
        kept = (pixels.as(int16) - 128).as(int8);
    else if (storage == "float32")
        kept = pixels.as(float32);
    else if (storage == "normalised")
        kept =
            by_mean ? (pixels.as(float32) - mean_of(pixels)) / 128.0F : (pixels.as(float32) - 128.0F) / 64.0F;
    else if (storage != "uint8")
        throw std::runtime_error("unknown storage " + storage);
    return shared(kept, "images")[rows];
}

}  // namespace

Workload compile_tiny(bool output) {
    const Expr i = lscalar("i");
    const Shared total = shared(std::int64_t{0}, "total");
    const Expr next = total + i;
    FunctionOptions options{.updates = {{total, next}}};
    Workload r;
    r.steps = 1'000'000;
    r.step = output ? function({i}, {next}, std::move(options)) : function({i}, {}, std::move(options));
    return r;
}

Workload compile_reading() {
    const Expr i = lscalar("i");
    const Shared x = shared(glorot_uniform({24, 64}, 1), "x"), w = shared(glorot_uniform({64, 32}, 2), "w");
    Workload r;
    r.steps = 100'000;
    r.step = function({i}, {sum(tanh(dot(x, w) + cast(i, float32)))});
    return r;
}

DataSet data_of(const std::string& name, const std::string& folder, std::int64_t most) {
    const Json& workload = workload_named(name);
    const bool test = workload.contains("evaluates");
    const auto data_name = workload.at("data").get<std::string>();
    const Json& data = description().at("data").at(data_name);
    std::int64_t count = data.at(test ? "test" : "train").get<std::int64_t>();
    if (most > 0) count = std::min(count, most);
    Dims shape{count};
    for (const Json& length : data.at("shape")) shape.push_back(length.get<std::int64_t>());
    if (data_name != "mnist") return made_up(shape, "random bytes");
    const std::string prefix = test ? "/t10k" : "/train", images = prefix + "-images-idx3-ubyte.gz";
    const std::optional<std::string> found = folder.empty() ? mnist_folder(images) : folder;
    if (!found)
        return made_up(shape,
                       "random bytes, because MNIST's files are not here: BITALE_DATA names their folder");
    Array pixels = load_idx(*found + images), labels = load_idx(*found + prefix + "-labels-idx1-ubyte.gz");
    if (count < pixels.shape()[0]) {
        pixels = pixels.rows(0, count);
        labels = labels.rows(0, count);
    }
    return {pixels.reshaped(shape), labels, *found};
}

std::int64_t batch_of(const std::string& name) {
    return workload_named(name).at("batch").get<std::int64_t>();
}

Workload compile(const std::string& name, const DataSet& set, const Setting& setting) {
    const Json& workload = workload_named(name);
    const bool evaluation = workload.contains("evaluates");
    const Json& network = evaluation ? workload_named(workload["evaluates"].get<std::string>()) : workload;
    const Json& data = description().at("data").at(workload.at("data").get<std::string>());

    Workload r;
    r.evaluation = evaluation;
    r.batch = setting.batch > 0 ? setting.batch : batch_of(name);
    const std::int64_t count = set.images.shape()[0];
    r.steps = count / r.batch;
    const bool by_mean = data.at("normalise") == "mean", beforehand = setting.storage == "normalised";
    const Shared labels = shared(set.labels, "labels"), order = shared(permutation(count, 1), "order");
    const Expr i = lscalar("i");
    const Slice chunk{i * r.batch, (i + 1) * r.batch};
    const Expr stored =
        stored_images(set.images, setting.storage, by_mean, evaluation ? Index(chunk) : Index(order[chunk]));
    const Expr y = cast(evaluation ? labels[chunk] : labels[order[chunk]], int32);
    const Expr pixels = cast(stored, float32);
    const Expr x = beforehand                  ? pixels
                   : by_mean                   ? (pixels - mean(pixels)) / 128
                   : setting.storage == "int8" ? pixels / 64
                                               : (pixels - 128) / 64;

    const Dims& shape = set.images.shape();
    Network net(network.at("layers"), {shape[1], shape[2], shape[3]}, setting.seed);
    const Expr probabilities = net.probabilities(x);
    const Expr loss = mean(categorical_crossentropy(probabilities, y));
    FunctionOptions options{.updates = {}, .givens = {}, .name = name, .device = setting.device};
    options.profile = setting.profile;
    options.precision = setting.precision;
    if (evaluation) {
        r.step = function({i}, {loss, sum(neq(argmax(probabilities, {1}), y))}, options);
    } else {
        Grads grads = gradients(loss, net.params);
        if (setting.clip > 0) grads = clip_by_global_norm(grads, setting.clip);
        options.updates = updates_of(network.at("optimizer"), grads) + net.random.updates();
        r.step = function({i}, {loss}, options);
    }
    r.params = net.params;
    return r;
}

}  // namespace bench
