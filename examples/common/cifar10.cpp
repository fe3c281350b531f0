// CIFAR-10 from its binary files; and synthetic images that take their place.
#include "common/cifar10.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>
#include <system_error>
#include <vector>

namespace {

using bitale::Array;
using bitale::FileError;

constexpr std::int64_t classes = 10, channels = 3, side = 32, pixels = channels * side * side;
constexpr std::int64_t in_file = 10000, trained = 40000, validated = 10000, tested = 10000;

// Room for images, filled one by one.
struct Pictures {
    explicit Pictures(std::int64_t count)
        : images(bitale::uint8, {count, channels, side, side}), labels(bitale::uint8, {count}) {}
    std::uint8_t* image(std::int64_t n) {
        return static_cast<std::uint8_t*>(images.mutable_data()) + n * pixels;
    }
    std::uint8_t& label(std::int64_t n) { return static_cast<std::uint8_t*>(labels.mutable_data())[n]; }
    DataSet set(const Settings& settings) const {
        return {.images = stored(limited(images, settings), settings), .labels = limited(labels, settings)};
    }

    Array images, labels;
};

// ---- The files: 10,000 records each, of a label and the pixels, channel by channel.

void read_file(const std::filesystem::path& path, Pictures& to, std::int64_t first) {
    constexpr std::int64_t record = 1 + pixels, expected = in_file * record;
    std::error_code problem;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, problem));
    if (problem)
        throw FileError(path.string() + ": " + problem.message() +
                        "; --data names the folder with CIFAR-10's binary files, and without it the images "
                        "are synthetic");
    if (size != expected)
        throw FileError(path.string() + ": " + std::to_string(size) + " bytes, where " +
                        std::to_string(in_file) + " records of " + std::to_string(record) + " bytes are " +
                        std::to_string(expected) + ": is it complete, and of the binary version?");
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes(static_cast<std::size_t>(size));
    if (!file.read(bytes.data(), size)) throw FileError(path.string() + ": cannot be read");
    for (std::int64_t n = 0; n < in_file; ++n) {
        const char* at = bytes.data() + n * record;
        const auto label = static_cast<std::uint8_t>(*at);
        if (label >= classes)
            throw FileError(path.string() + ": label " + std::to_string(label) + " in record " +
                            std::to_string(n) + "; labels are 0 to 9");
        to.label(first + n) = label;
        std::copy_n(at + 1, pixels, reinterpret_cast<char*>(to.image(first + n)));
    }
}

Data read_files(const Settings& settings) {
    const std::filesystem::path folder(settings.data);
    Pictures train(trained), valid(validated), test(tested);
    for (int k = 0; k < 5; ++k) {
        const std::filesystem::path path = folder / ("data_batch_" + std::to_string(k + 1) + ".bin");
        if (k < 4)
            read_file(path, train, k * in_file);
        else
            read_file(path, valid, 0);
    }
    read_file(folder / "test_batch.bin", test, 0);
    return {.source = "CIFAR-10",
            .train = train.set(settings),
            .test = test.set(settings),
            .valid = valid.set(settings),
            .offset = offset_of(settings)};
}

// ---- Synthetic images: waves whose direction, width and colours tell the class, at a random place, in
// noise.

// SplitMix64: the same numbers everywhere, and a fresh sequence for each image.
class Numbers {
  public:
    explicit Numbers(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

void draw(Pictures& to, std::int64_t n, Numbers numbers) {
    const auto label = static_cast<std::int64_t>(numbers.next() % classes);
    const double turn =
        std::numbers::pi * static_cast<double>(label) / classes + 0.2 * (numbers.unit() - 0.5);
    const double frequency = 0.4 + 0.25 * static_cast<double>(label % 3),
                 phase = 2 * std::numbers::pi * numbers.unit();
    const double along_x = frequency * std::cos(turn), along_y = frequency * std::sin(turn);
    std::array<double, side * side> wave{};
    for (std::int64_t y = 0; y < side; ++y)
        for (std::int64_t x = 0; x < side; ++x)
            wave[static_cast<std::size_t>(y * side + x)] =
                std::sin(along_x * static_cast<double>(x) + along_y * static_cast<double>(y) + phase);
    to.label(n) = static_cast<std::uint8_t>(label);
    std::uint8_t* image = to.image(n);
    for (std::int64_t c = 0; c < channels; ++c) {
        const double height = 40 * std::cos(2 * std::numbers::pi * static_cast<double>(c * (label + 1)) / 7);
        std::uint64_t noise = 0;
        for (std::int64_t p = 0; p < side * side; ++p) {
            if (p % 8 == 0) noise = numbers.next();
            const auto shade = static_cast<double>(noise >> (8 * (p % 8)) & 255);  // any grey
            *image++ = static_cast<std::uint8_t>(
                std::clamp(64 + 0.5 * shade + height * wave[static_cast<std::size_t>(p)], 0.0, 255.0));
        }
    }
}

Data make_up(const Settings& settings) {
    const auto set_of = [&](std::int64_t count, std::uint64_t which) {
        if (settings.limit > 0) count = std::min(count, settings.limit);
        Pictures pictures(count);
        for (std::int64_t n = 0; n < count; ++n)
            draw(pictures, n, Numbers((settings.seed * 3 + which) << 32 | static_cast<std::uint64_t>(n)));
        return pictures.set(settings);
    };
    return {.source = "synthetic images, not CIFAR-10",
            .train = set_of(trained, 0),
            .test = set_of(tested, 2),
            .valid = set_of(validated, 1),
            .offset = offset_of(settings)};
}

}  // namespace

Data load_cifar10(const Settings& settings) {
    return settings.data.empty() ? make_up(settings) : read_files(settings);
}
