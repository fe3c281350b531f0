//   header = "{" [ entry { "," entry } [ "," ] ] "}"
//   entry  = "'descr'" ":" string | "'fortran_order'" ":" ("True" | "False") | "'shape'" ":" tuple
//   tuple  = "(" [ number "," { number "," } [ number ] ] ")"
// with spaces and line ends in between; strings in either quotes, without escapes.
#include "runtime/io/npy_header.h"

#include <algorithm>
#include <utility>

#include "graph/base/text.h"
#include "runtime/io/byte_source.h"

namespace bitale {

namespace {

class Parser {
  public:
    Parser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

    NpyHeader run() {
        bool has_descr = false, has_order = false, has_shape = false;
        expect('{');
        while (!next_is('}')) {
            const std::string_view key = string();
            expect(':');
            if (key == "descr")
                once(has_descr, key), descr();
            else if (key == "fortran_order")
                once(has_order, key), header_.fortran_order = truth();
            else if (key == "shape")
                once(has_shape, key), shape();
            else
                fail("the unknown key " + in_quotes(std::string(key)));
            if (!next_is('}')) expect(',');
        }
        expect('}');
        skip_space();
        if (at_ != text_.size()) fail("more text behind the dictionary");
        for (const auto& [has, key] : {std::pair(has_descr, "descr"), std::pair(has_order, "fortran_order"),
                                       std::pair(has_shape, "shape")})
            if (!has) fail(std::string("no ") + key);
        return std::move(header_);
    }

  private:
    [[noreturn]] void fail(const std::string& found) const {
        constexpr std::size_t most = 200;
        file_error(path_, "has a malformed npy header with " + found + ": " +
                              in_quotes(std::string(text_.substr(0, most))));
    }
    void skip_space() {
        while (at_ < text_.size() &&
               (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
            ++at_;
    }
    bool next_is(char c) {
        skip_space();
        return at_ < text_.size() && text_[at_] == c;
    }
    void expect(char c) {
        if (!next_is(c)) fail(std::string("no '") + c + "' at byte " + std::to_string(at_));
        ++at_;
    }
    void once(bool& has, std::string_view key) const {
        if (std::exchange(has, true)) fail("two entries " + in_quotes(std::string(key)));
    }

    std::string_view string() {
        skip_space();
        if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
            fail("no string at byte " + std::to_string(at_));
        const char quote = text_[at_++];
        const std::size_t begin = at_;
        while (at_ < text_.size() && text_[at_] != quote) {
            if (text_[at_] == '\\' || text_[at_] == '\n')
                fail("a string at byte " + std::to_string(begin) + " that is not plain");
            ++at_;
        }
        if (at_ == text_.size()) fail("a string without end");
        return text_.substr(begin, at_++ - begin);
    }

    bool truth() {
        skip_space();
        for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)})
            if (text_.substr(at_).starts_with(word)) {
                at_ += std::string_view(word).size();
                return value;
            }
        fail("a fortran_order that is neither True nor False");
    }

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }

    void shape() {
        expect('(');
        bool comma = true;
        while (!next_is(')')) {
            if (!comma) fail("no ',' between two lengths");
            header_.shape.push_back(number());
            comma = next_is(',');
            if (comma) ++at_;
        }
        // (3) is a number in Python, (3,) a tuple.
        if (header_.shape.size() == 1 && !comma) fail("a shape that is a number, not a tuple");
        expect(')');
    }

    std::int64_t number() {
        skip_space();
        const std::size_t begin = at_;
        std::int64_t x = 0;
        bool absurd = false;
        for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
            absurd |= __builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, text_[at_] - '0', &x);
        if (at_ == begin) fail("a shape that is no tuple of numbers");
        if (absurd)
            file_error(path_, "has an absurd shape, with the length " +
                                  std::string(text_.substr(begin, at_ - begin)));
        if (at_ - begin > 1 && text_[begin] == '0') fail("a length that begins with 0");
        if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote its long numbers so
        return x;
    }

    // "<f4" -> float32. bfloat16 has no name in NumPy.
    void descr() {
        if (next_is('[') || next_is('(')) file_error(path_, "holds structured elements; save one column");
        std::string_view name = string();
        if (!name.empty() && std::string_view("<>|=").find(name[0]) != std::string_view::npos) {
            header_.big_endian = name[0] == '>';
            name.remove_prefix(1);
        }
        const std::pair<std::string_view, DType> known[] = {
            {"b1", DType::boolean}, {"i1", DType::int8},    {"i2", DType::int16},   {"i4", DType::int32},
            {"i8", DType::int64},   {"u1", DType::uint8},   {"u2", DType::uint16},  {"u4", DType::uint32},
            {"u8", DType::uint64},  {"f2", DType::float16}, {"f4", DType::float32}, {"f8", DType::float64}};
        const auto* const at = std::find_if(std::begin(known), std::end(known),
                                            [&](const auto& entry) { return entry.first == name; });
        if (at == std::end(known))
            file_error(path_, "holds elements of type '" + printable(std::string(name)) +
                                  "', which no bitale dtype can hold");
        header_.dtype = at->second;
    }

    const std::string& path_;
    std::string_view text_;
    std::size_t at_ = 0;
    NpyHeader header_;
};

}  // namespace

NpyHeader parse_npy_header(const std::string& path, std::string_view text) {
    return Parser(path, text).run();
}

}  // namespace bitale
