#include "graph/types/index_order.h"

#include <cstddef>
#include <set>
#include <utility>

namespace bitale {

namespace {

// Formulas within formulas share parts: those that are equal, but made twice, are compared once.
class Compared {
  public:
    Compared() { ++depth(); }
    ~Compared() {
        if (--depth() == 0) equal().clear();
    }
    Compared(const Compared&) = delete;
    Compared& operator=(const Compared&) = delete;

    bool are_equal(const Atom* a, const Atom* b) const { return is_deep() && equal().contains({a, b}); }
    void note_equal(const Atom* a, const Atom* b) const {
        if (is_deep()) equal().insert({a, b});
    }

  private:
    using Pairs = std::set<std::pair<const Atom*, const Atom*>>;
    static bool is_deep() {
        constexpr int flat = 2;
        return depth() > flat;
    }
    static int& depth() {
        thread_local int depth = 0;
        return depth;
    }
    static Pairs& equal() {
        thread_local Pairs pairs;
        return pairs;
    }
};

}  // namespace

std::strong_ordering compare(const AtomPtr& a, const AtomPtr& b) {
    if (a == b) return std::strong_ordering::equal;
    if (auto c = a->kind <=> b->kind; c != 0) return c;
    if (a->kind == Atom::Kind::symbol) return a->id <=> b->id;
    const Compared compared;
    if (compared.are_equal(a.get(), b.get())) return std::strong_ordering::equal;
    if (auto c = a->a <=> b->a; c != 0) return c;
    if (auto c = a->b <=> b->b; c != 0) return c;
    compared.note_equal(a.get(), b.get());
    return std::strong_ordering::equal;
}

std::strong_ordering compare(const Atoms& a, const Atoms& b) {
    if (a.same_list(b)) return std::strong_ordering::equal;
    if (auto c = a.size() <=> b.size(); c != 0) return c;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (auto c = compare(a[i], b[i]); c != 0) return c;
    return std::strong_ordering::equal;
}

}  // namespace bitale
