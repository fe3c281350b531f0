// All test images of MNIST through a deep network in one call, in as little memory as --memory-limit says.
#include <bitale/bitale.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "common/mnist.h"
#include "common/training.h"

using namespace bitale;

namespace {

// Convolutions 32 and 64 of 5x5, each with max-pooling, dense 1024, dense 10.
Model deep(const Expr& x, const Expr& y, std::uint64_t seed, bool trains) {
    Parameters params;
    const auto layer = [&](const std::string& name, const Dims& shape) {
        const std::int64_t width = shape.size() == 4 ? shape[0] : shape[1];
        return std::pair{params.add(name + ".w", glorot_uniform(shape, seed++)),
                         params.add(name + ".b", zeros({width}))};
    };
    const auto [w1, b1] = layer("conv1", {32, 1, 5, 5});
    const auto [w2, b2] = layer("conv2", {64, 32, 5, 5});
    const auto [w3, b3] = layer("hidden", {64 * 4 * 4, 1024});
    const auto [w4, b4] = layer("out", {1024, 10});
    Expr h = relu(max_pool(conv2d((x - mean(x)) / 128, w1), 2) + channel(b1));
    h = relu(max_pool(conv2d(h, w2), 2) + channel(b2));
    h = relu(dot(flatten(h, 2), w3) + b3);
    const Scores scores = score(softmax(dot(h, w4) + b4), y);
    return {.x = x,
            .y = y,
            .training = scores,
            .testing = scores,
            .params = params,
            .updates = trains ? adam(scores.loss, params, 0.001) : Updates()};
}

struct Evaluation {
    double accuracy = 0, loss = 0;
    MemoryPlan plan;
};

// float32 images come as an argument, bytes are a shared variable.
Evaluation evaluate(const Model& model, const DataSet& test, const Settings& settings) {
    const bool as_argument = settings.storage == "float32";
    FunctionOptions options{.name = "evaluate",
                            .device = settings.device,
                            .profile = settings.profile,
                            .memory_limit = settings.memory_limit};
    const Array labels = test.labels.as(int32);
    std::vector<Input> inputs{model.x, model.y};
    if (!as_argument) {
        inputs = {model.y};
        options.givens = {{model.x, cast(on_device(test.images, "images", settings).all(), float32)}};
    }
    Function f = function(inputs, {model.testing.loss, model.testing.wrong}, options);
    const Results r = as_argument ? f(test.images, labels) : f(labels);
    if (settings.profile && !settings.quiet) std::cout << f.report() << '\n';
    return {1 - r[1].at(0) / static_cast<double>(test.count()), r[0].at(0), f.memory_plan()};
}

// Brings in what a process that computes has at any rate: the compiler's libraries, threads, code of
// products.
void first_small_function(const Settings& settings) {
    const Expr a = matrix("a"), images = tensor4("images");
    const Shared filters = shared(ones({3, 1, 5, 5}), "filters");
    function({a, images}, {dot(a, a), conv2d(images, filters)}, {.name = "small", .device = settings.device})(
        ones({8, 8}), ones({2, 1, 9, 9}));
}

}  // namespace

int main(int argc, char** argv) try {
    const std::string weights = "low_memory_eval.npz";
    Settings settings =
        parse_settings(argc, argv,
                       {.example = "low_memory_eval",
                        .description = "Evaluates a deep network on all test images of MNIST in one call.",
                        .epochs = 1,
                        .batch = 128,
                        .choices = {{"train",
                                     "Train first, and save the parameters (--save, else " + weights + ")",
                                     {"no", "yes"},
                                     true},
                                    {"stops",
                                     "Raise SIGSTOP after a small function, before any large array, and at "
                                     "the end, for a process that measures (scripts/memory_from_outside)",
                                     {"no", "yes"},
                                     true}},
                        .takes_memory_limit = true});
    const bool stops = settings.chosen("stops") == "yes";
    if (stops) {
        first_small_function(settings);
        std::raise(SIGSTOP);
    }
    const bool trains = settings.chosen("train") == "yes";
    const Model model = deep(tensor4("x"), ivector("y"), settings.seed, trains);
    if (trains) {
        if (settings.save.empty()) settings.save = weights;
        if (const int status = train(settings, load_mnist(settings), model)) return status;
    } else if (const std::string from = settings.load.empty() ? weights : settings.load;
               !settings.load.empty() || std::filesystem::exists(from)) {
        load_checkpoint(from, {model.params});
    } else if (!settings.quiet) {
        std::cout << "No " << weights << ": the network is untrained (seed " << settings.seed
                  << "); --train trains it\n";
    }
    const Evaluation e = evaluate(model, load_mnist_test(settings), settings);
    if (!settings.quiet)
        std::cout << e.plan << "accuracy " << e.accuracy << " loss " << e.loss << " peak "
                  << e.plan.peak_bytes << " limit " << e.plan.limit << " micro-batch " << e.plan.micro_batch
                  << '\n';
    if (!settings.json.empty()) {
        std::ofstream file(settings.json);
        file.precision(17);
        file << "{\"accuracy\": " << e.accuracy << ", \"loss\": " << e.loss
             << ", \"peak_bytes\": " << e.plan.peak_bytes << ", \"limit_bytes\": " << e.plan.limit
             << ", \"micro_batch\": " << e.plan.micro_batch << "}\n";
        if (!file.flush()) throw FileError(settings.json + " cannot be written");
    }
    if (stops) std::raise(SIGSTOP);
    return 0;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
