#include "codegen/print/repeated.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "codegen/print/functions.h"

namespace bitale {

namespace {

constexpr std::size_t fewest_parts = 3, most_arguments = 24;
constexpr std::size_t worth_a_function = 6000;  // characters that are written no more
constexpr std::size_t deepest = 3;              // loops around a part

bool is_number(std::string_view word) {
    constexpr std::size_t most_digits = 18;
    return word.size() <= most_digits &&
           std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t number_of(std::string_view word) {
    std::int64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    return number;
}

std::size_t depth_of(std::string_view line) {
    const std::size_t spaces = line.find_first_not_of(' ');
    return (spaces == std::string_view::npos ? line.size() : spaces) / 2;
}

std::string_view trimmed(std::string_view line) { return line.substr(2 * depth_of(line)); }

bool is_comment(std::string_view line) { return trimmed(line).starts_with("//"); }

bool is_head_of_tasks(std::string_view line) {
    return line.find("= last - ") != std::string_view::npos ||
           line.find("= first > ") != std::string_view::npos;
}

struct Declared {
    std::string_view name, type;
    bool is_array = false, is_loop = false;
};

// "const f32 v4 = ", "f32* B_RESTRICT p1 = ", "B_ALIGN f32 p5[272];", "B_ARRAY(f32, p6, 50);", "i64 p7;",
// "for (i64 j2 = 0; "
std::optional<Declared> declared_in(std::string_view line) {
    Declared d;
    line = trimmed(line);
    if (line.starts_with("B_ARRAY(")) {
        const std::vector<std::string_view> words = words_of(line);
        return Declared{words[2], words[1], true};
    }
    d.is_loop = line.starts_with("for (");
    if (d.is_loop) line.remove_prefix(5);
    if (line.starts_with("B_ALIGN ")) line.remove_prefix(8);
    const std::size_t end = std::min({line.find(" = "), line.find('['), line.find(';')});
    if (end == std::string_view::npos) return {};
    const std::string_view before = line.substr(0, end);
    const std::size_t space = before.rfind(' ');
    if (space == std::string_view::npos || before.find_first_of("(.+-") != std::string_view::npos) return {};
    d.name = before.substr(space + 1);
    d.type = before.substr(0, space);
    d.is_array = line[end] == '[';
    return d;
}

// A letter and a number, as the printer's own names are. Types are names too, but for that.
bool is_own_name(std::string_view word) {
    constexpr std::string_view types[] = {"f16", "f32", "f64", "i8",  "i16", "i32",
                                          "i64", "u8",  "u16", "u32", "u64"};
    return word.size() > 1 && word[0] >= 'a' && word[0] <= 'z' && is_number(word.substr(1)) &&
           std::find(std::begin(types), std::end(types), word) == std::end(types);
}

// As a parameter; nothing for what a function cannot have as a copy.
std::optional<std::string> parameter(const Declared& d) {
    const std::string name(d.name), type(d.type);
    if (d.is_array)
        return words_of(type).size() == 1 ? std::optional(type + "* B_RESTRICT " + name) : std::nullopt;
    if (type.find('*') != std::string::npos || type.starts_with("const ")) return type + " " + name;
    return d.is_loop ? std::optional("const " + type + " " + name) : std::nullopt;
}

// A number that is added, of which a compiler knows no more where it is a parameter: lengths of loops,
// factors and sizes of arrays stay in the text.
bool may_differ(std::string_view line, std::string_view word) {
    const auto at = static_cast<std::size_t>(word.data() - line.data());
    const std::string_view before = line.substr(0, at), after = line.substr(at + word.size());
    if (!is_number(word) || after.starts_with('.') || before.ends_with('.')) return false;
    if (before.ends_with("e+") || before.ends_with("e-")) return false;  // an exponent
    if (is_head_of_tasks(line)) return true;
    return !trimmed(line).starts_with("for (") && !after.starts_with(" * ") && !before.ends_with("* ") &&
           (before.ends_with(" + ") || after.starts_with(" + "));
}

struct RepeatedPart {
    std::size_t begin = 0, end = 0;           // lines, behind the heading
    std::string key;                          // equal for equal parts
    std::vector<std::string_view> arguments;  // what is declared outside, in the order of its first use
    std::vector<std::int64_t> numbers;        // that may differ
    std::size_t length = 0;
};

class Repetitions {
  public:
    Repetitions(std::string_view head, std::string_view body, const std::vector<std::size_t>& headings,
                int& number)
        : lines_(lines_of(body)), headings_(headings), number_(number) {
        for (const char* range : {"first", "last"}) declared_[range] = {range, "const i64"};
        for (const std::string_view line : lines_of(head)) declare(line);
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            declare(lines_[i]);
            if (is_comment(lines_[i])) continue;
            for (const std::string_view word : words_of(lines_[i])) last_use_[word] = i;
        }
    }

    RepeatedParts run() {
        for (std::size_t depth = 0; depth <= deepest; ++depth) {
            std::map<std::string, std::vector<RepeatedPart>> equal;
            for (const std::size_t heading : headings_) {
                if (depth_of(lines_[heading]) != depth || is_called(heading)) continue;
                if (std::optional<RepeatedPart> part = part_at(heading))
                    equal[part->key].push_back(std::move(*part));
            }
            for (const auto& [key, parts] : equal)
                if (parts.size() >= fewest_parts && (parts.size() - 1) * parts[0].length >= worth_a_function)
                    make_function(parts);
        }
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            if (const auto call = calls_.find(i); call != calls_.end()) {
                result_.body += call->second.second;
                i = call->second.first;
                if (i == lines_.size()) break;
            }
            result_.body += std::string(lines_[i]) + "\n";
        }
        return std::move(result_);
    }

  private:
    void declare(std::string_view line) {
        if (is_comment(line)) return;
        if (const std::optional<Declared> d = declared_in(line)) declared_.emplace(d->name, *d);
    }

    bool is_called(std::size_t line) const {
        const auto next = calls_.upper_bound(line);
        return next != calls_.begin() && std::prev(next)->second.first > line;
    }

    std::optional<RepeatedPart> part_at(std::size_t heading) const {
        RepeatedPart part{heading + 1, heading + 1, "", {}, {}, 0};
        const std::size_t depth = depth_of(lines_[heading]);
        const auto next = std::upper_bound(headings_.begin(), headings_.end(), heading);
        std::size_t most = lines_.size();
        for (auto h = next; h != headings_.end(); ++h)
            if (depth_of(lines_[*h]) <= depth) {
                most = *h;
                break;
            }
        while (part.end < most && depth_of(lines_[part.end]) >= depth) ++part.end;
        std::map<std::string_view, std::size_t> numbers;
        std::set<std::string_view> own;
        for (std::size_t i = part.begin; i < part.end; ++i) {
            if (is_comment(lines_[i])) continue;
            if (const std::optional<Declared> d = declared_in(lines_[i])) {
                own.insert(d->name);
                if (last_use_.at(d->name) >= part.end) return {};
            }
            part.length += lines_[i].size();
            if (!add_key(lines_[i], own, numbers, part)) return {};
        }
        if (part.arguments.size() > most_arguments) return {};
        return part;
    }

    // False where what is used cannot be passed.
    bool add_key(std::string_view line, const std::set<std::string_view>& own,
                 std::map<std::string_view, std::size_t>& numbers, RepeatedPart& part) const {
        const char* done = line.data();
        for (const std::string_view word : words_of(line)) {
            part.key.append(done, word.data());
            done = word.data() + word.size();
            if (may_differ(line, word)) {
                part.key += '#';
                part.numbers.push_back(number_of(word));
                continue;
            }
            const auto at = declared_.find(word);
            if (at == declared_.end()) {
                if (is_own_name(word)) return false;  // declared in a way that is not known here
                part.key += word;
                continue;
            }
            const auto [number, is_new] = numbers.emplace(word, numbers.size());
            part.key += fmt::format("${}", number->second);
            if (!is_new || own.contains(word)) continue;
            const std::optional<std::string> passed = parameter(at->second);
            if (!passed) return false;
            part.arguments.push_back(word);
            part.key += "(" + passed->substr(0, passed->size() - word.size()) + ")";
        }
        part.key.append(done, line.data() + line.size());
        part.key += '\n';
        return true;
    }

    void make_function(const std::vector<RepeatedPart>& parts) {
        const RepeatedPart& first = parts[0];
        // By how much numbers of each part are greater than those of the first: one argument where it is the
        // same for several.
        std::vector<std::vector<std::int64_t>> passed;
        std::vector<int> argument_of;  // of each number; -1: all parts have the same
        for (std::size_t k = 0; k < first.numbers.size(); ++k) {
            std::vector<std::int64_t> more;
            for (const RepeatedPart& part : parts) more.push_back(part.numbers[k] - first.numbers[k]);
            const bool same = std::all_of(more.begin(), more.end(), [](std::int64_t d) { return d == 0; });
            const auto at = std::find(passed.begin(), passed.end(), more);
            argument_of.push_back(same ? -1 : static_cast<int>(at - passed.begin()));
            if (!same && at == passed.end()) passed.push_back(std::move(more));
        }
        if (passed.size() + first.arguments.size() > most_arguments) return;
        const std::string name = fmt::format("KERNEL_same{}", number_++);
        std::vector<std::string> parameters;
        for (const std::string_view argument : first.arguments)
            parameters.push_back(*parameter(declared_.at(argument)));
        for (std::size_t k = 0; k < passed.size(); ++k) parameters.push_back(fmt::format("const i64 k{}", k));
        result_.functions +=
            fmt::format("static __attribute__((noinline)) void {}({}) {{\n{}}}\n", name,
                        fmt::join(parameters, ", "), text_with_parameters(first, argument_of));
        for (std::size_t p = 0; p < parts.size(); ++p) {
            const RepeatedPart& part = parts[p];
            std::vector<std::string> arguments(part.arguments.begin(), part.arguments.end());
            for (const std::vector<std::int64_t>& more : passed) arguments.push_back(std::to_string(more[p]));
            const std::string indent(2 * depth_of(lines_[part.begin - 1]), ' ');
            calls_[part.begin] = {part.end,
                                  fmt::format("{}{}({});\n", indent, name, fmt::join(arguments, ", "))};
        }
    }

    std::string text_with_parameters(const RepeatedPart& part, const std::vector<int>& argument_of) const {
        std::string text;
        std::size_t number = 0;
        for (std::size_t i = part.begin; i < part.end; ++i) {
            const std::string_view line = lines_[i];
            const char* done = line.data();
            for (const std::string_view word :
                 is_comment(line) ? std::vector<std::string_view>() : words_of(line)) {
                if (!may_differ(line, word)) continue;
                if (const int argument = argument_of[number++]; argument >= 0) {
                    text.append(done, word.data());
                    text += fmt::format("({} + k{})", word, argument);
                    done = word.data() + word.size();
                }
            }
            text.append(done, line.data() + line.size());
            text += '\n';
        }
        return text;
    }

    std::vector<std::string_view> lines_;
    const std::vector<std::size_t>& headings_;
    int& number_;
    std::map<std::string_view, Declared> declared_;
    std::map<std::string_view, std::size_t> last_use_;
    std::map<std::size_t, std::pair<std::size_t, std::string>> calls_;  // by first line: end, and the call
    RepeatedParts result_;
};

}  // namespace

RepeatedParts with_repeated_parts_once(std::string_view head, std::string_view body,
                                       const std::vector<std::size_t>& headings, int& number) {
    return Repetitions(head, body, headings, number).run();
}

}  // namespace bitale
