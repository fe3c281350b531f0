#include "graph/ir/attributes.h"

#include <algorithm>

#include "graph/base/numbers.h"
#include "graph/ir/shared.h"

namespace bitale {

void Attributes::set(const std::string& name, Attribute value) {
    auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                               [](const Entry& e, const std::string& n) { return e.first < n; });
    if (at != entries_.end() && at->first == name)
        at->second = std::move(value);
    else
        entries_.insert(at, {name, std::move(value)});
}

const Attribute* Attributes::find(const std::string& name) const {
    for (const Entry& e : entries_)
        if (e.first == name) return &e.second;
    return nullptr;
}

bool Attributes::operator==(const Attributes& other) const {
    if (entries_.size() != other.entries_.size()) return false;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const auto& [name, a] = entries_[i];
        const auto& [other_name, b] = other.entries_[i];
        if (name != other_name || a.index() != b.index()) return false;
        if (const auto* array = std::get_if<std::shared_ptr<const Array>>(&a)) {
            if (!same(**array, *std::get<std::shared_ptr<const Array>>(b))) return false;
        } else if (a != b) {
            return false;
        }
    }
    return true;
}

namespace {

struct Describe {
    std::string operator()(bool x) const { return x ? "true" : "false"; }
    std::string operator()(std::int64_t x) const { return std::to_string(x); }
    std::string operator()(double x) const { return number_text(x, 17); }
    std::string operator()(const std::string& x) const { return x; }
    std::string operator()(DType x) const { return std::string(name_of(x)); }
    std::string operator()(const Int& x) const { return x.text(); }
    std::string operator()(const std::vector<Int>& x) const { return text_of(x); }
    std::string operator()(const std::vector<std::int64_t>& x) const { return text_of(x); }
    std::string operator()(const std::shared_ptr<const Array>& x) const { return x->text(); }
    std::string operator()(const SharedPtr& x) const { return x->name; }
};

}  // namespace

std::string text_of(const Attribute& attribute) { return std::visit(Describe{}, attribute); }

}  // namespace bitale
