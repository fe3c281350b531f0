// An indent-aware text buffer.
#pragma once

#include <string>
#include <string_view>

#include "graph/base/check.h"

namespace bitale {

class Writer {
  public:
    void line(std::string_view text) {
        BITALE_CHECK(text.find('\n') == std::string_view::npos,
                     "a line of generated text has a line end inside");
        text_.append(static_cast<std::size_t>(indent_) * 2, ' ');
        text_ += text;
        text_ += '\n';
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
        line(safe);
    }
    void open(std::string_view text) {
        line(text);
        ++indent_;
    }
    void close(std::string_view text = "}") {
        --indent_;
        line(text);
    }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
    int indent_ = 0;
};

}  // namespace bitale
