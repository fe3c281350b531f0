// What reads bytes that somebody else wrote. Each target takes any bytes, and returns whether they were
// accepted: a refusal is an Error that it catches, everything else that leaves it is a finding.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bitale::fuzz {

struct Target {
    const char* name;
    bool (*run)(std::string_view bytes);
};
const std::vector<Target>& targets();
const Target* target_named(std::string_view name);  // null: there is none

// The kept inputs of a target, tests/fuzz/corpus/NAME.
std::vector<std::string> corpus_of(const std::string& folder);

}  // namespace bitale::fuzz
