// Random networks over a batch under random limits: what runs stays within its limit and gives the results of
// the batch at once; what does not fit is refused before anything runs; plans are what the allocators count;
// a smaller limit never takes more. BITALE_FUZZ_LIMITS sets how many networks, BITALE_FUZZ_SEED the first.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iostream>
#include <string>
#include <vector>

#include "graph/base/memory.h"
#include "graph/ir/shared.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Layers, convolutions, statistics of the batch, checkpoints and outputs of all kinds over some hundred rows,
// whose number the function knows or not; with or without a training step, dropout and variables that are
// read by rows; in float64, or in float32 with activations that are saved as they are or as bfloat16.
struct RandomNetwork {
    explicit RandomNetwork(std::uint64_t seed) : random(seed) {
        rows = random.pick(std::vector<std::int64_t>{97, 160, 256, 333});
        width = random.between(2, 9);
        known = random.chance(2);
        if (random.chance(2)) {
            dtype = float32;
            activations = random.pick(std::vector<DType>{float32, bfloat16});
        }
        Dims shape{rows, width};
        const bool images = random.chance(3);
        if (images) shape = {rows, random.between(1, 3), 8, 8};
        arguments.push_back(random_array(dtype, shape, random, -1, 1));
        if (!known) shape[0] = -1;
        x = input(dtype, shape, "x");
        h = x;
        if (random.chance(2)) h = (h - mean(h)) / 2;
        if (images) convolution(shape[1]);
        const std::int64_t layers = random.between(1, 4);
        for (std::int64_t k = 0; k < layers; ++k) layer();
        for (std::int64_t k = random.between(1, 4); k > 0; --k) add_output();
        loss = mean(sqr(h - 0.1));
        outputs.push_back(loss);
        if (random.chance(2))
            updates = dtype == float32 || random.chance(2) ? sgd(loss, parameters, 0.1)
                                                           : adam(loss, parameters, 0.1);
    }
    void convolution(std::int64_t channels) {
        parameters.push_back(shared(random_array(dtype, {5, channels, 3, 3}, random, -0.5, 0.5), "filters"));
        h = flatten(relu(max_pool(conv2d(h, parameters.back()), 2)), 2);
        width = 45;
    }
    void layer() {
        const std::int64_t next = random.pick(std::vector<std::int64_t>{3, 17, 64, 200, 333});
        parameters.push_back(shared(random_array(dtype, {width, next}, random, -0.5, 0.5),
                                    fmt::format("w{}", parameters.size())));
        h = dot(h, parameters.back());
        width = next;
        switch (random.between(0, 5)) {
            case 0: h = tanh(h); break;
            case 1: h = relu(h) + 0.1 * h; break;
            case 2: h = softmax(h); break;
            case 3: h = dropout(tanh(h), 0.5, stream); break;
            case 4: {
                const Expr centred = h - mean(h, {0}, {.keepdims = true});
                h = centred / sqrt(mean(sqr(centred), {0}, {.keepdims = true}) + 1e-2);
                break;
            }
            default: {
                const Shared table = shared(random_array(dtype, {rows, width}, random, -1, 1), "table");
                if (known) h = h * table;
                h = sigmoid(h);
            }
        }
        if (random.chance(3)) h = checkpoint(h);
    }
    void add_output() {
        // The last two are decided by last bits, of which float32 has others in parts.
        switch (random.between(0, dtype == float64 ? 6 : 4)) {
            case 0: outputs.push_back(h); break;
            case 1: outputs.push_back(sum(h, {0})); break;
            case 2: outputs.push_back(max(h, {0})); break;
            case 3: outputs.push_back(dot(transpose(h, {1, 0}), h)); break;
            case 4: outputs.push_back(transpose(h * 2, {1, 0})); break;
            case 5: outputs.push_back(argmax(h, {1})); break;
            default: outputs.push_back(sum(cast(gt(h, 0.2), int64)));
        }
    }
    Function on(const std::string& device, ByteCount limit = {}) const {
        return function({x}, outputs,
                        {.updates = updates,
                         .name = "random",
                         .device = device,
                         .hold_streams = true,
                         .memory_limit = limit,
                         .activations = activations});
    }
    std::vector<Shared> variables() const {
        std::vector<Shared> all;
        for (const Update& u : updates) all.push_back(u.target);
        return all;
    }

    Random random;
    std::int64_t rows = 0, width = 0;
    bool known = false;
    DType dtype = float64, activations = float32;
    Expr x, h, loss;
    RandomStream stream{3};
    std::vector<Shared> parameters;
    std::vector<Expr> outputs;
    std::vector<Array> arguments;
    Updates updates;
};

// Whoever holds a value makes calls that write it copy it first.
Array copy_of(const Array& value) {
    Array copy(value.dtype(), value.shape());
    std::memcpy(copy.mutable_data(), value.data(), static_cast<std::size_t>(value.bytes()));
    return copy;
}

struct Called {
    std::vector<Array> results;  // and new values of variables, which are put back
    std::int64_t taken = 0;      // of the device's memory, beside what was alive
};

std::vector<Array> values_of(const RandomNetwork& net) {
    std::vector<Array> values;
    for (const Shared& v : net.variables()) values.push_back(copy_of(v.get_value()));
    return values;
}

// `before`: the values of the variables.
Called called(const RandomNetwork& net, Function& f, MemoryLedger& ledger, const std::vector<Array>& before) {
    const std::vector<Shared> variables = net.variables();
    trim_host_memory();
    ledger.forget_most();
    const std::int64_t alive = ledger.now();
    Called r;
    const Results results = f.call(net.arguments);
    r.taken = ledger.most() - alive;
    for (std::size_t k = 0; k < results.size(); ++k) r.results.push_back(results[k]);
    for (std::size_t k = 0; k < variables.size(); ++k) {
        Shared v = variables[k];
        r.results.push_back(copy_of(v.get_value()));
        v.set_value(copy_of(before[k]));
    }
    return r;
}

bool is_on_host(const std::string& device) { return device == "cpu"; }

MemoryLedger& ledger_for(const RandomNetwork& net, const std::string& device) {
    return is_on_host(device) ? host_ledger() : *net.on(device).state().executable->ledger();
}

std::int64_t reserved_for(const MemoryPlan& plan, std::initializer_list<MemoryPlan::Kind> kinds) {
    std::int64_t bytes = 0;
    for (const MemoryPlan::Buffer& b : plan.buffers)
        if (!b.on_host && std::find(kinds.begin(), kinds.end(), b.kind) != kinds.end()) bytes += b.reserved;
    return bytes;
}

// Of what the plan counts, that which is alive before: on a CPU what comes in; on a GPU variables, which have
// their places since the calls at once, what an executable holds from its making on, and the workspaces of
// libraries, which no ledger counts.
std::int64_t alive_of(const RandomNetwork& net, const Function& f, const MemoryPlan& plan,
                      const std::string& device) {
    using Kind = MemoryPlan::Kind;
    std::int64_t bytes = 0;
    if (is_on_host(device)) {
        bytes = net.arguments[0].bytes();
        for (const SharedUse& use : f.state().shared) bytes += use.variable->value.bytes();
        return bytes;
    }
    constexpr std::int64_t tail = 64;
    for (const SharedUse& use : f.state().shared) bytes += use.variable->value.bytes() + tail;
    bytes += reserved_for(plan, {Kind::workspace});
    // What computes again, or in parts, is made by the call.
    return bytes + (plan.micro_batch == 0 && plan.recomputed.empty()
                        ? reserved_for(plan, {Kind::constant, Kind::control})
                        : 0);
}

double tolerance_for(const RandomNetwork& net) {
    return net.dtype == float64 ? 1e-11 : net.activations == float32 ? 1e-4 : 1e-3;
}

void check_results(const RandomNetwork& net, const std::vector<Array>& got,
                   const std::vector<Array>& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
        INFO(k);
        CHECK(difference(got[k], expected[k], {.of_largest = tolerance_for(net)}) == "");
    }
}

void check(std::uint64_t seed, const std::string& device) {
    const RandomNetwork net(seed);
    Function whole = net.on(device);
    const ExampleShapes lengths{{net.x, net.arguments[0].shape()}};
    MemoryLedger& ledger = ledger_for(net, device);
    const MemoryPlan at_once = whole.memory_plan(lengths);
    const std::int64_t peak = at_once.peak_bytes;
    // No part of a batch has less.
    const std::int64_t least = is_on_host(device) ? 0 : reserved_for(at_once, {MemoryPlan::Kind::workspace});
    const std::vector<Shared> variables = net.variables();
    const std::vector<Array> old = values_of(net);
    const Called expected = called(net, whole, ledger, old);
    std::int64_t before = peak;
    int refused = 0;
    for (const double share : {1.0, 0.6, 0.35, 0.15}) {
        const auto limit = least + static_cast<std::int64_t>(static_cast<double>(peak - least) * share);
        INFO("seed " << seed << ", " << device << ", limit " << limit << " of " << peak);
        ledger.forget_most();
        const std::int64_t alive = ledger.now();
        try {
            Function f = net.on(device, {limit});
            const Called got = called(net, f, ledger, old);
            CHECK(refused == 0);
            const MemoryPlan plan = f.memory_plan();
            CHECK(plan.peak_bytes <= limit);
            CHECK(plan.peak_bytes <= before);
            const std::int64_t planned = plan.peak_bytes - alive_of(net, f, plan, device);
            CHECK(got.taken <= planned);
            CHECK(planned - got.taken <= (plan.micro_batch > 0 ? 32768 : 0));
            if (std::getenv("BITALE_FUZZ_PRINT"))
                std::cout << fmt::format("seed {}, {}: {} rows at a time{}, {} of {}, {} taken\n", seed,
                                         device, plan.micro_batch, plan.recomputed.empty() ? "" : ", again",
                                         planned, limit, got.taken)
                          << plan;
            before = plan.peak_bytes;
            check_results(net, got.results, expected.results);
        } catch (const OutOfMemory& e) {
            ++refused;
            CHECK(share < 1);
            CHECK_THAT(e.what(), ContainsSubstring("memory_limit") && ContainsSubstring("random"));
            for (std::size_t k = 0; k < variables.size(); ++k) CHECK(same(variables[k].get_value(), old[k]));
            CHECK(ledger.most() - alive <= limit);
        }
    }
}

// The limit of the device, which counts what is alive beside the call: at another moment that is something
// else, so that of several calls only this one can be judged.
void check_device_limit(std::uint64_t seed, const std::string& device) {
    const RandomNetwork net(seed);
    Function whole = net.on(device);
    MemoryLedger& ledger = ledger_for(net, device);
    const std::vector<Shared> variables = net.variables();
    const std::vector<Array> old = values_of(net);
    const Called expected = called(net, whole, ledger, old);
    whole = Function();
    for (const double share : {1.0, 0.6, 0.35, 0.15}) {
        Function f = net.on(device);
        trim_host_memory();
        Options chosen = options();
        chosen.memory_limit = ledger.now() +
                              static_cast<std::int64_t>(static_cast<double>(expected.taken) * share) +
                              (is_on_host(device) ? 65536 : 0);  // planning keeps some itself
        INFO("seed " << seed << ", " << device << ", " << share << " of " << expected.taken << " beside "
                     << ledger.now());
        const ScopedOptions limited(chosen);
        const std::int64_t alive = ledger.now();
        ledger.forget_most();
        try {
            const Called got = called(net, f, ledger, old);
            CHECK(alive + got.taken <= chosen.memory_limit);
            check_results(net, got.results, expected.results);
        } catch (const OutOfMemory& e) {
            CHECK(share < 1);
            CHECK_THAT(e.what(), ContainsSubstring("memory_limit in BITALE_FLAGS"));
            CHECK(ledger.most() <= chosen.memory_limit);
            for (std::size_t k = 0; k < variables.size(); ++k) CHECK(same(variables[k].get_value(), old[k]));
        }
    }
}

// BITALE_TEST_DEVICE=cuda: through the libraries of CUDA, emulated ones too.
std::vector<std::string> limited_devices() {
    if (tested_device() != std::string("cpu")) return {tested_device()};
    return cpu_and_emulator();
}

}  // namespace

TEST_CASE("random networks keep random limits", "[limits]") {
    const std::uint64_t first = from_environment("BITALE_FUZZ_SEED", 1),
                        count = from_environment("BITALE_FUZZ_LIMITS", 3);
    for (std::uint64_t seed = first; seed < first + count; ++seed)
        for (const std::string& device : limited_devices()) check(seed, device);
}

TEST_CASE("random networks keep random limits of their device", "[limits]") {
    const std::uint64_t first = from_environment("BITALE_FUZZ_SEED", 1),
                        count = from_environment("BITALE_FUZZ_LIMITS", 3);
    for (std::uint64_t seed = first; seed < first + count; ++seed)
        for (const std::string& device : limited_devices()) check_device_limit(seed, device);
}
