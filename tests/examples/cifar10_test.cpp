// cifar10_cnn: its files, the images made up in their place, its options, and what it reports.
#include "common/cifar10.h"

#include <bitale/bitale.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/examples/programs.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

namespace bitale {
namespace {

using nlohmann::json;

constexpr std::int64_t record = 3073, in_file = 10000;

// Six files of 10,000 black images of class 0, as large as the real ones, but for the records that are
// written.
class Files {
  public:
    Files() {
        for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                 "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"})
            resize(name, in_file * record);
    }
    void resize(const std::string& name, std::int64_t bytes) const {
        if (!std::filesystem::exists(path(name))) std::ofstream(path(name)).flush();
        std::filesystem::resize_file(path(name), static_cast<std::uintmax_t>(bytes));
    }
    void write(const std::string& name, std::int64_t n, const std::vector<std::uint8_t>& bytes) const {
        std::fstream file(path(name), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(n * record);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    void remove(const std::string& name) const { std::filesystem::remove(path(name)); }
    std::string path(const std::string& name) const { return folder_ / name; }
    const std::string& folder() const { return folder_.path(); }

  private:
    test::TemporaryFolder folder_;
};

Settings settings_of(const std::string& data, std::int64_t limit) {
    Settings settings;
    settings.data = data;
    settings.limit = limit;
    return settings;
}

std::vector<double> validated_losses_of(const json& r) {
    std::vector<double> losses;
    for (const json& epoch : r["epochs"])
        for (const char* field : {"train_loss", "train_error", "valid_loss", "valid_error"})
            losses.push_back(epoch[field].get<double>());
    for (const char* set : {"train_loss", "valid_loss", "test_loss"})
        losses.push_back(r["trained"][set].get<double>());
    return losses;
}

const std::string small_network = "cifar10_cnn --filters 16 --limit 70 --batch 20 --epochs 2";

}  // namespace

TEST_CASE("CIFAR-10 is read from its binary files") {
    const Files files;
    std::vector<std::uint8_t> image(record, 7);
    image[0] = 3;             // label
    image[1] = 11;            // red, first row and column
    image[1 + 1024 + 1] = 5;  // green, second column
    image[record - 1] = 13;   // blue, last row and column
    files.write("data_batch_2.bin", 4, image);
    files.write("data_batch_5.bin", 1, image);
    files.write("test_batch.bin", 0, image);

    const Data all = load_cifar10(settings_of(files.folder(), 0));
    CHECK(all.source == "CIFAR-10");
    CHECK(all.train.images.shape() == Dims{40000, 3, 32, 32});
    CHECK(all.valid.images.shape() == Dims{10000, 3, 32, 32});
    CHECK(all.test.images.shape() == Dims{10000, 3, 32, 32});
    struct Place {
        const DataSet& set;
        std::int64_t n;
    };
    for (const auto& [set, n] : {Place{all.train, in_file + 4}, Place{all.valid, 1}, Place{all.test, 0}}) {
        CHECK(set.labels.at(n) == 3);
        CHECK(set.labels.at(n + 1) == 0);
        const std::int64_t at = n * 3072;
        CHECK(set.images.at(at) == 11);
        CHECK(set.images.at(at + 1024 + 1) == 5);
        CHECK(set.images.at(at + 3071) == 13);
        CHECK(set.images.at(at + 3072) == 0);
    }
    CHECK(load_cifar10(settings_of(files.folder(), 50)).valid.labels.shape() == Dims{50});

    const json r = results_of(small_network + " --data " + files.folder());
    CHECK(r["source"] == "CIFAR-10");
}

TEST_CASE("missing and damaged files of CIFAR-10 are named") {
    const Files files;
    const auto problem = [&] {
        return test::message_of<FileError>([&] { load_cifar10(settings_of(files.folder(), 0)); });
    };
    files.write("data_batch_5.bin", 9999, {10});
    CHECK_THAT(problem(), ContainsSubstring("data_batch_5.bin: label 10 in record 9999"));
    files.resize("data_batch_3.bin", in_file * record - 1);
    CHECK_THAT(problem(), ContainsSubstring("data_batch_3.bin: 30729999 bytes") &&
                              ContainsSubstring("are 30730000: is it complete"));
    files.remove("data_batch_1.bin");
    CHECK_THAT(problem(), ContainsSubstring("data_batch_1.bin: No such file") &&
                              ContainsSubstring("without it the images are synthetic"));
    const Finished f = run_program("cifar10_cnn --data " + files.folder());
    CHECK(f.status == 1);
    CHECK_THAT(f.output, ContainsSubstring("data_batch_1.bin: No such file"));
}

TEST_CASE("synthetic images are a function of the seed") {
    Settings settings = settings_of("", 300);
    const Data a = load_cifar10(settings), b = load_cifar10(settings);
    CHECK_THAT(a.source, ContainsSubstring("synthetic"));
    CHECK(a.train.images.dtype() == uint8);
    CHECK(a.train.images.shape() == Dims{300, 3, 32, 32});
    CHECK(same(a.train.images, b.train.images));
    CHECK_FALSE(same(a.train.images, a.valid.images));
    CHECK_FALSE(same(a.valid.images, a.test.images));
    std::vector<int> seen(10);
    for (const auto label : a.train.labels.view<std::uint8_t>()) ++seen.at(label);
    for (const int times : seen) CHECK(times > 10);
    // A limit takes the first of them.
    settings.limit = 20;
    CHECK(same(load_cifar10(settings).train.images, a.train.images.rows(0, 20)));
    settings.seed = 2;
    CHECK_FALSE(same(load_cifar10(settings).train.images, a.train.images.rows(0, 20)));
}

TEST_CASE("cifar10_cnn reports its results") {
    const json r = results_of("cifar10_cnn --filters 16 --limit 970 --batch 50 --epochs 2");
    CHECK(r["example"] == "cifar10_cnn");
    CHECK(r["filters"] == "16");
    CHECK(r["pool"] == "4");
    CHECK(r["dense"] == "1");
    CHECK(r["data_bytes"] == 970 * 3072);
    CHECK(r["kernels"].get<int>() > 0);
    REQUIRE(r["epochs"].size() == 2);
    CHECK(r["epochs"][0].size() == 6);
    const auto losses = validated_losses_of(r);
    CHECK(losses[4] < losses[0]);
    // The judged scores of the last epoch are those of the trained network.
    CHECK(r["trained"]["valid_loss"] == r["epochs"][1]["valid_loss"]);

    const Finished f = run_program(small_network);
    CHECK(f.status == 0);
    for (const char* text :
         {"synthetic images, not CIFAR-10", "[16, 3, 5, 5]", "valid loss", "accuracy", "as trained"})
        CHECK_THAT(f.output, ContainsSubstring(text));
}

TEST_CASE("storages of the photographs compute the same") {
    const json bytes = results_of(small_network), floats = results_of(small_network + " --storage float32"),
               centred = results_of(small_network + " --storage int8");
    CHECK(floats["data_bytes"] == 4 * 70 * 3072);
    CHECK(validated_losses_of(bytes) == validated_losses_of(floats));
    CHECK(validated_losses_of(bytes) == validated_losses_of(centred));
}

TEST_CASE("every pooling, and two dense layers") {
    const std::string tiny = "cifar10_cnn --filters 16 --limit 20 --batch 10 --epochs 1 --dense 2 --pool ";
    for (const char* pool : {"4", "overlapping", "2"}) CHECK(results_of(tiny + pool)["pool"] == pool);
    CHECK(run_program("cifar10_cnn --filters 17").status != 0);
}

TEST_CASE("cifar10_cnn whitens its images", "[slow]") {
    const std::string tiny = "cifar10_cnn --filters 16 --limit 40 --batch 20 --epochs 2 --zca";
    const json r = results_of(tiny);
    CHECK(r["zca"] == "on");
    CHECK(validated_losses_of(r)[4] < validated_losses_of(r)[0]);
    CHECK_THAT(run_program(tiny + " --storage int8").output, ContainsSubstring("whitened by 40 images"));
}

TEST_CASE("cifar10_cnn trains on the emulator as on the CPU") {
    const std::string tiny =
        "cifar10_cnn --filters 16 --limit 8 --batch 4 --epochs 1 --pool overlapping --device ";
    const auto expected = validated_losses_of(results_of(tiny + "cpu")),
               got = validated_losses_of(results_of(tiny + "emulator"));
    REQUIRE(got.size() == expected.size());
    // Not to the bit: matrix products are the library's.
    for (std::size_t k = 0; k < got.size(); ++k) CHECK(got[k] == Approx(expected[k]).epsilon(1e-4));
}

}  // namespace bitale
