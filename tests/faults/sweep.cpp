#include "tests/faults/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include "tests/faults/failing_new.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/small_network.h"

namespace bitale::test {

namespace {

using outside::Door;

bool of_memory(Failing failing) { return failing == Failing::memory || failing == Failing::memory_onwards; }
bool onwards(Failing failing) {
    return failing == Failing::doors_onwards || failing == Failing::memory_onwards;
}

struct Attempt {
    bool met = false, thrown = false, rounding = false;
    std::string what, problem;
};

Attempt attempt(const Workload& workload, Failing failing, std::int64_t n) {
    Attempt r;
    workload.prepare();
    if (of_memory(failing))
        fail_new(n, onwards(failing));
    else
        outside::plant(outside::Fault{.door = {}, .number = n, .onwards = onwards(failing)});
    enum class How { fine, error, other } how = How::fine;
    // Words are made once allocations succeed again.
    std::exception_ptr thrown;
    try {
        workload.act();
    } catch (const Error&) {
        how = How::error;
        thrown = std::current_exception();
    } catch (...) {
        how = How::other;
        thrown = std::current_exception();
    }
    if (of_memory(failing)) {
        r.met = stop_failing_new();
    } else {
        const outside::Uses uses = outside::uses();
        r.met = uses.met > 0;
        r.rounding = uses.last_met == Door::library;
        if (r.met) r.what = outside::name_of(*uses.last_met);
        outside::plant({});
    }
    r.thrown = how != How::fine;
    if (thrown) try {
            std::rethrow_exception(thrown);
        } catch (const std::exception& e) {
            r.what += std::string(" threw \"") + e.what() + "\"";
        }
    if (how == How::other) r.problem = "no bitale::Error";
    if (r.problem.empty()) r.problem = workload.judge(r.thrown, r.rounding);
    if (!r.problem.empty()) return r;
    try {
        workload.prepare();
        workload.act();
        r.problem = workload.judge(false, false);
        if (!r.problem.empty()) r.problem = "the next one: " + r.problem;
    } catch (const std::exception& e) {
        r.problem = std::string("the next one threw \"") + e.what() + "\"";
    }
    return r;
}

}  // namespace

std::string Swept::text() const {
    std::string s = fmt::format("{} failures, {} errors, {} bad", tried, thrown, bad.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(bad.size(), 10); ++i) s += "\n  " + bad[i];
    return s;
}

Swept sweep(const Workload& workload, Failing failing, const std::vector<std::int64_t>& numbers) {
    Swept r;
    if (of_memory(failing) && !new_can_fail()) return r;
    const auto one = [&](std::int64_t n) {
        Attempt first = attempt(workload, failing, n);
        if (!first.met) return false;
        ++r.tried;
        r.thrown += first.thrown ? 1 : 0;
        if (first.problem.empty() && !workload.keeps_blocks && !onwards(failing) && new_can_fail()) {
            // What leaks does so each time; what is kept from then on, as the graph of a longer slice of a
            // loop, does not.
            std::int64_t more = 3;
            for (int again = 0; again < 3 && more > 2 && first.problem.empty(); ++again) {
                const std::int64_t before = blocks_alive();
                first = attempt(workload, failing, n);
                more = blocks_alive() - before;  // `first` has words of its own
            }
            if (first.problem.empty() && more > 2) first.problem = fmt::format("{} blocks leak", more);
        }
        if (!first.problem.empty())
            r.bad.push_back(fmt::format("{} {}: {}: {}", of_memory(failing) ? "new" : "door", n, first.what,
                                        first.problem));
        return true;
    };
    if (numbers.empty()) {
        for (std::int64_t n = 1; one(n) && r.bad.size() < 20; ++n) {
        }
    } else {
        for (const std::int64_t n : numbers) one(n);
    }
    return r;
}

std::vector<std::int64_t> interesting_allocations(const Workload& workload, std::size_t random,
                                                  std::uint64_t seed) {
    if (!new_can_fail()) return {1};
    workload.prepare();
    std::vector<std::uint64_t> sites;
    {
        NewSites record;
        workload.act();
        sites = record.take();
    }
    struct Uses {
        std::int64_t count = 0, second = 0, last = 0;
    };
    std::map<std::uint64_t, Uses> uses;
    std::set<std::int64_t> chosen;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        Uses& u = uses[sites[i]];
        u.last = static_cast<std::int64_t>(i) + 1;
        if (++u.count <= 2) chosen.insert(u.last);
    }
    for (const auto& [site, u] : uses) chosen.insert(u.last);
    Random draws(seed);
    for (std::size_t i = 0; i < random; ++i)
        chosen.insert(draws.between(1, static_cast<std::int64_t>(sites.size())));
    return {chosen.begin(), chosen.end()};
}

void check(const Workload& workload, Failing failing, const std::vector<std::int64_t>& numbers) {
    const Swept swept = sweep(workload, failing, numbers);
    INFO(workload.name << ", way " << static_cast<int>(failing) << ": " << swept.text());
    CHECK(swept.bad.empty());
    if (std::getenv("BITALE_TEST_FIGURES"))
        std::printf("%s, way %d: %s\n", workload.name.c_str(), static_cast<int>(failing),
                    swept.text().c_str());
}

void check_every(const Workload& workload, bool sampled) {
    for (const Failing failing :
         {Failing::doors, Failing::doors_onwards, Failing::memory, Failing::memory_onwards})
        check(workload, failing,
              sampled && of_memory(failing) ? interesting_allocations(workload, 50, 1)
                                            : std::vector<std::int64_t>());
}

Workload may_lose(Workload workload) {
    workload.judge = [judge = workload.judge](bool thrown, bool rounding) {
        try {
            return judge(thrown, rounding);
        } catch (const DeviceError& e) {
            const bool said = std::string(e.what()).find("is lost: a step failed") != std::string::npos;
            return std::string(thrown && said ? "" : e.what());
        }
    };
    return workload;
}

std::string to_rounding(const std::vector<Array>& got, const std::vector<Array>& expected, bool rounding) {
    return differences(got, expected, rounding ? Tolerance{.absolute = 1e-5, .relative = 1e-3} : Tolerance{});
}

std::uint64_t seed_of_run() {
    if (const char* given = std::getenv("BITALE_TEST_SEED")) return std::strtoull(given, nullptr, 10);
    return std::random_device()();
}

std::vector<std::int64_t> sample(std::vector<std::int64_t> numbers, std::size_t most, std::uint64_t seed) {
    std::vector<std::int64_t> some;
    std::mt19937_64 engine(seed);
    std::sample(numbers.begin(), numbers.end(), std::back_inserter(some), most, engine);
    return some;
}

}  // namespace bitale::test
