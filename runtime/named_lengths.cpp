#include "runtime/named_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/plan/names.h"

namespace bitale {

namespace {

// Whether the formula is one min(...), max(...) or floordiv(...), so that a name can stand for it.
bool is_one_call(const std::string& formula) {
    const std::size_t open = formula.find('(');
    if (open == std::string::npos || formula.find_first_of(" +-*") < open) return false;
    int depth = 0;
    for (std::size_t i = open; i < formula.size(); ++i) {
        depth += formula[i] == '(' ? 1 : formula[i] == ')' ? -1 : 0;
        if (depth == 0) return i + 1 == formula.size();
    }
    return false;
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        ++count;
    return count;
}

}  // namespace

NamedLengths with_named_lengths(std::string text, const Program& program) {
    constexpr std::size_t longest_unnamed = 24, fewest = 3;
    std::map<std::string, Int> formulas;
    for (const BufferInfo& buffer : program.buffers)
        for (const Int& n : buffer.type.shape)
            if (std::string formula = n.text(); formula.size() > longest_unnamed && is_one_call(formula))
                formulas.emplace(std::move(formula), n);
    std::vector<std::string> sorted;
    for (const auto& [formula, n] : formulas) sorted.push_back(formula);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    const auto is_taken = [&](const std::string& name) {
        return std::any_of(program.size_sources.begin(), program.size_sources.end(),
                           [&](const SizeSource& s) { return s.value.text() == name; });
    };
    NamedLengths named{std::move(text), {}};
    int number = 0;
    for (const std::string& formula : sorted) {
        if (count_of(named.text, formula) < fewest) continue;
        std::string name;
        do name = ++number == 1 ? "n" : fmt::format("n{}", number);
        while (is_taken(name));
        named.text = replaced(std::move(named.text), formula, name);
        const std::int64_t most = formulas.at(formula).range().high;
        const std::string bound =
            most >= 0 && most < IntRange::highest ? fmt::format(", at most {},", most) : "";
        named.explained.push_back(fmt::format("{}{} = {}", name, bound, formula));
    }
    return named;
}

}  // namespace bitale
