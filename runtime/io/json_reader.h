// JSON in headers of files: read token by token, by a grammar that the caller knows, without recursion.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bitale {

// All throw FileError, naming the path, where the text is something else. `what` names the text: "safetensors
// header".
class JsonReader {
  public:
    JsonReader(const std::string& path, std::string_view text, const char* what)
        : path_(path), text_(text), what_(what) {}

    bool next_is(char c);
    void expect(char c);
    std::string string();    // in UTF-8, escapes decoded
    std::uint64_t number();  // without sign, fraction and exponent
    void finish();           // nothing but space is left
    [[noreturn]] void fail(const std::string& found) const;

    // Of an object `{` or list `[` whose opening was read: whether a further member begins. Reads the comma
    // in between and the closing.
    bool more(bool& first, char closing);

  private:
    void skip_space();
    std::uint32_t hex4();
    void escape(std::string& to);

    const std::string& path_;
    std::string_view text_;
    const char* what_;
    std::size_t at_ = 0;
};

// In quotes, with what JSON escapes escaped; FileError where the text is not UTF-8.
std::string json_string(const std::string& path, const std::string& text);

}  // namespace bitale
