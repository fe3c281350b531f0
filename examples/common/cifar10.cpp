// CIFAR-10 from its binary files; and synthetic images that take their place.
#include "common/cifar10.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <random>
#include <string>
#include <system_error>
#include <vector>

namespace {

using bitale::Array;
using bitale::FileError;

constexpr std::int64_t classes = 10, channels = 3, side = 32, pixels = channels * side * side;
constexpr std::int64_t record = 1 + pixels, in_file = 10000;  // a record: label, then channel by channel

DataSet set_of(const Array& records, const Settings& settings) {
    const Array some = limited(records, settings);
    const std::int64_t count = some.shape()[0];
    return {.images = stored(some.slice(1, 1).reshaped({count, channels, side, side}), settings),
            .labels = some.slice(1, 0, 1).reshaped({count})};
}

Array read_file(const Settings& settings, const std::string& name) {
    const std::filesystem::path path = std::filesystem::path(settings.data) / name;
    std::error_code problem;
    const std::uintmax_t size = std::filesystem::file_size(path, problem), expected = in_file * record;
    if (problem)
        throw FileError(path.string() + ": " + problem.message() +
                        "; --data names the folder with CIFAR-10's binary files, and without it the images "
                        "are synthetic");
    if (size != expected)
        throw FileError(path.string() + ": " + std::to_string(size) + " bytes, where " +
                        std::to_string(in_file) + " records of " + std::to_string(record) + " bytes are " +
                        std::to_string(expected) + ": is it complete, and of the binary version?");
    Array records(bitale::uint8, {in_file, record});
    if (!std::ifstream(path, std::ios::binary)
             .read(static_cast<char*>(records.mutable_data()), in_file * record))
        throw FileError(path.string() + ": cannot be read");
    for (std::int64_t n = 0; n < in_file; ++n)
        if (const auto label = records.at<int>(n * record); label >= classes)
            throw FileError(path.string() + ": label " + std::to_string(label) + " in record " +
                            std::to_string(n) + "; labels are 0 to 9");
    return records;
}

Data read_files(const Settings& settings) {
    std::vector<Array> files;
    for (const char digit : {'1', '2', '3', '4', '5'})
        files.push_back(read_file(settings, std::string("data_batch_") + digit + ".bin"));
    const DataSet valid = set_of(files.back(), settings);
    files.pop_back();
    return {.source = "CIFAR-10",
            .train = set_of(bitale::concatenate(files), settings),
            .test = set_of(read_file(settings, "test_batch.bin"), settings),
            .valid = valid,
            .offset = offset_of(settings)};
}

// ---- Synthetic images: waves whose direction, width and colours tell the class, at a random place, in
// noise.

void draw(std::uint8_t* to, std::mt19937_64 numbers) {
    const auto unit = [&] { return static_cast<double>(numbers() >> 11) * 0x1p-53; };
    const auto label = static_cast<std::int64_t>(numbers() % classes);
    const double turn = std::numbers::pi * static_cast<double>(label) / classes + 0.2 * (unit() - 0.5);
    const double frequency = 0.4 + 0.25 * static_cast<double>(label % 3),
                 phase = 2 * std::numbers::pi * unit();
    const double along_x = frequency * std::cos(turn), along_y = frequency * std::sin(turn);
    std::array<double, channels> heights{};
    for (std::size_t c = 0; c < channels; ++c)
        heights[c] =
            40 * std::cos(2 * std::numbers::pi * static_cast<double>(c) * static_cast<double>(label + 1) / 7);
    *to++ = static_cast<std::uint8_t>(label);
    for (std::int64_t p = 0; p < side * side; ++p) {
        const double wave = std::sin(along_x * static_cast<double>(p % side) +
                                     along_y * static_cast<double>(p / side) + phase);
        for (std::size_t c = 0; c < channels; ++c) {
            const auto shade = static_cast<double>(numbers() >> 56);  // any grey
            to[static_cast<std::int64_t>(c) * side * side + p] =
                static_cast<std::uint8_t>(std::clamp(64 + 0.5 * shade + heights[c] * wave, 0.0, 255.0));
        }
    }
}

Data make_up(const Settings& settings) {
    const auto set = [&](std::int64_t count, std::uint64_t which) {
        if (settings.limit > 0) count = std::min(count, settings.limit);
        Array records(bitale::uint8, {count, record});
        auto* to = static_cast<std::uint8_t*>(records.mutable_data());
        for (std::int64_t n = 0; n < count; ++n)
            draw(to + n * record,
                 std::mt19937_64((settings.seed * 3 + which) << 32 | static_cast<std::uint64_t>(n)));
        return set_of(records, settings);
    };
    return {.source = "synthetic images, not CIFAR-10",
            .train = set(40000, 0),
            .test = set(10000, 2),
            .valid = set(10000, 1),
            .offset = offset_of(settings)};
}

}  // namespace

Data load_cifar10(const Settings& settings) {
    return settings.data.empty() ? make_up(settings) : read_files(settings);
}
