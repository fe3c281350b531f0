// The executor on programs written by hand, with kernels that are C++ functions of the test.
#include "runtime/exec/region_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "bitale/ops.h"
#include "graph/ir/shared.h"
#include "runtime/exec/program_io.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

using TestKernel = std::function<void(void* const* buffers, const std::int64_t* sizes, std::int64_t tasks)>;

class TestLauncher : public Launcher {
  public:
    explicit TestLauncher(std::vector<TestKernel> kernels) : kernels_(std::move(kernels)) {}
    void kernel(int kernel, int, void* const* buffers, const std::int64_t* sizes, std::int64_t tasks,
                const Shares*) override {
        kernels_.at(static_cast<std::size_t>(kernel))(buffers, sizes, tasks);
    }
    void gemm(const GemmShape&, const GemmData&, const SliceKernels&) override { FAIL("no products here"); }
    void conv(const ConvShape&, const ConvData&) override { FAIL("no convolutions here"); }
    void copy(void* to, const void* from, std::int64_t bytes) override {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }

  private:
    std::vector<TestKernel> kernels_;
};

Type floats(const Int& n) { return {float32, {n}}; }
float* f32(void* p) { return static_cast<float*>(p); }

// One input x of n floats and an integer i; scratch of n floats; a shared variable `state` of one float.
struct Example {
    std::shared_ptr<Program> program = std::make_shared<Program>();
    Signature signature;
    Int n = Int::symbol("n"), i = Int::symbol("i", {IntRange::lowest, IntRange::highest});
    SharedPtr weights = std::make_shared<SharedState>(), state = std::make_shared<SharedState>();

    Example() {
        weights->value = Array(std::vector<float>{1, 2, 3});
        state->value = Array(std::vector<float>{0});
        signature.function = "example";
        signature.inputs = {{"i", {}, {int64, {}}}, {"x", {"net.cpp", 3}, floats(n)}};
        signature.sources = {{i.symbol_id(), i, 0, -1}, {n.symbol_id(), n, 1, 0}};
        Program& p = *program;
        p.inputs = {{int64, {}}, floats(n)};
        p.outputs = {floats(n)};
        p.shared = {weights, state};
        p.updated = {1};
        p.size_sources = signature.sources;
        using Kind = BufferInfo::Kind;
        const auto buffer = [&](Kind kind, int index, const Type& type) {
            p.buffers.push_back({kind, index, "", type, "", {}});
            return static_cast<int>(p.buffers.size()) - 1;
        };
        const int in = buffer(Kind::input, 1, floats(n)), index = buffer(Kind::input, 0, {int64, {}});
        const int sum = buffer(Kind::arena, 0, floats(1)), scratch = buffer(Kind::arena, 0, floats(n));
        const int w = buffer(Kind::shared, 0, floats(3)), s = buffer(Kind::shared, 1, floats(1));
        const int out = buffer(Kind::output, 0, floats(n)), errors = buffer(Kind::errors, 0, {int64, {4}});
        p.checks = {{"net.cpp:7: a row is out of range, 0 to 9"}};
        const auto step = [&](int kernel, std::vector<int> buffers, bool commits) {
            Step t;
            t.operation = KernelStep{{kernel, std::move(buffers), {n}, {}, {}}, {1}, {}, {}};
            t.commits = commits;
            return t;
        };
        p.kernels.resize(4);
        p.once.steps = {step(0, {w, sum}, false)};
        p.body.steps = {step(1, {in, sum, scratch}, false), step(2, {index, errors, scratch, out}, false),
                        step(3, {s, scratch}, true)};
    }

    int once_runs = 0, commits = 0;
    std::function<void()> in_step = [] {};

    std::unique_ptr<RegionRunner> runner(std::vector<LengthCheck> checks = {}) {
        signature.checks = std::move(checks);
        std::vector<TestKernel> kernels;
        kernels.emplace_back([this](void* const* b, const std::int64_t*, std::int64_t) {
            ++once_runs;
            f32(b[1])[0] = f32(b[0])[0] + f32(b[0])[1] + f32(b[0])[2];
        });
        kernels.emplace_back([](void* const* b, const std::int64_t* sizes, std::int64_t) {
            for (std::int64_t k = 0; k < sizes[0]; ++k) f32(b[2])[k] = f32(b[0])[k] * f32(b[1])[0];
        });
        kernels.emplace_back([this](void* const* b, const std::int64_t* sizes, std::int64_t) {
            in_step();
            const std::int64_t row = *static_cast<std::int64_t*>(b[0]);
            auto* errors = static_cast<std::int64_t*>(b[1]);
            if (row < 0 || row >= 10) errors[0] = 1, errors[1] = row, errors[2] = 0;
            std::memcpy(b[3], b[2], static_cast<std::size_t>(sizes[0]) * sizeof(float));
        });
        kernels.emplace_back([this](void* const* b, const std::int64_t*, std::int64_t) {
            ++commits;
            f32(b[0])[0] += f32(b[1])[0];
        });
        return std::make_unique<RegionRunner>(
            Build{nullptr, signature, program, true},
            [kernels] { return std::make_unique<TestLauncher>(kernels); }, 0);
    }
};

std::vector<double> call(RegionRunner& runner, std::int64_t i, const std::vector<float>& x) {
    const std::vector<Array> arguments{Array(i), Array(x)};
    return runner.run(arguments).at(0).to_vector<double>();
}

}  // namespace

TEST_CASE("what depends on unchanged variables runs once per version of them", "[core][runtime][runner]") {
    Example e;
    const auto runner = e.runner();
    REQUIRE(call(*runner, 0, {1, 2}) == std::vector<double>{6, 12});
    REQUIRE(call(*runner, 0, {1}) == std::vector<double>{6});
    REQUIRE(call(*runner, 0, {1, 2, 3}) == std::vector<double>{6, 12, 18});
    const int before = e.once_runs;
    REQUIRE(call(*runner, 1, {1, 2, 3}) == std::vector<double>{6, 12, 18});
    REQUIRE(e.once_runs == before);
    e.weights->value = Array(std::vector<float>{1, 1, 1});
    ++e.weights->version;
    REQUIRE(call(*runner, 1, {1, 2, 3}) == std::vector<double>{3, 6, 9});
    REQUIRE(e.once_runs == before + 1);
    // The arena moves and grows.
    const std::vector<float> big(5000000, 1.0f);
    REQUIRE(call(*runner, 1, big) == std::vector<double>(big.size(), 3.0));
    REQUIRE(call(*runner, 1, {2}) == std::vector<double>{6});
    REQUIRE(runner->arena_bytes() > 20000000);
}

TEST_CASE("nothing commits once the error word is set", "[core][runtime][runner]") {
    Example e;
    const auto runner = e.runner();
    call(*runner, 3, {1});
    REQUIRE(e.state->value == 6.0);
    REQUIRE(e.state->version == 2);
    const std::string message = message_of<IndexError>([&] { call(*runner, 12, {1}); });
    REQUIRE_THAT(message,
                 ContainsSubstring("net.cpp:7: a row is out of range, 0 to 9") && ContainsSubstring("12"));
    REQUIRE(e.commits == 1);
    REQUIRE(e.state->value == 6.0);
    REQUIRE(e.state->version == 2);
    call(*runner, 3, {1});
    REQUIRE(e.state->value == 12.0);
}

TEST_CASE("states of calls that overlapped go when memory is wanted, and while a loop runs",
          "[core][runtime][runner]") {
    Example e;
    const auto runner = e.runner();
    CallStates<CallState>& states = runner->states();
    const auto overlap = [&] { const CallStates<CallState>::Claim one(states), two(states); };
    overlap();
    REQUIRE(states.alive() == 2);
    e.in_step = [&] {
        if (states.alive() > 1) throw OutOfMemory("none");
    };
    REQUIRE(call(*runner, 3, {1}) == std::vector<double>{6});
    REQUIRE(e.commits == 1);
    REQUIRE(states.alive() == 1);
    // In a step of a loop, which is run once and no more.
    const std::vector<std::int64_t> values{4, 5, 6};
    int step = 0;
    e.in_step = [&] {
        if (++step == 2) overlap();
        if (states.alive() > 1) throw OutOfMemory("none");
    };
    const std::vector<Array> arguments{Array(std::int64_t{0}), Array(std::vector<float>{1})};
    LoopCall loop = LoopCall::over(values);
    loop.arguments = arguments;
    REQUIRE(runner->loop(loop).at(0).shape() == Dims{3, 1});
    REQUIRE(e.commits == 4);
    REQUIRE(e.state->value == 24.0);
    states.patience = {};
    step = 0;
    e.in_step = [&] {
        if (++step == 1) overlap();
        if (step == 2) REQUIRE(states.alive() == 1);
    };
    (void)runner->loop(loop);
    REQUIRE(step == 3);
}

TEST_CASE("length checks name both numbers", "[core][runtime][runner]") {
    Example e;
    const auto runner = e.runner({{e.n, Int(2) * e.i, "net.cpp:4: the lengths must be equal"}});
    call(*runner, 1, {1, 2});
    REQUIRE_THAT(message_of<ShapeError>([&] {
                     call(*runner, 2, {1, 2});
                 }),
                 ContainsSubstring("net.cpp:4: the lengths must be equal") && ContainsSubstring("2 and 4"));
    REQUIRE(e.commits == 1);
}

TEST_CASE("a loop stacks results and commits each step", "[core][runtime][runner]") {
    Example e;
    const auto runner = e.runner();
    const std::vector<Array> arguments{Array(std::int64_t{0}), Array(std::vector<float>{1, 2})};
    const std::vector<std::int64_t> values{4, 5, 6};
    std::atomic<std::int64_t> done{0};
    const auto loop = [&](const std::vector<std::int64_t>& over) {
        LoopCall call = LoopCall::over(over);
        call.arguments = arguments;
        call.steps_done = &done;
        return runner->loop(call);
    };
    const std::vector<Array> r = loop(values);
    REQUIRE(r.at(0).shape() == Dims{3, 2});
    REQUIRE(r.at(0).to_vector<int>() == std::vector<int>{6, 12, 6, 12, 6, 12});
    REQUIRE(done == 3);
    REQUIRE(e.state->value == 18.0);
    const std::vector<std::int64_t> bad{1, 11, 2};
    REQUIRE_THAT(message_of<IndexError>([&] { loop(bad); }),
                 ContainsSubstring("step 1") && ContainsSubstring("11"));
    REQUIRE(done == 1);
    REQUIRE(e.state->value == 24.0);
    REQUIRE(e.state->version == 3);
}

TEST_CASE("the profile counts calls of each step", "[core][runtime][runner]") {
    Example e;
    const auto runner = e.runner();
    for (int k = 0; k < 5; ++k) call(*runner, 0, {1});
    const std::vector<Profile::Row> rows = runner->profile();
    REQUIRE(rows.size() == 4);
    REQUIRE(rows[0].calls == 1);
    for (std::size_t r = 1; r < 4; ++r) REQUIRE(rows[r].calls == 5);
}

TEST_CASE("a program written as JSON and read again is the same program", "[core][runtime][runner]") {
    Example e;
    e.program->constants = {Array(std::vector<float>{1.5f, -2}), Array(std::int64_t{7})};
    e.program->body.steps[0].fused = {{{"net.cpp", 12}, "add"}};
    e.program->body.steps[0].bytes = floordiv(e.n * e.n + 3, 4) * min(e.n, 5) + max(e.i, e.n) - 2 * e.n;
    const std::string text = program_to_json(*e.program);
    const Program back = program_from_json(text);
    REQUIRE(program_to_json(back) == text);
    REQUIRE(same(back.constants[0], e.program->constants[0]));
    REQUIRE(back.body.steps[0].fused[0].where.line == 12);
    // The sizes mean the same.
    const auto value = [](const Program& p, const Int& x) {
        return evaluate(x, {{p.size_sources[0].symbol, 3}, {p.size_sources[1].symbol, 10}});
    };
    REQUIRE(value(back, back.body.steps[0].bytes) == value(*e.program, e.program->body.steps[0].bytes));
    REQUIRE_THROWS_AS(program_from_json("{}"), FileError);
    REQUIRE_THROWS_AS(program_from_json("not json"), FileError);
    REQUIRE_THROWS_AS(program_from_json(text.substr(0, text.size() / 2)), FileError);
    // Numbers that are no int64, wherever they stand: nothing converts them.
    for (const char* number : {"1.5", "23054800000000000000", "1e3", "-9223372036854775809"}) {
        std::string changed = text;
        changed.insert(changed.find('[') + 1, std::string(number) + ", ");
        REQUIRE_THROWS_WITH(program_from_json(changed), ContainsSubstring(" is no int64"));
    }
}

TEST_CASE("a generated program survives the round trip and runs", "[core][runtime][runner]") {
    Expr x = matrix("x"), i = lscalar("i");
    Shared w = shared(Array(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}), "w");
    const Expr y = softmax(dot(x, w)) + i;
    Function f = function({x, i}, {y, sum(y)}, {.device = "cpu"});
    const Program& program = *f.state().program;
    const std::string text = program_to_json(program);
    auto back = std::make_shared<Program>(program_from_json(text));
    REQUIRE(program_to_json(*back) == text);
    // The shared variables of the copy are its own.
    for (std::size_t s = 0; s < back->shared.size(); ++s) back->shared[s]->value = program.shared[s]->value;
    Signature signature;
    for (const Type& type : back->inputs) signature.inputs.push_back({"", {}, type});
    signature.sources = back->size_sources;
    signature.checks = back->length_checks;
    const std::unique_ptr<Executable> copy = device_named("cpu").prepare({nullptr, signature, back, false});
    const std::vector<Array> arguments{Array(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}),
                                       Array(std::int64_t{3})};
    const Results expected = f.call(arguments);
    const std::vector<Array> got = copy->run(arguments);
    for (std::size_t k = 0; k < got.size(); ++k) REQUIRE(same(got[k], expected[k]));
}

TEST_CASE("behind short floats of the arena there are zeros where integers were", "[core][runtime][runner]") {
    using Kind = BufferInfo::Kind;
    const DType dtype = GENERATE(DType::float32, DType::float64);
    constexpr std::int64_t count = 10, before = 64, past = 64 / sizeof(std::int32_t);
    const auto program = std::make_shared<Program>();
    const auto buffer = [&](Kind kind, DType type, std::int64_t length) {
        program->buffers.push_back({kind, 0, "", {type, {Int(length)}}, "", {}});
        return static_cast<int>(program->buffers.size()) - 1;
    };
    const int integers = buffer(Kind::arena, DType::int32, before), kept = buffer(Kind::arena, dtype, count),
              filters = buffer(Kind::arena, dtype, count), out = buffer(Kind::output, dtype, count);
    program->outputs = {{dtype, {Int(count)}}};
    const auto step = [](int kernel, std::vector<int> buffers) {
        Step s;
        s.operation = KernelStep{{kernel, std::move(buffers), {}, {}, {}}, {1}, {}, {}};
        return s;
    };
    program->kernels.resize(4);
    program->once.steps = {step(0, {kept})};
    program->body.steps = {step(1, {integers}), step(2, {filters}), step(3, {kept, filters, out})};
    const auto bytes = static_cast<std::size_t>(count * bytes_of(dtype));
    const auto zeros_behind = [&](const void* p) {
        std::array<std::int32_t, past> there{};
        std::memcpy(there.data(), static_cast<const char*>(p) + bytes, sizeof there);
        return there == std::array<std::int32_t, past>{};
    };
    std::vector<TestKernel> kernels;
    std::vector<const void*> places;
    int right = 0;
    kernels.emplace_back([&](void* const* b, const std::int64_t*, std::int64_t) {
        right += zeros_behind(b[0]);
        std::memset(b[0], 0, bytes);
    });
    kernels.emplace_back([&](void* const* b, const std::int64_t*, std::int64_t) {
        places.push_back(b[0]);
        std::fill_n(static_cast<std::int32_t*>(b[0]), before, 7);
    });
    kernels.emplace_back([&](void* const* b, const std::int64_t*, std::int64_t) {
        places.push_back(b[0]);
        right += zeros_behind(b[0]);
        std::memset(b[0], 0, bytes);
    });
    kernels.emplace_back([&](void* const* b, const std::int64_t*, std::int64_t) {
        right += zeros_behind(b[0]) + zeros_behind(b[1]) + zeros_behind(b[2]);
        std::memset(b[2], 0, bytes);
    });
    Signature signature;
    signature.function = "example";
    RegionRunner runner(
        Build{nullptr, signature, program, false}, [&] { return std::make_unique<TestLauncher>(kernels); },
        0);
    for (int i = 0; i < 2; ++i) {
        {
            // The block of the result had integers too.
            Array integers_before = pooled_array(DType::int32, {before / 2});
            std::fill_n(static_cast<std::int32_t*>(integers_before.mutable_data()), before / 2, 7);
        }
        (void)runner.run({});
        REQUIRE(places[places.size() - 2] == places.back());
    }
    REQUIRE(right == 1 + 2 * 4);
}
