// Texts of errors in which numbers of the call are missing until it fails. Their places are marked by control
// characters, which no name in a text holds, for names are escaped.
#pragma once

#include <cstdint>
#include <string>

#include "graph/ir/op.h"

namespace bitale {

// The mark of the number that was found, plus `more`, and that of the number that bounds it.
std::string number_found(std::int64_t more = 0);
std::string number_there(std::int64_t more = 0);
bool has_marks(const std::string& text);
// With numbers in the places of the marks.
std::string completed(const std::string& text, std::int64_t found, std::int64_t there);
// For reports and files: {found}, {found + 3} or {there} in the places of the marks, and braces of the text
// twice, so that from_readable gives the text back.
std::string readable(const std::string& text);
std::string from_readable(const std::string& text);

// The `what` of a Check whose error does not begin with the name that titles show: by the whole sentence,
// which has the number found, or by what completes "... is out of range".
std::string with_sentence(const std::string& title, const std::string& sentence);
std::string title_of(const Check& check);
// What a program keeps of a check, and the error that it becomes when an element is out of range: `there` is
// what check.high is at that call.
std::string error_text(const Check& check);
std::string fault_text(const std::string& error_text, std::int64_t value, std::int64_t element,
                       std::int64_t there);

}  // namespace bitale
