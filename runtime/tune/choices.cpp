#include "runtime/tune/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

#include "graph/base/numbers.h"
#include "graph/base/options.h"
#include "graph/base/turns.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cache/sha256.h"

namespace bitale {

namespace {

constexpr const char* format = "bitale-choice-1";
constexpr double fewest_seconds = 0, most_seconds = 1e6;

struct Memory {
    ForkMutex mutex{ForkMutex::Rank::outer};
    std::map<std::string, Choice> choices;  // by folder and key
};
Memory& memory() {
    static Memory& m = *new Memory;
    return m;
}

std::string key_of(const std::string& question) {
    return sha256(std::string(format) + "\n" + question).substr(0, 32);
}

// Another folder is another memory, as it would be for another process.
std::string place_of(const std::string& key) {
    return (options().cache ? cache_directory() : "") + "\n" + key;
}

DiskCache disk() { return DiskCache(cache_directory(), options().cache_bytes); }

// A line "word word ... value": the way's name may have several words.
std::optional<Way> way_named(const std::string& name, const std::vector<Way>& ways) {
    for (const Way way : ways)
        if (name == name_of(way)) return way;
    return {};
}

}  // namespace

std::string text_of(const Choice& choice) {
    std::string s = fmt::format("{}\nchosen {}\n", format, name_of(choice.chosen));
    for (const auto& [way, seconds] : choice.measured) s += fmt::format("{:.9e} {}\n", seconds, name_of(way));
    return s;
}

std::optional<Choice> parse_choice(const std::string& text, const std::vector<Way>& ways) {
    std::istringstream lines(text);
    std::string line;
    const std::string chosen = "chosen ";
    if (!std::getline(lines, line) || line != format) return {};
    if (!std::getline(lines, line) || !line.starts_with(chosen)) return {};
    const std::optional<Way> way = way_named(line.substr(chosen.size()), ways);
    if (!way) return {};
    Choice choice{*way, {}};
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string time, name;
        if (!(words >> time) || !std::getline(words >> std::ws, name)) return {};
        const std::optional<double> seconds = number_in(time);
        const std::optional<Way> measured = way_named(name, ways);
        if (!measured || !seconds || !(*seconds >= fewest_seconds && *seconds <= most_seconds)) return {};
        choice.measured.emplace_back(*measured, *seconds);
    }
    if (choice.measured.size() != ways.size()) return {};
    return choice;
}

Remembered recall(const std::string& question, const std::vector<Way>& ways) {
    const std::string key = key_of(question), place = place_of(key);
    {
        const std::lock_guard lock(memory().mutex);
        if (const auto at = memory().choices.find(place); at != memory().choices.end())
            return {at->second, ""};
    }
    if (!options().cache) return {};
    const DiskCache cache = disk();
    if (!cache.holds(key)) return {};
    const std::optional<std::string> text = cache.read(key);
    std::optional<Choice> choice = text ? parse_choice(*text, ways) : std::nullopt;
    if (!choice) return {{}, "the choice on disk was damaged"};
    const std::lock_guard lock(memory().mutex);
    memory().choices.insert_or_assign(place, *choice);
    return {choice, ""};
}

std::string remember(const std::string& question, const Choice& choice) {
    const std::string key = key_of(question), place = place_of(key);
    {
        const std::lock_guard lock(memory().mutex);
        memory().choices.insert_or_assign(place, choice);
    }
    if (!options().cache) return "cache=off";
    DiskCache cache = disk();
    return cache.keep(key, text_of(choice), question);
}

void forget_choices() {
    const std::lock_guard lock(memory().mutex);
    memory().choices.clear();
}

}  // namespace bitale
