// Kernels compiled for narrower vectors than the machine has, and by mode=fast_compile: the same bits.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "graph/base/options.h"
#include "runtime/cpu/features.h"
#include "tests/numerics/workloads.h"
#include "tests/support/catch.h"
#include "tests/support/nets.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

std::vector<Array> results_with(const Options& chosen, const Workload& w) {
    const ScopedOptions scope(chosen);
    Function f = function(w.inputs, w.outputs, {.name = "targets", .device = "cpu"});
    const Results r = f.call(w.values);
    std::vector<Array> all;
    for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
    return all;
}

void require_same_bits(const Options& chosen, const std::string& name) {
    Options usual = options();
    usual.disabled.insert("onednn");
    Options other = chosen;
    other.disabled.insert("onednn");
    for (const Workload& w : {products(), elements()}) {
        const std::vector<Array> expected = results_with(usual, w), got = results_with(other, w);
        REQUIRE(got.size() == expected.size());
        for (std::size_t k = 0; k < got.size(); ++k) {
            INFO(name << ", result " << k << ": " << difference(got[k], expected[k]));
            CHECK(same(got[k], expected[k]));
        }
    }
}

bool runs_here(const Options& chosen) {
    const ScopedOptions scope(chosen);
    try {
        return !target_features().architecture.empty();
    } catch (const Error& e) {
        CHECK_THAT(e.what(), ContainsSubstring("cpu_target=" + chosen.cpu_target));
        CHECK_THAT(e.what(), ContainsSubstring("it can run native, " + cpu_features().architecture));
        return false;
    }
}

}  // namespace

TEST_CASE("the same bits from vectors of every width") {
    int run = 0;
    for (const char* target : {"x86-64-v4", "x86-64-v3", "x86-64", "aarch64"}) {
        Options chosen = options();
        chosen.cpu_target = target;
        if (!runs_here(chosen)) continue;
        require_same_bits(chosen, target);
        ++run;
    }
    CHECK(run > 0);
}

TEST_CASE("the same bits when compiled fast") {
    Options chosen = options();
    chosen.mode = Options::Mode::fast_compile;
    require_same_bits(chosen, "fast_compile");
}
