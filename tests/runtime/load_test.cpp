// Files that want to hurt: headers that lie, archives that unfold, what is no file at all.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <numeric>

#include "bitale/function.h"
#include "bitale/io.h"
#include "bitale/ops.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"
#include "tests/support/zip.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

std::int64_t peak_kilobytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

struct Files {
    TemporaryFolder folder;
    std::string put(const std::string& name, const std::string& text) const {
        write_file(folder / name, text);
        return folder / name;
    }
    // What load_npy says of a file with this header.
    std::string npy_fault(const std::string& header, const std::string& data = "12345678") const {
        const std::string path = put("bad.npy", npy_file(header, data));
        return message_of<FileError>([&] { load_npy(path); });
    }
};

std::string header_of(const std::string& shape, const std::string& descr = "'|u1'",
                      const std::string& order = "False") {
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

}  // namespace

TEST_CASE("npy headers are read by their grammar", "[core][runtime][io]") {
    const Files files;
    for (const char* shape :
         {"(-2, 3)", "(1e1, 3)", "(x2y3)", "(2 3)", "(8)", "8", "(8,,)", "(,)", "(0x8,)", "(08,)", "(8.,)",
          "[8]", "((8,),)", "(8,", "(8, 'x')", "(+8,)", "(8l,)", "None"}) {
        INFO(shape);
        CHECK_THAT(files.npy_fault(header_of(shape)), ContainsSubstring("malformed npy header"));
    }
    for (const char* order : {"true", "1", "'False'", "Falsehood", ""}) {
        INFO(order);
        CHECK_THAT(files.npy_fault(header_of("(8,)", "'|u1'", order)),
                   ContainsSubstring("malformed npy header"));
    }
    for (const char* header :
         {"", "{", "}", "{}", "{'descr': '|u1'", "{'descr': '|u1' 'fortran_order': False, 'shape': (8,)}",
          "{'descr': '|u1', 'fortran_order': False, 'shape': (8,)} x",
          "{'descr': '|u1', 'fortran_order': False, 'shape': (8,), 'more': 1}",
          "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (8,)}",
          "{'descr': '|u1', 'fortran_order': False, 'shape': (8,), 'shape': (1, 8)}",
          "{'shape'(8,): , 'descr': '|u1', 'fortran_order': False}", "{'descr': u1, 'fortran_order': False}",
          "{'descr': '|u1\\x31', 'fortran_order': False, 'shape': (8,)}", "{'descr: '|u1', 'shape': (8,)}"}) {
        INFO(header);
        CHECK_THAT(files.npy_fault(header), ContainsSubstring("malformed npy header"));
    }
    for (const char* descr : {"'<f3'", "'|S8'", "'O'", "''", "'<'", "'<<f4'", "'|b8'"}) {
        INFO(descr);
        CHECK_THAT(files.npy_fault(header_of("(1,)", descr)), ContainsSubstring("no bitale dtype can hold"));
    }
    CHECK_THAT(files.npy_fault(std::string(70000, ' ') + header_of("(8,)")), ContainsSubstring("npy header"));
    for (const char* good : {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4)}",
                             "{\"shape\":(2,4,),\"descr\":\"u1\",\"fortran_order\":False}",
                             " { 'fortran_order' : True , 'shape' : (4L, 2L) , 'descr' : '|u1' , } \n"})
        CHECK(load_npy(files.put("good.npy", npy_file(good, "12345678"))).size() == 8);
    CHECK(load_npy(files.put("scalar.npy", npy_file(header_of("()"), "\x07"))).item<int>() == 7);
}

TEST_CASE("booleans of a file are 0 or 1", "[core][runtime][io]") {
    const Files files;
    const Array a = load_npy(
        files.put("b.npy", npy_file(header_of("(4,)", "'|b1'"), std::string("\x02\xff\x00\x01", 4))));
    CHECK(a.as(uint8).to_vector<int>() == std::vector<int>{1, 1, 0, 1});
    const Expr x = vector("x", boolean);
    CHECK(function({x}, sum(cast(x, int32)), {.device = "cpu"})(a)[0].item<int>() == 3);
}

TEST_CASE("sizes, ranks and lengths beyond what an array can be are refused", "[core][runtime][io]") {
    const Files files;
    const std::string most = "9223372036854775807";
    for (const std::string& shape : {"(0, " + most + ", " + most + ")", "(" + most + ", 0, 2)",
                                     "(" + most + ", 2)", "(" + most + "0,)"}) {
        INFO(shape);
        CHECK_THAT(files.npy_fault(header_of(shape), ""), ContainsSubstring("absurd shape"));
    }
    std::string deep = "(";
    for (int axis = 0; axis < 300; ++axis) deep += "1, ";
    CHECK_THAT(files.npy_fault(header_of(deep + ")"), "x"),
               ContainsSubstring("rank 300, above the limit of 32"));
    const std::string path = files.put("rank.npy", npy_file(header_of("(1, 1, 1)"), "x"));
    CHECK(load_npy(path, {.rank = 3}).rank() == 3);
    CHECK_THROWS_WITH(load_npy(path, {.rank = 2}), ContainsSubstring("LoadLimits::rank"));
    const std::string eight = files.put("eight.npy", npy_file(header_of("(8,)"), "12345678"));
    CHECK(load_npy(eight, {.bytes = 8}).size() == 8);
    CHECK_THROWS_WITH(load_npy(eight, {.bytes = 7}), ContainsSubstring("more than 7 bytes of arrays") &&
                                                         ContainsSubstring("LoadLimits::bytes"));
    CHECK_THAT(files.npy_fault(header_of("(8,)"), "123456789"), ContainsSubstring("bytes are left over"));
    // idx files say their rank in a byte.
    std::string idx("\0\0\x08\xff", 4);
    for (int axis = 0; axis < 255; ++axis) idx += std::string("\0\0\0\x01", 4);
    CHECK_THROWS_WITH(load_idx(files.put("deep.idx", idx + "x")), ContainsSubstring("rank 255"));
}

TEST_CASE("no memory is taken for what a header only claims", "[core][runtime][io]") {
    const Files files;
    const std::int64_t before = peak_kilobytes();
    const std::string claim = header_of("(12000000000,)");
    CHECK_THAT(files.npy_fault(claim), ContainsSubstring("truncated"));
    const std::string idx("\0\0\x08\x02\0\1\0\0\0\1\0\0", 12);  // 65536 x 65536
    CHECK_THROWS_WITH(load_idx(files.put("claim.idx", idx)), ContainsSubstring("truncated"));
    CHECK_THROWS_WITH(load_idx(files.put("claim.gz", gzip(idx))), ContainsSubstring("truncated"));
    // Eight bytes of header and 16 MB behind them, as 16 KB of gzip: not unpacked beyond the header's end.
    const std::string small("\0\0\x08\x01\0\0\0\x0a", 8);
    CHECK_THROWS_WITH(load_idx(files.put("bomb.gz", gzip(small + std::string(std::size_t{16} << 20, '\0')))),
                      ContainsSubstring("bytes are left over"));
    ZipFile zip;
    zip.deflated("a.npy", npy_file(claim, std::string(1000, 'x')));
    CHECK_THROWS_WITH(load_npz(files.put("claim.npz", zip.text())), ContainsSubstring("truncated"));
    // The tests themselves hold 16 MB of text, and its copies; a sanitizer keeps what was freed for a while.
    CHECK(peak_kilobytes() - before < 400 << 10);
}

TEST_CASE("archives that are larger than they look are refused", "[core][runtime][io]") {
    const Files files;
    const std::string entry = npy_file(header_of("(100000,)"), std::string(100000, 'x'));
    ZipFile good;
    for (const char* name : {"a.npy", "b.npy"}) good.deflated(name, entry);
    const std::string path = files.put("good.npz", good.text());
    CHECK(load_npz(path, {.bytes = 200000}).size() == 2);
    CHECK_THROWS_WITH(load_npz(path, {.bytes = 199999}), ContainsSubstring("the limit"));
    // Sixty entries over one body.
    ZipFile many;
    const std::uint64_t place = many.deflated("a.npy", entry);
    for (int i = 0; i < 60; ++i) many.again("a.npy", place);
    CHECK_THROWS_WITH(load_npz(files.put("many.npz", many.text())), ContainsSubstring("overlap"));
    ZipFile twice;
    twice.stored("a.npy", entry);
    twice.stored("a.npy", entry);
    CHECK_THROWS_WITH(load_npz(files.put("twice.npz", twice.text())),
                      ContainsSubstring("two arrays of the name \"a\""));
    ZipFile same;
    same.stored("a.npy", entry);
    same.stored("a", entry);
    CHECK_THROWS_WITH(load_npz(files.put("same.npz", same.text())),
                      ContainsSubstring("two arrays of the name \"a\""));
    // The directory's name is another than that of the entry.
    ZipFile lying;
    const std::uint64_t at = lying.stored("a.npy", entry);
    lying.forget();
    lying.again("b.npy", at);
    CHECK_THROWS_WITH(load_npz(files.put("lying.npz", lying.text())),
                      ContainsSubstring("not that of the directory"));
    ZipFile left;
    left.stored("a.npy", entry + "x");
    CHECK_THROWS_WITH(load_npz(files.put("left.npz", left.text())), ContainsSubstring("bytes are left over"));
}

TEST_CASE("pipes, devices and folders neither hang nor fill the memory", "[core][runtime][io]") {
    const Files files;
    const std::string pipe = files.folder / "pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    for (const std::string& path : {pipe, std::string("/dev/zero")}) {
        INFO(path);
        CHECK_THROWS_WITH(load_npy(path), ContainsSubstring("it is a pipe or a device"));
        CHECK_THROWS_AS(load_npz(path), FileError);
        CHECK_THROWS_AS(load_idx(path), FileError);
    }
    CHECK_THROWS_WITH(load_npy(files.folder.path()), ContainsSubstring("it is a folder"));
}

TEST_CASE("gzip files of several members are one file", "[core][runtime][io]") {
    const Files files;
    const std::string header("\0\0\x08\x01\0\0\0\x0a", 8);
    CHECK(load_idx(files.put("two.gz", gzip(header + "0123") + gzip("456789"))).to_vector<int>()[9] == '9');
    CHECK_THROWS_WITH(load_idx(files.put("tail.gz", gzip(header + "0123456789") + "tail")),
                      ContainsSubstring("damaged"));
    CHECK_THROWS_WITH(load_idx(files.put("short.gz", gzip(header + "0123"))), ContainsSubstring("truncated"));
}

TEST_CASE("large arrays of either memory order go through small pieces", "[core][runtime][io]") {
    const Files files;
    std::vector<std::uint16_t> values(300 * 200);
    std::iota(values.begin(), values.end(), std::uint16_t{0});
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * 2);
    const Array c = load_npy(files.put("c.npy", npy_file(header_of("(300, 200)", "'<u2'"), bytes))),
                f = load_npy(files.put("f.npy", npy_file(header_of("(200, 300)", "'<u2'", "True"), bytes)));
    CHECK(c.to_vector<std::uint16_t>() == values);
    for (std::int64_t i = 0; i < 200; ++i)
        for (std::int64_t j = 0; j < 300; ++j) REQUIRE(f.at<int>(i * 300 + j) == c.at<int>(j * 200 + i));
}
