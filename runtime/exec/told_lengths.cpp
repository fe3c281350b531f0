#include "runtime/exec/told_lengths.h"

#include <cctype>
#include <optional>
#include <string_view>

#include "graph/types/index.h"

namespace bitale {

namespace {

using Numbers = std::map<std::string, std::optional<std::int64_t>>;

// Reads what Int::text() writes:
//   sum = ["-"] product {(" + " | " - ") product},  product = factor {"*" factor},
//   factor = number | symbol | "(" sum ")" | ("floordiv" | "min" | "max") "(" sum ", " sum ")".
class Reader {
  public:
    Reader(std::string_view text, std::size_t at, const Numbers& lengths)
        : text_(text), at_(at), lengths_(lengths) {}

    std::size_t at() const { return at_; }
    bool take(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    std::optional<Int> sum() {
        if (++depth_ > most_depth) return {};
        const bool negative = take("-");
        std::optional<Int> r = product();
        if (r && negative) r = Int(0) - *r;
        while (r) {
            const bool plus = take(" + ");
            if (!plus && !take(" - ")) break;
            const std::optional<Int> next = product();
            if (!next) return {};
            r = plus ? *r + *next : *r - *next;
        }
        --depth_;
        return r;
    }

  private:
    static constexpr int most_depth = 100;

    std::optional<Int> product() {
        std::optional<Int> r = factor();
        while (r && take("*")) {
            const std::optional<Int> next = factor();
            if (!next) return {};
            r = *r * *next;
        }
        return r;
    }
    std::optional<Int> factor() {
        if (take("(")) {
            std::optional<Int> r = sum();
            return r && take(")") ? r : std::nullopt;
        }
        if (take("floordiv(")) return of_two(floordiv);
        if (take("min(")) return of_two(static_cast<Int (*)(const Int&, const Int&)>(min));
        if (take("max(")) return of_two(static_cast<Int (*)(const Int&, const Int&)>(max));
        return leaf();
    }
    std::optional<Int> of_two(Int (*f)(const Int&, const Int&)) {
        const std::optional<Int> a = sum();
        if (!a || !take(", ")) return {};
        const std::optional<Int> b = sum();
        if (!b || !take(")")) return {};
        return f(*a, *b);
    }
    std::optional<Int> leaf() {
        // Of the symbols whose names begin here the longest: x.1 and x.10.
        const std::string_view rest = text_.substr(at_);
        const Numbers::value_type* best = nullptr;
        for (const auto& entry : lengths_)
            if (!entry.first.empty() && rest.starts_with(entry.first) &&
                (!best || entry.first.size() > best->first.size()))
                best = &entry;
        if (best) {
            at_ += best->first.size();
            if (!best->second) return {};
            return *best->second;
        }
        std::size_t digits = 0;
        while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits]))) ++digits;
        if (digits == 0 || digits > 18) return {};
        at_ += digits;
        return std::stoll(std::string(rest.substr(0, digits)));
    }

    std::string_view text_;
    std::size_t at_;
    const Numbers& lengths_;
    int depth_ = 0;
};

// Where the string in quotes that begins here ends: quotes inside are escaped.
std::size_t end_of_quotes(const std::string& text, std::size_t at) {
    for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
    return at;
}

}  // namespace

void ToldLengths::add(const std::string& name, std::int64_t number) {
    const auto [at, is_new] = numbers_.emplace(name, number);
    if (!is_new && at->second != number) at->second.reset();
}

std::string ToldLengths::in(const std::string& text) const {
    std::string r;
    bool in_shape = false, begins = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '"') {
            const std::size_t end = end_of_quotes(text, at);
            r += text.substr(at, end + 1 - at);
            at = end;
            in_shape = begins = false;
            continue;
        }
        if (begins) {
            Reader reader(text, at, numbers_);
            const std::optional<Int> number = reader.sum();
            const std::size_t end = reader.at();
            if (number && number->is_constant() && end < text.size() &&
                (text[end] == ',' || text[end] == ']')) {
                r += number->text();
                at = end;
            }
        }
        const char c = text[at];
        if (c == '[') in_shape = true;
        if (c == ']') in_shape = false;
        begins = in_shape && (c == '[' || (c == ' ' && at > 0 && text[at - 1] == ','));
        r += c;
    }
    return r;
}

}  // namespace bitale
