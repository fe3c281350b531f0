#include "codegen/nest/arms.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "codegen/nest/compose.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

constexpr std::size_t most_arms = 8;

// The values of a chain of choices, and the guards of all but the last.
struct Chain {
    std::vector<std::vector<Guard>> guards;
    std::vector<Scalar> values;
};

// Whether one of the guards holds at each point: intervals of one number, without a gap between them.
bool cover_all(const std::vector<std::vector<Guard>>& guards) {
    std::vector<std::pair<std::int64_t, std::int64_t>> intervals;
    const Int whole = guards[0].size() == 1 ? guards[0][0].value : Int();
    for (const std::vector<Guard>& g : guards) {
        if (g.size() != 1) return false;
        const Int shift = g[0].value - whole, low = g[0].low - shift, high = g[0].high - shift;
        if (!shift.is_constant() || !low.is_constant() || !high.is_constant()) return false;
        intervals.push_back({low.constant(), high.constant()});
    }
    std::sort(intervals.begin(), intervals.end());
    std::int64_t next = whole.range().low;
    for (const auto& [low, high] : intervals)
        if (low <= next) next = std::max(next, high);
    return next > whole.range().high;
}

Chain chain_of(const std::vector<Guard>& guards, const Scalar& value, const Scalar& otherwise) {
    Chain chain{{guards}, {value}};
    Scalar rest = otherwise;
    while (rest && rest->kind == ScalarNode::Kind::select && chain.values.size() < most_arms) {
        chain.guards.push_back(rest->guards);
        chain.values.push_back(rest->arguments[0]);
        rest = rest->otherwise;
    }
    if (rest && is_zero(rest) && cover_all(chain.guards))
        chain.guards.pop_back();
    else
        chain.values.push_back(rest);
    return chain;
}

class Arms {
  public:
    explicit Arms(const Chain& chain) : guards_(chain.guards) {}

    Scalar operator()(const std::vector<Scalar>& values) {
        const auto [at, fresh] = done_.try_emplace(values);
        if (!fresh) return at->second;
        const Scalar r = joined(values);
        return done_[values] = r;
    }

    int choices() const { return choices_; }
    int saved() const { return saved_; }  // cycles

  private:
    static bool is_alike(const Scalar& a, const Scalar& b) {
        return a->kind == b->kind && a->dtype == b->dtype && a->op == b->op && a->guards.empty() &&
               b->guards.empty() && a->arguments.size() == b->arguments.size() &&
               (a->kind == ScalarNode::Kind::apply || a->kind == ScalarNode::Kind::cast);
    }

    Scalar joined(const std::vector<Scalar>& values) {
        const Scalar& first = values[0];
        const auto all = [&](bool (*f)(const Scalar&, const Scalar&)) {
            return std::all_of(values.begin() + 1, values.end(),
                               [&](const Scalar& v) { return f(first, v); });
        };
        if (all(same_scalars)) return first;
        if (!all(is_alike)) return choice_of(values);
        saved_ += first->kind == ScalarNode::Kind::apply ? first->op->map->cost : 1;
        auto r = std::make_shared<ScalarNode>(*first);
        for (std::size_t i = 0; i < r->arguments.size(); ++i) {
            std::vector<Scalar> arguments;
            arguments.reserve(values.size());
            for (const Scalar& v : values) arguments.push_back(v->arguments[i]);
            r->arguments[i] = (*this)(arguments);
        }
        return r;
    }

    Scalar choice_of(const std::vector<Scalar>& values) {
        ++choices_;
        Scalar r = values.back();
        for (std::size_t k = guards_.size(); k-- > 0;) {
            const Scalar& value = values[k];
            if (value->kind != ScalarNode::Kind::read || value->guards != guards_[k]) {
                r = scalar_select(guards_[k], value, r);
                continue;
            }
            auto read = std::make_shared<ScalarNode>(*value);
            read->otherwise = r;
            r = std::move(read);
        }
        return r;
    }

    const std::vector<std::vector<Guard>>& guards_;
    std::map<std::vector<Scalar>, Scalar> done_;
    int choices_ = 0, saved_ = 0;
};

}  // namespace

Scalar select_of_parts(const std::vector<Guard>& guards, const Scalar& value, const Scalar& otherwise) {
    if (!otherwise || guards.empty()) return scalar_select(guards, value, otherwise);
    const Chain chain = chain_of(guards, value, otherwise);
    Arms arms(chain);
    const Scalar joined = arms(chain.values);
    return arms.saved() > 2 * arms.choices() ? joined : scalar_select(guards, value, otherwise);
}

}  // namespace bitale
