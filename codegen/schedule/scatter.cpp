#include "codegen/schedule/scatter.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/nest/tree.h"
#include "codegen/schedule/pointwise.h"
#include "graph/base/check.h"

namespace bitale {

namespace {

// Registers for the other factor and for what is in flight.
constexpr std::int64_t other_registers = 3;
constexpr std::int64_t fewest_channels = 8;
// Enough sums at once to hide how long one addition takes.
constexpr std::int64_t busy = 8;
// Of the other factor, what the fastest cache holds beside the lists.
constexpr std::int64_t most_tile_bytes = 38 << 10;
constexpr std::int64_t most_list_bytes = 96 << 10;
// A list begins with its length, and is written in whole registers.
constexpr std::int64_t around_list = 16;

std::int64_t coefficient(const Int& x, const Int& variable) {
    const Int step = substitute(x, {{variable.symbol_id(), variable + 1}}) - x;
    return step.is_constant() ? step.constant() : 0;
}

std::optional<ScatterForm::Axis> axis_of(const Nest& nest, const ScalarNode& sparse, std::size_t at,
                                         const Loop& tap) {
    ScatterForm::Axis axis;
    axis.at = at;
    axis.taps = tap.extent.constant();
    const Int& place = sparse.at[at];
    bool found = false;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Int& variable = nest.parallel[i].variable;
        if (!variable.symbol_id() || !depends_on(place, variable.symbol_id())) continue;
        if (found || coefficient(place, variable) != 1) return {};
        found = true;
        axis.result = i;
    }
    if (!found) return {};
    Int rest = place - nest.parallel[axis.result].variable;
    axis.step = axis.taps > 1 ? coefficient(place, tap.variable) : 1;
    if (axis.taps > 1) rest = rest - axis.step * tap.variable;
    if (axis.step == 0 || !rest.is_constant()) return {};
    axis.shift = rest.constant();
    return axis;
}

// Zero unless something was selected at this very place.
bool selects_by_place(const Nest& nest) {
    const ScalarNode& body = *nest.body;
    const bool sums = nest.combine == Combine::none || nest.combine == Combine::sum;
    if (!sums || !applies(body, Opcode::where)) return false;
    const ScalarNode &condition = *body.arguments[0], &other = *body.arguments[2];
    if (!applies(condition, Opcode::eq)) return false;
    const bool by_index = std::any_of(condition.arguments.begin(), condition.arguments.end(),
                                      [](const Scalar& s) { return s->kind == ScalarNode::Kind::index; });
    return by_index && other.kind == ScalarNode::Kind::constant && other.number == 0 && other.integer == 0;
}

// The places of the sparse factor, of these extents: all of them, in memory by their channels, and every
// result among those that they have a part in.
bool complete(ScatterForm& form, const Nest& nest, const Shape& extents) {
    const ScalarNode& sparse = *nest.body->arguments[static_cast<std::size_t>(form.factor)];
    if (form.channels + 1 != extents.size() || !(extents.back() == nest.reduced.back().extent)) return false;
    for (ScatterForm::Axis* axis : {&form.rows, &form.columns}) {
        const Int &places = extents[axis->at], &results = nest.parallel[axis->result].extent;
        if (!places.is_constant() || !results.is_constant()) return false;
        axis->places = places.constant();
        if (axis->first() > 0 || results.constant() > axis->count() + axis->first()) return false;
    }
    // What lies outside is no place: nothing else may be guarded.
    return std::all_of(sparse.guards.begin(), sparse.guards.end(), [&](const Guard& g) {
        return std::any_of(sparse.at.begin(), sparse.at.end(), [&](const Int& at) {
            const auto d = static_cast<std::size_t>(&at - sparse.at.data());
            return (d == form.rows.at || d == form.columns.at) && g.value == at && g.low.is(0) &&
                   g.high == extents[d];
        });
    });
}

struct Registers {
    std::int64_t width = 1, count = 1, together = 1;  // lanes; for all channels; side by side
};

Registers registers_of(const ScatterForm& form, const Nest& nest, const Target& target) {
    constexpr std::int64_t narrowest = 4;
    const std::int64_t lanes = nest.parallel[form.lanes].extent.constant(),
                       taps = form.rows.taps * form.columns.taps,
                       channels = nest.reduced.back().extent.constant(),
                       most = target.vector_registers - other_registers;
    Registers r;
    r.width = target.vector_bytes / bytes_of(nest.accumulator);
    while (r.width > narrowest && r.width / 2 >= lanes) r.width /= 2;
    r.count = (lanes + r.width - 1) / r.width;
    const auto suits = [&](std::int64_t together) {
        const std::int64_t bytes = channels * taps * together * r.width * bytes_of(nest.accumulator);
        return taps * together <= most && (bytes <= most_tile_bytes || taps * together <= busy);
    };
    while (r.together < r.count && suits(r.together + 1)) ++r.together;
    return r;
}

// Rows of places whose lists are made before any of them is used.
std::int64_t rows_together(const ScatterForm& form, std::int64_t channels) {
    const std::int64_t row = form.columns.places * (channels + around_list) * bytes_of(DType::int32);
    return std::clamp<std::int64_t>(most_list_bytes / row, 1, form.rows.places);
}

class Scatter {
  public:
    Scatter(const Member& member, const ScatterForm& form, const Target& target, KernelBuilder& builder)
        : member_(member),
          nest_(member.nest),
          form_(form),
          registers_(registers_of(form, member.nest, target)),
          channels_(nest_.reduced.back().extent.constant()),
          builder_(builder) {}

    Stmts run() {
        const DType dtype = nest_.accumulator;
        const std::int64_t rows = rows_together(form_, channels_);
        results_ = builder_.scratch(
            Place::Scope::local, dtype,
            {form_.rows.count(), form_.columns.count(), registers_.count * registers_.width});
        lists_ = builder_.scratch(Place::Scope::local, DType::int32,
                                  {rows, form_.columns.places, channels_ + around_list});
        Stmts all{declare(results_), declare(lists_)};
        append(all, cleared());
        const Int first = Int::symbol("band", {0, form_.rows.places - 1}),
                  row = Int::symbol("row", {0, rows - 1});
        const Int here = min(rows, form_.rows.places - first);
        Stmts band{
            over_places(row, here, [&](const Int& column) { return listed(first + row, row, column); })};
        for (std::int64_t v = 0; v < registers_.count; v += registers_.together) {
            const std::int64_t vectors = std::min(registers_.together, registers_.count - v);
            band.push_back(over_places(
                row, here, [&](const Int& column) { return added(first + row, row, column, v, vectors); }));
        }
        all.push_back(loop(first, 0, form_.rows.places, Binding::serial, std::move(band), rows));
        append(all, stored());
        return all;
    }

  private:
    Stmts cleared() {
        Member zero;
        std::vector<Int> at;
        for (const Int& extent : builder_.ir.places[static_cast<std::size_t>(results_)].extents) {
            zero.nest.parallel.push_back(make_loop("clear", extent));
            at.push_back(zero.nest.parallel.back().variable);
        }
        zero.nest.dtype = nest_.accumulator;
        zero.nest.body = scalar_integer(nest_.accumulator, 0);
        zero.destinations = {{results_, at}};
        return schedule_map(zero, builder_);
    }

    Stmt over_places(const Int& row, const Int& rows, const std::function<Stmts(const Int&)>& body) const {
        const Int column = Int::symbol("column", {0, form_.columns.places - 1});
        return loop(row, 0, rows, Binding::serial,
                    {loop(column, 0, form_.columns.places, Binding::serial, body(column))});
    }

    // Places are visited in the order in which the sum of a result meets them: that of the taps.
    static Int in_order(const ScatterForm::Axis& axis, const Int& number) {
        return axis.step > 0 ? number : axis.places - 1 - number;
    }

    Scalar sparse_at(const Int& row, const Int& column, const Int& channel) const {
        auto r = std::make_shared<ScalarNode>(*nest_.body->arguments[static_cast<std::size_t>(form_.factor)]);
        r->guards.clear();
        r->otherwise = nullptr;
        r->at[form_.rows.at] = in_order(form_.rows, row);
        r->at[form_.columns.at] = in_order(form_.columns, column);
        r->at[form_.channels] = channel;
        return r;
    }

    Stmts listed(const Int& row, const Int& inside, const Int& column) const {
        return {list_nonzeros(lists_, {inside, column, 0}, sparse_at(row, column, 0), channels_)};
    }

    // What a place adds to the results of `vectors` registers from register `first` on.
    Stmts added(const Int& row, const Int& inside, const Int& column, std::int64_t first,
                std::int64_t vectors) {
        const DType dtype = nest_.accumulator;
        const std::int64_t taps = form_.rows.taps * form_.columns.taps;
        const Int lane = Int::symbol("lane", {0, registers_.width - 1}),
                  count = Int::symbol("count", {0, channels_}),
                  number = Int::symbol("number", {0, channels_ - 1}),
                  channel = Int::symbol("channel", {0, channels_ - 1});
        const int acc = builder_.scratch(Place::Scope::vector, dtype, {taps * vectors, registers_.width});
        const Scalar& other = nest_.body->arguments[static_cast<std::size_t>(1 - form_.factor)];
        Stmts start, sum, stop;
        std::int64_t next = 0;
        for (std::int64_t ky = 0; ky < form_.rows.taps; ++ky)
            for (std::int64_t kx = 0; kx < form_.columns.taps; ++kx)
                for (std::int64_t v = 0; v < vectors; ++v) {
                    const std::vector<Int> at{Int(next++), lane};
                    const Int lanes = (first + v) * registers_.width + lane;
                    const std::vector<Int> result{met(form_.rows, row, ky), met(form_.columns, column, kx),
                                                  lanes};
                    Substitution here{{nest_.parallel[form_.lanes].variable.symbol_id(), lanes}};
                    const std::array<Int, 3> values{Int(ky), Int(kx), channel};
                    for (std::size_t d = 0; d < values.size(); ++d)
                        if (const std::uint64_t id = nest_.reduced[d].variable.symbol_id())
                            here[id] = values[d];
                    start.push_back(set(acc, at, place_read(dtype, results_, result)));
                    const Scalar factor = substitute(other, here), element = sparse_at(row, column, channel);
                    const std::vector<Scalar> product = form_.factor == 0
                                                            ? std::vector<Scalar>{element, factor}
                                                            : std::vector<Scalar>{factor, element};
                    sum.push_back(accumulate(acc, at, Combine::sum,
                                             scalar_apply(nest_.body->op, dtype, product), true));
                    stop.push_back(set(results_, result, place_read(dtype, acc, at)));
                }
        const auto in_lanes = [&](Stmts s) {
            return lanes(lane, registers_.width, registers_.width, std::move(s));
        };
        return {let(count, place_read(DType::int32, lists_, {inside, column, 0}), channels_ + 1),
                declare(acc), in_lanes(std::move(start)),
                loop(number, 0, count, Binding::serial,
                     {let(channel, place_read(DType::int32, lists_, {inside, column, number + 1}), channels_),
                      in_lanes(std::move(sum))}),
                in_lanes(std::move(stop))};
    }

    static Int met(const ScatterForm::Axis& axis, const Int& number, std::int64_t tap) {
        return in_order(axis, number) - axis.step * tap - axis.shift - axis.first();
    }

    Stmts stored() {
        Member copy;
        copy.nest.parallel = nest_.parallel;
        copy.nest.dtype = nest_.dtype;
        copy.nest.body = place_read(nest_.accumulator, results_,
                                    {nest_.parallel[form_.rows.result].variable - form_.rows.first(),
                                     nest_.parallel[form_.columns.result].variable - form_.columns.first(),
                                     nest_.parallel[form_.lanes].variable});
        copy.destinations = member_.destinations;
        return schedule_map(copy, builder_);
    }

    const Member& member_;
    const Nest& nest_;
    const ScatterForm form_;
    const Registers registers_;
    const std::int64_t channels_;
    KernelBuilder& builder_;
    int results_ = -1, lists_ = -1;
};

}  // namespace

std::int64_t ScatterForm::Axis::first() const {
    return -shift - std::max<std::int64_t>(0, step * (taps - 1));
}
std::int64_t ScatterForm::Axis::count() const { return places + std::abs(step) * (taps - 1); }

std::optional<ScatterForm> scatter_form(const Nest& nest) {
    constexpr std::size_t taps_and_channels = 3;
    if (!adds_products(nest) || !nest.lets.empty() || !nest.guards.empty() ||
        nest.dtype != nest.accumulator || nest.reduced.size() != taps_and_channels)
        return {};
    for (const Loop& l : nest.reduced)
        if (!l.extent.is_constant()) return {};
    const Loop& channel = nest.reduced.back();
    const std::uint64_t id = channel.variable.symbol_id();
    if (!id || channel.extent.constant() < fewest_channels) return {};
    for (const int f : {0, 1}) {
        const Scalar &sparse = nest.body->arguments[static_cast<std::size_t>(f)],
                     &other = nest.body->arguments[static_cast<std::size_t>(1 - f)];
        if (sparse->kind != ScalarNode::Kind::read || other->kind != ScalarNode::Kind::read ||
            !other->guards.empty())
            continue;
        ScatterForm form;
        form.factor = f;
        std::vector<std::size_t> moved;  // axes of the factor that taps or results move along
        bool found = false;
        for (std::size_t d = 0; d < sparse->at.size(); ++d) {
            if (sparse->at[d] == channel.variable) {
                form.channels = d;
                found = true;
            } else if (depends_on(sparse->at[d], id)) {
                found = false;
                break;
            } else if (std::any_of(nest.reduced.begin(), nest.reduced.end() - 1, [&](const Loop& l) {
                           return l.variable.symbol_id() && depends_on(sparse->at[d], l.variable.symbol_id());
                       })) {
                moved.push_back(d);
            }
        }
        if (!found || moved.size() != 2) continue;
        const std::optional<ScatterForm::Axis> rows = axis_of(nest, *sparse, moved[0], nest.reduced[0]),
                                               columns = axis_of(nest, *sparse, moved[1], nest.reduced[1]);
        if (!rows || !columns || rows->result == columns->result) continue;
        form.rows = *rows;
        form.columns = *columns;
        // The other loops over results: the lanes, and the row of the first axis, if it is one.
        std::size_t lanes = nest.parallel.size();
        bool fits = true;
        for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
            const Int& variable = nest.parallel[i].variable;
            if (i == rows->result || i == columns->result) {
                fits = fits && !varies(nest, other, variable);
            } else if (varies(nest, other, variable)) {
                fits = fits && lanes == nest.parallel.size() && !varies(nest, sparse, variable);
                lanes = i;
            } else {
                fits = fits && (i == 0 || !variable.symbol_id());
            }
        }
        if (!fits || lanes == nest.parallel.size() || !nest.parallel[lanes].extent.is_constant() ||
            nest.parallel[lanes].extent.constant() < fewest_channels)
            continue;
        form.lanes = lanes;
        return form;
    }
    return {};
}

namespace {

std::optional<ScatterForm> scattered(const Values& values, const Nest& nest, const Target& target) {
    if (!target.has_vectors() || target.fast_compile) return {};
    std::optional<ScatterForm> form = scatter_form(nest);
    if (!form || form->rows.taps * form->columns.taps > target.vector_registers - other_registers) return {};
    const ScalarNode &sparse = *nest.body->arguments[static_cast<std::size_t>(form->factor)],
                     &other = *nest.body->arguments[static_cast<std::size_t>(1 - form->factor)];
    const Value& value = values.list[static_cast<std::size_t>(sparse.operand.value())];
    const ReductionTree tree = tree_of(nest, values.shapes());
    const bool zeros = value.nest.body && selects_by_place(value.nest),
               side_by_side = other.at.back() == nest.parallel[form->lanes].variable;
    if (!zeros || !side_by_side || tree.split || tree.lanes > 1 || !complete(*form, nest, value.shape))
        return {};
    return form;
}

std::int64_t scatter_bytes(const ScatterForm& form, const Nest& nest, const Target& target) {
    const Registers r = registers_of(form, nest, target);
    const std::int64_t channels = nest.reduced.back().extent.constant();
    return form.rows.count() * form.columns.count() * r.count * r.width * bytes_of(nest.accumulator) +
           rows_together(form, channels) * form.columns.places * (channels + around_list) *
               bytes_of(DType::int32);
}

}  // namespace

std::set<int> scattered_members(const Group& group, const SegmentContext& context, std::int64_t& used) {
    std::set<int> members;
    for (const int v : group.values) {
        const Nest& nest = context.grouping.nests[static_cast<std::size_t>(v)];
        const std::optional<ScatterForm> form = scattered(context.values, nest, context.target);
        if (!form) continue;
        const std::int64_t bytes = scatter_bytes(*form, nest, context.target);
        const int factor = nest.body->arguments[static_cast<std::size_t>(form->factor)]->operand.value();
        const Value& places = context.values.list[static_cast<std::size_t>(factor)];
        std::int64_t copy = 0;
        if (places.storage == Value::Storage::staged)
            copy = count_of(Shape(places.shape.begin() + 1, places.shape.end())).constant() *
                   bytes_of(places.node->type.dtype);
        if (used + bytes + copy > context.target.local_bytes) continue;
        used += bytes;
        members.insert(v);
    }
    return members;
}

Stmts schedule_scatter(const Member& member, const Target& target, KernelBuilder& builder) {
    std::optional<ScatterForm> form = scatter_form(member.nest);
    BITALE_CHECK(form, "a sum that cannot be scattered");
    const Scalar& sparse = member.nest.body->arguments[static_cast<std::size_t>(form->factor)];
    const bool whole = complete(*form, member.nest,
                                builder.ir.places[static_cast<std::size_t>(sparse->operand.place())].extents);
    BITALE_CHECK(whole, "a sum whose places lie elsewhere");
    return Scatter(member, *form, target, builder).run();
}

}  // namespace bitale
