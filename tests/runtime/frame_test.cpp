// Frames: one for all minibatches of one size; found again, replaced when there are many, refused when
// lengths differ.
#include "runtime/exec/frame.h"

#include "bitale/ops.h"
#include "runtime/exec/signature.h"
#include "runtime/state.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

// Frames of a function, with the values of its symbols in the order of the program's sources.
struct FramedFunction {
    Function function;
    std::vector<std::uint64_t> ids;
    std::vector<int> inputs;  // that give the symbols their values

    explicit FramedFunction(Function f) : function(std::move(f)) {
        for (const SizeSource& source : program()->size_sources) {
            ids.push_back(source.symbol);
            inputs.push_back(source.input);
        }
    }
    std::shared_ptr<const Program> program() const { return function.state().program; }
    Frames frames() const { return {program(), function.state().signature}; }
};

}  // namespace

TEST_CASE("all whole minibatches have one frame, the last one another", "[core][runtime][frame]") {
    const Shared data = shared(zeros({1000, 3}), "data");
    const Expr i = lscalar("i");
    const FramedFunction e(function({i}, {tanh(data[Slice{i * 64, (i + 1) * 64}])}, {.device = "null"}));
    Frames frames = e.frames();
    REQUIRE(e.ids.size() == 1);
    const auto find = [&](std::int64_t value) { return &frames.find(&value); };
    const Frame* whole = find(0);
    REQUIRE(whole->outputs[0] == Dims{64, 3});
    for (std::int64_t k = 1; k < 15; ++k) REQUIRE(find(k) == whole);
    const Frame* last = find(15);
    REQUIRE(last != whole);
    REQUIRE(last->outputs[0] == Dims{40, 3});
    REQUIRE(find(14) == whole);
    REQUIRE(whole->outputs[0] == Dims{64, 3});
    REQUIRE(find(15) == last);
}

TEST_CASE("frames of many sizes replace each other", "[core][runtime][frame]") {
    const Expr x = matrix("x");
    const FramedFunction e(function({x}, {sum(x, {0}), exp(x)}, {.device = "null", .specialise = false}));
    Frames frames = e.frames();
    for (int round = 0; round < 3; ++round)
        for (std::int64_t n = 1; n < 40; ++n) {
            const std::int64_t lengths[] = {n, 2 * n};
            const Frame& frame = frames.find(lengths);
            REQUIRE(frame.outputs[0] == Dims{2 * n});
            REQUIRE(frame.outputs[1] == Dims{n, 2 * n});
            REQUIRE(frame.output_bytes[1] == 8 * n * n);
        }
}

TEST_CASE("lengths that must agree are compared for every new value", "[core][runtime][frame]") {
    const Expr x = vector("x"), y = vector("y");
    const FramedFunction e(function({x, y}, {x + y}, {.device = "null"}));
    Frames frames = e.frames();
    const auto find = [&](std::int64_t a, std::int64_t b) {
        const std::int64_t lengths[] = {a, b};
        return frames.find(lengths).outputs[0];
    };
    REQUIRE(find(3, 3) == Dims{3});
    REQUIRE_THROWS_AS(find(3, 4), ShapeError);
    REQUIRE_THROWS_AS(find(3, 4), ShapeError);
    REQUIRE(find(3, 3) == Dims{3});
    REQUIRE(find(4, 4) == Dims{4});
}
