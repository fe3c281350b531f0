// What code generation decides about some telling graphs: storage, groups and schedules as text, in files.
#include "tests/corpus/kept.h"
#include "tests/corpus/plans.h"
#include "tests/support/catch.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

const char* const telling[] = {
    "argmax_rows",       "attention",        "byte_means",
    "conv_3x3_stride2",  "covariance_bytes", "crossentropy_by_hand",
    "embedding_step",    "heat_step",        "int8_weights",
    "kmeans_step",       "mlp_step",         "pool_overlap",
    "small_cnn_step",    "sum_every_subset", "swap_variables",
    "transformer_layer",
};

std::string decisions_of(const std::string& name) {
    std::string text;
    for (const auto& [target, description] : targets()) {
        if (target == "cpu-alone") continue;
        const Plan plan = plan_of(make(name, Purpose::plan), description);
        text += "==== " + target + ": storage\n" + plan.storage + "\n==== " + target + ": groups\n" +
                plan.groups + "\n==== " + target + ": schedule\n" + plan.schedule + "\n";
    }
    return text;
}

}  // namespace

TEST_CASE("decisions are those of the files") {
    for (const std::string name : telling) {
        const std::string text = decisions_of(name), file = "decisions/" + name + ".txt";
        if (updates_files()) {
            keep(file, text);
            continue;
        }
        INFO(name << ": " << how_to_update);
        CHECK(difference_of_lines(kept(file), text) == "");
    }
}

TEST_CASE("a plan does not depend on what was planned before it") {
    const std::string before = decisions_of("mlp_step");
    decisions_of("kmeans_step");
    CHECK(difference_of_lines(before, decisions_of("mlp_step")) == "");
}
