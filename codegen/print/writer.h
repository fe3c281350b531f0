// An indent-aware text buffer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bitale/error.h"
#include "graph/base/check.h"

namespace bitale {

class Writer {
  public:
    // With `lines`, each line of code is said to be the user's that at() named last.
    explicit Writer(bool lines = false) : lines_(lines) {}

    void at(Where where) {
        if (lines_ && where.line) where_ = where;
    }
    void line(std::string_view text) {
        BITALE_CHECK(text.find('\n') == std::string_view::npos,
                     "a line of generated text has a line end inside");
        if (where_.line) directive();
        text_.append(static_cast<std::size_t>(indent_) * 2, ' ');
        text_ += text;
        text_ += '\n';
        ++lines_so_far_;
    }
    // The only way into a comment. Names from outside may hold anything: a line end, or a backslash at the
    // end, would make code of what follows.
    void comment(std::string_view text) {
        std::string safe = "// ";
        for (const char c : text) {
            const auto byte = static_cast<unsigned char>(c);
            constexpr const char* digits = "0123456789abcdef";
            if (byte >= ' ' && byte < 0x7f && c != '\\')
                safe += c;
            else
                safe.append({'\\', 'x', digits[byte >> 4], digits[byte & 15]});
        }
        text_.append(static_cast<std::size_t>(indent_) * 2, ' ');
        text_ += safe + '\n';
        ++lines_so_far_;
    }
    // A comment at which a part of the text begins.
    void heading(std::string_view text) {
        if (!lines_) headings_.push_back(lines_so_far_);
        comment(text);
    }
    // Their lines; none where each line is one of the user's.
    const std::vector<std::size_t>& headings() const { return headings_; }
    void open(std::string_view text) {
        line(text);
        ++indent_;
    }
    void close(std::string_view text = "}") {
        --indent_;
        line(text);
    }
    const std::string& text() const { return text_; }
    // Where the condition, under that name, holds, each of the variables gets its value.
    void choose(const std::string& name, const std::string& condition,
                const std::vector<std::pair<std::string, std::string>>& values) {
        line("const bool " + name + " = " + condition + ";");
        for (const auto& [to, value] : values) line(to + " = " + name + " ? " + value + " : " + to + ";");
    }

  private:
    // A path may hold anything, too: what is not plain is written as digits.
    void directive() {
        text_ += "#line " + std::to_string(where_.line) + " \"";
        for (const char* c = where_.file; *c; ++c) {
            const auto byte = static_cast<unsigned char>(*c);
            if (byte >= ' ' && byte < 0x7f && *c != '\\' && *c != '"' && *c != '?')
                text_ += *c;
            else
                text_.append({'\\', static_cast<char>('0' + (byte >> 6)),
                              static_cast<char>('0' + ((byte >> 3) & 7)),
                              static_cast<char>('0' + (byte & 7))});
        }
        text_ += "\"\n";
        ++lines_so_far_;
    }

    std::string text_;
    std::size_t lines_so_far_ = 0;
    std::vector<std::size_t> headings_;
    int indent_ = 0;
    bool lines_;
    Where where_{};
};

}  // namespace bitale
