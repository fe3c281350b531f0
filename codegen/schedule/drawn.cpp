#include "codegen/schedule/drawn.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool is_first_word(const ScalarNode& s) { return applies(s, Opcode::random_bits); }

bool is_word(const ScalarNode& s) { return is_first_word(s) || applies(s, Opcode::second_random_bits); }

// The element whose word it is, and its key and counter, are those of neighbours along the loop. An element
// that was looked up is known inside of the loop alone.
bool is_of_neighbours(const Nest& nest, const ScalarNode& word, const Int& variable) {
    if (std::any_of(word.arguments.begin(), word.arguments.end(),
                    [&](const Scalar& a) { return !lets_of(nest, a).empty(); }))
        return false;
    const ScalarNode* number = word.arguments[2].get();
    while (number->kind == ScalarNode::Kind::cast) number = number->arguments[0].get();
    if (number->kind != ScalarNode::Kind::index || varies(nest, word.arguments[0], variable) ||
        varies(nest, word.arguments[1], variable))
        return false;
    return (substitute(number->index, {{variable.symbol_id(), variable + 1}}) - number->index).is(1);
}

// Words of the same key, counter and element.
struct Drawn {
    Scalar word;
    int first = -1, second = -1;  // places
};

}  // namespace

std::optional<DrawnWords> drawn_words(const Nest& nest, const Loop& along, const Int& begin,
                                      KernelBuilder& builder) {
    if (typical(along.extent) < drawn_at_once) return {};
    std::vector<Drawn> all;
    const auto drawn_as = [&](const ScalarNode& s) {
        return std::find_if(all.begin(), all.end(), [&](const Drawn& d) {
            return std::equal(d.word->arguments.begin(), d.word->arguments.end(), s.arguments.begin(),
                              same_scalars);
        });
    };
    bool fits = true;
    for_each_part(nest, [&](const ScalarNode& s) {
        if (!is_word(s)) return;
        fits = fits && is_of_neighbours(nest, s, along.variable);
        auto d = drawn_as(s);
        if (d == all.end()) d = all.insert(all.end(), {std::make_shared<ScalarNode>(s)});
        int& place = is_first_word(s) ? d->first : d->second;
        if (place < 0) place = builder.scratch(Place::Scope::private_, DType::uint32, {Int(drawn_at_once)});
    });
    if (!fits || all.empty()) return {};
    DrawnWords r;
    r.point = {Int::symbol("point", {0, drawn_at_once - 1}), min(drawn_at_once, along.extent - begin)};
    r.body = rebuild(nest.body, [&](const std::shared_ptr<ScalarNode>& s) -> Scalar {
        if (!is_word(*s)) return s;
        const auto d = drawn_as(*s);
        return place_read(s->dtype, is_first_word(*s) ? d->first : d->second, {r.point.variable});
    });
    for (Drawn& d : all) {
        if (d.first < 0)
            d.first = builder.scratch(Place::Scope::private_, DType::uint32, {Int(drawn_at_once)});
        r.draws.push_back(declare(d.first));
        if (d.second >= 0) r.draws.push_back(declare(d.second));
        r.draws.push_back(random_words(
            d.first, d.second, substitute(d.word, {{along.variable.symbol_id(), begin}}), r.point.extent));
    }
    return r;
}

}  // namespace bitale
