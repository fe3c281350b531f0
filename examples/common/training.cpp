// The training loop of the examples: two compiled functions, called once for each epoch.
#include "common/training.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "common/console.h"

using namespace bitale;

namespace {

constexpr std::int64_t chunk_images = 500;  // evaluated by one call

// A set of images in shared variables.
struct OnDevice {
    std::string name;
    StoredImages stored;
    Shared labels;
    std::int64_t count;
};

// For models that take rows of pixels, as such rows.
OnDevice on_device(const DataSet& set, const std::string& name, const Model& model,
                   const Settings& settings) {
    const std::int64_t n = set.count();
    const Array images = model.x.rank() == 2 ? set.images.reshaped({n, set.images.size() / n}) : set.images;
    return {name, on_device(images, name + "_images", settings), shared(set.labels, name + "_labels"), n};
}

// Runs f for every minibatch of `count` images; the last one may be smaller. f gives the mean loss and the
// number of wrong images of a minibatch. Of what was done, if Ctrl-C ended it.
Score run_over(Function& f, std::int64_t count, std::int64_t batch, const Console& console) {
    const std::int64_t steps = (count + batch - 1) / batch;
    const Results results = console.loop(f, steps);
    const auto losses = results[0].to_vector<double>(), wrong = results[1].to_vector<double>();
    Score sum;
    std::int64_t done = 0;
    for (std::size_t k = 0; k < losses.size(); ++k) {
        const std::int64_t images = std::min(batch, count - done);
        sum.loss += losses[k] * static_cast<double>(images);
        sum.error += wrong[k];
        done += images;
    }
    const double weight = done ? 1 / static_cast<double>(done) : 0;
    return {sum.loss * weight, sum.error * weight};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void put(Json& to, const std::string& set, const Score& score) {
    to[set + "_loss"] = score.loss;
    to[set + "_error"] = score.error;
}

// Said before the training, not after it.
void require_writable(const std::string& path, bool holds_arrays) {
    if (path.empty()) return;
    const std::filesystem::path file(path), folder = file.parent_path();
    if (holds_arrays && file.extension() != ".npz" && file.extension() != ".safetensors")
        throw FileError(path + ": parameters are saved as .npz or .safetensors");
    if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
        throw FileError(path + " cannot be written: " + std::strerror(errno));
}

}  // namespace

Scores score(const Expr& probabilities, const Expr& labels) {
    return {.loss = mean(categorical_crossentropy(probabilities, labels)),
            .wrong = sum(neq(argmax(probabilities, {1}), labels))};
}

int train(const Settings& settings, const Data& data, const Model& model) {
    for (const std::string& path : {settings.save, settings.checkpoint}) require_writable(path, true);
    require_writable(settings.json, false);
    if (!settings.load.empty()) load_checkpoint(settings.load, {model.params});
    const std::int64_t count = data.train.count(), batch = settings.batch;
    const OnDevice train_set = on_device(data.train, "train", model, settings);
    Shared order = shared(permutation(count, settings.seed), "order");  // anew for each epoch

    // The pixels of some rows as numbers, whatever they are stored as.
    const auto pixels = [&](const Expr& stored) {
        const Expr x = cast(stored, float32);
        return data.offset ? x + data.offset : x;
    };

    // One training step on minibatch i of the shuffled images.
    const Expr i = lscalar("i");
    const Expr rows = order[Slice{i * batch, (i + 1) * batch}];
    Function step = function({i}, {model.training.loss, model.training.wrong},
                             {.updates = model.updates,
                              .givens = {{model.x, pixels(train_set.stored[rows])},
                                         {model.y, cast(train_set.labels[rows], int32)}},
                              .name = settings.example + "_step",
                              .device = settings.device,
                              .profile = settings.profile});
    // The same scores on chunk i of a set, without a change.
    const auto evaluation_of = [&](const OnDevice& set) {
        const Slice chunk{i * chunk_images, (i + 1) * chunk_images};
        return function(
            {i}, {model.testing.loss, model.testing.wrong},
            {.givens = {{model.x, pixels(set.stored[chunk])}, {model.y, cast(set.labels[chunk], int32)}},
             .name = settings.example + "_" + set.name,
             .device = settings.device});
    };
    const bool validated = data.valid.count() > 0;
    const OnDevice judge =
        on_device(validated ? data.valid : data.test, validated ? "valid" : "test", model, settings);
    Function evaluate = evaluation_of(judge);

    const Console console(settings);
    Json run{{"example", settings.example},
             {"device", step.kernels().empty() ? settings.device : step.kernels().front().device},
             {"storage", settings.storage},
             {"batch", batch},
             {"seed", settings.seed},
             {"compile_seconds", step.compile_seconds() + evaluate.compile_seconds()},
             {"kernels", step.kernels().size()},  // launches of one training step: kernels and library calls
             {"data_bytes", train_set.stored.bytes},
             {"peak_bytes", 0},
             {"epochs", Json::array()}};
    for (const Choice& choice : settings.choices) run[choice.name] = choice.value;
    if (!data.source.empty()) run["source"] = data.source;
    console.summary(run, judge.name, model.params);
    int epoch = 0;  // how many are done
    const Checkpoint state{model.params, model.updates, {"epoch", epoch}};
    if (std::filesystem::exists(settings.checkpoint)) load_checkpoint(settings.checkpoint, state);
    while (epoch < settings.epochs && !console.interrupted()) {
        order.set_value(permutation(count, settings.seed * 1000 + static_cast<std::uint64_t>(epoch + 1)));
        const auto start = std::chrono::steady_clock::now();
        const Score trained = run_over(step, count, batch, console);
        const double seconds = seconds_since(start);
        if (console.interrupted()) break;
        const Score judged = run_over(evaluate, judge.count, chunk_images, console);
        if (console.interrupted()) break;
        run["epochs"].push_back({{"epoch", ++epoch}, {"seconds", seconds}});
        put(run["epochs"].back(), "train", trained);
        put(run["epochs"].back(), judge.name, judged);
        if (!settings.checkpoint.empty()) save_checkpoint(settings.checkpoint, state);
        console.row(epoch, trained, judged, seconds, count);
    }
    run["peak_bytes"] = std::max(step.memory_plan().peak_bytes, evaluate.memory_plan().peak_bytes);
    if (validated && !console.interrupted()) {
        for (const OnDevice& set : {train_set, judge, on_device(data.test, "test", model, settings)}) {
            Function f = evaluation_of(set);
            const Score trained = run_over(f, set.count, chunk_images, console);
            if (console.interrupted()) break;
            put(run["trained"], set.name, trained);
            console.trained(set.name, trained);
        }
        if (console.interrupted()) run.erase("trained");
    }
    console.end(run);
    if (settings.profile && !settings.quiet) std::cout << '\n' << step.report();
    if (!settings.save.empty()) save_checkpoint(settings.save, {model.params});
    if (!settings.json.empty() && !(std::ofstream(settings.json) << run.dump(2) << '\n').flush())
        throw FileError(settings.json + ": cannot be written: " + std::strerror(errno));
    return console.status();
}
