// Arrays as NumPy prints them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>
#include <vector>

#include "bitale/array.h"
#include "graph/base/border.h"

namespace bitale {

namespace {

const ApiBorder printing("for the text of an array");

// A floating-point number in two parts, so that points stand below each other.
struct Parts {
    std::string whole, rest;  // "-1", ".5"; words have no rest
};

// The shortest text that reads as the same number, or `digits` behind the point where that has more.
template <class T>
std::string shortest(T x, std::chars_format format, int digits) {
    char text[512];
    const auto length_of = [&](std::to_chars_result r) { return static_cast<std::size_t>(r.ptr - text); };
    std::string s(text, length_of(std::to_chars(text, text + sizeof text, x, format)));
    const std::size_t point = s.find('.'), exponent = std::min(s.find('e'), s.size());
    if (point == std::string::npos || exponent - point - 1 <= static_cast<std::size_t>(digits)) return s;
    s.assign(text, length_of(std::to_chars(text, text + sizeof text, x, format, digits)));
    std::size_t end = std::min(s.find('e'), s.size()), last = end;
    while (s[last - 1] == '0') --last;
    return s.erase(last, end - last);
}

// The float of the fewest digits that is the same half.
template <class Half>
float shortest_half(Half x) {
    const auto value = static_cast<float>(x);
    for (int digits = 1; digits < 9 && std::isfinite(value); ++digits) {
        char text[40];
        const auto end =
            std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
        float read = 0;
        std::from_chars(text, end, read);
        if (Half(read).bits == x.bits) return read;
    }
    return value;
}

template <class T>
std::vector<std::string> number_texts(const std::vector<T>& values, int digits) {
    double most = 0, least = INFINITY;
    for (const T x : values) {
        const double size = std::abs(static_cast<double>(x));
        if (!std::isfinite(size) || size == 0) continue;
        most = std::max(most, size);
        least = std::min(least, size);
    }
    const bool scientific = most > 0 && (most >= 1e8 || least < 1e-4 || most / least > 1000);
    std::vector<Parts> parts;
    std::size_t digits_behind = 0;
    for (const T x : values) {
        if (!std::isfinite(static_cast<double>(x))) {
            parts.push_back({std::isnan(static_cast<double>(x)) ? "nan" : x > 0 ? "inf" : "-inf", ""});
            continue;
        }
        std::string s =
            shortest(x, scientific ? std::chars_format::scientific : std::chars_format::fixed, digits);
        const std::size_t exponent = std::min(s.find('e'), s.size());
        if (s.find('.') == std::string::npos) s.insert(exponent, ".");
        const std::size_t point = s.find('.');
        digits_behind = std::max(digits_behind, std::min(s.find('e'), s.size()) - point - 1);
        parts.push_back({s.substr(0, point), s.substr(point)});
    }
    // Digits and exponents are filled up with zeros.
    std::size_t longest = 0;
    for (const Parts& p : parts)
        if (const std::size_t exponent = p.rest.find('e'); exponent != std::string::npos)
            longest = std::max(longest, digits_behind + 1 + p.rest.size() - exponent);
    std::size_t front = 0, behind = 0;
    for (Parts& p : parts) {
        if (p.rest.empty()) continue;
        if (scientific) {
            const std::size_t exponent = p.rest.find('e');
            p.rest.insert(exponent, digits_behind + 1 - exponent, '0');
            if (p.rest.size() < longest) p.rest.insert(digits_behind + 3, longest - p.rest.size(), '0');
        } else {
            p.rest.append(digits_behind + 1 - p.rest.size(), ' ');
        }
        front = std::max(front, p.whole.size());
        behind = std::max(behind, p.rest.size());
    }
    std::size_t width = front + behind;
    for (const Parts& p : parts)
        if (p.rest.empty()) width = std::max(width, p.whole.size());
    std::vector<std::string> texts;
    for (const Parts& p : parts) {
        std::string s = p.whole + p.rest;
        texts.push_back(std::string(width - s.size(), ' ') + s);
    }
    return texts;
}

std::vector<std::string> padded(std::vector<std::string> texts) {
    std::size_t width = 0;
    for (const std::string& s : texts) width = std::max(width, s.size());
    for (std::string& s : texts) s.insert(0, width - s.size(), ' ');
    return texts;
}

class Printer {
  public:
    Printer(const Array& value, PrintOptions options)
        : value_(value), options_(options), abridged_(value.size() > options.all) {
        options_.edge = std::max<std::int64_t>(options_.edge, 1);
        options_.digits = std::clamp(options_.digits, 0, 30);
        collect(0, 0);
    }

    std::string text() {
        if (value_.size() == 0) return "[]";
        texts_ = texts();
        std::string s;
        write(s, 0);
        if (value_.rank() == 0 && s.back() == '.') s += '0';
        return s;
    }

  private:
    // Which places of an axis are shown; -1 stands for those left out.
    std::vector<std::int64_t> places(int axis) const {
        const std::int64_t length = value_.shape()[static_cast<std::size_t>(axis)];
        std::vector<std::int64_t> shown;
        for (std::int64_t i = 0; i < length; ++i) {
            if (abridged_ && length > 2 * options_.edge && i == options_.edge) {
                shown.push_back(-1);
                i = length - options_.edge;
            }
            shown.push_back(i);
        }
        return shown;
    }

    void collect(int axis, std::int64_t at) {
        if (axis == value_.rank()) {
            elements_.push_back(at);
            return;
        }
        for (const std::int64_t i : places(axis))
            if (i >= 0) collect(axis + 1, at * value_.shape()[static_cast<std::size_t>(axis)] + i);
    }

    std::vector<std::string> texts() const {
        return dispatch(value_.dtype(), [&](auto zero) {
            using T = decltype(zero);
            const auto values = value_.view<T>();
            if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
                std::vector<float> numbers;
                for (const std::int64_t i : elements_)
                    numbers.push_back(shortest_half(values[static_cast<std::size_t>(i)]));
                return number_texts(numbers, options_.digits);
            } else if constexpr (std::is_floating_point_v<T>) {
                std::vector<T> numbers;
                for (const std::int64_t i : elements_) numbers.push_back(values[static_cast<std::size_t>(i)]);
                return number_texts(numbers, options_.digits);
            } else {
                std::vector<std::string> words;
                for (const std::int64_t i : elements_) {
                    const T x = values[static_cast<std::size_t>(i)];
                    if constexpr (std::is_same_v<T, bool>)
                        words.emplace_back(x ? "True" : "False");
                    else
                        words.push_back(std::to_string(x));
                }
                return padded(std::move(words));
            }
        });
    }

    void write(std::string& s, int axis) {
        if (axis == value_.rank()) {
            s += texts_[next_++];
            return;
        }
        s += '[';
        const bool innermost = axis + 1 == value_.rank();
        std::size_t line = s.size() - std::min(s.size(), s.rfind('\n') + 1);  // npos + 1 is 0
        bool first = true;
        for (const std::int64_t i : places(axis)) {
            std::string part;
            if (i >= 0 && innermost)
                part = texts_[next_++];
            else if (i < 0)
                part = "...";
            if (innermost) {
                const bool full =
                    !first && line + 1 + part.size() + 1 > static_cast<std::size_t>(options_.width);
                if (full) {
                    s += '\n' + std::string(static_cast<std::size_t>(axis) + 1, ' ');
                    line = static_cast<std::size_t>(axis) + 1;
                } else if (!first) {
                    s += ' ';
                    ++line;
                }
                s += part;
                line += part.size();
            } else {
                if (!first) {
                    s += std::string(static_cast<std::size_t>(value_.rank() - axis - 1), '\n') +
                         std::string(static_cast<std::size_t>(axis) + 1, ' ');
                }
                if (i >= 0)
                    write(s, axis + 1);
                else
                    s += part;
            }
            first = false;
        }
        s += ']';
    }

    const Array& value_;
    PrintOptions options_;
    bool abridged_;
    std::vector<std::int64_t> elements_;
    std::vector<std::string> texts_;
    std::size_t next_ = 0;
};

}  // namespace

std::string to_text(const Array& value, PrintOptions options) {
    return printing([&] { return Printer(value, options).text(); });
}

std::ostream& print(std::ostream& out, const Array& value) { return out << to_text(value); }

}  // namespace bitale
