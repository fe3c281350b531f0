// The corpus itself: what it has to contain.
#include "tests/corpus/corpus.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/support/catch.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

std::string text_of_file(const std::filesystem::path& path) {
    std::ifstream file(path);
    INFO(path);
    REQUIRE(file);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string without_comments(const std::string& text) {
    return std::regex_replace(text, std::regex("//[^\n]*"), "");
}

}  // namespace

TEST_CASE("every function of the headers is in a graph of the corpus") {
    const std::filesystem::path root = BITALE_SOURCE_DIR;
    std::string corpus;
    for (const auto& entry : std::filesystem::directory_iterator(root / "tests/corpus")) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".cpp") && !name.ends_with("_test.cpp")) corpus += text_of_file(entry.path());
    }
    std::set<std::string> functions;
    // Elementwise ones come from their table, whole.
    for (const char* header : {"ops.h", "train.h"}) {
        const std::string text = without_comments(text_of_file(root / "include/bitale" / header));
        const std::regex declaration("\n *(?:Expr|Updates|std::vector<Expr>) (\\w+)\\(");
        for (std::sregex_iterator it(text.begin(), text.end(), declaration); it != std::sregex_iterator();
             ++it)
            functions.insert((*it)[1]);
    }
    CHECK(functions.size() > 40);
    for (const std::string& name : functions) {
        INFO(name);
        CHECK(std::regex_search(corpus, std::regex("\\b" + name + "\\b")));
    }
}

TEST_CASE("graphs of the corpus can be built for both purposes") {
    CHECK(names().size() >= 40);
    CHECK_THROWS_AS(make("nothing", Purpose::run), std::invalid_argument);
    int with_unknown_lengths = 0;
    for (const std::string& name : names()) {
        INFO(name);
        const corpus::Graph planned = make(name, Purpose::plan), run = make(name, Purpose::run);
        CHECK(planned.outputs.size() == run.outputs.size());
        CHECK(planned.updates.size() == run.updates.size());
        CHECK(planned.outputs.size() + planned.updates.size() > 0);
        CHECK((run.form_of.empty() || make(run.form_of, Purpose::run).form_of.empty()));
        bool unknown = false;
        for (const Input& input : planned.inputs)
            unknown = unknown ||
                      input.variable.shape_text().find_first_not_of("[]0123456789, ") != std::string::npos;
        with_unknown_lengths += unknown ? 1 : 0;
        std::int64_t bytes = 0;
        for (const Argument& argument : run.arguments) bytes += argument.value().bytes();
        CHECK(bytes < 4 << 20);
    }
    CHECK(with_unknown_lengths >= 20);
}
