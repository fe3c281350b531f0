#include "runtime/specialised.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <unordered_set>
#include <utility>

#include "graph/base/log.h"
#include "graph/base/text.h"
#include "graph/walk/equal_lengths.h"
#include "graph/walk/traverse.h"
#include "runtime/dump.h"
#include "runtime/example_shapes.h"
#include "runtime/exec/int_table.h"
#include "runtime/memory/plan.h"
#include "runtime/recomputed.h"
#include "runtime/report.h"
#include "runtime/state.h"

namespace bitale {

namespace {

void add_symbols(const Int& x, std::set<std::uint64_t>& to) {
    for (const AtomPtr& symbol : symbols_of(x)) to.insert(symbol->id);
}

// Symbols that the lengths and attributes of the graph's values mention.
std::set<std::uint64_t> symbols_that_matter(const Graph& graph) {
    std::set<std::uint64_t> all;
    for (const NodePtr& node : topological(graph.roots())) {
        for (const Int& length : node->type.shape) add_symbols(length, all);
        for (const auto& [name, value] : node->attributes.entries()) {
            if (const Int* x = std::get_if<Int>(&value)) add_symbols(*x, all);
            if (const auto* list = std::get_if<std::vector<Int>>(&value))
                for (const Int& x : *list) add_symbols(x, all);
        }
    }
    return all;
}

bool is_known(const Int& x, const std::map<std::uint64_t, std::int64_t>& numbers) {
    const std::vector<AtomPtr> symbols = symbols_of(x);
    return std::all_of(symbols.begin(), symbols.end(),
                       [&](const AtomPtr& symbol) { return numbers.contains(symbol->id); });
}

// Those checks that these lengths decide; throws ShapeError or IndexError as a call does.
void check_lengths(const Signature& signature, const std::map<std::uint64_t, std::int64_t>& numbers) {
    std::vector<std::uint64_t> symbols;
    std::vector<std::int64_t> values;
    for (const auto& [symbol, number] : numbers) {
        symbols.push_back(symbol);
        values.push_back(number);
    }
    std::vector<LengthCheck> decided;
    for (const LengthCheck& check : signature.checks)
        if (is_known(check.a, numbers) && is_known(check.b, numbers)) decided.push_back(check);
    IntTable table(symbols);
    const LengthChecks checks(decided, symbols, signature, table);
    std::vector<std::int64_t> slots(table.slots());
    table.evaluate(values.data(), slots.data());
    checks.verify(values.data(), slots.data());
}

[[noreturn]] void refuse(const Function::State& function, const std::string& what) {
    throw GraphError(function.where, fmt::format("function \"{}\": {}", function.name, what));
}

// The lengths that example shapes and the function's defaults tell.
std::map<std::uint64_t, std::int64_t> numbers_of(const Function::State& function,
                                                 const ExampleShapes& shapes) {
    const Nodes& inputs = function.plain->inputs;
    std::vector<std::optional<Dims>> given(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (function.defaults[i]) given[i] = function.defaults[i]->shape();
    for (const auto& [variable, shape] : shapes) {
        const NodePtr node = variable.is_null() ? nullptr : variable.node();
        const auto at = std::find(inputs.begin(), inputs.end(), node);
        if (at == inputs.end())
            refuse(function, fmt::format("an example shape is of {}, which is none of its inputs",
                                         node ? describe(*node) : "an empty expression"));
        given[static_cast<std::size_t>(at - inputs.begin())] = shape;
    }
    std::map<std::uint64_t, std::int64_t> known;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!given[i]) continue;
        const Shape& shape = inputs[i]->type.shape;
        bool fits = given[i]->size() == shape.size();
        for (std::size_t axis = 0; fits && axis < shape.size(); ++axis) {
            const std::int64_t length = (*given[i])[axis];
            if (length == -1 && axis == 0) continue;
            fits = length >= 0 && (!shape[axis].is_constant() || shape[axis].is(length));
            if (const std::uint64_t symbol = shape[axis].symbol_id()) known.emplace(symbol, length);
        }
        if (!fits)
            throw ShapeError(function.where,
                             fmt::format("function \"{}\": {} cannot have the shape {}", function.name,
                                         describe(*inputs[i]), text_of(*given[i])));
    }
    infer_lengths(function.signature.checks, known);
    return known;
}

std::string name_of(const Node& input, std::size_t number) {
    return input.name.empty() ? fmt::format("input {}", number) : printable(input.name);
}

// "x = [n, 1, 28, 28]": the inputs whose lengths a version knows, leading ones by letters.
std::string lengths_text(const Graph& version, const std::vector<FreeLength>& free) {
    static const char* const letters[] = {"n", "m", "k"};
    std::vector<Int> leading;
    std::string text;
    std::size_t last = version.inputs.size();
    for (const FreeLength& f : free) {
        if (f.input == last || f.is_leading()) continue;
        last = f.input;
        const Node& input = *version.inputs[f.input];
        std::string shape;
        for (const Int& length : input.type.shape) {
            std::string one = length.text();
            if (!length.is_constant()) {
                const auto at = std::find(leading.begin(), leading.end(), length);
                const auto letter = static_cast<std::size_t>(at - leading.begin());
                if (at == leading.end()) leading.push_back(length);
                if (letter < std::size(letters)) one = letters[letter];
            }
            shape += (shape.empty() ? "" : ", ") + one;
        }
        text += fmt::format("{}{} = [{}]", text.empty() ? "" : ", ", name_of(input, f.input), shape);
    }
    return text;
}

// What a call must bring to this version: what it must bring to the function, with the same messages.
Signature signature_of_version(const Signature& general, const Substitution& numbers) {
    Signature s;
    s.function = general.function;
    s.inputs = general.inputs;
    for (InputInfo& input : s.inputs)
        for (Int& length : input.type.shape) length = substitute(length, numbers);
    for (const SizeSource& source : general.sources) {
        const auto number = numbers.find(source.symbol);
        if (number == numbers.end())
            s.sources.push_back(source);
        else
            s.fixed.add(source.value.text(), number->second.constant());
    }
    for (const LengthCheck& check : general.checks) {
        LengthCheck c = check;
        c.a = substitute(check.a, numbers);
        c.b = substitute(check.b, numbers);
        if (!(c.a == c.b)) s.checks.push_back(std::move(c));
    }
    return s;
}

}  // namespace

void check_shapes(const Function::State& function, const ExampleShapes& shapes) {
    check_lengths(function.signature, numbers_of(function, shapes));
}

std::vector<FreeLength> free_lengths(const Graph& graph, bool single_rows) {
    const Substitution given = equal_lengths(graph);
    std::optional<std::set<std::uint64_t>> matter;
    std::vector<FreeLength> free;
    bool any = false;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const Shape& shape = graph.inputs[i]->type.shape;
        for (std::size_t axis = single_rows ? 0 : 1; axis < shape.size(); ++axis) {
            const std::uint64_t symbol = shape[axis].symbol_id();
            if (symbol == 0 || substitute(shape[axis], given).is_constant()) continue;
            if (!matter) matter = symbols_that_matter(graph);
            if (!matter->contains(symbol)) continue;
            free.push_back({i, axis, symbol});
            any = any || axis > 0;
        }
    }
    return any ? free : std::vector<FreeLength>();
}

Specialised::Specialised(const Function::State& function, std::vector<FreeLength> free)
    : function_(function), free_(std::move(free)) {
    for (const FreeLength& f : free_)
        if (inputs_.empty() || inputs_.back() != f.input) inputs_.push_back(f.input);
    entries_.reserve(most_versions);
}

template <class Matches>
Specialised::Version Specialised::find(const Matches& matches) const {
    const std::shared_lock lock(table_);
    const Entry* const latest = latest_.load(std::memory_order_acquire);
    if (latest && matches(*latest)) return latest->version;
    for (const std::unique_ptr<Entry>& entry : entries_)
        if (matches(*entry)) {
            use(entry.get());
            return entry->version;
        }
    return nullptr;
}

// Who is replaced as the latest is older than whoever is so later.
void Specialised::use(Entry* entry) const {
    if (Entry* const before = latest_.exchange(entry)) before->used.store(clock_.fetch_add(1) + 1);
}

// With all that is known: what does not fit goes where the function as it is written is asked.
std::vector<Dims> Specialised::shapes_of(const Lengths& lengths) const {
    std::vector<Dims> shapes;
    for (const std::size_t input : inputs_) {
        Dims& shape = shapes.emplace_back();
        for (const Int& length : function_.signature.inputs[input].type.shape)
            shape.push_back(length.is_constant() ? length.constant() : -1);
        for (std::size_t k = 0; k < free_.size(); ++k)
            if (free_[k].input == input) shape[free_[k].axis] = lengths[k];
    }
    return shapes;
}

bool Specialised::fits(const Entry& entry, std::span<const Array> arguments) const {
    if (arguments.size() != function_.inputs.size()) return false;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        const Array& argument = arguments[inputs_[k]];
        const Dims &shape = argument.shape(), &wanted = entry.shapes[k];
        if (argument.dtype() != function_.inputs[inputs_[k]].type.dtype || shape.size() != wanted.size())
            return false;
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
            if (wanted[axis] == no_single_row ? shape[axis] == 1
                                              : wanted[axis] >= 0 && shape[axis] != wanted[axis])
                return false;
    }
    return true;
}

Specialised::Version Specialised::find(const Lengths& lengths) const {
    return find([&](const Entry& entry) { return entry.lengths == lengths; });
}

// What fits these arguments, if it is what the last call ran: without a lock.
Specialised::Entry* Specialised::entered(std::span<const Array> arguments) {
    Entry* const latest = latest_.load();
    if (!latest || !fits(*latest, arguments)) return nullptr;
    latest->calls.fetch_add(1);
    if (!latest->is_gone.load()) return latest;
    leave(*latest);
    return nullptr;
}

Specialised::Version Specialised::of_call(std::span<const Array> arguments) {
    if (Version version = find([&](const Entry& entry) { return fits(entry, arguments); })) return version;
    Arguments binder(function_.signature);
    std::vector<std::int64_t> values(binder.symbols());
    std::vector<const void*> data(arguments.size());
    binder.bind(arguments, values.data(), data.data());
    Numbers all, known;
    for (std::size_t s = 0; s < values.size(); ++s) {
        const SizeSource& source = function_.signature.sources[s];
        all.emplace(source.symbol, values[s]);
        if (source.axis >= 0) known.emplace(source.symbol, values[s]);
    }
    Lengths lengths;
    for (const FreeLength& f : free_) {
        const auto at = known.find(f.symbol);
        const bool told = !f.is_leading() || (at != known.end() && at->second == 1);
        lengths.push_back(told ? known.at(f.symbol) : no_single_row);
    }
    return made(lengths, known, all);
}

void Specialised::refuse(const std::string& what) const { bitale::refuse(function_, what); }

Specialised::Version Specialised::of_shapes(const ExampleShapes& shapes) {
    Numbers known = numbers_of(function_, shapes);
    if (const std::optional<Lengths> last = lengths_of_latest())
        for (std::size_t k = 0; k < free_.size(); ++k)
            if ((*last)[k] != no_single_row) known.emplace(free_[k].symbol, (*last)[k]);
    Lengths lengths;
    for (const FreeLength& f : free_) {
        const auto at = known.find(f.symbol);
        if (f.is_leading()) {
            lengths.push_back(at != known.end() && at->second == 1 ? 1 : no_single_row);
            continue;
        }
        if (at == known.end())
            refuse("an example shape of " + describe(*function_.plain->inputs[f.input]) + " is missing");
        lengths.push_back(at->second);
    }
    return made(lengths, known, {});
}

Specialised::Version Specialised::made(const Lengths& lengths, const Numbers& known,
                                       const Numbers& for_tuning) {
    check_lengths(function_.signature, known);
    Version gone;  // ends after the lock is given back
    const std::lock_guard lock(making_);
    if (Version version = find(lengths)) return version;
    auto entry = std::make_unique<Entry>();
    entry->lengths = lengths;
    entry->shapes = shapes_of(lengths);
    entry->version = compiled(lengths, for_tuning);
    Version version = entry->version;
    add_cost(version->compile_seconds, version->executable->compiler_runs() + version->tuning.compiler_runs);
    if (insert(std::move(entry)) && !warned_) warn_of_many(version->lengths);
    const Writing table(table_);
    gone = taken_from_the_gone();
    return version;
}

Specialised::Version Specialised::compiled(const Lengths& lengths, const Numbers& for_tuning) const {
    Substitution numbers;
    for (std::size_t k = 0; k < free_.size(); ++k)
        if (lengths[k] != no_single_row) numbers.emplace(free_[k].symbol, lengths[k]);
    auto state = std::make_shared<Function::State>();
    state->name = function_.name;
    state->where = function_.where;
    state->device = function_.device;
    state->signature = signature_of_version(function_.signature, numbers);
    state->inputs = state->signature.inputs;
    state->defaults = function_.defaults;
    state->shared = function_.shared;
    state->precision = function_.precision;
    state->profile = function_.profile;
    state->memory_limit = function_.memory_limit;
    state->activations = function_.activations;
    state->strict_math = function_.strict_math;
    state->autotune = function_.autotune;
    state->version_of = function_.specialised.get();
    Graph graph = *function_.plain;
    set_lengths(graph, numbers);
    state->lengths = lengths_text(graph, free_);
    Lengths told = lengths;
    std::erase(told, no_single_row);
    state->dump_folder = make_dump_folder(function_.name + " " + fmt::format("{}", fmt::join(told, "x")));
    graph.dump_folder = state->dump_folder;
    state->plain = std::make_shared<const Graph>(std::move(graph));
    state->micro_batch = function_.micro_batch;
    if (function_.before_givens) {
        Graph before = *function_.before_givens;
        set_lengths(before, numbers);
        state->before_givens = std::make_shared<const Graph>(std::move(before));
    }
    compile(*state, for_tuning);
    return state;
}

// Whether another one went.
bool Specialised::insert(std::unique_ptr<Entry> entry) {
    const Writing lock(table_);
    gone_.reserve(gone_.size() + most_versions + 1);
    use(entry.get());
    const bool full = entries_.size() == most_versions;
    if (full) {
        const auto oldest =
            std::min_element(entries_.begin(), entries_.end(),
                             [](const auto& a, const auto& b) { return a->used.load() < b->used.load(); });
        let_go(*oldest);
        *oldest = std::move(entry);
    } else {
        entries_.push_back(std::move(entry));
    }
    return full;
}

// With the table locked, as what follows; where gone_ has room.
void Specialised::let_go(std::unique_ptr<Entry>& entry) {
    entry->is_gone.store(true);
    gone_.push_back(std::move(entry));
}

// A version that went and no call is in, for its end without locks; or null.
Specialised::Version Specialised::taken_from_the_gone() {
    for (const std::unique_ptr<Entry>& entry : gone_)
        if (entry->version && entry->calls.load() == 0) return std::move(entry->version);
    return nullptr;
}

void Specialised::sweep() {
    for (;;) {
        Version one;
        const Writing lock(table_);
        one = taken_from_the_gone();
        if (!one) return;
    }
}

void Specialised::leave(Entry& entry) {
    if (entry.calls.fetch_sub(1) == 1 && entry.is_gone.load()) sweep();
}

void Specialised::warn_of_many(const std::string& lengths) {
    warned_ = true;
    warn(fmt::format(
        "{}: the function \"{}\" was called with more than {} sets of trailing lengths, the last "
        "one {}; it is compiled anew for each, and the {} used last are kept. If they change "
        "all the time, give it .specialise = false: one version for all lengths",
        function_.where.text(), printable(function_.name), most_versions, lengths, most_versions));
}

void Specialised::add_cost(double seconds, int compiler_runs) {
    seconds_.fetch_add(seconds);
    runs_.fetch_add(compiler_runs);
}

Specialised::Version Specialised::latest() const {
    return find([](const Entry&) { return true; });
}

std::optional<Specialised::Lengths> Specialised::lengths_of_latest() const {
    std::optional<Lengths> lengths;
    find([&](const Entry& entry) {
        lengths = entry.lengths;
        return true;
    });
    return lengths;
}

bool Specialised::keep_only_of(std::span<const Array> arguments) {
    bool any = false;
    {
        const Writing lock(table_);
        for (std::unique_ptr<Entry>& entry : entries_) {
            if (fits(*entry, arguments)) continue;
            let_go(entry);
            any = true;
        }
        std::erase(entries_, nullptr);
        if (any) latest_.store(entries_.empty() ? nullptr : entries_.front().get());
    }
    sweep();
    return any;
}

std::vector<Specialised::Version> Specialised::kept() const {
    std::vector<Version> all;
    all.reserve(most_versions);
    const std::shared_lock lock(table_);
    for (const std::unique_ptr<Entry>& entry : entries_) all.push_back(entry->version);
    return all;
}

std::string Specialised::missing() const {
    std::string inputs;
    for (std::size_t k = 0; k < free_.size();) {
        const std::size_t input = free_[k].input;
        std::vector<std::size_t> axes;
        for (; k < free_.size() && free_[k].input == input; ++k)
            if (!free_[k].is_leading()) axes.push_back(free_[k].axis);
        if (axes.empty()) continue;
        inputs +=
            fmt::format("{}{}, {} {}", inputs.empty() ? "" : "; ", describe(*function_.plain->inputs[input]),
                        axes.size() == 1 ? "axis" : "axes", fmt::join(axes, ", "));
    }
    return "compiled at the first call, for the lengths that arrive; not known yet: " + inputs;
}

std::string Specialised::report(Detail detail) const {
    const Version version = latest();
    if (!version) return report_of(function_, detail);
    std::string text;
    {
        const std::lock_guard lock(version->waiting);
        text = report_of(*version, detail);
    }
    std::string others;
    std::size_t count = 0;
    for (const Version& v : kept())
        if (v != version) others += "  " + v->lengths + "\n", ++count;
    if (detail == Detail::brief && count > 1)
        return text + fmt::format("\n{} other versions are kept, for other lengths\n", count);
    return others.empty() ? text : text + "\nOther versions that are kept:\n" + others;
}

const std::vector<Kernel>& Specialised::kernels() const {
    const Version version = latest();
    if (!version)
        refuse("there are no kernels before the first call; it is " + missing() +
               ". Ask for kernels of example shapes, or give it .specialise = false");
    const std::lock_guard lock(version->waiting);
    const std::lock_guard showing(showing_);
    const void* const list = version->kernels.get();
    for (const Shown& shown : shown_)
        if (shown.version.lock() == version && shown.list == list) return *shown.kernels;
    auto copy = std::make_unique<const std::vector<Kernel>>(*version->kernels);
    return *shown_.emplace_back(Shown{version, list, std::move(copy)}).kernels;
}

std::vector<Profile::Row> Specialised::profile() const {
    std::vector<Profile::Row> all;
    for (const Version& version : kept()) {
        const std::vector<Profile::Row> rows = version->current.load(std::memory_order_acquire)->profile();
        all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
}

std::int64_t Specialised::arena_bytes() const {
    std::int64_t bytes = 0;
    for (const Version& version : kept()) bytes += largest_arena_of(*version);
    return bytes;
}

}  // namespace bitale
