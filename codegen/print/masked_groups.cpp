#include "codegen/print/masked_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

#include "codegen/nest/access.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

class Groups {
  public:
    Groups(const Stmt& loop, const std::vector<Place>& places) : loop_(loop), places_(places) {
        look(loop.body, false, 1);
    }

    bool masked() const {
        // A loop around others becomes vectors only where a pragma asks for them.
        if (!masked_ || (loops_ && loop_.binding != Binding::simd)) return false;
        for (const auto& [place, count] : stores_)
            if (count > 1) return true;
        return false;
    }

  private:
    void look(const Stmts& body, bool guarded, int times) {
        for (const Stmt& s : body) {
            const bool inner = s.kind == Stmt::Kind::loop;
            if (s.kind == Stmt::Kind::set || s.kind == Stmt::Kind::accumulate) stores_[s.place] += times;
            for (const Scalar& value : {s.value, s.position})
                if (value)
                    for_each_read(value, [&](const ScalarNode& read) {
                        masked_ = masked_ || ((guarded || !read.guards.empty()) && steps(read));
                    });
            loops_ = loops_ || inner;
            look(s.body, guarded || s.kind == Stmt::Kind::when, inner ? 2 : times);
        }
    }

    bool steps(const ScalarNode& read) const {
        const Place& place = places_[static_cast<std::size_t>(read.operand.place())];
        const std::optional<Int> step = stride_of(offset_of(place, read.at), loop_.variable);
        return !step || !(step->is(0) || step->is(1) || step->is(-1));
    }

    const Stmt& loop_;
    const std::vector<Place>& places_;
    std::map<int, int> stores_;  // how many of an iteration, by place
    bool masked_ = false, loops_ = false;
};

bool has_masked_maximum(const Stmt& loop, const std::vector<Place>& places) {
    if (loop.binding != Binding::simd) return false;
    const auto is_short = [&](const Stmt& s) {
        return s.kind == Stmt::Kind::accumulate && (s.combine == Combine::max || s.combine == Combine::min) &&
               bytes_of(places[static_cast<std::size_t>(s.place)].dtype) == 2;
    };
    return std::any_of(loop.body.begin(), loop.body.end(), [&](const Stmt& s) {
        return s.kind == Stmt::Kind::when && std::any_of(s.body.begin(), s.body.end(), is_short);
    });
}

}  // namespace

bool has_masked_group(const Stmt& loop, const std::vector<Place>& places) {
    return Groups(loop, places).masked() || has_masked_maximum(loop, places);
}

}  // namespace bitale
