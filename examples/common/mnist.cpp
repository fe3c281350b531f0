// The MNIST digits, from their idx files.
#include "common/mnist.h"

#include <algorithm>
#include <filesystem>

namespace {

using bitale::Array;

constexpr int int8_offset = 128;

Array load(const Settings& settings, const std::string& name, int rank) {
    const std::filesystem::path plain = std::filesystem::path(settings.data) / name;
    const std::string path = std::filesystem::exists(plain) ? plain.string() : plain.string() + ".gz";
    Array all = bitale::load_idx(path);
    if (all.dtype() != bitale::uint8 || all.rank() != rank)
        throw bitale::FileError(path + ": expected bytes of rank " + std::to_string(rank) + ", found " +
                                all.text());
    const std::int64_t count = all.shape()[0];
    return settings.limit > 0 && settings.limit < count ? all.rows(0, settings.limit) : all;
}

Array images(const Settings& settings, const std::string& name) {
    Array pixels = load(settings, name, 3);
    const auto shape = pixels.shape();
    pixels = pixels.reshaped({shape[0], 1, shape[1], shape[2]});
    if (settings.storage == "uint8") return pixels;
    if (settings.storage == "float32") return pixels.as(bitale::float32);
    Array centred(bitale::int8, pixels.shape());
    const auto from = pixels.view<std::uint8_t>();
    std::transform(from.begin(), from.end(), static_cast<std::int8_t*>(centred.mutable_data()),
                   [](std::uint8_t pixel) { return static_cast<std::int8_t>(pixel - int8_offset); });
    return centred;
}

}  // namespace

Mnist load_mnist(const Settings& settings) {
    Mnist mnist{.train_images = images(settings, "train-images-idx3-ubyte"),
                .test_images = images(settings, "t10k-images-idx3-ubyte"),
                .train_labels = load(settings, "train-labels-idx1-ubyte", 1),
                .test_labels = load(settings, "t10k-labels-idx1-ubyte", 1),
                .offset = settings.storage == "int8" ? int8_offset : 0};
    if (mnist.train_images.shape()[0] != mnist.train_labels.size() ||
        mnist.test_images.shape()[0] != mnist.test_labels.size())
        throw bitale::FileError(settings.data + ": images and labels differ in number");
    return mnist;
}
