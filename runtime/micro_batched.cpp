#include "runtime/micro_batched.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <unordered_set>
#include <utility>

#include "bitale/error.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "graph/ir/array_bytes.h"
#include "graph/ir/borrowed.h"
#include "graph/ir/shared.h"
#include "graph/walk/equal_lengths.h"
#include "graph/walk/import.h"
#include "ops/rules/phases.h"
#include "runtime/exec/stacked.h"
#include "runtime/report.h"
#include "runtime/storage/host_memory.h"
#include "runtime/validate.h"

namespace bitale {

namespace {

std::vector<Type> types_of(const Nodes& nodes) {
    std::vector<Type> types;
    for (const NodePtr& node : nodes) types.push_back(node->type);
    return types;
}

// The graph of primitives, split. Further inputs, and the outputs that stand for them, come after the
// function's own.
MicroBatches split(const Function::State& function, std::shared_ptr<const Graph>& optimised) {
    Graph graph = function.before_givens ? *function.before_givens : *function.plain;
    const std::size_t inputs = function.plain->inputs.size(), outputs = function.plain->outputs.size();
    optimize(graph);
    NodeMap stand_ins;
    for (std::size_t i = inputs; i < graph.inputs.size(); ++i)
        stand_ins.emplace(graph.inputs[i].get(), graph.outputs.at(outputs + i - inputs));
    graph.outputs.resize(outputs);
    MicroBatches r = micro_batches(graph, inputs, stand_ins, function.where);
    optimised = std::make_shared<const Graph>(std::move(graph));
    return r;
}

// Writes rows [first, ...) of the result along the axis.
void put_rows(Array& result, const Array& part, int axis, std::int64_t first) {
    const auto a = static_cast<std::size_t>(axis);
    std::int64_t before = 1, behind = bytes_of(part.dtype());
    for (std::size_t d = 0; d < part.shape().size(); ++d)
        (d < a ? before : behind) *= d == a ? 1 : part.shape()[d];
    const std::int64_t rows = part.shape()[a], all = result.shape()[a];
    char* to = static_cast<char*>(result.mutable_data());
    const char* from = static_cast<const char*>(part.data());
    for (std::int64_t k = 0; k < before; ++k)
        std::memcpy(to + (k * all + first) * behind, from + k * rows * behind,
                    static_cast<std::size_t>(rows * behind));
}

}  // namespace

std::shared_ptr<const Graph> graph_before_givens(const std::vector<Input>& inputs,
                                                 const std::vector<Expr>& outputs,
                                                 const FunctionOptions& options, const Graph& plain,
                                                 Where where) {
    std::vector<Input> all = inputs;
    FunctionOptions others = options;
    others.givens.clear();
    others.on_unused_input = OnUnused::ignore;
    Nodes replacements;
    Substitution known;  // lengths behind the first one, told by the inputs
    std::set<std::uint64_t> of_inputs;
    for (const Input& input : inputs)
        for (const Int& length : input.variable.node()->type.shape) of_inputs.insert(length.symbol_id());
    const auto is_told = [&](const Int& length) {
        const std::vector<AtomPtr> symbols = symbols_of(length);
        return std::all_of(symbols.begin(), symbols.end(),
                           [&](const AtomPtr& symbol) { return of_inputs.contains(symbol->id); });
    };
    for (const Given& g : options.givens) {
        const NodePtr& variable = g.variable.node();
        const Type& type = variable->type;
        if (variable->op == input_op() && type.rank() > 0) {
            all.emplace_back(g.variable);
            replacements.push_back(g.replacement.node());
            const Shape& shape = replacements.back()->type.shape;
            for (std::size_t axis = 1; axis < shape.size(); ++axis)
                if (const std::uint64_t id = type.shape[axis].symbol_id(); id && is_told(shape[axis]))
                    known.emplace(id, shape[axis]);
        } else {
            others.givens.push_back(g);
        }
    }
    if (replacements.empty()) return nullptr;
    Graph graph = validate(all, outputs, others, where).graph;
    // A stream that a replacement draws from moves on as well.
    std::unordered_set<const SharedState*> updated;
    for (const SharedUpdate& u : graph.updates) updated.insert(u.target.get());
    for (const SharedUpdate& u : plain.updates)
        if (!updated.contains(u.target.get())) graph.updates.push_back(u);
    graph.outputs.insert(graph.outputs.end(), replacements.begin(), replacements.end());
    if (!known.empty()) set_lengths(graph, known);
    collect_checks(graph);
    return std::make_shared<const Graph>(std::move(graph));
}

std::size_t passes_over_parts(const Function::State& function) try {
    std::shared_ptr<const Graph> optimised;
    return split(function, optimised).passes.size();
} catch (const GraphError&) {
    return 0;
}

MicroBatched::MicroBatched(const Function::State& function, std::int64_t rows,
                           std::optional<Recomputation> how)
    : rows_(rows),
      function_(function),
      build_(build_of(function)),
      outputs_(types_of(function.plain->outputs)),
      shared_(function.shared),
      plan_(split(function, optimised_)),
      table_(symbols_of(function.signature)) {
    for (std::size_t p = 0; p < plan_.passes.size(); ++p) {
        const std::string which =
            plan_.passes.size() == 1 ? "" : fmt::format(", pass {} of {}", p + 1, plan_.passes.size());
        passes_.push_back(planned(function, plan_.passes[p].graph, "a part of the batch" + which, how));
        std::vector<TotalType>& types = total_types_.emplace_back();
        for (const MicroBatches::Total& total : plan_.passes[p].totals) {
            const Array& value = total.variable->value;
            types.push_back({value.dtype(), value.shape()});
            shared_.push_back({total.variable, true});
            total_bytes_ += value.bytes();
        }
    }
    finale_ = planned(function, plan_.finale, "after all parts", {});
    for (std::size_t p = 0; p <= passes_.size(); ++p) {
        const Function::State& part = p < passes_.size() ? *passes_[p] : *finale_;
        frames_.push_back(std::make_unique<Frames>(part.program, part.signature));
    }
    std::sort(shared_.begin(), shared_.end(),
              [](const SharedUse& a, const SharedUse& b) { return a.variable < b.variable; });
    checks_ = std::make_unique<LengthChecks>(build_.signature.checks, symbols_of(build_.signature),
                                             build_.signature, table_);
    all_rows_ = table_.add(plan_.rows);
    for (const Type& output : outputs_) {
        std::vector<int>& slots = lengths_.emplace_back();
        for (const Int& length : output.shape) slots.push_back(table_.add(length));
    }
    if (rows > 0) {
        prepare();
        return;
    }
    // A candidate that is not taken keeps no memory but one empty array.
    const Array none;
    for (const MicroBatches::Pass& pass : plan_.passes)
        for (const MicroBatches::Total& total : pass.totals) total.variable->value = none;
}

MicroBatched::Part MicroBatched::planned(const Function::State& function, const Graph& graph,
                                         const std::string& title, const std::optional<Recomputation>& how) {
    auto part = std::make_shared<Function::State>();
    part->name = function.name + ": " + title;
    part->where = function.where;
    part->device = function.device;
    part->precision = function.precision;
    part->profile = function.profile;
    part->strict_math = function.strict_math;
    Graph own = graph;
    own.name = part->name;
    Interner interner;
    import(own, interner);
    if (how) computed_again_ += recompute(own, *how);
    part->signature = signature_of(own);
    part->inputs = part->signature.inputs;
    part->plain = part->optimised = std::make_shared<const Graph>(std::move(own));
    generate_program(*part, {});
    return part;
}

void MicroBatched::prepare() {
    if (is_prepared_.load()) return;
    beginnings_.clear();
    make_totals();
    for (const MicroBatches::Pass& pass : plan_.passes) {
        std::vector<Array>& beginnings = beginnings_.emplace_back();
        for (const MicroBatches::Total& total : pass.totals) beginnings.push_back(beginning_of(total));
    }
    // Not what an earlier try has prepared: other threads may be dropping its arena.
    for (const Part& part : passes_)
        if (!part->executable) prepare_program(*part);
    if (!finale_->executable) prepare_program(*finale_);
    is_prepared_.store(true);
}

void MicroBatched::make_totals() {
    for (std::size_t p = 0; p < plan_.passes.size(); ++p)
        for (std::size_t k = 0; k < total_types_[p].size(); ++k) {
            const TotalType& type = total_types_[p][k];
            Array& value = plan_.passes[p].totals[k].variable->value;
            if (value.shape() != type.shape || value.dtype() != type.dtype ||
                !ArrayMemory::has_elements(value))
                value = limited_array(type.dtype, type.shape, options().memory_limit);
        }
    has_totals_.store(true);
}

// Not those that a call of this or another thread has. On a GPU they keep their places there.
void MicroBatched::drop_totals() {
    if (!has_totals_.load() || executable_for(*finale_).ledger() != &host_ledger()) return;
    std::vector<std::unique_lock<TurnLock>> locks;
    for (const MicroBatches::Pass& pass : plan_.passes)
        for (const MicroBatches::Total& total : pass.totals)
            if (!locks.emplace_back(total.variable->turns, std::try_to_lock).owns_lock()) return;
    const Array none;
    for (const MicroBatches::Pass& pass : plan_.passes)
        for (const MicroBatches::Total& total : pass.totals) total.variable->value = none;
    has_totals_.store(false);
}

const Executable& MicroBatched::executable_for(const Function::State& part) const {
    const Executable* own = part.current.load(std::memory_order_acquire);
    return own ? *own : *function_.current.load(std::memory_order_acquire);
}

MicroBatched::Sizes MicroBatched::sizes_of(std::vector<std::int64_t> symbols) const {
    Sizes sizes;
    sizes.symbols = std::move(symbols);
    sizes.slots.resize(table_.slots());
    table_.evaluate(sizes.symbols.data(), sizes.slots.data());
    checks_->verify(sizes.symbols.data(), sizes.slots.data());
    sizes.all_rows = sizes.slots[static_cast<std::size_t>(all_rows_)];
    return sizes;
}

MicroBatched::Sizes MicroBatched::sizes_of(std::span<const Array> arguments) const {
    Arguments binder(build_.signature);
    std::vector<std::int64_t> symbols(binder.symbols());
    std::vector<const void*> data(build_.signature.inputs.size());
    binder.bind(arguments, symbols.data(), data.data());
    Sizes sizes = sizes_of(std::move(symbols));
    for (const Array& a : arguments) sizes.argument_bytes += a.bytes();
    return sizes;
}

Dims MicroBatched::shape_of_output(std::size_t output, const Sizes& sizes) const {
    Dims shape;
    for (const int slot : lengths_[output]) shape.push_back(sizes.slots[static_cast<std::size_t>(slot)]);
    return shape;
}

std::vector<Dims> MicroBatched::shapes_of_outputs(const Sizes& sizes) const {
    std::vector<Dims> shapes;
    for (std::size_t k = 0; k < outputs_.size(); ++k) shapes.push_back(shape_of_output(k, sizes));
    return shapes;
}

// Of the inputs of a part, those of the function have their lengths, then come first row, rows of the part
// and rows of the batch.
std::vector<std::int64_t> MicroBatched::symbols_of_part(const Signature& part, const Sizes& sizes,
                                                        std::int64_t rows) const {
    const std::int64_t scalars[] = {0, rows, sizes.all_rows};
    const auto own = static_cast<int>(build_.signature.inputs.size());
    std::vector<std::int64_t> symbols;
    for (const SizeSource& source : part.sources) {
        if (source.input >= own) {
            symbols.push_back(scalars[source.input - own]);
            continue;
        }
        // A length that a part shares among inputs may be another symbol of the function's, of the same
        // value.
        std::int64_t number = sizes.all_rows;
        for (std::size_t k = 0; k < sizes.symbols.size(); ++k) {
            const SizeSource& s = build_.signature.sources[k];
            if (s.input == source.input && s.axis == source.axis) number = sizes.symbols[k];
        }
        symbols.push_back(number);
    }
    return symbols;
}

std::vector<Array> MicroBatched::run(std::span<const Array> arguments) { return run(arguments, 0, 0); }

void MicroBatched::begin(std::size_t pass) {
    for (std::size_t k = 0; k < plan_.passes[pass].totals.size(); ++k) {
        SharedState& total = *plan_.passes[pass].totals[k].variable;
        const Array& beginning = beginnings_[pass][k];
        total.fetch = nullptr;
        char* to = static_cast<char*>(total.data_to_write());
        const std::int64_t all = total.value.bytes(), one = beginning.bytes();
        for (std::int64_t done = 0; done < all;) {
            const std::int64_t more = done == 0 ? std::min(one, all) : std::min(done, all - done);
            std::memcpy(to + done, done == 0 ? beginning.data() : to, static_cast<std::size_t>(more));
            done += more;
        }
        ++total.version;
    }
}

std::vector<Array> MicroBatched::run_in_parts(std::span<const Array> arguments, const Sizes& sizes,
                                              std::int64_t most) {
    const std::int64_t rows = sizes.all_rows;
    if (rows_ == 0 && last_rows_.exchange(most) != most) drop_arenas_of_parts();  // of larger ones
    if (!has_totals_.load()) make_totals();
    std::vector<Array> results(outputs_.size()), all(arguments.begin(), arguments.end());
    const std::size_t first_scalar = all.size();
    for (int k = 0; k < 3; ++k) all.emplace_back(rows);
    for (std::size_t p = 0; p < passes_.size(); ++p) {
        const MicroBatches::Pass& pass = plan_.passes[p];
        begin(p);
        std::int64_t first = 0;
        do {
            const std::int64_t count = std::min(most, rows - first);
            all[first_scalar] = Array(first);
            all[first_scalar + 1] = Array(count);
            std::vector<Array> part;
            try {
                part = passes_[p]->executable->run(all);
            } catch (const Error&) {
                rethrow_with(fmt::format(" (in rows {} to {} of the batch, from which the error counts)",
                                         first, first + count));
            }
            for (std::size_t k = 0; k < pass.rows.size(); ++k) {
                const MicroBatches::Rows& to = pass.rows[k];
                Array& result = results[to.output];
                if (count == rows) {
                    result = part[k];
                    continue;
                }
                if (first == 0)
                    result = pooled_array(part[k].dtype(), shape_of_output(to.output, sizes),
                                          options().memory_limit);
                put_rows(result, part[k], to.axis, first * to.elements);
            }
            first += count;
        } while (first < rows);
    }
    const std::vector<Array> whole = finale_->executable->run(all);
    for (std::size_t k = 0; k < whole.size(); ++k) results[plan_.whole[k]] = whole[k];
    return results;
}

std::vector<Array> MicroBatched::loop(const LoopCall& call) {
    std::vector<Array> arguments(call.arguments.begin(), call.arguments.end());
    std::vector<DType> dtypes;
    for (const Type& output : outputs_) dtypes.push_back(output.dtype);
    std::optional<StackedResults> stacked;
    std::int64_t bytes = 0;
    const auto make_room = [&](const Sizes& sizes) {
        if (call.steps > 0) require_room(sizes.symbols, call.steps);
        const std::vector<Dims> shapes = shapes_of_outputs(sizes);
        stacked.emplace(function_.name, dtypes, shapes, call.steps, options().memory_limit);
        for (std::size_t k = 0; k < shapes.size(); ++k)
            bytes += pooled_bytes(bytes_of(dtypes[k], shapes[k]) * call.steps);
    };
    const auto step = [&](std::int64_t, std::int64_t value) {
        arguments[0] = Array(value);
        const Sizes sizes = sizes_of(arguments);
        if (!stacked) make_room(sizes);
        stacked->check(shapes_of_outputs(sizes));
        const std::vector<Array> results = run(arguments, call.steps, bytes);
        stacked->add([&](std::size_t k, char* to, std::int64_t count) {
            if (count > 0) std::memcpy(to, results[k].data(), static_cast<std::size_t>(count));
        });
    };
    for_each_step(call, step, [&] { call.lock->let_others(); });
    if (!stacked) make_room(sizes_of(call.arguments));
    return stacked->take();
}

void MicroBatched::drop_arena() {
    drop_arenas_of_parts();
    drop_totals();
}

void MicroBatched::drop_arenas_of_parts() {
    for_each_executable([](Executable& executable) { executable.drop_arena(); });
}

std::int64_t MicroBatched::arena_bytes() const {
    std::int64_t bytes = has_totals_.load() ? total_bytes_ : 0;
    for_each_executable([&](const Executable& executable) { bytes += executable.arena_bytes(); });
    return bytes;
}

int MicroBatched::compiler_runs() const {
    int runs = 0;
    for_each_executable([&](const Executable& executable) { runs += executable.compiler_runs(); });
    return runs;
}

std::vector<Profile::Row> MicroBatched::profile() const {
    std::vector<Profile::Row> rows;
    for_each_executable([&](const Executable& executable) {
        const std::vector<Profile::Row> own = executable.profile();
        rows.insert(rows.end(), own.begin(), own.end());
    });
    return rows;
}

std::vector<LaunchCounts> MicroBatched::counts() const {
    std::vector<LaunchCounts> all;
    for_each_executable([&](const Executable& executable) {
        const std::vector<LaunchCounts> own = executable.counts();
        all.insert(all.end(), own.begin(), own.end());
    });
    return all;
}

std::vector<Kernel> MicroBatched::kernels() const {
    std::vector<Kernel> all;
    for (const Part& part : passes_) all.insert(all.end(), part->kernels->begin(), part->kernels->end());
    all.insert(all.end(), finale_->kernels->begin(), finale_->kernels->end());
    return all;
}

std::string MicroBatched::report(Detail detail) const {
    std::size_t totals = 0;
    for (const MicroBatches::Pass& pass : plan_.passes) totals += pass.totals.size();
    std::string s = fmt::format(
        "  the {} rows of a batch are computed {} at a time, in {} pass{} over them; {} total{} of {} "
        "bytes\n",
        plan_.rows.text(), rows_ > 0 ? std::to_string(rows_) : "as many as fit", passes_.size(),
        passes_.size() == 1 ? "" : "es", totals, totals == 1 ? "" : "s", total_bytes_);
    const Expected call = expected();
    const auto add = [&](const Function::State& part) {
        s += "\n" + report_of(part, detail, symbols_of_part(part.signature, call.sizes, call.rows));
    };
    for (const Part& part : passes_) add(*part);
    add(*finale_);
    return s;
}

}  // namespace bitale
