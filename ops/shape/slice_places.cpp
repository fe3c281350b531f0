#include "ops/shape/slice_places.h"

#include "graph/ir/fault_text.h"
#include "ops/shape/lengths.h"

namespace bitale {

void demand_place(std::vector<Equality>& into, const Int& needed, const Int& there, std::string sentence) {
    const std::size_t before = into.size();
    demand_at_most(into, needed, there, std::move(sentence));
    if (into.size() > before) into.back().is_index = true;
}

void demand_places(std::vector<Equality>& into, const Node& node, const Node& whole) {
    const Attribute* attribute = node.attributes.find("places");
    if (!attribute) return;
    const auto& places = std::get<Places>(*attribute);
    for (std::size_t i = 0; i + 1 < places.size(); i += 2)
        demand_place(into, places[i], places[i + 1],
                     "the slice of " + describe(whole) + " starts at index " + number_found(-1) +
                         ", but the axis has length " + number_there() + ": one minibatch too many?");
}

Attributes with_places(Attributes attributes, const Node& slice) {
    if (const Attribute* places = slice.attributes.find("places")) attributes.set("places", *places);
    return attributes;
}

}  // namespace bitale
