#include "graph/rewrite/rule.h"

#include "graph/base/options.h"

namespace bitale {

const char* name_of(Tag tag) {
    switch (tag) {
        case Tag::exact: return "exact";
        case Tag::stabilizes: return "stabilizes";
        case Tag::reassociates: return "reassociates";
        case Tag::skips_zeros: return "skips_zeros";
        case Tag::assumes_finite: return "assumes_finite";
        case Tag::defines: break;
    }
    return "defines";
}

const char* Rule::why_not() const {
    const Options& o = options();
    if (!o.enabled(name)) return "it is disabled";
    if (!o.enabled(name_of(tag))) return "its tag is disabled";
    if (o.strict_math && (tag == Tag::reassociates || tag == Tag::skips_zeros || tag == Tag::assumes_finite))
        return "math=strict holds it back";
    if (tag == Tag::assumes_finite && !o.assume_finite) return "only under assume_finite=on";
    return nullptr;
}

NodePtr Rule::apply(const NodePtr& node, const MatchContext& context, Match* found, std::string* why) const {
    std::optional<Match> m = match(pattern, node, context, why);
    if (!m) return nullptr;
    if (guard && !guard(*m)) {
        if (why) *why = "the guard refuses: " + describe(*node);
        return nullptr;
    }
    NodePtr made;
    try {
        const auto* replace = std::get_if<Replace>(&replacement);
        made = replace ? (*replace)(*m) : build(std::get<Pattern>(replacement), *m);
    } catch (const OutOfMemory&) {
        throw;
    } catch (const Error& error) {
        internal_failure(__FILE__, __LINE__, "a well-typed replacement",
                         "rule " + name + ": " + error.what());
    }
    if (!made && why) *why = "the replacement does not apply: " + describe(*node);
    if (made && found) *found = std::move(*m);
    return made;
}

RuleSet operator+(RuleSet a, const RuleSet& b) {
    a.rules.insert(a.rules.end(), b.rules.begin(), b.rules.end());
    if (!a.adapt) a.adapt = b.adapt;
    return a;
}

}  // namespace bitale
