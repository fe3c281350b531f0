// Facts of a machine: each of them alone changes what it says, on a target that is otherwise the usual one.
#include "codegen/target.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <variant>

#include "bitale/bitale.h"
#include "codegen/library/cost.h"
#include "codegen/pipeline.h"
#include "graph/ir/node.h"
#include "ops/registry.h"
#include "ops/rules/phases.h"
#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

Program program_of(const std::vector<Expr>& inputs, const std::vector<Expr>& outputs, const Target& target) {
    register_all_ops();
    Graph graph;
    graph.name = "facts";
    for (const Expr& x : inputs) graph.inputs.push_back(x.node());
    for (const Expr& y : outputs) graph.outputs.push_back(y.node());
    collect_checks(graph);
    optimize(graph);
    return generate(graph, target);
}

std::string text_of(const Program& program) {
    std::string s;
    for (const KernelText& kernel : program.kernels) s += kernel.body;
    return s;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class Kind>
std::vector<Kind> steps_of(const Program& program) {
    std::vector<Kind> steps;
    for (const Step& step : program.body.steps)
        if (const Kind* s = std::get_if<Kind>(&step.operation)) steps.push_back(*s);
    return steps;
}

// Of the declarations "b_lanes<f32, LANES>::type pN[COUNT];".
struct Registers {
    int lanes = 0, count = 0;
};
Registers most_registers(const std::string& text) {
    static const std::regex declaration(R"(b_lanes<f32, (\d+)>::type p\d+\[(\d+)\])");
    Registers most;
    for (std::sregex_iterator it(text.begin(), text.end(), declaration); it != std::sregex_iterator(); ++it) {
        most.lanes = std::max(most.lanes, std::stoi((*it)[1]));
        most.count = std::max(most.count, std::stoi((*it)[2]));
    }
    return most;
}

}  // namespace

TEST_CASE("a convolution has tiles of the vectors that the machine holds") {
    const Expr x = input(float32, {8, 16, 16, 48}, "x"), w = input(float32, {48, 48, 3, 3}, "w");
    const Expr y = transpose(conv2d(transpose(x, {0, 3, 1, 2}), w), {0, 2, 3, 1});
    for (const auto& [bytes, registers] : {std::pair{64, 32}, {32, 16}, {16, 16}, {8, 8}}) {
        Target target;
        target.vector_bytes = bytes;
        target.vector_registers = registers;
        const Registers most = most_registers(text_of(program_of({x, w}, {y}, target)));
        INFO(bytes << " bytes, " << registers << " registers");
        CHECK(most.lanes == bytes / 4);
        CHECK(most.count >= 2);
        CHECK(most.count < registers);
    }
    Target scalar;
    scalar.vector_registers = 0;
    CHECK(most_registers(text_of(program_of({x, w}, {y}, scalar))).lanes == 0);
}

TEST_CASE("products of bytes are calls in int32 where a library has these, and of floats elsewhere") {
    const Expr x = input(uint8, {256, 784}, "x"), w = input(int8, {784, 512}, "w"),
               scale = input(float32, Dims{512}, "scale");
    const auto widened = [](const Expr& e) { return cast(e, float32); };
    Target floats;
    floats.has_gemm = floats.has_gemm_f64 = true;
    Target bytes = floats;
    bytes.has_gemm_int8 = true;
    for (const Expr& y : {dot(x, w), dot(widened(x), widened(w)), dot(widened(x) / 255, widened(w) * scale),
                          sum(expand_dims(cast(x, int32), 2) * expand_dims(cast(w, int32), 0), 1),
                          dot(cast(x, int32) - 128, cast(w, int32)),
                          dot((widened(x) - 3) / 2, widened(w) + 1), dot(transpose(w), transpose(x))}) {
        const std::vector<GemmStep> products = steps_of<GemmStep>(program_of({x, w, scale}, {y}, bytes));
        REQUIRE(products.size() == 1);
        CHECK(products[0].call.dtype == DType::int32);
        CHECK(products[0].call.unsigned_a);
        CHECK(!products[0].pieces_a);  // bytes are read where they lie
        for (const GemmStep& product : steps_of<GemmStep>(program_of({x, w, scale}, {y}, floats)))
            CHECK(product.call.dtype == DType::float32);
    }
    // What no such call takes.
    const Expr other = input(uint8, {784, 512}, "other"), wider = input(int16, {784, 512}, "wider"),
               deep = input(uint8, {8, 1 << 17}, "deep"), long_columns = input(int8, {1 << 17, 8}, "long");
    for (const auto& [a, b] : {std::pair{x, other}, {x, wider}, {deep, long_columns}})
        for (const GemmStep& product : steps_of<GemmStep>(program_of({a, b}, {dot(a, b)}, bytes)))
            CHECK(product.call.dtype != DType::int32);
}

TEST_CASE("pieces of a concatenation ask no element which part it is of") {
    const Expr x = input(float32, {32, 32, 32, 64}, "x"), w = input(float32, {576, 64}, "w");
    std::vector<Expr> patches, planes;
    for (int k = 0; k < 9; ++k) {
        patches.push_back(x[{colon, Slice{k / 3, k / 3 + 30}, Slice{k % 3, k % 3 + 30}}]);
        planes.push_back(
            expand_dims(patches.back(), 3));  // the parts of an axis that is joined with channels
    }
    Target target;
    target.has_gemm = true;
    for (const Expr& columns :
         {concatenate(patches, 3), reshape(concatenate(planes, 3), {32, 30, 30, 576})}) {
        const Program program = program_of({x, w}, {dot(columns, w)}, target);
        const std::vector<GemmStep> products = steps_of<GemmStep>(program);
        REQUIRE(products.size() == 1);
        REQUIRE(products[0].pieces_a);
        CHECK(has(text_of(program), "= p0["));
        CHECK(!has(text_of(program), "? p0["));
    }
}

TEST_CASE("pieces of patches of planes walk along the rows of images") {
    const Expr x = input(float32, {16, 64, 32, 32}, "x"), w = input(float32, {576, 64}, "w");
    std::vector<Expr> patches, planes;
    for (int k = 0; k < 9; ++k) {
        patches.push_back(x[{colon, colon, Slice{k / 3, k / 3 + 30}, Slice{k % 3, k % 3 + 30}}]);
        planes.push_back(expand_dims(patches.back(), 2));
    }
    Target target;
    target.has_gemm = true;
    const Expr side_by_side = concatenate(patches, 1),
               in_turn = reshape(concatenate(planes, 2), {16, 576, 30, 30});  // channels outside of places
    for (const Expr& columns : {side_by_side, in_turn}) {
        const Program program = program_of({x, w}, {dot(transpose(columns, {0, 2, 3, 1}), w)}, target);
        const std::vector<GemmStep> products = steps_of<GemmStep>(program);
        REQUIRE(products.size() == 1);
        REQUIRE(products[0].pieces_a);
        CHECK(products[0].call.transpose_a);  // pieces lie as images do
        CHECK(has(text_of(program), "= p0["));
        CHECK(!has(text_of(program), "? p0["));
    }
}

TEST_CASE("the estimate of a product has what making the pieces of its operands takes") {
    const Expr x = input(float32, {32, 32, 32, 64}, "x"), w = input(float32, {576, 64}, "w");
    std::vector<Expr> patches;
    for (int k = 0; k < 9; ++k)
        patches.push_back(x[{colon, Slice{k / 3, k / 3 + 30}, Slice{k % 3, k % 3 + 30}}]);
    const Expr a = input(float32, {28800, 576}, "a");
    Target target;
    target.has_gemm = true;
    const auto call_of = [&](const Expr& columns, const Expr& from) {
        const std::vector<GemmStep> products =
            steps_of<GemmStep>(program_of({from, w}, {dot(columns, w)}, target));
        REQUIRE(products.size() == 1);
        return products[0].call;
    };
    CHECK(cost_of_pieces(call_of(a, a)) == 0);
    GemmCall made = call_of(reshape(concatenate(patches, 3), {28800, 576}), x);
    REQUIRE(made.made_a);
    made.slice_columns = 64;
    const double once = cost_of_pieces(made);
    CHECK(std::abs(once / (made_ns * 28800 * 576) - 1) < 1e-9);
    made.slice_columns = 16;  // each slice of columns makes them again
    CHECK(cost_of_pieces(made) == 4 * once);
}

TEST_CASE("pooling with a border has pairs of neighbours in its gradient, as without") {
    const Expr x = input(float32, {32, 16, 64, 64}, "x");
    for (const int pad : {0, 1}) {
        CAPTURE(pad);
        const Expr y = max_pool(x, 2, {.stride = 2, .pad = pad});
        const std::string text = text_of(program_of({x}, {grad(sum(sqr(y)), x)}, {}));
        CHECK(has(text, "= p"));
        CHECK(!has(text, "/ 2)"));
    }
}

TEST_CASE("sums that walk down columns have a line of them in a task") {
    const Expr a = input(float32, {1024, 16}, "a"), b = input(float32, {1024, 16}, "b");
    const Expr distance = sum(sqr(expand_dims(a, 1) - expand_dims(b, 0)), 2);
    for (const Expr& of : {a, b}) {
        const Program program = program_of({a, b}, {grad(sum(exp(-distance)), of)}, {});
        for (const KernelStep& kernel : steps_of<KernelStep>(program))
            for (const Int& tasks : kernel.tasks) CHECK(tasks.constant() <= 256);
    }
}

TEST_CASE("results beyond the caches pass them by where a store would read its line") {
    const Expr x = input(float32, {4096, 8192}, "x"), b = input(float32, {8192}, "b");
    Target target;
    CHECK(has(text_of(program_of({x, b}, {x + b}, target)), "b_leave"));
    target.stores_read_lines = false;
    CHECK(!has(text_of(program_of({x, b}, {x + b}, target)), "b_leave"));
}

TEST_CASE("what all lanes of a loop ask of unknown lengths is computed before the loop") {
    const Expr x = matrix("x");
    // Whether there is a row above.
    const Expr wide = pad(x, {{1, 1}, {1, 1}});
    const Expr sides = wide[{Slice{0, -2}, Slice{1, -1}}] + wide[{Slice{2, {}}, Slice{1, -1}}];
    const std::string stencil = text_of(program_of({x}, {sides}, {}));
    CHECK(std::regex_search(stencil, std::regex(R"(i32 q\d+ = \(.* & .*;\s+B_OPAQUE)")));
    CHECK(std::regex_search(stencil, std::regex(R"(\(q\d+ != 0\)\) \? )")));
}

TEST_CASE("chunks of one row are tasks of their own where threads hide waits") {
    const Expr x = input(float32, {256, 262144}, "x");
    const auto phases = [&](const Target& target) {
        const Program program = program_of({x}, {sum(x, 1)}, target);
        REQUIRE(program.kernels.size() == 1);
        return program.kernels[0].entries.size();
    };
    Target target;
    CHECK(phases(target) == 1);
    target.threads_hide_waits = true;
    CHECK(phases(target) == 2);
}

TEST_CASE("a scatter is sorted where that takes less than looking at all indices for each row") {
    const Expr table = input(float32, {1000, 128}, "table"), i = input(int32, {4096}, "i");
    const Expr g = grad(sum(sqr(gather(table, i))), table);
    Target target;
    CHECK(has(text_of(program_of({table, i}, {g}, target)), "b_sort_row"));
    target.looks_of_sort = infinite;
    CHECK(!has(text_of(program_of({table, i}, {g}, target)), "b_sort_row"));
}

TEST_CASE("a value of each column is stored where its divisions take longer than a kernel") {
    const Expr x = input(float32, {1024, 512}, "x"), b = input(float32, {512}, "b"), column = sum(x, 0);
    const auto kept = [&](const Target& target) {
        const Program program = program_of({x, b}, {column, x - column / b}, target);
        return std::count_if(program.buffers.begin(), program.buffers.end(),
                             [](const BufferInfo& buffer) { return buffer.kind == BufferInfo::Kind::arena; });
    };
    Target target;
    CHECK(kept(target) == 1);
    target.divisions_of_launch = infinite;
    CHECK(kept(target) == 0);
}

TEST_CASE("maps follow a product in the tasks that call the library, or are kernels of their own") {
    const Expr x = input(float32, {512, 1024}, "x"), w = input(float32, {1024, 1024}, "w"),
               b = input(float32, {1024}, "b");
    Target target;
    target.has_gemm = true;
    const auto in_tasks = steps_of<GemmStep>(program_of({x, w, b}, {tanh(dot(x, w) + b)}, target));
    REQUIRE(in_tasks.size() == 1);
    CHECK(in_tasks[0].epilogue);
    target.library_in_tasks = false;
    const Program apart = program_of({x, w, b}, {tanh(dot(x, w) + b)}, target);
    REQUIRE(steps_of<GemmStep>(apart).size() == 1);
    CHECK(!steps_of<GemmStep>(apart)[0].epilogue);
    CHECK(steps_of<KernelStep>(apart).size() == 1);
}

TEST_CASE("a step says what its tasks cost where threads of the runtime share them") {
    const Expr x = input(float32, {512, 1024}, "x");
    Target target;
    const auto shared = steps_of<KernelStep>(program_of({x}, {exp(x)}, target));
    REQUIRE(shared.size() == 1);
    CHECK(!shared[0].work.empty());
    target.threads_share_tasks = false;
    CHECK(steps_of<KernelStep>(program_of({x}, {exp(x)}, target))[0].work.empty());
}

TEST_CASE("kernels of steps that are queued read integer arguments themselves") {
    const Expr x = input(float32, {1000, 64}, "x"), count = input(int64, {}, "count");
    const auto buffers = [&](const Target& target) {
        const auto steps =
            steps_of<KernelStep>(program_of({x, count}, {rows(x, Expr(0), count) * 2.0f}, target));
        REQUIRE(steps.size() == 1);
        return steps[0].launch.buffers.size();
    };
    Target target;
    CHECK(buffers(target) == 2);
    target.steps_are_queued = true;
    CHECK(buffers(target) == 3);
}
