// What measurements said, by question: in memory, and on disk where there is a cache.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/tune/tuner.h"

namespace bitale {

// The measured ways, with seconds, and the one that was taken.
struct Choice {
    Way chosen = Way::generated;
    std::vector<std::pair<Way, double>> measured;
};

std::string text_of(const Choice& choice);
// Nothing where the text is no choice among these ways.
std::optional<Choice> parse_choice(const std::string& text, const std::vector<Way>& ways);

struct Remembered {
    std::optional<Choice> choice;
    std::string problem;  // what was wrong with the entry on disk, or empty
};
// `question` says all that a measured time depends on.
Remembered recall(const std::string& question, const std::vector<Way>& ways);
// Why the choice is not kept for other processes, or empty.
std::string remember(const std::string& question, const Choice& choice);
// Forgets what this process has in memory, not what is on disk. For tests.
void forget_choices();

}  // namespace bitale
