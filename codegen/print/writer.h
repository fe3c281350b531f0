// An indent-aware text buffer.
#pragma once

#include <string>
#include <string_view>

namespace bitale {

class Writer {
  public:
    void line(std::string_view text) {
        text_.append(static_cast<std::size_t>(indent_) * 2, ' ');
        text_ += text;
        text_ += '\n';
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
