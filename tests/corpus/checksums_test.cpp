// The bits of every result of the corpus. They are the same on every machine, for vectors of every width, on
// any number of threads and by both modes of compiling, so a list of checksums in the source tree has them. A
// line of it changes only where the order of a sum, or a function's approximation, is meant to change.
#include <cmath>
#include <map>

#include "runtime/cpu/features.h"
#include "tests/corpus/kept.h"
#include "tests/corpus/runs.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

Options fast_to_compile() {
    Options o = options();
    o.mode = Options::Mode::fast_compile;
    return o;
}

const std::vector<Computed>& computed(const std::string& name) {
    static auto& all = *new std::map<std::string, std::vector<Computed>>;
    const auto at = all.find(name);
    if (at != all.end()) return at->second;
    return all.emplace(name, run(make(name, Purpose::run), fast_to_compile())).first->second;
}

std::string all_lines(const Options& chosen) {
    std::string lines;
    for (const std::string& name : names())
        lines += checksum_lines(name, run(make(name, Purpose::run), chosen));
    return lines;
}

bool runs_here(const Options& chosen) {
    const ScopedOptions scope(chosen);
    try {
        return !target_features().architecture.empty();
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

TEST_CASE("the bits of the corpus are those of the list") {
    std::string lines;
    for (const std::string& name : names()) lines += checksum_lines(name, computed(name));
    if (updates_files()) return keep("checksums.txt", lines);
    INFO(how_to_update);
    CHECK(difference_of_lines(kept("checksums.txt"), lines) == "");
}

TEST_CASE("two forms of the same computation agree") {
    int forms = 0;
    for (const std::string& name : names()) {
        const std::string other = make(name, Purpose::run).form_of;
        if (other.empty()) continue;
        ++forms;
        const std::vector<Computed>&a = computed(name), &b = computed(other);
        INFO(name << " and " << other);
        REQUIRE(a.size() == b.size());
        for (std::size_t k = 0; k < a.size(); ++k)
            for (std::size_t call = 0; call < a[k].values.size(); ++call) {
                INFO(a[k].name << ", call " << call);
                const test::Tolerance near{.absolute = 1e-6, .of_largest = 1e-5};
                CHECK(test::difference(a[k].values[call], b[k].values[call], near) == "");
            }
    }
    CHECK(forms >= 8);
}

TEST_CASE("results of the corpus are numbers") {
    for (const std::string& name : names())
        for (const Computed& c : computed(name))
            for (const Array& value : c.values) {
                if (!is_float(value.dtype())) continue;
                INFO(name << ", " << c.name);
                bool finite = true;
                for (const double x : value.to_vector<double>()) finite = finite && std::isfinite(x);
                CHECK(finite);
            }
}

TEST_CASE("the bits of the corpus on other machines", "[slow]") {
    const std::string expected = kept("checksums.txt");
    int run_with = 0;
    for (const char* target : {"native", "x86-64-v4", "x86-64-v3", "x86-64", "aarch64"})
        for (const int threads : {1, 2}) {
            Options chosen = options();
            chosen.cpu_target = target;
            chosen.threads = threads;
            if (std::string(target) != "native" || threads == 1) chosen.mode = Options::Mode::fast_compile;
            if (!runs_here(chosen)) continue;
            INFO(target << ", " << threads << " threads");
            CHECK(difference_of_lines(expected, all_lines(chosen)) == "");
            ++run_with;
        }
    CHECK(run_with >= 4);
}
