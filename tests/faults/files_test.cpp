// Saving and building under every failure: an error, the old file, and the next one is right.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "bitale/io.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cache/workshop.h"
#include "tests/faults/sweep.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

void check(const Workload& workload, Failing failing, const std::vector<std::int64_t>& numbers = {}) {
    const Swept swept = sweep(workload, failing, numbers);
    INFO(workload.name << ", way " << static_cast<int>(failing) << ": " << swept.text());
    CHECK(swept.bad.empty());
    if (std::getenv("BITALE_TEST_FIGURES"))
        std::printf("%s, way %d: %s\n", workload.name.c_str(), static_cast<int>(failing),
                    swept.text().c_str());
}

std::size_t files_in(const std::string& folder) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
    return count;
}

}  // namespace

TEST_CASE("saves survive every failure", "[faults]") {
    const TemporaryFolder folder;
    const std::string path = folder / "model.npz";
    Random random(1);
    const std::map<std::string, Array> old{{"w", random_array(float32, {30, 7}, random)}},
        next{{"w", random_array(float32, {200, 90}, random)}, {"b", random_array(float64, {9}, random)}};
    const auto equal = [](const std::map<std::string, Array>& a, const std::map<std::string, Array>& b) {
        return a.size() == b.size() && same(a.at("w"), b.at("w"));
    };
    for (const Failing failing :
         {Failing::doors, Failing::doors_onwards, Failing::memory, Failing::memory_onwards}) {
        const bool nothing_works = failing == Failing::doors_onwards;  // so nothing can be removed either
        check({"save", [&] { save_npz(path, old); }, [&] { save_npz(path, next); },
               [&](bool thrown, bool) -> std::string {
                   const auto got = load_npz(path);
                   if (!equal(got, next) && !(thrown && equal(got, old)))
                       return "neither the old nor the new";
                   if (files_in(folder.path()) == 1 || (thrown && nothing_works)) return "";
                   return "a file is left";
               }},
              failing);
    }
}

TEST_CASE("loads survive every failure", "[faults]") {
    const TemporaryFolder folder;
    Random random(1);
    const std::map<std::string, Array> saved{{"w", random_array(float32, {200, 9}, random)},
                                             {"b", random_array(float64, {9}, random)}};
    const std::string all = folder / "model.npz", one = folder / "w.npy", name = "w";
    save_npz(all, saved);
    save_npy(one, saved.at(name));
    std::map<std::string, Array> loaded;
    for (const Failing failing :
         {Failing::doors, Failing::doors_onwards, Failing::memory, Failing::memory_onwards})
        check({"load", [&] { loaded.clear(); },
               [&] {
                   loaded = load_npz(all);
                   const Array w = load_npy(one);
                   if (!same(w, saved.at(name))) loaded.clear();
               },
               [&](bool thrown, bool) -> std::string {
                   const bool whole = loaded.size() == 2 && same(loaded.at("w"), saved.at("w")) &&
                                      same(loaded.at("b"), saved.at("b"));
                   return whole || (thrown && loaded.empty()) ? "" : "something else was loaded";
               }},
              failing);
}

namespace {

// A network's step, built anew; its expressions are there.
struct Building {
    Shared w = shared(zeros({6, 4}), "w");
    Array x = Array(std::vector<float>(18, 0.5f), {3, 6});
    std::vector<Input> inputs;
    std::vector<Expr> outputs;
    FunctionOptions options, of_next;
    std::optional<Function> f;

    Building() {
        const Expr in = matrix("x");
        const Expr loss = mean(sqr(tanh(dot(in, w)) - 0.25f));
        inputs = {in};
        outputs = {loss};
        options = {.updates = sgd(loss, {w}, 0.1), .device = "cpu"};
    }
    void prepare() {
        f.reset();
        of_next = options;
    }
    void act() { f = function(inputs, outputs, std::move(of_next)); }
    std::string judge(bool thrown) {
        if (thrown) return f ? "a function in spite of an error" : "";
        w.set_value(zeros({6, 4}));
        return double((*f)(x)) == 0.0625 ? "" : "a wrong result";
    }
};

}  // namespace

TEST_CASE("functions are built or refused, whatever allocation fails", "[faults]") {
    auto b = std::make_shared<Building>();
    const Workload workload{"function", [b] { b->prepare(); }, [b] { b->act(); },
                            [b](bool thrown, bool) { return b->judge(thrown); }, /*keeps_blocks=*/true};
    workload.prepare();
    workload.act();  // compiled, and in memory from now on
    std::vector<std::int64_t> all = interesting_allocations(workload, 300, 7), some;
    // Every place in the program with BITALE_TEST_ALL, else a sample of the places.
    const std::size_t step = std::getenv("BITALE_TEST_ALL") ? 1 : std::max<std::size_t>(1, all.size() / 300);
    for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
    check(workload, Failing::memory, some);
    check(workload, Failing::doors);
}

TEST_CASE("functions are compiled or refused, whatever door is shut", "[faults]") {
    const TemporaryFolder folder, temporary;
    const ScopedVariable variable("TMPDIR", temporary.path());
    const ScopedLog quiet([](const std::string&) {});
    // Compiles each text once, and gives its object again.
    write_file(folder / "compiler",
               "#!/bin/sh\nshift; all=$*\nwhile [ \"$1\" != -o ]; do shift; done\n"
               "kept=" +
                   folder.path() +
                   "/$(cksum < \"$3\" | tr ' ' -).so\n"
                   "[ -f $kept ] || g++ $all || exit 1; [ -f $kept ] || cp \"$2\" $kept; cp $kept \"$2\"\n");
    chmod((folder / "compiler").c_str(), 0700);
    auto b = std::make_shared<Building>();
    int number = 0;
    std::optional<ScopedOptions> scoped;
    for (const Failing failing : {Failing::doors, Failing::doors_onwards}) {
        check({"function that is compiled",
               [&] {
                   // A compiler that no object in memory or in the cache is from.
                   scoped.reset();
                   Options o = options();
                   o.cache_directory = folder / "cache";
                   o.compiler = folder / "compiler " + std::to_string(++number);
                   scoped.emplace(o);
                   b->prepare();
                   std::filesystem::remove_all(folder / "cache");
                   std::filesystem::create_directory(folder / "cache");
                   chmod((folder / "cache").c_str(), 0700);
               },
               [b] { b->act(); },
               [&](bool thrown, bool) {
                   std::string problem = b->judge(thrown);
                   // What could not be removed is removed by whoever builds next.
                   for (const std::string& base : {folder / "cache", temporary.path()})
                       if (sweep_workshops(base) != 0) problem += "a workshop is left";
                   return problem;
               },
               /*keeps_blocks=*/true},
              failing);
    }
}
