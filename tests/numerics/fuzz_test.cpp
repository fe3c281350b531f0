// Random graphs on the tested device against the oracles: whole numbers and special values equal the typed
// one to the bit, real numbers are as near to the wide one as its errors say. Compiling costs far more than
// running, so some graphs go into one function. For the long run BITALE_FUZZ_COUNT sets how many,
// BITALE_FUZZ_SEED the first, BITALE_FUZZ_PACK how many in one function; BITALE_FUZZ_PRINT shows them, and
// BITALE_FUZZ_OUTPUTS=3,9 leaves these outputs and no updates, to find the least that is wrong.
#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "graph/base/options.h"
#include "graph/walk/traverse.h"
#include "ops/oracle/typed.h"
#include "ops/oracle/wide.h"
#include "tests/numerics/random_graph.h"
#include "tests/support/catch.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Seeded {
    std::uint64_t seed = 0;
    Arithmetic arithmetic = Arithmetic::whole;
    RandomGraph graph;
};

Arithmetic arithmetic_of(std::uint64_t seed) {
    static const std::vector<Arithmetic> turns = {Arithmetic::smooth, Arithmetic::whole, Arithmetic::smooth,
                                                  Arithmetic::special};
    return turns[seed % turns.size()];
}

const char* name_of(Arithmetic a) {
    return a == Arithmetic::whole ? "whole" : a == Arithmetic::special ? "special" : "smooth";
}

Seeded generated(std::uint64_t seed, Arithmetic arithmetic) {
    GraphGenerator generator(seed, arithmetic);
    generator.suffix = fmt::format("_{}", seed);
    Seeded made{seed, arithmetic, generator.generate(static_cast<int>(10 + seed % 20))};
    if (const char* left = std::getenv("BITALE_FUZZ_OUTPUTS")) {
        std::vector<Expr> outputs;
        std::istringstream numbers(left);
        for (std::string number; std::getline(numbers, number, ',');)
            outputs.push_back(made.graph.outputs.at(std::stoul(number)));
        made.graph.outputs = std::move(outputs);
        made.graph.updates.clear();
    }
    return made;
}

struct GraphCounts {
    std::int64_t graphs = 0, elements = 0, undetermined = 0;
};

// Some graphs as one function, called, looped and called again by another function over the same variables.
class Together {
  public:
    Together(std::vector<Seeded> graphs, GraphCounts& counts, bool specialise)
        : graphs_(std::move(graphs)), counts_(counts), specialise_(specialise) {
        for (const Seeded& g : graphs_) {
            for (std::size_t i = 0; i < g.graph.inputs.size(); ++i) {
                inputs_.push_back(g.graph.inputs[i]);
                arguments_.push_back(g.graph.arguments[i]);
            }
            outputs_.insert(outputs_.end(), g.graph.outputs.begin(), g.graph.outputs.end());
            updates_.insert(updates_.end(), g.graph.updates.begin(), g.graph.updates.end());
        }
        for (const Update& u : updates_) before_.push_back(u.target.get_value());
    }

    // What is wrong; empty: nothing.
    std::string run() {
        std::string wrong;
        try {
            wrong = calls();
            if (wrong.empty() && graphs_[0].seed % 5 == 0) wrong = loops();
        } catch (const std::exception& e) {  // an internal error is none of the library's Errors
            wrong = std::string("error: ") + e.what();
        }
        restore();
        return wrong;
    }

  private:
    void restore() {
        for (std::size_t i = 0; i < before_.size(); ++i) {
            Shared target = updates_[i].target;
            target.set_value(before_[i]);
        }
    }

    FunctionOptions options(Updates updates) const {
        FunctionOptions o;
        o.updates = std::move(updates);
        o.name = "fuzz";
        o.device = tested_device();
        o.on_unused_input = OnUnused::ignore;
        o.specialise = specialise_;
        return o;
    }

    std::string calls() {
        const std::vector<Input> inputs(inputs_.begin(), inputs_.end());
        FunctionOptions all = options(updates_);
        // An input that is computed from another one.
        NodeMap given;
        std::vector<Input> of_call = inputs;
        if (graphs_[0].seed % 7 == 0)
            for (Input& x : of_call) {
                const DType t = x.variable.dtype();
                if (!has_known_shape(x.variable) || (t != float32 && t != float64)) continue;
                Dims dims;
                for (const Int& n : x.variable.node()->type.shape) dims.push_back(n.constant());
                const Expr other = input(t, dims, "given");
                all.givens.push_back({x.variable, -other});
                given.emplace(x.variable.node().get(), (-other).node());
                x = Input(other);
                break;
            }
        Function f = function(of_call, outputs_, all);
        std::string wrong = call(f, of_call, given, updates_);
        // Another function over some of the variables, between two calls.
        if (wrong.empty() && graphs_[0].seed % 3 == 0) {
            const Updates some(updates_.begin(),
                               updates_.begin() + static_cast<std::ptrdiff_t>(updates_.size() / 2));
            Function g = function(inputs, outputs_, options(some));
            wrong = call(g, inputs, {}, some);
            if (!wrong.empty()) wrong = "another function over the same variables: " + wrong;
        }
        if (wrong.empty()) wrong = call(f, of_call, given, updates_);
        return wrong;
    }

    // One call, of which the results and new values are held against those of the oracles.
    std::string call(Function& f, const std::vector<Input>& inputs, const NodeMap& given,
                     const Updates& updates) {
        Nodes roots;
        for (const Expr& x : outputs_) roots.push_back(x.node());
        for (const Update& u : updates) roots.push_back(u.value.node());
        if (!given.empty()) roots = replace(roots, given);
        LeafValues leaves;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            leaves.emplace(inputs[i].variable.node().get(), arguments_[i]);
        const std::vector<Array> typed = evaluate(roots, leaves);
        const std::vector<WidePtr> wide = wide_of(roots, leaves);
        const Results results = f.call(arguments_);
        std::string wrong;
        for (std::size_t k = 0; k < roots.size(); ++k) {
            const bool output = k < outputs_.size();
            const Array got = output ? results[k] : updates[k - outputs_.size()].target.get_value();
            counts_.elements += got.size();
            std::string differs;
            if (wide[k]) {
                differs = difference(got, *wide[k], &counts_.undetermined);
                const std::string oracles = difference(typed[k], *wide[k]);
                if (!oracles.empty()) differs += " The oracles: " + oracles;
            } else {
                // Of the sign of a zero, maxima say nothing.
                differs = difference(got, typed[k], {.absolute = 1e-300});
            }
            if (!differs.empty())
                wrong += fmt::format("{} {}: {}\n", output ? "output" : "new value",
                                     output ? k : k - outputs_.size(), differs);
        }
        return wrong;
    }

    // For the results of graphs that round, else null.
    std::vector<WidePtr> wide_of(const Nodes& roots, const LeafValues& leaves) const {
        Nodes rounding;
        std::vector<bool> rounds;
        for (const Seeded& g : graphs_)
            rounds.insert(rounds.end(), g.graph.outputs.size(), g.arithmetic == Arithmetic::smooth);
        for (const Seeded& g : graphs_)
            rounds.insert(rounds.end(), g.graph.updates.size(), g.arithmetic == Arithmetic::smooth);
        for (std::size_t k = 0; k < roots.size(); ++k)
            if (rounds[k]) rounding.push_back(roots[k]);
        std::vector<WidePtr> values = evaluate_wide(rounding, leaves), all(roots.size());
        for (std::size_t k = 0, next = 0; k < roots.size(); ++k)
            if (rounds[k]) all[k] = values[next++];
        return all;
    }

    // A loop gives the bits of its steps.
    std::string loops() {
        restore();
        const Expr i = lscalar("turn");
        std::vector<Input> inputs{Input(i)};
        for (std::size_t k = 0; k < inputs_.size(); ++k) inputs.emplace_back(inputs_[k], arguments_[k]);
        std::vector<Expr> outputs = outputs_;
        outputs.push_back(cast(i, float32) * 2);
        Function f = function(inputs, outputs, options(updates_));
        const auto values = [&] {
            std::vector<Array> r;
            for (const Update& u : updates_) r.push_back(u.target.get_value());
            return r;
        };
        const Results looped = f.loop(1, 4);
        const std::vector<Array> after = values();
        restore();
        for (std::int64_t turn = 1; turn < 4; ++turn) {
            const Results one = f.call(std::vector<Array>{Array(turn)});
            for (std::size_t k = 0; k < outputs.size(); ++k) {
                const Array row = looped[k].rows(turn - 1, turn).reshaped(one[k].shape());
                if (!same(row, one[k]))
                    return fmt::format("step {} of a loop, output {}: {}\n", turn, k,
                                       difference(row, one[k]));
            }
        }
        const std::vector<Array> called = values();
        for (std::size_t k = 0; k < called.size(); ++k)
            if (!same(after[k], called[k]))
                return fmt::format("after a loop, variable {}: {}\n", k, difference(after[k], called[k]));
        return {};
    }

    std::vector<Seeded> graphs_;
    GraphCounts& counts_;
    const bool specialise_;  // for the lengths of the arguments
    std::vector<Expr> inputs_, outputs_;
    std::vector<Array> arguments_, before_;
    Updates updates_;
};

std::vector<Seeded> graphs_of(const std::vector<std::uint64_t>& seeds) {
    std::vector<Seeded> graphs;
    for (const std::uint64_t seed : seeds) {
        try {
            graphs.push_back(generated(seed, arithmetic_of(seed)));
        } catch (const Error& e) {
            // A mistake of the generator: the other seeds go on.
            FAIL_CHECK("seed " << seed << " makes no graph: " << e.what());
        }
    }
    return graphs;
}

void print(const Seeded& g) {
    for (const Expr& x : g.graph.outputs) std::cout << debugprint(x) << "\n";
    for (const Update& u : g.graph.updates)
        std::cout << u.target.name() << " <- " << debugprint(u.value) << "\n";
}

// Graphs of these seeds, in one function; where something is wrong each by itself, to name it.
void check(const std::vector<std::uint64_t>& seeds, GraphCounts& counts) {
    std::vector<Seeded> graphs = graphs_of(seeds);
    if (graphs.empty()) return;
    std::vector<std::uint64_t> made;
    for (const Seeded& g : graphs) made.push_back(g.seed);
    if (std::getenv("BITALE_FUZZ_PRINT"))
        for (const Seeded& g : graphs) print(g);
    counts.graphs += static_cast<std::int64_t>(graphs.size());
    // Every other pack; graphs by themselves in versions for all lengths.
    const bool specialise = seeds.size() > 1 && seeds.front() / seeds.size() % 2 == 1;
    const std::string wrong = Together(std::move(graphs), counts, specialise).run();
    if (wrong.empty()) return;
    GraphCounts again;
    bool alone = false;
    for (const std::uint64_t seed : made) {
        const std::string of_one =
            made.size() == 1 ? wrong : Together(graphs_of({seed}), again, specialise).run();
        if (of_one.empty()) continue;
        alone = true;
        INFO("seed " << seed << " " << name_of(arithmetic_of(seed)));
        CHECK(of_one == "");
    }
    INFO("seeds " << seeds.front() << " to " << seeds.back() << " together");
    if (!alone) CHECK(wrong == "");
}

// Seconds on a core so far, of this process or of the compilers that it started.
double core_seconds(int whose) {
    rusage used{};
    getrusage(whose, &used);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

GraphCounts check(std::uint64_t first, std::uint64_t count, std::uint64_t packed) {
    GraphCounts counts;
    for (std::uint64_t seed = first; seed < first + count; seed += packed) {
        std::vector<std::uint64_t> seeds;
        for (std::uint64_t s = seed; s < std::min(first + count, seed + packed); ++s) seeds.push_back(s);
        check(seeds, counts);
    }
    return counts;
}

// First seeds of the kinds of graphs, how many of a kind go into one function, and how many there are: some
// that every run checks, and all.
struct Kind {
    std::uint64_t first = 1, packed = 1, some = 0, all = 0;
};

const std::vector<Kind> usual = {
    {1, 4, 24, 64},
    {first_newer_seed, 4, 12, 24},
    {101, 1, 4, 12},
    {first_seed_of_long_sums, 1, 10, 28},
    {first_seed_of_groups, 4, 8, 20},
    {first_seed_of_crossings, 4, 8, 40},
};
const std::vector<Kind> smallest_tasks = {{201, 8, 8, 24}, {first_newer_seed + 201, 8, 8, 24}};

void check_all(std::uint64_t first, std::uint64_t count, std::uint64_t packed) {
    const GraphCounts counts = check(first, count, packed);
    CHECK(counts.graphs == static_cast<std::int64_t>(count));
    CHECK(counts.undetermined * 10 < counts.elements);
}

void check_some(const std::vector<Kind>& kinds) {
    for (const Kind& k : kinds) check_all(k.first, k.some, k.packed);
}

void check_others(const std::vector<Kind>& kinds) {
    for (const Kind& k : kinds) check_all(k.first + k.some, k.all - k.some, k.packed);
}

Options checked_smallest_tasks() {
    Options chosen = options();
    chosen.smallest_tasks = true;
    chosen.checked_loops = true;
    return chosen;
}

}  // namespace

TEST_CASE("random graphs agree with the oracles") { check_some(usual); }

TEST_CASE("more random graphs agree with the oracles", "[slow]") { check_others(usual); }

TEST_CASE("random graphs agree with the oracles, in the smallest tasks, with loops that check their ranges") {
    const ScopedOptions scope(checked_smallest_tasks());
    check_some(smallest_tasks);
}

TEST_CASE("more random graphs agree with the oracles, in the smallest tasks", "[slow]") {
    const ScopedOptions scope(checked_smallest_tasks());
    check_others(smallest_tasks);
}

TEST_CASE("random graphs that were refused once") {
    for (const std::uint64_t seed : {10934, 42756, 70326, 70394, 70692, 70740, 230034, 231018, 2000794,
                                     2001188, 2002108, 3001094, 6001152, 6003194, 6101954, 6105316})
        check(seed, 1, 1);
}

TEST_CASE("many random graphs", "[slow]") {
    const auto begin = std::chrono::steady_clock::now();
    const double own_before = core_seconds(RUSAGE_SELF), compiling_before = core_seconds(RUSAGE_CHILDREN);
    const std::uint64_t first = from_environment("BITALE_FUZZ_SEED", 1000);
    const GraphCounts counts =
        check(first, from_environment("BITALE_FUZZ_COUNT", 1000), from_environment("BITALE_FUZZ_PACK", 8));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
                 own = core_seconds(RUSAGE_SELF) - own_before,
                 compiling = core_seconds(RUSAGE_CHILDREN) - compiling_before;
    const auto graphs = static_cast<double>(counts.graphs);
    std::cout << fmt::format(
        "{} graphs from seed {} in {:.0f} s, {:.1f} a second; {:.1f} a second of a core, of which compilers "
        "took "
        "{:.0f} %; {:.1f} million elements compared, {:.2f} % of them undetermined by rounding\n",
        counts.graphs, first, seconds, graphs / seconds, graphs / (own + compiling),
        100 * compiling / (own + compiling), static_cast<double>(counts.elements) / 1e6,
        100.0 * static_cast<double>(counts.undetermined) /
            static_cast<double>(std::max<std::int64_t>(1, counts.elements)));
}
