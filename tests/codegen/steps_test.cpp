// What a step tells of its buffers and kernels, whatever it does.
#include "codegen/program.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

using List = std::vector<int>;

Step step_of(decltype(Step::operation) operation) {
    Step step;
    step.operation = std::move(operation);
    return step;
}

KernelLaunch launch(int kernel, List buffers) { return {kernel, std::move(buffers), {}, {}, {}}; }

}  // namespace

TEST_CASE("a step lists all of its buffers, those of its own before those of its kernels") {
    const Step kernel = step_of(KernelStep{launch(4, {7, 3, 7}), {}, {}, {}});
    CHECK(buffers_of(kernel) == List{7, 3, 7});
    CHECK(buffers_of(step_of(KernelStep{})).empty());
    CHECK(buffers_of(step_of(CopyStep{5, 6})) == List{5, 6});
    CHECK(buffers_of(step_of(RoutineStep{{}, {1, 2}, 3, 4})) == List{1, 2, 3, 4});

    GemmStep gemm;
    gemm.a = 1, gemm.b = 2, gemm.c = 3;
    CHECK(buffers_of(step_of(gemm)) == List{1, 2, 3});
    gemm.pieces_b = launch(9, {2, 8});
    CHECK(buffers_of(step_of(gemm)) == List{1, 2, 3, 2, 8});
    gemm.bias = 4;
    gemm.epilogue = launch(5, {3, 6});
    gemm.pieces_a = launch(7, {1});
    CHECK(buffers_of(step_of(gemm)) == List{1, 2, 3, 4, 3, 6, 1, 2, 8});
}

TEST_CASE("a convolution's step lists what it reads before what it computes") {
    using Kind = ConvCall::Kind;
    ConvStep conv;
    conv.image = 1, conv.filters = 2, conv.output = 3;
    for (const auto& [kind, buffers] : {std::pair{Kind::forward, List{1, 2, 3}},
                                        {Kind::image_gradient, List{2, 3, 1}},
                                        {Kind::filter_gradient, List{1, 3, 2}}}) {
        conv.call.kind = kind;
        CHECK(buffers_of(step_of(conv)) == buffers);
        CHECK(result_of(step_of(conv)) == buffers[2]);
    }
    conv.call.kind = Kind::forward;
    conv.bias = 4;
    CHECK(buffers_of(step_of(conv)) == List{1, 2, 3, 4});
}

TEST_CASE("a step names its result and the kernel that computes it") {
    const Step kernel = step_of(KernelStep{launch(4, {7}), {}, {}, {}});
    CHECK(!result_of(kernel));
    REQUIRE(kernel_of(kernel));
    CHECK(kernel_of(kernel)->kernel == 4);

    GemmStep gemm;
    gemm.a = 1, gemm.b = 2, gemm.c = 3;
    gemm.pieces_a = launch(6, {1});  // makes operands, no results
    CHECK(result_of(step_of(gemm)) == 3);
    CHECK(!kernel_of(step_of(gemm)));
    gemm.epilogue = launch(5, {3});
    const Step with_epilogue = step_of(gemm);
    REQUIRE(kernel_of(with_epilogue));
    CHECK(kernel_of(with_epilogue)->kernel == 5);

    CHECK(result_of(step_of(CopyStep{5, 6})) == 6);
    CHECK(result_of(step_of(RoutineStep{{}, {1}, 2, 3})) == 2);
    CHECK(!kernel_of(step_of(CopyStep{5, 6})));
}
