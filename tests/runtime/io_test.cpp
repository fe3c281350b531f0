// npy, npz and idx: round trips, files of other programs, damaged files.
#include "bitale/io.h"

#include <numeric>

#include "tests/support/catch.h"
#include "tests/support/temporary.h"
#include "tests/support/zip.h"

using namespace bitale;
using namespace bitale::test;

namespace {

Array numbered(DType dtype, const Dims& shape) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(count_of(shape)));
    std::iota(values.begin(), values.end(), 0);
    return Array(values, shape).as(dtype);
}

// An npy file as another program might write it.
std::string npy(const std::string& header, const std::string& data, char version = 1) {
    std::string s("\x93NUMPY");
    s += version;
    s += '\0';
    s += static_cast<char>(header.size() & 0xff);
    s += static_cast<char>(header.size() >> 8);
    if (version > 1) s += std::string(2, '\0');
    return s + header + data;
}

std::string bytes_of_text(std::initializer_list<int> values) {
    std::string s;
    for (const int v : values) s += static_cast<char>(v);
    return s;
}

}  // namespace

TEST_CASE("npy keeps dtype, shape and every byte", "[core][runtime][io]") {
    const TemporaryFolder folder;
    for (const DType dtype :
         {boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64})
        for (const Dims& shape :
             {Dims{}, Dims{0}, Dims{1}, Dims{7}, Dims{2, 3}, Dims{2, 0, 3}, Dims{2, 3, 4, 5}}) {
            const Array value = numbered(dtype, shape);
            save_npy(folder / "x.npy", value);
            REQUIRE(same(load_npy(folder / "x.npy"), value));
        }
    REQUIRE_THROWS_WITH(save_npy(folder / "x.npy", numbered(bfloat16, {2})), ContainsSubstring("bfloat16"));
}

TEST_CASE("npy files begin their data at a multiple of 64", "[core][runtime][io]") {
    const TemporaryFolder folder;
    save_npy(folder / "x.npy", numbered(float32, {3, 5}));
    const std::string text = text_of_file(folder / "x.npy");
    REQUIRE((text.size() - 60) % 64 == 0);
    REQUIRE_THAT(text, ContainsSubstring("'descr': '<f4', 'fortran_order': False, 'shape': (3, 5)"));
}

TEST_CASE("npy files of other byte and memory orders are read", "[core][runtime][io]") {
    const TemporaryFolder folder;
    write_file(folder / "big.npy", npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n",
                                       bytes_of_text({1, 2, 255, 254})));
    REQUIRE(load_npy(folder / "big.npy").to_vector<int>() == std::vector<int>{258, -2});
    write_file(folder / "fortran.npy", npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '|u1'}",
                                           bytes_of_text({0, 3, 1, 4, 2, 5}), 2));
    const Array a = load_npy(folder / "fortran.npy");
    REQUIRE(a.shape() == Dims{2, 3});
    REQUIRE(a.to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a bad npy file is named with its fault", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const auto fault = [&](const std::string& text) {
        write_file(folder / "bad.npy", text);
        const std::string message = message_of<FileError>([&] { load_npy(folder / "bad.npy"); });
        REQUIRE_THAT(message, ContainsSubstring(folder / "bad.npy"));
        return message;
    };
    REQUIRE_THAT(message_of<FileError>([&] { load_npy(folder / "missing.npy"); }),
                 ContainsSubstring("cannot be opened") && ContainsSubstring("io_test.cpp:"));
    REQUIRE_THAT(fault(""), ContainsSubstring("is not an npy file"));
    REQUIRE_THAT(fault("PK something else"),
                 ContainsSubstring("is not an npy file") && ContainsSubstring("use load_npz"));
    REQUIRE_THAT(fault(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "1234")),
                 ContainsSubstring("truncated"));
    REQUIRE_THAT(fault(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678")),
                 ContainsSubstring("'c8'"));
    REQUIRE_THAT(fault(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")),
                 ContainsSubstring("structured"));
    REQUIRE_THAT(fault(npy("{'descr': '<f4', 'shape': (1,), }", "1234")), ContainsSubstring("fortran_order"));
    REQUIRE_THAT(
        fault(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "1234")),
        ContainsSubstring("absurd shape"));
    REQUIRE_THAT(
        fault(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 2), }", "")),
        ContainsSubstring("absurd shape"));
    REQUIRE_THROWS_AS(save_npy(folder / "no/such/folder.npy", numbered(int8, {1})), FileError);
}

TEST_CASE("npz keeps arrays by name", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::map<std::string, Array> values{{"weights", numbered(float32, {3, 4})},
                                              {"step", Array(std::int64_t{7})},
                                              {"empty", numbered(uint8, {0, 5})}};
    save_npz(folder / "x.npz", values);
    const std::map<std::string, Array> back = load_npz(folder / "x.npz");
    REQUIRE(back.size() == values.size());
    for (const auto& [name, value] : values) REQUIRE(same(back.at(name), value));
    save_npz(folder / "none.npz", {});
    REQUIRE(load_npz(folder / "none.npz").empty());
}

TEST_CASE("a damaged npz file is named with its fault", "[core][runtime][io]") {
    const TemporaryFolder folder;
    save_npz(folder / "x.npz", {{"weights", numbered(float32, {30, 4})}});
    const std::string good = text_of_file(folder / "x.npz");
    const auto fault = [&](const std::string& text) {
        write_file(folder / "bad.npz", text);
        const std::string message = message_of<FileError>([&] { load_npz(folder / "bad.npz"); });
        REQUIRE_THAT(message, ContainsSubstring(folder / "bad.npz"));
        return message;
    };
    REQUIRE_THAT(fault(""), ContainsSubstring("is not an npz file, or is truncated"));
    REQUIRE_THAT(fault(good.substr(0, good.size() / 2)), ContainsSubstring("no zip directory"));
    std::string flipped = good;
    flipped[good.size() / 2] ^= 1;
    REQUIRE_THAT(fault(flipped), ContainsSubstring("checksum"));
    // No cut of the file is taken for a whole one, and none crashes.
    for (std::size_t length = 0; length < good.size(); length += 7) fault(good.substr(0, length));
    REQUIRE_THAT(fault(good.substr(10)), ContainsSubstring("bad.npz"));
}

TEST_CASE("deflated npz entries are read", "[core][runtime][io]") {
    const TemporaryFolder folder;
    // Packed by hand: the local header and the directory of one deflated entry.
    const std::string data =
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1000,), }", std::string(1000, 'x'));
    const std::string zipped = gzip(data);
    const std::string raw = zipped.substr(10, zipped.size() - 18);
    const auto put = [](std::string& to, std::uint64_t x, int n) {
        for (int i = 0; i < n; ++i) to += static_cast<char>(x >> (8 * i) & 0xff);
    };
    std::string common;
    for (const int x : {20, 0, 8, 0, 0}) put(common, static_cast<std::uint64_t>(x), 2);
    put(common, crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())), 4);
    put(common, raw.size(), 4);
    put(common, data.size(), 4);
    put(common, 5, 2);
    put(common, 0, 2);
    std::string archive;
    put(archive, 0x04034b50, 4);
    archive += common + "a.npy" + raw;
    const std::size_t offset = archive.size();
    std::string directory;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 8);
    put(directory, 0, 6);
    directory += "a.npy";
    archive += directory;
    put(archive, 0x06054b50, 4);
    put(archive, 0, 4);
    put(archive, 1, 2);
    put(archive, 1, 2);
    put(archive, directory.size(), 4);
    put(archive, offset, 4);
    put(archive, 0, 2);
    write_file(folder / "x.npz", archive);
    const std::map<std::string, Array> values = load_npz(folder / "x.npz");
    REQUIRE(values.at("a").to_vector<int>() == std::vector<int>(1000, 'x'));
    archive[60] ^= 0x55;
    write_file(folder / "x.npz", archive);
    REQUIRE_THROWS_AS(load_npz(folder / "x.npz"), FileError);
}

TEST_CASE("idx files, plain and gzip, of every element type", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::string header = bytes_of_text({0, 0, 0x08, 2, 0, 0, 0, 2, 0, 0, 0, 3});
    const std::string file = header + bytes_of_text({0, 1, 2, 3, 4, 255});
    write_file(folder / "x.idx", file);
    write_file(folder / "x.gz", gzip(file));
    for (const char* name : {"x.idx", "x.gz"}) {
        const Array a = load_idx(folder / name);
        REQUIRE(a.dtype() == uint8);
        REQUIRE(a.shape() == Dims{2, 3});
        REQUIRE(a.to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 255});
    }
    write_file(folder / "x.idx", bytes_of_text({0, 0, 0x0b, 1, 0, 0, 0, 2, 1, 2, 255, 254}));
    REQUIRE(load_idx(folder / "x.idx").to_vector<int>() == std::vector<int>{258, -2});
    write_file(folder / "x.idx", bytes_of_text({0, 0, 0x0d, 1, 0, 0, 0, 1, 0x3f, 0x80, 0, 0}));
    REQUIRE(load_idx(folder / "x.idx").item<float>() == 1.0f);
}

TEST_CASE("a bad idx file is named with its fault", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::string good = bytes_of_text({0, 0, 0x08, 1, 0, 0, 0, 4, 1, 2, 3, 4});
    const auto fault = [&](const std::string& text) {
        write_file(folder / "bad.gz", text);
        const std::string message = message_of<FileError>([&] { load_idx(folder / "bad.gz"); });
        REQUIRE_THAT(message, ContainsSubstring(folder / "bad.gz"));
        return message;
    };
    REQUIRE_THAT(message_of<FileError>([&] { load_idx(folder / "missing"); }),
                 ContainsSubstring("No such file"));
    REQUIRE_THAT(fault(""), ContainsSubstring("truncated"));
    REQUIRE_THAT(fault("<!DOCTYPE html>"), ContainsSubstring("is not an idx file"));
    REQUIRE_THAT(fault(bytes_of_text({0, 0, 0x07, 1, 0, 0, 0, 0})), ContainsSubstring("element type is 7"));
    REQUIRE_THAT(fault(good.substr(0, 10)),
                 ContainsSubstring("truncated: its array of shape [4] needs 4 bytes, at most 2"));
    REQUIRE_THAT(fault(good + "x"), ContainsSubstring("bytes are left over behind the elements"));
    const std::string packed = gzip(good + std::string(5000, 'a'));
    REQUIRE_THAT(fault(packed.substr(0, packed.size() / 2)), ContainsSubstring("truncated"));
    REQUIRE_THAT(fault(packed.substr(0, 2)), ContainsSubstring("truncated"));
    std::string damaged = gzip(good);
    damaged[damaged.size() - 6] ^= 1;  // the checksum
    REQUIRE_THAT(fault(damaged), ContainsSubstring("damaged"));
}
