// Steps, loops and values of variables under every failure: an error, whole steps, and the next one is right.
#include <memory>

#include "graph/base/options.h"
#include "tests/faults/machine.h"
#include "tests/faults/sweep.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/small_network.h"

using namespace bitale;
using namespace bitale::test;

namespace {

Workload calls(const std::shared_ptr<SmallNetwork>& net) {
    auto loss = std::make_shared<Array>();
    const auto act = [net, loss] { *loss = net->step(net->x, net->t); };
    const std::vector<Array> before = net->values();
    act();
    const std::vector<Array> after = net->values();
    const Array expected = *loss;
    return {"call", [net, before] { net->set(before); }, act,
            [=](bool thrown, bool rounding) {
                if (thrown) return differences(net->values(), before);
                return to_rounding(net->values(), after, rounding) +
                       to_rounding({*loss}, {expected}, rounding);
            }};
}

Workload loops(const std::shared_ptr<SmallNetwork>& net) {
    constexpr std::int64_t steps = 3;
    auto losses = std::make_shared<Results>(std::vector<Array>{});
    std::vector<std::vector<Array>> states{net->values()};
    for (std::int64_t k = 0; k < steps; ++k) {
        net->minibatch(k);
        states.push_back(net->values());
    }
    net->set(states[0]);
    const auto act = [net, losses] { *losses = net->minibatch.loop(0, steps); };
    act();
    const Array expected = (*losses)[0];
    return {"loop", [net, states] { net->set(states[0]); }, act,
            [=](bool thrown, bool rounding) {
                const std::vector<Array> now = net->values();
                if (!thrown)
                    return to_rounding(now, states.back(), rounding) +
                           to_rounding({(*losses)[0]}, {expected}, rounding);
                for (const std::vector<Array>& state : states)
                    if (to_rounding(now, state, rounding).empty()) return std::string();
                return "no whole number of steps: " + differences(now, states[0]);
            }};
}

// Each call has a length that no call before had.
Workload other_lengths(const std::string& device) {
    struct State {
        Shared w, count;
        Function f;
        std::int64_t length = 1;
        Array x;
        double got = 0;
    };
    auto s = std::make_shared<State>();
    s->w = shared(zeros({4}), "w");
    s->count = shared(Array(std::int64_t{0}), "count");
    const Expr x = matrix("x");
    s->f = function({x}, {sum(x)},
                    {.updates = {{s->w, s->w + sum(x, {0})}, {s->count, s->count + 1}}, .device = device});
    return {"call of another length",
            [s] {
                s->w.set_value(zeros({4}));
                s->count.set_value(Array(std::int64_t{0}));
                s->length = s->length % 97 * 37 % 97 + 1;
                s->x = Array(std::vector<float>(static_cast<std::size_t>(4 * s->length), 1), {s->length, 4});
            },
            [s] { s->got = double(s->f(s->x)); },
            [s](bool thrown, bool) {
                const auto expected = static_cast<float>(thrown ? 0 : s->length);
                const std::vector<float> w = s->w.get_value().to_vector<float>();
                const auto steps = s->count.get_value().item<std::int64_t>();
                if (w != std::vector<float>(4, expected) || steps != (thrown ? 0 : 1))
                    return std::string("half a step");
                return std::string(thrown || s->got == 4 * expected ? "" : "a wrong sum");
            },
            /*keeps_blocks=*/true};
}

// Eigenvalues of a variable that the same step updates.
Workload eigenvalues(const std::string& device) {
    struct State {
        Shared a, w;
        Function f;
    };
    const std::int64_t n = 5;
    auto s = std::make_shared<State>();
    Random random(6);
    const Array begin = random_array(float32, {n, n}, random), x = random_array(float32, {n, n}, random);
    s->a = shared(begin, "a");
    s->w = shared(zeros({n}), "w");
    const Expr step = matrix("x");
    s->f =
        function({step}, {}, {.updates = {{s->a, s->a + step}, {s->w, eigh(s->a).values}}, .device = device});
    const auto values = [s] { return std::vector<Array>{s->a.get_value(), s->w.get_value()}; };
    const std::vector<Array> before = values();
    s->f(x);
    const std::vector<Array> after = values();
    return {"eigenvalues",
            [s, before] {
                s->a.set_value(before[0]);
                s->w.set_value(before[1]);
            },
            [s, x] { s->f(x); },
            [=](bool thrown, bool) { return to_rounding(values(), thrown ? before : after, !thrown); }};
}

Workload set_and_get(const std::shared_ptr<SmallNetwork>& net) {
    const Array before = net->w.get_value();
    Random random(3);
    const Array other = random_array(float32, before.shape(), random);
    auto got = std::make_shared<Array>();
    return {"set and get a value", [net, before] { net->w.set_value(before); },
            [=] {
                net->w.set_value(other);
                *got = net->w.get_value();
            },
            [=](bool thrown, bool) {
                const Array now = net->w.get_value();
                if (thrown) return std::string(same(now, before) || same(now, other) ? "" : "a torn value");
                return std::string(same(now, other) && same(*got, other) ? "" : "a wrong value");
            }};
}

void check_all(const std::string& device, std::int64_t inputs, std::int64_t hidden, std::int64_t batch) {
    const auto net = std::make_shared<SmallNetwork>(device, inputs, hidden, batch);
    const bool sampled = device == "reference";  // an interpreter allocates for every value of every step
    check_every(calls(net), sampled);
    check_every(loops(net), sampled);
    const Workload first_launches = other_lengths(device);
    check_every(device == "emulator" ? may_lose(first_launches) : first_launches, sampled);
    check_every(set_and_get(net));
}

}  // namespace

TEST_CASE("steps on a CPU survive every failure", "[faults]") { check_all("cpu", 784, 100, 64); }

TEST_CASE("steps of the reference survive every failure", "[faults]") { check_all("reference", 5, 3, 2); }

TEST_CASE("steps with eigenvalues survive every failure", "[faults]") {
    check_every(eigenvalues("cpu"));
    check_every(eigenvalues("reference"), true);
}

TEST_CASE("steps on a watched emulator survive every failure", "[faults]") {
    Options o = options();
    o.emulator_checks = true;
    emulator_never_fails();
    {
        const ScopedOptions scoped(o);
        check_all("emulator", 20, 8, 6);
    }
    o.graphs = Options::Graphs::off;  // launch by launch
    const ScopedOptions scoped(o);
    const auto net = std::make_shared<SmallNetwork>("emulator", 20, 8, 6);
    check_every(may_lose(calls(net)));
    check_every(may_lose(loops(net)));
}

TEST_CASE("steps on an emulator survive every failure of its own", "[faults]") {
    const FailingEmulator machine;
    const auto net = std::make_shared<SmallNetwork>("emulator", 20, 8, 6);
    for (const Failing failing : {Failing::memory, Failing::memory_onwards}) {
        check(may_lose(calls(net)), failing);
        check(may_lose(loops(net)), failing);
        check(may_lose(other_lengths("emulator")), failing);
    }
}

TEST_CASE("a value that is held and no memory to copy it are named", "[faults]") {
    Shared w = shared(zeros({1000}), "weights");
    Function f = function({}, {}, {.updates = {{w, w + 1.0f}}, .device = "cpu"});
    f();
    {
        const Array held = w.get_value();
        outside::plant(outside::Fault{.door = outside::Door::memory, .onwards = true});
        std::string message;
        try {
            f();
        } catch (const OutOfMemory& e) {
            message = e.what();
        }
        outside::plant({});
        CHECK_THAT(message, ContainsSubstring("\"weights\"") && ContainsSubstring("4000 bytes") &&
                                ContainsSubstring("get_value") && ContainsSubstring("let go of"));
        CHECK(held.at(0) == 1);
        CHECK(w.get_value().at(999) == 1);
    }
    outside::plant(outside::Fault{.door = outside::Door::memory, .onwards = true});
    f();  // nobody holds it: nothing is copied
    outside::plant({});
    CHECK(w.get_value().at(999) == 2);
    const Array held = w.get_value();
    f();
    CHECK(held.at(999) == 2);
    CHECK(w.get_value().at(999) == 3);
}
