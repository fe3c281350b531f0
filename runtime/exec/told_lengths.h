// Shapes in errors of a call: function() writes symbols into their texts, and a call knows the numbers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace bitale {

class ToldLengths {
  public:
    // A second number for a name makes the name unclear: two inputs may be called alike.
    void add(const std::string& name, std::int64_t number);
    // The text with the entries of each shape in brackets, outside of quotes, as numbers:
    // "[x.0, 2*x.1 + 1]" becomes "[10, 57]". Entries with a symbol that has no number here, or an unclear
    // name, stay as they are.
    std::string in(const std::string& text) const;

  private:
    std::map<std::string, std::optional<std::int64_t>> numbers_;
};

}  // namespace bitale
