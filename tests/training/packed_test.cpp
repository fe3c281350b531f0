// Packed variables in checkpoints: bytes, scale and offset come back, files of another layout do not.
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"
#include "tests/training/shorthands.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Array levels(const Dims& shape, int count, int step) {
    std::vector<std::int32_t> list(static_cast<std::size_t>(count_of(shape)));
    for (std::size_t k = 0; k < list.size(); ++k) list[k] = static_cast<std::int32_t>(k) * step % count;
    return {list, shape};
}

}  // namespace

TEST_CASE("packed variables are saved as their bytes and come back with scale and offset") {
    const TemporaryFolder folder;
    const Dims shape{5, 2, 6, 3};
    const Array scales(std::vector<float>{0.5F, 3}, {2, 1, 1});
    for (const std::string& ending : endings) {
        INFO(ending);
        const std::string path = folder / ("packed" + ending);
        const PackedShared a = shared(levels(shape, 16, 7), {.storage = uint4, .name = "a"}),
                           b = shared(levels(shape, 2, 3),
                                      {.storage = uint1, .scale = 255, .offset = -1, .name = "b"}),
                           c = shared(levels(shape, 4, 5), {.storage = int4, .scale = scales, .name = "c"}),
                           d = shared(levels(shape, 256, 31), {.storage = uint8, .name = "d"});
        const Shared plain = shared(Array{1.F, 2.F}.as(bfloat16), "plain");
        save_checkpoint(path, {a, b, c, d, plain});

        PackedShared a2 = shared(zeros(shape, uint8), {.storage = uint4, .name = "a"}),
                     b2 = shared(zeros(shape, uint8),
                                 {.storage = uint1, .scale = 1, .offset = 0, .name = "b"}),
                     c2 = shared(zeros(shape, uint8),
                                 {.storage = int4, .scale = ones({2, 1, 1}), .name = "c"}),
                     d2 = shared(zeros(shape, uint8), {.storage = uint8, .name = "d"});
        const Shared plain2 = shared(Array{0.F, 0.F}.as(bfloat16), "plain");
        Function f = function({}, {sum(cast(a2, float32)), sum(b2), sum(c2)});
        f();
        const LoadedCheckpoint loaded = load_checkpoint(path, {a2, b2, c2, d2, plain2});
        CHECK(loaded.missing.empty());
        CHECK(loaded.surplus.empty());
        CHECK(same(a2.get_value(), a.get_value()));
        CHECK(same(b2.get_value(), b.get_value()));
        CHECK(same(c2.get_value(), c.get_value()));
        CHECK(same(d2.get_value(), d.get_value()));
        CHECK(same(plain2.get_value(), plain.get_value()));
        CHECK(b2.offset().get_value().at(0) == -1);
        Function g = function({}, {sum(cast(a, float32)), sum(b), sum(c)});
        const Results got = f(), expected = g();
        for (std::size_t k = 0; k < 3; ++k) CHECK(got[k].at(0) == expected[k].at(0));

        // Other readers find the bytes, half of the elements, and the text that tells what they are.
        const auto arrays = ending == ".npz" ? load_npz(path) : load_safetensors(path);
        CHECK(same(arrays.at("a"), a.packed().get_value()));
        CHECK(arrays.at("a").shape() == Dims{5, 2, 3, 3});
        CHECK(arrays.at("c.scale").shape() == Dims{2, 1, 1});
        CHECK_THAT(text_of_file(path),
                   ContainsSubstring("\"a\":\"uint4 [5, 2, 6, 3] in planes [1, 1, 2, 1]\""));
    }
}

TEST_CASE("bytes of another layout are not loaded, and nothing changes") {
    const TemporaryFolder folder;
    for (const std::string& ending : endings) {
        INFO(ending);
        const std::string packed = folder / ("packed" + ending), plain = folder / ("plain" + ending);
        const Array value = levels({4, 6}, 8, 3), zero = zeros({4, 6}, uint8);
        save_checkpoint(packed, {shared(value, {.storage = uint4, .scale = 1, .name = "x"})});
        save_checkpoint(plain, {shared(zeros({4, 3}, uint8), "x"), shared(1.F, "x.scale")});
        const auto message = [&](const std::string& path, const Checkpoint& checkpoint) {
            return message_of<FileError>([&] { load_checkpoint(path, checkpoint); });
        };
        const PackedShared other = shared(zero, {.storage = int4, .scale = 1, .name = "x"}),
                           same_bytes =
                               shared(zeros({4, 5}, uint8), {.storage = uint4, .scale = 1, .name = "x"}),
                           fits = shared(zero, {.storage = uint4, .scale = 1, .name = "x"}),
                           unscaled = shared(zero, {.storage = uint4, .name = "x"}),
                           shifted = shared(zero, {.storage = uint4, .scale = 1, .offset = 0, .name = "x"});
        CHECK_THAT(message(packed, {other}),
                   ContainsSubstring(
                       "another layout: \"x\" is int4 [4, 6] in planes [1, 2] (made at packed_test.cpp:") &&
                       ContainsSubstring("), and uint4 [4, 6] in planes [1, 2] in the file"));
        CHECK_THAT(message(packed, {same_bytes}), ContainsSubstring("uint4 [4, 5] in planes [1, 2]"));
        CHECK_THAT(message(packed, {unscaled}), ContainsSubstring("surplus in the file: \"x.scale\""));
        CHECK_THAT(message(packed, {shifted}), ContainsSubstring("missing in the file: \"x.offset\""));
        CHECK_THAT(message(packed, {shared(zeros({4, 3}, uint8), "x"), shared(1.F, "x.scale")}),
                   ContainsSubstring("another layout: \"x\" is uint8 [4, 3]"));
        CHECK_THAT(message(plain, {fits}), ContainsSubstring("and uint8 [4, 3] in the file"));
        CHECK(same(fits.get_value(), zero.as(float32)));
        load_checkpoint(packed, {fits});
        CHECK(same(fits.get_value(), value.as(float32)));
    }
}

TEST_CASE("a packed variable in a checkpoint wants a name") {
    const PackedShared x = shared(zeros({4}, uint8), {.storage = uint4});
    CHECK_THAT(message_of<GraphError>([&] { Checkpoint{x}; }), ContainsSubstring("which has no name"));
}
