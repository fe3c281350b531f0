// The safetensors format: what is written is read back; files that lie are refused with their fault.
#include <functional>
#include <limits>

#include "bitale/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

std::string length_of(std::uint64_t n) {
    std::string s;
    for (int i = 0; i < 8; ++i) s += static_cast<char>(n >> (8 * i) & 0xff);
    return s;
}

struct Files {
    TemporaryFolder folder;
    std::string put(const std::string& header, const std::string& data) const {
        write_file(folder / "x.safetensors", length_of(header.size()) + header + data);
        return folder / "x.safetensors";
    }
    std::map<std::string, Array> load(const std::string& header, const std::string& data) const {
        return load_safetensors(put(header, data));
    }
    std::string fault(const std::string& header, const std::string& data = "12345678",
                      LoadLimits limits = {}) const {
        const std::string path = put(header, data);
        return message_of<FileError>([&] { load_safetensors(path, limits); });
    }
};

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}";
}

}  // namespace

TEST_CASE("safetensors keep every dtype, shape and byte") {
    const TemporaryFolder folder;
    const std::string path = folder / "model.safetensors";
    Random random(1);
    std::map<std::string, Array> values;
    for (int t = 0; t < dtype_count; ++t) {
        const auto dtype = static_cast<DType>(t);
        const std::string name(name_of(dtype));
        for (const Dims& shape :
             {Dims{}, Dims{0}, Dims{1}, Dims{3, 5}, Dims{2, 0, 7}, Dims{1, 1, 1, 1, 1, 3}})
            values.emplace(name + text_of(shape), random_array(dtype, shape, random));
    }
    values.emplace("net.conv1.w \"quoted\" \\ \xc3\xa9 \xf0\x9f\x98\x80 / ", Array(1.5));
    values.emplace("", Array(2));
    save_safetensors(path, values);
    const std::map<std::string, Array> got = load_safetensors(path);
    REQUIRE(got.size() == values.size());
    for (const auto& [name, value] : values) {
        INFO(name);
        CHECK(same(got.at(name), value));
    }
    // The data begin at a multiple of 8, the widest elements first.
    const std::string text = text_of_file(path);
    CHECK(static_cast<unsigned char>(text[0]) % 8 == 0);
    CHECK(text.find("\"F64\"") < text.find("\"F32\""));
    CHECK(text.find("\"I16\"") < text.find("\"BOOL\""));
    save_safetensors(path, {});
    CHECK(load_safetensors(path).empty());
    CHECK(text_of_file(path) == length_of(8) + "{}      ");
}

TEST_CASE("headers of other programs are read") {
    const Files files;
    const auto got = files.load(
        " { \"__metadata__\" : { \"format\" : \"pt\", \"\\u00e9\": \"\" },\n"
        "\"b\\u00e9\\ud83d\\ude00\\/\\\"\" : { \"data_offsets\" : [ 4 , 8 ], \"shape\" : [ ],\t\"dtype\" : "
        "\"I32\" }, \"a\" : {\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]} }   ",
        std::string("abcd\1\0\0\0", 8));
    REQUIRE(got.size() == 2);
    CHECK(got.at("a").to_vector<int>() == std::vector<int>{97, 98, 99, 100});
    CHECK(got.at("b\xc3\xa9\xf0\x9f\x98\x80/\"").item<int>() == 1);
    CHECK(files.load("{}", "").empty());
    // A boolean of a file is true where it is not 0.
    CHECK(files.load("{" + entry("t", "BOOL", "[3]", "[0,3]") + "}", std::string("\0\1\7", 3))
              .at("t")
              .to_vector<int>() == std::vector<int>{0, 1, 1});
}

TEST_CASE("malformed headers are refused") {
    const Files files;
    const std::string good = entry("x", "U8", "[8]", "[0,8]");
    const auto object = [](const std::string& s) { return "{" + s + "}"; };
    for (const std::string& header :
         {std::string(),
          std::string("["),
          std::string("null"),
          "{" + good,
          object(good + ","),
          object("," + good),
          object(good) + "x",
          object(good) + "{}",
          object("\"x\":{}"),
          object("\"x\":1"),
          object("x:1"),
          object("\"x\"" + good.substr(4)),
          object(R"("x":{"dtype":"U8","shape":[8]})"),
          object(R"("x":{"dtype":"U8","data_offsets":[0,8]})"),
          object(R"("x":{"shape":[8],"data_offsets":[0,8]})"),
          object(R"("x":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"more":1})"),
          object(R"("x":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]})"),
          object(entry("x", "U8", "[-8]", "[0,8]")),
          object(entry("x", "U8", "[8.0]", "[0,8]")),
          object(entry("x", "U8", "[8e0]", "[0,8]")),
          object(entry("x", "U8", "[08]", "[0,8]")),
          object(entry("x", "U8", "[8,]", "[0,8]")),
          object(entry("x", "U8", "[,8]", "[0,8]")),
          object(entry("x", "U8", "[8 8]", "[0,8]")),
          object(entry("x", "U8", "8", "[0,8]")),
          object(entry("x", "U8", "[[8]]", "[0,8]")),
          object(entry("x", "U8", "[8]", "[0]")),
          object(entry("x", "U8", "[8]", "[0,8,8]")),
          object(entry("x", "U8", "[8]", "[0,-8]")),
          object(entry("x", "U8", "[8]", "[0,99999999999999999999]")),
          object(R"("__metadata__":{"a":1})"),
          object(R"("__metadata__":[])"),
          object(entry("\\u12", "U8", "[8]", "[0,8]")),
          object(entry("\\ud800", "U8", "[8]", "[0,8]")),
          object(entry("\\udc00", "U8", "[8]", "[0,8]")),
          object(entry("\\ud800\\u0041", "U8", "[8]", "[0,8]")),
          object(entry("\\x", "U8", "[8]", "[0,8]")),
          object(entry("a\nb", "U8", "[8]", "[0,8]")),
          std::string("{\"x"),
          std::string("{\"x\\")}) {
        INFO(header);
        CHECK_THAT(files.fault(header), ContainsSubstring("x.safetensors\" ") &&
                                            ContainsSubstring("malformed safetensors header"));
    }
    CHECK_THAT(files.fault(object(entry("a\xff", "U8", "[8]", "[0,8]"))), ContainsSubstring("not UTF-8"));
    for (const char* name : {"a\\nb", "\\u0000", "\\u007f"}) {
        INFO(name);
        CHECK_THAT(files.fault(object(entry(name, "U8", "[8]", "[0,8]"))),
                   ContainsSubstring("control characters"));
    }
    CHECK_THAT(files.fault(object(good + "," + entry("x", "U8", "[0]", "[8,8]"))),
               ContainsSubstring("two entries \"x\""));
    CHECK_THAT(files.fault(object(entry("x", "F8_E4M3", "[8]", "[0,8]"))),
               ContainsSubstring("elements of type \"F8_E4M3\" in \"x\", which no bitale dtype can hold"));
    std::string deep(100000, '[');
    CHECK_THAT(files.fault("{\"x\":" + deep), ContainsSubstring("malformed"));
}

TEST_CASE(
    "offsets, shapes and sizes of safetensors that lie are refused, and nothing is allocated for them") {
    const Files files;
    const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
        return "{" + entry("x", dtype, shape, offsets) + "}";
    };
    CHECK_THAT(files.fault(one("U8", "[9]", "[0,9]")),
               ContainsSubstring("is truncated or damaged") && ContainsSubstring("0 to 9 of 8"));
    CHECK_THAT(files.fault(one("U8", "[8]", "[8,0]")), ContainsSubstring("8 to 0 of 8"));
    CHECK_THAT(files.fault(one("U8", "[8]", "[18446744073709551615,8]")), ContainsSubstring("of 8"));
    CHECK_THAT(files.fault(one("U8", "[7]", "[0,8]")), ContainsSubstring("left over"));
    CHECK_THAT(files.fault(one("U16", "[8]", "[0,8]")), ContainsSubstring("needs 16 bytes"));
    CHECK_THAT(files.fault(one("U8", "[7]", "[0,7]")), ContainsSubstring("left over behind its arrays"));
    CHECK_THAT(files.fault(one("U8", "[7]", "[1,8]")), ContainsSubstring("belong to no entry"));
    for (const char* shape :
         {"[4294967296,4294967296]", "[9223372036854775807,2]", "[9223372036854775807,9223372036854775807,0]",
          "[18446744073709551615]", "[9223372036854775808]"}) {
        INFO(shape);
        CHECK_THAT(files.fault(one("F64", shape, "[0,8]")), ContainsSubstring("absurd shape"));
    }
    CHECK_THAT(files.fault(one("U8", "[1099511627776]", "[0,8]")), ContainsSubstring("needs 1099511627776"));
    CHECK_THAT(
        files.fault("{" + entry("a", "U8", "[6]", "[0,6]") + "," + entry("b", "U8", "[6]", "[2,8]") + "}"),
        ContainsSubstring("overlap"));
    CHECK_THAT(
        files.fault("{" + entry("a", "U8", "[8]", "[0,8]") + "," + entry("b", "U8", "[8]", "[0,8]") + "}"),
        ContainsSubstring("overlap"));
    CHECK_THAT(files.fault(one("U8", "[8]", "[0,8]"), "12345678", {.bytes = 7}),
               ContainsSubstring("more than 7 bytes of arrays, the limit"));
    CHECK_THAT(files.fault(one("U8", "[1,1,8]", "[0,8]"), "12345678", {.rank = 2}),
               ContainsSubstring("rank 3, above the limit of 2"));
    std::string many = "[";
    for (int i = 0; i < 100000; ++i) many += "1,";
    CHECK_THAT(files.fault(one("U8", many + "8]", "[0,8]")), ContainsSubstring("above the limit of 32"));

    const std::string path = files.folder / "x.safetensors";
    const auto fault_of = [&](const std::string& text) {
        write_file(path, text);
        return message_of<FileError>([&] { load_safetensors(path); });
    };
    CHECK_THAT(fault_of(""), ContainsSubstring("is no safetensors file, or truncated"));
    CHECK_THAT(fault_of("1234567"), ContainsSubstring("is no safetensors file, or truncated"));
    CHECK_THAT(fault_of(length_of(100) + "{}"), ContainsSubstring("is truncated"));
    CHECK_THAT(fault_of(length_of(std::numeric_limits<std::uint64_t>::max()) + "{}"),
               ContainsSubstring("is no safetensors file"));
    CHECK_THAT(fault_of("PK\3\4 an archive of another format"), ContainsSubstring("is no safetensors file"));
    CHECK_THROWS_AS(load_safetensors(files.folder / "none"), FileError);
    CHECK_THROWS_AS(load_safetensors(files.folder.path()), FileError);
}

TEST_CASE("names that the format cannot have are refused before there is a file") {
    const TemporaryFolder folder;
    const std::string path = folder / "x.safetensors";
    CHECK_THAT(message_of<FileError>([&] {
                   save_safetensors(path, {{"a\nb", Array(1)}});
               }),
               ContainsSubstring("control characters"));
    CHECK_THAT(message_of<FileError>([&] {
                   save_safetensors(path, {{"\xff", Array(1)}});
               }),
               ContainsSubstring("UTF-8"));
    CHECK_THAT(message_of<FileError>([&] {
                   save_safetensors(path, {{"__metadata__", Array(1)}});
               }),
               ContainsSubstring("__metadata__"));
    CHECK(std::filesystem::is_empty(folder.path()));
}
