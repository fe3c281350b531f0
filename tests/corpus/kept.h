// Texts that tests compare with files of the source tree, and rewrite when BITALE_TEST_UPDATE=1 says so.
#pragma once

#include <string>
#include <vector>

namespace bitale::corpus {

bool updates_files();
// tests/corpus/NAME; empty where there is none. Throws where it cannot be written.
std::string kept(const std::string& name);
void keep(const std::string& name, const std::string& text);

// Lines that only one of the texts has, with - and + as diff shows them, the first 40; empty: they are equal.
std::string difference_of_lines(const std::string& before, const std::string& now);

inline const char* const how_to_update =
    "If the change is intended: BITALE_TEST_UPDATE=1 build/release/tests/test_corpus, then read git diff.";

}  // namespace bitale::corpus
