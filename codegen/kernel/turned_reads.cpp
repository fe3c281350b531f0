#include "codegen/kernel/turned_reads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/nest/access.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::int64_t tile = 16;
// Steps that compilers shuffle out of whole registers are shorter, and rows are one register at most.
constexpr std::int64_t shortest_row = 5, longest_row = 16;
// Fewer are loaded lane by lane as fast as their tile is transposed.
constexpr std::int64_t fewest_columns = 4, fewest_lanes = 8;
constexpr std::size_t element = 4;

// Columns of a row, from `first` on, that lanes read: `step` elements from one lane to the next.
struct Columns {
    int place = -1;
    std::vector<Int> at;  // of column 0 and the loop's variable
    std::int64_t step = 0, first = 0, last = 0;
    std::set<std::int64_t> read;
};

class Transposer {
  public:
    explicit Transposer(KernelIR& kernel) : kernel_(kernel) {}

    Stmts operator()(Stmts body) {
        Stmts r;
        for (Stmt& s : body) {
            if (const std::vector<Columns> found = columns_of(s); !found.empty()) {
                append(r, in_blocks(s, found));
                continue;
            }
            s.body = (*this)(std::move(s.body));
            append(r, same_for_all(s));
            r.push_back(std::move(s));
        }
        return r;
    }

    bool any() const { return !tiles_.empty(); }

  private:
    // The tiles at the beginning of a loop that are the same in each iteration, taken out of it.
    Stmts same_for_all(Stmt& s) const {
        Stmts r;
        const std::uint64_t id = s.variable.symbol_id();
        while (s.kind == Stmt::Kind::loop && s.binding == Binding::serial && id && s.body.size() > 2 &&
               s.body[0].kind == Stmt::Kind::declare && tiles_.count(s.body[0].place) > 0 &&
               is_fixed(s.body[1], id)) {
            std::move(s.body.begin(), s.body.begin() + 2, std::back_inserter(r));
            s.body.erase(s.body.begin(), s.body.begin() + 2);
        }
        return r;
    }

    bool is_fixed(const Stmt& rows, std::uint64_t id) const {
        const ScalarNode& read = *rows.body[0].body[0].value;
        const Place& place = kernel_.places[static_cast<std::size_t>(read.operand.place())];
        const auto stays = [&](const Int& x) { return !depends_on(x, id); };
        return rows.end.is_constant() && std::all_of(read.at.begin(), read.at.end(), stays) &&
               !place.written && std::all_of(place.extents.begin(), place.extents.end(), [](const Int& n) {
                   return n.is_constant();
               });
    }

    std::vector<Columns> columns_of(const Stmt& s) const {
        std::vector<Columns> found;
        if (s.kind != Stmt::Kind::loop || s.binding != Binding::simd || !s.begin.is(0) || s.step != 1 ||
            !s.high.is(0) || !s.variable.symbol_id() || s.end.range().high < fewest_lanes ||
            !std::all_of(s.body.begin(), s.body.end(), is_plain))
            return found;
        for_each_read_of(s, [&](const ScalarNode& read) {
            const std::optional<Columns> one = column_of(read, s);
            if (!one) return;
            const auto same = std::find_if(found.begin(), found.end(), [&](const Columns& other) {
                return other.place == one->place && other.step == one->step && other.at == one->at;
            });
            (same == found.end() ? found.emplace_back(*one) : *same).read.insert(one->first);
        });
        for (Columns& c : found) {
            c.first = *c.read.begin();
            c.last = *c.read.rbegin();
        }
        std::erase_if(found, [](const Columns& c) {
            return std::ssize(c.read) < fewest_columns || c.last - c.first >= c.step;
        });
        return found;
    }

    template <class F>
    static void for_each_read_of(const Stmt& s, const F& f) {
        for (const Stmt& one : s.body)
            for (const Scalar& value : {one.value, one.position})
                if (value) for_each_read(value, f);
    }

    std::optional<Columns> column_of(const ScalarNode& read, const Stmt& s) const {
        if (!read.guards.empty() || !read.operand.is_place() || read.at.empty()) return {};
        const int number = read.operand.place();
        const Place& place = kernel_.places[static_cast<std::size_t>(number)];
        const bool changes = std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            return one.kind != Stmt::Kind::comment && one.place == number;
        });
        if (changes || place.scope == Place::Scope::vector || place.scope == Place::Scope::private_ ||
            bytes_of(read.dtype) != element || bytes_of(place.dtype) != element)
            return {};
        const std::optional<Int> step = stride_of(offset_of(place, read.at), s.variable);
        if (!step || !step->is_constant() || step->constant() < shortest_row ||
            step->constant() > longest_row || !read.at.back().is_constant())
            return {};
        Columns r{number, read.at, step->constant(), read.at.back().constant(), 0, {}};
        r.at.back() = 0;
        return r;
    }

    //     for blocks: a tile of each row; for lane: the body
    Stmts in_blocks(const Stmt& s, const std::vector<Columns>& found) {
        const Int whole = floordiv(s.end, tile) * tile, rest = s.end - whole,
                  first = Int::symbol("first", {0, s.end.range().high});
        if (s.end.range().high <= tile) return of_block(s, found, 0, s.end);
        Stmts r;
        if (!whole.is(0))
            r.push_back(loop(first, 0, whole, Binding::serial, of_block(s, found, first, tile), tile));
        if (!rest.is(0)) append(r, of_block(s, found, whole, rest));
        return r;
    }

    Stmts of_block(const Stmt& s, const std::vector<Columns>& found, const Int& first, const Int& count) {
        const Int lane = Int::symbol("lane", {0, tile - 1}), row = Int::symbol("row", {0, tile - 1}),
                  column = Int::symbol("column", {0, tile - 1});
        Stmts r;
        std::vector<int> tiles;
        for (const Columns& c : found) {
            const DType dtype = kernel_.places[static_cast<std::size_t>(c.place)].dtype;
            tiles.push_back(*tiles_.insert(static_cast<int>(kernel_.places.size())).first);
            kernel_.places.push_back({Place::Scope::private_, dtype, {Int(tile), Int(tile)}, -1, true});
            std::vector<Int> at = c.at;
            for (Int& x : at) x = substitute(x, {{s.variable.symbol_id(), first + row}});
            at.back() = c.first + column;
            r.push_back(declare(tiles.back()));
            r.push_back(loop(row, 0, count, Binding::turned,
                             {loop(column, 0, c.last - c.first + 1, Binding::serial,
                                   {set(tiles.back(), {column, row}, place_read(dtype, c.place, at))})}));
        }
        Stmts body = s.body;
        for (Stmt& one : body)
            for (Scalar* value : {&one.value, &one.position})
                if (*value)
                    *value = rebuild(*value, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
                        if (part->kind != ScalarNode::Kind::read) return part;
                        const std::optional<Columns> here = column_of(*part, s);
                        for (std::size_t k = 0; here && k < found.size(); ++k) {
                            const Columns& c = found[k];
                            if (c.place == here->place && c.at == here->at)
                                return place_read(part->dtype, tiles[k], {here->first - c.first, lane});
                        }
                        return part;
                    });
        r.push_back(
            loop(lane, 0, count, Binding::simd, substitute(body, {{s.variable.symbol_id(), first + lane}})));
        return r;
    }

    KernelIR& kernel_;
    std::set<int> tiles_;  // places
};

}  // namespace

void transpose_reads(KernelIR& kernel, const std::set<std::uint64_t>& sizes) {
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments) {
            Transposer transposer(kernel);
            Segment changed = segment;
            changed.body = transposer(std::move(changed.body));
            // That an element is of the task's own part is proved by loops.
            if (transposer.any() && is_verified(kernel, changed, sizes)) segment = std::move(changed);
        }
}

}  // namespace bitale
