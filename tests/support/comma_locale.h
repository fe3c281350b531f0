// A locale with a decimal comma and points between thousands, as in German.
#pragma once

#include <clocale>
#include <filesystem>
#include <locale>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary.h"

namespace bitale::test {

// The locale of C functions and of streams while it lives. No machine need have such a locale: this writes
// glibc's file of one. Where another C library refuses it, or a later glibc, is_set() says so, and streams
// alone have the comma.
class CommaLocale {
  public:
    CommaLocale() : before_(std::setlocale(LC_NUMERIC, nullptr)) {
        std::filesystem::create_directory(folder_ / "comma");
        // A mark of the category, 6 entries and where they are: comma, point, groups of 3, the same as two
        // wide characters, and the encoding.
        constexpr char data[] =
            "\x14\x11\x03\x20\x06\0\0\0\x20\0\0\0\x22\0\0\0\x24\0\0\0\x28\0\0\0\x2c\0\0\0\x30\0\0\0"
            ",\0.\0\3\3\0\0,\0\0\0.\0\0\0UTF-8\0";
        write_file(folder_ / "comma/LC_NUMERIC", std::string(data, sizeof data - 1));
        is_set_ = std::setlocale(LC_NUMERIC, "comma") && *std::localeconv()->decimal_point == ',';
        streams_ = std::locale::global(std::locale(std::locale::classic(), new Comma));
        if (!is_set_) WARN("this C library takes no locale of the test's: only streams have a decimal comma");
    }
    ~CommaLocale() {
        std::locale::global(streams_);
        std::setlocale(LC_NUMERIC, before_.c_str());
    }
    CommaLocale(const CommaLocale&) = delete;
    CommaLocale& operator=(const CommaLocale&) = delete;
    bool is_set() const { return is_set_; }

  private:
    class Comma : public std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };

    TemporaryFolder folder_;
    ScopedVariable path_{"LOCPATH", folder_.path()};
    std::string before_;
    std::locale streams_;
    bool is_set_ = false;
};

}  // namespace bitale::test
