#include "runtime/io/json_reader.h"

#include <nlohmann/json.hpp>

#include "graph/base/text.h"
#include "runtime/io/byte_source.h"

namespace bitale {

namespace {

void put_utf8(std::string& to, std::uint32_t code) {
    const auto put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    }
}

}  // namespace

void JsonReader::fail(const std::string& found) const {
    constexpr std::size_t before = 40, most = 100;
    const std::size_t from = at_ > before ? at_ - before : 0;
    file_error(path_, std::string("has a malformed ") + what_ + " with " + found + " at byte " +
                          std::to_string(at_) + ", near " +
                          in_quotes(text_.substr(std::min(from, text_.size()), most)));
}

void JsonReader::skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
        ++at_;
}

bool JsonReader::next_is(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
}

void JsonReader::expect(char c) {
    if (!next_is(c)) fail(std::string("no '") + c + "'");
    ++at_;
}

bool JsonReader::more(bool& first, char closing) {
    if (next_is(closing)) {
        ++at_;
        return false;
    }
    if (!first) expect(',');
    first = false;
    return true;
}

void JsonReader::finish() {
    skip_space();
    if (at_ != text_.size()) fail("more text behind its end");
}

std::uint32_t JsonReader::hex4() {
    std::uint32_t x = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
        const char c = at_ < text_.size() ? text_[at_] : ' ';
        if (c >= '0' && c <= '9')
            x = x << 4 | static_cast<std::uint32_t>(c - '0');
        else if (c >= 'a' && c <= 'f')
            x = x << 4 | static_cast<std::uint32_t>(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            x = x << 4 | static_cast<std::uint32_t>(c - 'A' + 10);
        else
            fail("an escape that is not \\u and four hexadecimal digits");
    }
    return x;
}

// Behind the backslash.
void JsonReader::escape(std::string& to) {
    const char c = at_ < text_.size() ? text_[at_++] : ' ';
    switch (c) {
        case '"':
        case '\\':
        case '/': to += c; return;
        case 'b': to += '\b'; return;
        case 'f': to += '\f'; return;
        case 'n': to += '\n'; return;
        case 'r': to += '\r'; return;
        case 't': to += '\t'; return;
        case 'u': break;
        default: fail("an unknown escape");
    }
    std::uint32_t code = hex4();
    const bool low = code >= 0xdc00 && code < 0xe000;
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_).starts_with("\\u")) {
        at_ += 2;
        const std::uint32_t second = hex4();
        if (second < 0xdc00 || second >= 0xe000) fail("half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
    } else if (low || (code >= 0xd800 && code < 0xdc00)) {
        fail("half a surrogate pair");
    }
    put_utf8(to, code);
}

std::string JsonReader::string() {
    expect('"');
    std::string r;
    while (true) {
        if (at_ >= text_.size()) fail("a string without end");
        const char c = text_[at_++];
        if (c == '"') break;
        if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string");
        if (c == '\\')
            escape(r);
        else
            r += c;
    }
    json_string(path_, r);  // is it UTF-8?
    return r;
}

std::uint64_t JsonReader::number() {
    skip_space();
    const std::size_t begin = at_;
    std::uint64_t x = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
        if (__builtin_mul_overflow(x, 10, &x) ||
            __builtin_add_overflow(x, static_cast<std::uint64_t>(text_[at_] - '0'), &x))
            fail("a number beyond 64 bits");
    if (at_ == begin) fail("no number");
    if (at_ - begin > 1 && text_[begin] == '0') fail("a number that begins with 0");
    return x;
}

std::string json_string(const std::string& path, const std::string& text) {
    try {
        return nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
        file_error(path, "has or would have a name that is not UTF-8, " + in_quotes(text));
    }
}

}  // namespace bitale
