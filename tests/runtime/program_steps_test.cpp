// The JSON form of each kind of step: what is written is read again, and steps whose buffers do not fit their
// kind are refused.
#include <nlohmann/json.hpp>

#include "bitale/error.h"
#include "runtime/exec/program_io.h"
#include "tests/support/catch.h"

using namespace bitale;
using OrderedJson = nlohmann::ordered_json;

namespace {

Step step_of(decltype(Step::operation) operation, std::string title) {
    Step step;
    step.operation = std::move(operation);
    step.title = std::move(title);
    return step;
}

GemmStep gemm_step() {
    GemmStep gemm;
    gemm.call.m = 4, gemm.call.n = 5, gemm.call.k = 6;
    gemm.a = 1, gemm.b = 2, gemm.c = 3;
    return gemm;
}

// Products with nothing, a bias, an epilogue, made operands, and all of that; the gradients of a convolution.
std::vector<Step> steps() {
    const KernelLaunch epilogue{1, {3, 6}, {Int(7)}, {}, {}}, of_a{2, {1, 4}, {}, {}, {}},
        of_b{3, {2}, {Int(8), Int(9)}, {}, {}};
    std::vector<Step> list;
    list.push_back(step_of(
        KernelStep{{0, {2, 1}, {Int(5)}, {0, 8}, {8, 0}}, {1, 2}, {{{1, 10}}, {{2, 20}}}, {}}, "kernel"));
    list.push_back(step_of(gemm_step(), "gemm"));
    GemmStep gemm = gemm_step();
    gemm.call.bias = true;
    gemm.bias = 5;
    list.push_back(step_of(gemm, "gemm with a bias"));
    gemm.epilogue = epilogue;
    list.push_back(step_of(gemm, "gemm with an epilogue"));
    gemm.call.made_b = true;
    gemm.pieces_b = of_b;
    list.push_back(step_of(gemm, "gemm of made b"));
    gemm.call.made_a = true;
    gemm.pieces_a = of_a;
    list.push_back(step_of(gemm, "gemm with all"));
    gemm.epilogue.reset();
    list.push_back(step_of(gemm, "gemm of made a and b"));
    for (const auto kind :
         {ConvCall::Kind::forward, ConvCall::Kind::image_gradient, ConvCall::Kind::filter_gradient}) {
        ConvStep conv;
        conv.call.kind = kind;
        conv.image = 1, conv.filters = 2, conv.output = 3;
        if (kind == ConvCall::Kind::forward) conv.call.bias = true, conv.bias = 4;
        list.push_back(step_of(conv, "conv"));
    }
    list.push_back(step_of(CopyStep{5, 6}, "copy"));
    list.push_back(
        step_of(RoutineStep{{"eigh", DType::float64, {Int(2), Int(3)}, false, 11}, {1, 2}, 3, 4}, "routine"));
    return list;
}

std::string json_of(const Step& step) {
    Program program;
    program.body.steps = {step};
    return program_to_json(program);
}

bool same(const std::optional<KernelLaunch>& a, const std::optional<KernelLaunch>& b) {
    if (!a || !b) return !a && !b;
    return a->kernel == b->kernel && a->buffers == b->buffers && a->sizes == b->sizes;
}

}  // namespace

TEST_CASE("steps of every kind are read as they were written", "[core][runtime]") {
    for (const Step& step : steps()) {
        INFO(step.title);
        const std::string text = json_of(step);
        const Program program = program_from_json(text);
        CHECK(program_to_json(program) == text);
        const Step& back = program.body.steps.at(0);
        CHECK(buffers_of(back) == buffers_of(step));
        CHECK(result_of(back) == result_of(step));
        REQUIRE(back.operation.index() == step.operation.index());
        if (const auto* gemm = std::get_if<GemmStep>(&step.operation)) {
            const GemmStep& read = std::get<GemmStep>(back.operation);
            CHECK(read.bias == gemm->bias);
            CHECK(same(read.epilogue, gemm->epilogue));
            CHECK(same(read.pieces_a, gemm->pieces_a));
            CHECK(same(read.pieces_b, gemm->pieces_b));
            CHECK(read.call.made_a == gemm->call.made_a);
            CHECK(read.call.made_b == gemm->call.made_b);
        }
        if (const auto* conv = std::get_if<ConvStep>(&step.operation)) {
            const ConvStep& read = std::get<ConvStep>(back.operation);
            CHECK(read.image == conv->image);
            CHECK(read.filters == conv->filters);
            CHECK(read.output == conv->output);
            CHECK(read.bias == conv->bias);
        }
    }
}

TEST_CASE("a step with another number of buffers than its kind is refused", "[core][runtime]") {
    for (const Step& step : steps()) {
        INFO(step.title);
        // A kernel takes any number, and so do an epilogue, the last list of a product, and a routine's
        // operands.
        if (std::holds_alternative<KernelStep>(step.operation)) continue;
        const auto* gemm = std::get_if<GemmStep>(&step.operation);
        const bool open = std::holds_alternative<RoutineStep>(step.operation) || (gemm && gemm->epilogue);
        OrderedJson program = OrderedJson::parse(json_of(step));
        OrderedJson& buffers = program["body"][0]["buffers"];
        const OrderedJson all = buffers;
        if (!open) {
            buffers.push_back(1);
            CHECK_THROWS_WITH(program_from_json(program.dump()),
                              "a step of the program has another number of buffers than its kind");
        }
        buffers = OrderedJson::array({all[0]});
        CHECK_THROWS_AS(program_from_json(program.dump()), FileError);
        buffers = OrderedJson::array();
        CHECK_THROWS_AS(program_from_json(program.dump()), FileError);
    }
    OrderedJson program = OrderedJson::parse(json_of(step_of(CopyStep{1, 2}, "copy")));
    program["body"][0]["kind"] = "move";
    CHECK_THROWS_WITH(program_from_json(program.dump()), "a program names the unknown kind \"move\"");
    // More buffers for pieces than the step has.
    OrderedJson made = OrderedJson::parse(json_of(steps().at(5)));
    made["body"][0]["pieces"][0]["buffers"] = std::int64_t{1} << 62;
    CHECK_THROWS_AS(program_from_json(made.dump()), FileError);
    made["body"][0]["pieces"][1]["buffers"] = INT64_MAX;
    CHECK_THROWS_AS(program_from_json(made.dump()), FileError);
}
