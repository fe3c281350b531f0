// Arguments and variables of the corpus's plans that are stored in a second form, more than a megabyte of it:
// cast, scaled, shifted, moved, padded or gathered. There are none but those of copies.txt, and copies of
// what a kernel computes that are too large for a task.
#include "tests/corpus/kept.h"
#include "tests/corpus/plans.h"
#include "tests/support/catch.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

TEST_CASE("no plan stores an argument or a variable twice") {
    std::string text;
    for (const std::string& name : names())
        for (const auto& [target, description] : targets())
            for (const std::string& copy : plan_of(make(name, Purpose::plan), description).copies)
                text += name + " " + target + ": " + copy + "\n";
    if (updates_files()) return keep("copies.txt", text);
    INFO(how_to_update);
    CHECK(difference_of_lines(kept("copies.txt"), text) == "");
}
