// The compile-time arguments of a node, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/base/check.h"
#include "graph/types/shape.h"

namespace bitale {

struct SharedState;
using SharedPtr = std::shared_ptr<SharedState>;

using Attribute = std::variant<bool, std::int64_t, double, std::string, DType, Int, std::vector<Int>,
                               std::vector<std::int64_t>, std::shared_ptr<const Array>, SharedPtr>;

// Few per node, so a flat list; kept sorted by name so that equal sets compare equal.
class Attributes {
  public:
    using Entry = std::pair<std::string, Attribute>;

    Attributes() = default;
    Attributes(std::initializer_list<Entry> entries) {
        for (const Entry& e : entries) set(e.first, e.second);
    }

    void set(const std::string& name, Attribute value);
    const Attribute* find(const std::string& name) const;
    template <class T>
    const T& get(const std::string& name) const {
        const Attribute* a = find(name);
        BITALE_CHECK(a && std::holds_alternative<T>(*a),
                     "attribute " + name + " is missing or of another type");
        return std::get<T>(*a);
    }
    const std::vector<Entry>& entries() const { return entries_; }
    bool operator==(const Attributes& other) const;  // arrays by value, shared variables by identity

  private:
    std::vector<Entry> entries_;
};

std::string text_of(const Attribute& attribute);

}  // namespace bitale
