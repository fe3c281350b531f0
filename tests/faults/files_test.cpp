// Saving and loading under every failure: an error, the old file, and the next one is right.
#include <filesystem>

#include "bitale/checkpoint.h"
#include "tests/faults/sweep.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

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

TEST_CASE("checkpoints are saved whole or not at all, whatever fails", "[faults]") {
    const TemporaryFolder folder;
    Random random(1);
    for (const std::string ending : {".npz", ".safetensors"}) {
        const std::string path = folder / ("run" + ending);
        Shared w = shared(random_array(bfloat16, {30, 70}, random), "w"), b = shared(zeros({9}), "b");
        int epoch = 1;
        const Checkpoint state{w, b, {"epoch", epoch}};
        for (const Failing failing :
             {Failing::doors, Failing::doors_onwards, Failing::memory, Failing::memory_onwards})
            check({"save a checkpoint",
                   [&] {
                       epoch = 1;
                       save_checkpoint(path, state);
                   },
                   [&] {
                       epoch = 2;
                       save_checkpoint(path, state);
                   },
                   [&](bool thrown, bool) -> std::string {
                       int found = 0;
                       load_checkpoint(path, Checkpoint{w, b, {"epoch", found}});
                       return found == 2 || (thrown && found == 1) ? "" : "neither the old nor the new";
                   }},
                  failing);
    }
}

TEST_CASE("checkpoints are loaded whole or not at all, whatever fails", "[faults]") {
    const TemporaryFolder folder;
    Random random(1);
    const Array saved_w = random_array(bfloat16, {30, 70}, random),
                saved_b = random_array(float32, {9}, random);
    for (const std::string ending : {".npz", ".safetensors"}) {
        const std::string path = folder / ("run" + ending);
        Shared w = shared(saved_w, "w"), b = shared(saved_b, "b");
        int epoch = 7;
        Array history = saved_b;
        const Checkpoint state{w, b, {"epoch", epoch}, {"history", history}};
        save_checkpoint(path, state);
        const Array none_w = zeros({30, 70}, bfloat16), none_b = zeros({9});
        for (const Failing failing :
             {Failing::doors, Failing::doors_onwards, Failing::memory, Failing::memory_onwards})
            check({"load a checkpoint",
                   [&] {
                       w.set_value(none_w);
                       b.set_value(none_b);
                       epoch = 0;
                       history = none_b;
                   },
                   [&] { load_checkpoint(path, state); },
                   [&](bool thrown, bool) -> std::string {
                       const bool all = same(w.get_value(), saved_w) && same(b.get_value(), saved_b) &&
                                        epoch == 7 && same(history, saved_b),
                                  nothing = same(w.get_value(), none_w) && same(b.get_value(), none_b) &&
                                            epoch == 0 && same(history, none_b);
                       return thrown ? (nothing ? "" : "a part was loaded") : all ? "" : "not all was loaded";
                   },
                   true},
                  failing);
    }
}
