// The MNIST digits, from their idx files.
#include "common/mnist.h"

#include <filesystem>
#include <string>

namespace {

using bitale::Array;

Array load(const Settings& settings, const std::string& name, int rank) {
    const std::filesystem::path plain = std::filesystem::path(settings.data) / name;
    const std::string path = std::filesystem::exists(plain) ? plain.string() : plain.string() + ".gz";
    const Array all = bitale::load_idx(path);
    if (all.dtype() != bitale::uint8 || all.rank() != rank)
        throw bitale::FileError(path + ": expected bytes of rank " + std::to_string(rank) + ", found " +
                                all.text());
    return limited(all, settings);
}

DataSet load_set(const Settings& settings, const std::string& name) {
    const Array pixels = load(settings, name + "-images-idx3-ubyte", 3);
    const bitale::Dims& shape = pixels.shape();
    DataSet set{.images = stored(pixels.reshaped({shape[0], 1, shape[1], shape[2]}), settings),
                .labels = load(settings, name + "-labels-idx1-ubyte", 1)};
    if (set.images.shape()[0] != set.count())
        throw bitale::FileError(settings.data + ": images and labels differ in number");
    return set;
}

}  // namespace

DataSet load_mnist_test(const Settings& settings) { return load_set(settings, "t10k"); }

Data load_mnist(const Settings& settings) {
    return {.train = load_set(settings, "train"),
            .test = load_set(settings, "t10k"),
            .offset = offset_of(settings)};
}
