#include "graph/ir/fault_text.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace bitale {

namespace {

constexpr char found_mark = '\x01', there_mark = '\x02', end_of_mark = '\x03', sentence_mark = '\x04';
constexpr char marks[] = {found_mark, there_mark, '\0'};

std::string marked(char mark, std::int64_t more) { return mark + std::to_string(more) + end_of_mark; }

// At most the largest number: what is reported may be any number that a user computed.
std::int64_t sum_of(std::int64_t a, std::int64_t b) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (b > 0 && a > most - b) return most;
    if (b < 0 && a < -most - b) return -most;
    return a + b;
}

}  // namespace

std::string number_found(std::int64_t more) { return marked(found_mark, more); }
std::string number_there(std::int64_t more) { return marked(there_mark, more); }
bool has_marks(const std::string& text) { return text.find_first_of(marks) != std::string::npos; }

std::string completed(const std::string& text, std::int64_t found, std::int64_t there) {
    std::string r;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char mark = text[at];
        if (mark != found_mark && mark != there_mark) {
            r += mark;
            continue;
        }
        const std::int64_t more = std::strtoll(text.c_str() + at + 1, nullptr, 10);
        r += std::to_string(sum_of(mark == found_mark ? found : there, more));
        at = std::min(text.find(end_of_mark, at), text.size());
    }
    return r;
}

std::string readable(const std::string& text) {
    std::string r;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c != found_mark && c != there_mark) {
            r += c;
            if (c == '{' || c == '}') r += c;
            continue;
        }
        const std::size_t end = std::min(text.find(end_of_mark, at), text.size());
        const std::string more = text.substr(at + 1, end - at - 1);
        r += c == found_mark ? "{found" : "{there";
        if (more != "0") r += more[0] == '-' ? " - " + more.substr(1) : " + " + more;
        r += '}';
        at = end;
    }
    return r;
}

std::string from_readable(const std::string& text) {
    std::string r;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        const bool brace = c == '{' || c == '}';
        if (!brace || (at + 1 < text.size() && text[at + 1] == c)) {
            r += c;
            if (brace) ++at;
            continue;
        }
        const std::size_t end = text.find('}', at);
        const std::string place = end == std::string::npos ? "" : text.substr(at + 1, end - at - 1);
        constexpr std::size_t word = 5, sign = word + 1, digits = sign + 2;
        const bool found = place.starts_with("found"), plain = place.size() == word;
        if ((!found && !place.starts_with("there")) ||
            (!plain && (place.size() <= digits || (place[sign] != '+' && place[sign] != '-')))) {
            r += c;  // a brace that no program wrote
            continue;
        }
        const std::int64_t more = plain ? 0 : std::strtoll(place.c_str() + digits, nullptr, 10);
        r += marked(found ? found_mark : there_mark, !plain && place[sign] == '-' ? -more : more);
        at = end;
    }
    return r;
}

std::string with_sentence(const std::string& title, const std::string& sentence) {
    return title + sentence_mark + sentence;
}

std::string title_of(const Check& check) { return check.what.substr(0, check.what.find(sentence_mark)); }

std::string error_text(const Check& check) {
    const std::size_t sentence = check.what.find(sentence_mark);
    const std::string text = sentence == std::string::npos ? check.what : check.what.substr(sentence + 1);
    const bool is_whole = text.find(found_mark) != std::string::npos;
    return (check.where.line ? check.where.text() + ": " : "") + text +
           (is_whole ? ""
                     : " is out of range, " + check.low.text() + " to " +
                           (check.high.is_constant() ? (check.high - 1).text() : number_there(-1)));
}

std::string fault_text(const std::string& error_text, std::int64_t value, std::int64_t element,
                       std::int64_t there) {
    const bool is_told = error_text.find(found_mark) != std::string::npos;
    return completed(error_text, value, there) +
           (is_told ? "" : ": " + std::to_string(value) + " at element " + std::to_string(element));
}

}  // namespace bitale
