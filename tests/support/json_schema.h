// Whether a JSON value is what a schema says: of JSON Schema the keywords type, const, enum, anyOf, $ref,
// properties, required, additionalProperties (false), items, prefixItems, minItems, maxItems, minimum.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

namespace bitale::test {

class JsonSchema {
  public:
    using Json = nlohmann::json;
    explicit JsonSchema(Json schema) : root_(std::move(schema)) {}

    // Empty, or where and why the value is not of the schema.
    std::string fault(const Json& value) const { return fault(value, root_, "$"); }

  private:
    static bool has_type(const Json& value, const std::string& type) {
        return type == "object"    ? value.is_object()
               : type == "array"   ? value.is_array()
               : type == "string"  ? value.is_string()
               : type == "boolean" ? value.is_boolean()
               : type == "integer" ? value.is_number_integer()
               : type == "number"  ? value.is_number()
                                   : throw std::logic_error("the checker does not know the type " + type);
    }

    std::string fault(const Json& value, const Json& schema, const std::string& at) const {
        static const std::set<std::string> words = {"$schema", "$defs", "title", "description", "items"};
        for (const auto& [word, wish] : schema.items()) {
            std::string found;
            if (word == "$ref")
                found = fault(value, root_.at(Json::json_pointer(wish.get<std::string>().substr(1))), at);
            else if (word == "type")
                found = has_type(value, wish) ? "" : at + " is not of type " + wish.get<std::string>();
            else if (word == "const")
                found = value == wish ? "" : at + " is not " + wish.dump();
            else if (word == "enum")
                found = std::find(wish.begin(), wish.end(), value) != wish.end()
                            ? ""
                            : at + " is none of " + wish.dump();
            else if (word == "anyOf")
                found = any_of(value, wish, at);
            else if (word == "minimum")
                found = !value.is_number() || value >= wish ? "" : at + " is below " + wish.dump();
            else if (word == "minItems" || word == "maxItems")
                found =
                    !value.is_array() || (word == "minItems" ? value.size() >= wish : value.size() <= wish)
                        ? ""
                        : at + " has " + std::to_string(value.size()) + " items";
            else if (word == "required")
                for (const Json& name : wish)
                    if (value.is_object() && !value.contains(name)) found = at + " has no " + name.dump();
            if (!found.empty()) return found;
            static const std::set<std::string> known = {"$ref",
                                                        "type",
                                                        "const",
                                                        "enum",
                                                        "anyOf",
                                                        "minimum",
                                                        "minItems",
                                                        "maxItems",
                                                        "required",
                                                        "properties",
                                                        "additionalProperties",
                                                        "prefixItems"};
            if (!known.contains(word) && !words.contains(word))
                throw std::logic_error("the checker does not know " + word);
        }
        return value.is_object()  ? members(value, schema, at)
               : value.is_array() ? items(value, schema, at)
                                  : "";
    }

    std::string any_of(const Json& value, const Json& choices, const std::string& at) const {
        std::string why;
        for (const Json& choice : choices) {
            const std::string found = fault(value, choice, at);
            if (found.empty()) return "";
            why += (why.empty() ? "" : "; ") + found;
        }
        return why;
    }

    std::string members(const Json& value, const Json& schema, const std::string& at) const {
        const Json none = Json::object(), properties = schema.value("properties", none);
        for (const auto& [name, member] : value.items()) {
            if (const auto known = properties.find(name); known != properties.end()) {
                if (std::string found = fault(member, *known, at + "." + name); !found.empty()) return found;
            } else if (schema.contains("additionalProperties")) {
                return at + " has an unknown member " + name;
            }
        }
        return "";
    }

    std::string items(const Json& value, const Json& schema, const std::string& at) const {
        const Json first = schema.value("prefixItems", Json::array());
        for (std::size_t i = 0; i < value.size(); ++i) {
            if (i >= first.size() && !schema.contains("items")) continue;
            const Json& of_item = i < first.size() ? first[i] : schema.at("items");
            if (std::string found = fault(value[i], of_item, at + "[" + std::to_string(i) + "]");
                !found.empty())
                return found;
        }
        return "";
    }

    Json root_;
};

}  // namespace bitale::test
