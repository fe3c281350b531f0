// The training loop of the examples: two compiled functions, called once for each epoch.
#include "common/training.h"

#include <algorithm>
#include <chrono>

#include "common/console.h"
#include "common/results.h"

using namespace bitale;

namespace {

// Where a loop over minibatches stood: sums over all images of the minibatches done.
struct Sums {
    double loss = 0, wrong = 0;
    std::int64_t images = 0;
    double mean_loss() const { return images ? loss / static_cast<double>(images) : 0; }
    double error() const { return images ? wrong / static_cast<double>(images) : 0; }
};

// Runs f for every minibatch of `count` images; the last one may be smaller. f gives the mean loss and the
// number of wrong images of a minibatch.
Sums run_over(Function& f, std::int64_t count, std::int64_t batch, const Console& console) {
    const std::int64_t steps = (count + batch - 1) / batch;
    const Results results = console.watch(f, steps, [&] { return f.loop(0, steps); });
    const auto loss = results[0].to_vector<double>(), wrong = results[1].to_vector<double>();
    Sums sums;
    for (std::size_t k = 0; k < loss.size(); ++k) {
        const std::int64_t images = std::min(batch, count - static_cast<std::int64_t>(k) * batch);
        sums.loss += loss[k] * static_cast<double>(images);
        sums.wrong += wrong[k];
        sums.images += images;
    }
    return sums;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void load_params(const std::string& path, std::vector<Shared> params) {
    const auto values = load_npz(path);
    for (Shared& param : params) {
        const auto found = values.find(param.name());
        if (found == values.end()) throw FileError(path + ": has no parameter " + param.name());
        param.set_value(found->second);
    }
}

void save_params(const std::string& path, const std::vector<Shared>& params) {
    std::map<std::string, Array> values;
    for (const Shared& param : params) values.emplace(param.name(), param.get_value());
    save_npz(path, values);
}

}  // namespace

Scores score(const Expr& probabilities, const Expr& labels) {
    return {.loss = mean(categorical_crossentropy(probabilities, labels)),
            .wrong = sum(neq(argmax(probabilities, {1}), labels))};
}

int train(const Settings& settings, const Mnist& mnist, const Model& model) {
    const std::int64_t count = mnist.train_labels.size(), test_count = mnist.test_labels.size();
    const std::int64_t batch = settings.batch, test_batch = 500;
    if (!settings.load.empty()) load_params(settings.load, model.params);

    const bool flat = model.x.rank() == 2;
    const auto as_input = [&](const Array& images) {
        return flat ? images.reshaped({images.shape()[0], 784}) : images;
    };
    const Shared images = shared(as_input(mnist.train_images), "images"),
                 labels = shared(mnist.train_labels, "labels");
    const Shared test_images = shared(as_input(mnist.test_images), "test_images");
    const Shared test_labels = shared(mnist.test_labels, "test_labels");
    Shared order = shared(permutation(count, settings.seed), "order");  // anew for each epoch

    // The pixels of some rows as numbers, whatever they are stored as.
    const auto pixels = [&](const Expr& stored) {
        const Expr x = cast(stored, float32);
        return mnist.offset ? x + mnist.offset : x;
    };

    // One training step on minibatch i of the shuffled images.
    const Expr i = lscalar("i");
    const Expr rows = order[Slice{i * batch, (i + 1) * batch}];
    Function step =
        function({i}, {model.training.loss, model.training.wrong},
                 {.updates = model.updates,
                  .givens = {{model.x, pixels(images[rows])}, {model.y, cast(labels[rows], int32)}},
                  .name = settings.example + "_step",
                  .device = settings.device});
    // The same scores on minibatch i of the test images, without a change.
    const Slice test_rows{i * test_batch, (i + 1) * test_batch};
    Function test = function({i}, {model.testing.loss, model.testing.wrong},
                             {.givens = {{model.x, pixels(test_images[test_rows])},
                                         {model.y, cast(test_labels[test_rows], int32)}},
                              .name = settings.example + "_test",
                              .device = settings.device});

    const Console console(settings);
    console.summary(model.params, step);
    RunResults run{.settings = settings,
                   .device = step.kernels().empty() ? settings.device : step.kernels().front().device,
                   .compile_seconds = step.compile_seconds() + test.compile_seconds(),
                   .kernels = step.kernels().size(),
                   .data_bytes = mnist.train_images.bytes()};
    for (int epoch = 1; epoch <= settings.epochs && !console.interrupted(); ++epoch) {
        order.set_value(permutation(count, settings.seed * 1000 + static_cast<std::uint64_t>(epoch)));
        const auto start = std::chrono::steady_clock::now();
        const Sums trained = run_over(step, count, batch, console);
        const double seconds = seconds_since(start);
        if (console.interrupted()) break;
        const Sums tested = run_over(test, test_count, test_batch, console);
        if (console.interrupted()) break;
        run.epochs.push_back({.epoch = epoch,
                              .seconds = seconds,
                              .train_loss = trained.mean_loss(),
                              .train_error = trained.error(),
                              .test_loss = tested.mean_loss(),
                              .test_error = tested.error()});
        console.row(run.epochs.back(), count);
    }
    run.peak_bytes = std::max(step.peak_bytes(), test.peak_bytes());
    console.end(run);
    if (!settings.save.empty()) save_params(settings.save, model.params);
    if (!settings.json.empty()) run.write(settings.json);
    return console.interrupted() ? 130 : 0;
}
