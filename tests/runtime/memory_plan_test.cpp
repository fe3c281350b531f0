// Memory plans: what they list and say, and that they are what the allocator measures.
#include <nlohmann/json.hpp>
#include <sstream>

#include "graph/base/memory.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/nets.h"

using namespace bitale;
using namespace bitale::test;
using Json = nlohmann::json;
using Kind = MemoryPlan::Kind;

namespace {

// A convolution of unknown batch, a dense layer, and a step of gradient descent.
struct ConvAndDense {
    explicit ConvAndDense(const std::string& device)
        : x(input(float32, {-1, 1, 12, 12}, "x<&\"")),
          t(ivector("t")),
          filters(shared(uniform_values({4, 1, 5, 5}, -0.1, 0.1, 1), "filters")),
          w(shared(uniform_values({64, 3}, -0.1, 0.1, 2), "w")) {
        const Expr h = relu(max_pool(conv2d(x, filters), {2, 2}));
        const Expr loss = mean(categorical_crossentropy(softmax(dot(flatten(h, 2), w)), t));
        f = function({x, t}, {loss, h},
                     {.updates = sgd(loss, {filters, w}, 0.1), .name = "step", .device = device});
    }
    static std::vector<Array> batch(std::int64_t n) {
        return {Array(float32, {n, 1, 12, 12}), Array(int32, {n})};
    }
    MemoryPlan plan(std::int64_t n) const { return f.memory_plan({{x, {n, 1, 12, 12}}}); }

    Expr x, t;
    Shared filters, w;
    Function f;
};

std::int64_t reserved(const MemoryPlan& plan, Kind kind) {
    std::int64_t bytes = 0;
    for (const MemoryPlan::Buffer& b : plan.buffers)
        if (b.kind == kind && !b.on_host) bytes += b.reserved;
    return bytes;
}

// What a call takes on the host beside its arguments, shared variables and constants.
std::int64_t taken_by(Function& f, const std::vector<Array>& arguments) {
    trim_host_memory();
    host_ledger().forget_most();
    const std::int64_t before = host_ledger().now();
    const Results results = f.call(arguments);
    return host_ledger().most() - before;
}

std::int64_t taken_in(const MemoryPlan& plan) {
    return plan.arena_bytes + reserved(plan, Kind::result) + reserved(plan, Kind::workspace);
}

// No two buffers of the arena share bytes while both live, and the numbers fit together.
void check_consistent(const MemoryPlan& plan) {
    INFO(plan);
    std::int64_t total = plan.arena_bytes, end = 0;
    for (const MemoryPlan::Buffer& a : plan.buffers) {
        CHECK(a.reserved >= 0);
        CHECK(a.first <= a.last);
        if (a.offset < 0) {
            total += a.on_host ? 0 : a.reserved;
            continue;
        }
        CHECK(a.reserved >= a.bytes);
        CHECK(!a.reason.empty());
        end = std::max(end, a.offset + a.reserved);
        for (const MemoryPlan::Buffer& b : plan.buffers)
            if (&b != &a && b.offset >= 0 && a.first <= b.last && b.first <= a.last)
                CHECK((a.offset + a.reserved <= b.offset || b.offset + b.reserved <= a.offset));
    }
    CHECK(total == plan.peak_bytes);
    CHECK(end <= plan.arena_bytes);
    if (plan.arena_bytes > 0) CHECK(plan.least_arena_bytes <= plan.arena_bytes);  // else blocks of their own
    if (plan.peak_step >= 0)
        CHECK(plan.steps.at(static_cast<std::size_t>(plan.peak_step)).live_bytes == plan.least_arena_bytes);
}

const MemoryPlan::Buffer* find(const MemoryPlan& plan, Kind kind, const std::string& name = "") {
    for (const MemoryPlan::Buffer& b : plan.buffers)
        if (b.kind == kind && (name.empty() || b.name == name)) return &b;
    return nullptr;
}

}  // namespace

TEST_CASE("a plan is what a call takes on a CPU, to the byte") {
    for (const std::int64_t images : {1, 0, 37, 200}) {
        ConvAndDense fresh("cpu");
        const MemoryPlan before = fresh.plan(images);
        check_consistent(before);
        const std::int64_t taken = taken_by(fresh.f, ConvAndDense::batch(images));
        INFO(images << " images: " << before);
        CHECK(taken == taken_in(before));
        CHECK(fresh.f.peak_bytes() == before.arena_bytes + reserved(before, Kind::shared));
        // Of the last call, where nobody says anything else; after a smaller one the same again.
        CHECK(fresh.f.memory_plan().peak_bytes == before.peak_bytes);
        fresh.f.call(ConvAndDense::batch(3));
        CHECK(fresh.f.memory_plan().peak_bytes == fresh.plan(3).peak_bytes);
    }
    // Products by a library, with workspace; constants; a sum in chunks.
    const Expr x = matrix("x");
    const Shared w = shared(uniform_values({700, 300}, -0.1, 0.1, 3), "w");
    Function f = function({x}, {sum(tanh(dot(x, w)), {0}), sum(x)}, {.name = "products", .device = "cpu"});
    const Array rows(float32, {600, 700});
    const MemoryPlan plan = f.memory_plan({{x, {600, 700}}});
    check_consistent(plan);
    CHECK(taken_by(f, {rows}) == taken_in(plan));
}

TEST_CASE("a plan is what a call takes on the emulator, to the byte") {
    if (emulator_skipped()) return;
    ConvAndDense warm("emulator");  // what a device needs once
    for (int i = 0; i < 3; ++i) warm.f.call(ConvAndDense::batch(2));
    MemoryLedger& ledger = *warm.f.state().executable->ledger();
    for (const bool watched : {false, true})
        for (const std::int64_t images : {1, 37}) {
            Options chosen = options();
            chosen.emulator_checks = watched;
            const ScopedOptions scope(chosen);
            ledger.forget_most();
            const std::int64_t before = ledger.now();
            ConvAndDense fresh("emulator");
            const MemoryPlan plan = fresh.plan(images);
            check_consistent(plan);
            fresh.f.call(ConvAndDense::batch(images));
            INFO(plan);
            CHECK(ledger.most() - before == plan.peak_bytes);
            CHECK(plan.host_bytes > 0);
        }
}

TEST_CASE("a plan says what each buffer is, whose line it is of, and why it is there") {
    for (const std::string device : {"cpu", "null", "emulator"}) {
        if (device == "emulator" && emulator_skipped()) continue;
        const ConvAndDense net(device);
        const MemoryPlan plan = net.plan(64);
        INFO(plan);
        check_consistent(plan);
        CHECK(plan.function == "step");
        CHECK(plan.device == device);
        REQUIRE(plan.steps.size() == net.f.kernels().size());
        for (std::size_t s = 0; s < plan.steps.size(); ++s)
            CHECK(plan.steps[s].kernel == net.f.kernels()[s].name);
        const MemoryPlan::Buffer* x = find(plan, Kind::argument, "x<&\"");
        REQUIRE(x);
        CHECK(x->shape == Dims{64, 1, 12, 12});
        CHECK(x->bytes == 64 * 144 * 4);
        CHECK_THAT(x->where, ContainsSubstring("memory_plan_test.cpp:"));
        CHECK_THAT(x->formula, ContainsSubstring(", 1, 12, 12]"));
        REQUIRE(find(plan, Kind::shared, "filters"));
        CHECK(find(plan, Kind::shared, "filters")->bytes == 400);
        CHECK(find(plan, Kind::result));
        for (const MemoryPlan::Buffer& b : plan.buffers)
            if (b.offset >= 0) CHECK_THAT(b.where, ContainsSubstring(" at memory_plan_test.cpp:"));
        CHECK_THAT(plan.to_string(),
                   ContainsSubstring("\"step\"") &&
                       ContainsSubstring("shared variable \"filters\" at memory_plan_test.cpp:") &&
                       ContainsSubstring("argument \"x<&"));
        std::ostringstream printed;
        printed << plan;
        CHECK(printed.str() == plan.to_string());
    }
}

TEST_CASE("what a gradient reads later is told from what is in use once") {
    const Expr x = matrix("x");
    const Shared a = shared(uniform_values({600, 500}, -0.1, 0.1, 1), "a"),
                 b = shared(uniform_values({500, 400}, -0.1, 0.1, 2), "b");
    const Expr hidden = tanh(dot(x, a));
    const Expr loss = sum(sqr(dot(hidden, b)));
    const Function step = function({x}, loss, {.updates = sgd(loss, {a, b}, 0.1), .device = "null"});
    const MemoryPlan plan = step.memory_plan({{x, {512, 600}}});
    INFO(plan);
    const MemoryPlan::Buffer* saved = find(plan, Kind::saved);
    REQUIRE(saved);
    CHECK(saved->shape == Dims{512, 500});
    CHECK_THAT(plan.to_string(), ContainsSubstring("steps as the report numbers them"));
    const Function forward = function({x}, loss, {.device = "null"});
    CHECK(find(forward.memory_plan({{x, {512, 600}}}), Kind::saved) == nullptr);
}

TEST_CASE("places of maxima are kept for the gradient, those of the scores are not") {
    const Expr x = input(float32, {128, 1, 28, 28}, "x"), y = input(int32, {128}, "y");
    const Shared w = shared(uniform_values({10, 1, 3, 3}, -1, 1, 1), "w"),
                 v = shared(uniform_values({1690, 100}, -1, 1, 2), "v"),
                 u = shared(uniform_values({100, 10}, -1, 1, 3), "u");
    const Expr h = relu(dot(flatten(max_pool(conv2d(x, w), 2), 2), v)), p = softmax(dot(h, u));
    const Expr loss = mean(categorical_crossentropy(p, y));
    const Function step = function({x, y}, {loss, sum(neq(argmax(p, {1}), y))},
                                   {.updates = adam(loss, {w, v, u}), .device = "null"});
    const MemoryPlan plan = step.memory_plan();
    INFO(plan);
    bool winners = false, scores = false, parts = false;
    for (const MemoryPlan::Buffer& b : plan.buffers) {
        if (b.name == "pool_winner") {
            winners = true;
            CHECK(b.kind == Kind::saved);
        }
        if (b.name == "argmax") {
            scores = true;
            CHECK(b.kind == Kind::temporary);
        }
        if (b.kind == Kind::partial_sums) {
            parts = true;
            CHECK(b.where.starts_with(b.name.substr(0, b.name.find(" (parts)")) + " at "));
        }
        if (b.offset >= 0) CHECK_THAT(b.reason, !ContainsSubstring("reduction, read"));
    }
    CHECK(winners);
    CHECK(scores);
    CHECK(parts);
}

TEST_CASE("lengths that are missing are named, and examples that cannot be are refused") {
    const ConvAndDense net("null");
    CHECK_THAT(error_of([&] { (void)net.f.memory_plan(); }),
               ContainsSubstring("\"step\" needs lengths that only a call tells") &&
                   ContainsSubstring("memory_plan_test.cpp:") && ContainsSubstring("memory_plan({{") &&
                   ContainsSubstring(", 1, 12, 12}"));
    CHECK_THAT(error_of([&] {
                   (void)net.f.memory_plan({{net.t, {5, 5}}});
               }),
               ContainsSubstring("the ranks differ"));
    CHECK_THAT(error_of([&] {
                   (void)net.f.memory_plan({{net.x, {5, 1, 13, 12}}});
               }),
               ContainsSubstring("axis 2 has length 12"));
    CHECK_THAT(error_of([&] {
                   (void)net.f.memory_plan({{net.x, {-5, 1, 12, 12}}});
               }),
               ContainsSubstring("negative"));
    CHECK_THAT(error_of([&] {
                   (void)net.f.memory_plan({{vector("y"), {5}}});
               }),
               ContainsSubstring("is not an input"));
    CHECK_THROWS_AS(net.f.memory_plan({{net.x, {5, 1, 12, 12}}, {net.t, {6}}}), ShapeError);
    CHECK_THROWS_AS(Function().memory_plan(), GraphError);
    // What must be equal need not be said twice.
    CHECK(net.f.memory_plan({{net.t, {5}}}).peak_bytes == net.plan(5).peak_bytes);
}

TEST_CASE("the last minibatch of a data set is not what a plan is made for") {
    Net net = make_net("mlp", {.device = "cpu", .images = 200, .batch = 128});
    const MemoryPlan whole = net.step.memory_plan();
    net.step.loop(0, 2);
    CHECK(net.step.memory_plan().peak_bytes == whole.peak_bytes);
    check_consistent(whole);
}

TEST_CASE("a plan as JSON has all of it, and the picture is well formed") {
    const ConvAndDense net("cpu");
    const MemoryPlan plan = net.plan(64);
    const Json j = Json::parse(plan.json());
    CHECK(j["bitale_memory_plan"] == 1);
    CHECK(j["peak_bytes"] == plan.peak_bytes);
    CHECK(j["steps"].size() == plan.steps.size());
    REQUIRE(j["buffers"].size() == plan.buffers.size());
    std::int64_t total = j["arena_bytes"];
    for (const Json& b : j["buffers"]) {
        if (!b["on_host"].get<bool>() && b["offset"] == -1) total += b["reserved_bytes"].get<std::int64_t>();
        CHECK(b.contains("reason"));
        if (b["name"] == "x<&\"") CHECK(b["shape"] == Json({64, 1, 12, 12}));
    }
    CHECK(total == plan.peak_bytes);

    const std::string svg = plan.svg();
    CHECK(svg.starts_with("<svg "));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(svg.find("x<&") == std::string::npos);
    CHECK_THAT(svg, ContainsSubstring("x&lt;&amp;") && ContainsSubstring("<title>") &&
                        ContainsSubstring("saved for gradients"));
    CHECK(svg.find("href") == std::string::npos);
    // Every element that begins ends, in order.
    std::vector<std::string> open;
    for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
        const std::size_t end = svg.find('>', at);
        REQUIRE(end != std::string::npos);
        const std::string tag = svg.substr(at + 1, end - at - 1);
        if (tag.ends_with('/')) continue;
        if (tag[0] == '/') {
            REQUIRE(!open.empty());
            CHECK(open.back() == tag.substr(1));
            open.pop_back();
        } else {
            open.push_back(tag.substr(0, tag.find(' ')));
        }
    }
    CHECK(open.empty());
}

TEST_CASE("devices that run nothing, or run graphs node by node, say what is known") {
    const ConvAndDense reference("reference");
    const MemoryPlan plan = reference.plan(10);
    CHECK(plan.arena_bytes == 0);
    CHECK(plan.steps.empty());
    REQUIRE(plan.notes.size() == 1);
    CHECK_THAT(plan.to_string(), ContainsSubstring("not planned"));
    CHECK(find(plan, Kind::argument));
    CHECK(find(plan, Kind::shared, "w"));
    CHECK(find(plan, Kind::result));
    CHECK_THAT(plan.svg(), ContainsSubstring("</svg>"));
    std::vector<Array> arguments = ConvAndDense::batch(4);
    ConvAndDense again("reference");
    again.f.call(arguments);
    CHECK(Json::parse(again.plan(4).json())["arena_bytes"] == 0);
}
