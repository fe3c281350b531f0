// Signatures of graphs; binding of arguments to symbols.
#include "runtime/exec/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "graph/types/convert.h"
#include "graph/walk/traverse.h"
#include "runtime/exec/int_table.h"
#include "runtime/exec/told_lengths.h"

namespace bitale {

namespace {

// Whether the number is the same in the other dtype; floats may round but not overflow.
bool fits(const Array& value, DType dtype) {
    const Array there = value.as(dtype);
    if (is_float(value.dtype()) && is_float(dtype))
        return std::isfinite(there.at(0)) || !std::isfinite(value.at(0));
    if (is_float(value.dtype()) && !std::isfinite(value.at(0))) return false;
    // A float beyond all integers of a dtype becomes the largest, which may be the same float again.
    const auto is_beyond = [](double number, DType integers) {
        return dispatch(integers, [&](auto zero) {
            return number >= std::ldexp(1.0, std::numeric_limits<decltype(zero)>::digits);
        });
    };
    if (is_float(value.dtype()) && !is_float(dtype) && is_beyond(value.at(0), dtype)) return false;
    if (is_float(dtype) && !is_float(value.dtype()) && is_beyond(there.at(0), value.dtype())) return false;
    // 64-bit integers do not survive a detour over double: they are compared as themselves.
    if (!same(there.as(value.dtype()), value)) return false;
    return (value.at(0) < 0) == (there.at(0) < 0);
}

// Sizes beyond 64 bits are the last number of those (IntTable).
constexpr std::int64_t most_elements = std::numeric_limits<std::int64_t>::max() - 1;

[[noreturn]] void refuse_lengths(const std::string& message, bool is_index, std::int64_t a, std::int64_t b) {
    if (has_marks(message)) {
        const std::string whole = completed(message, a, b);
        if (is_index) throw IndexError(whole);
        throw ShapeError(whole);
    }
    if (a > most_elements) throw ShapeError(message);
    if (is_index) throw IndexError(fmt::format("{}: it takes {}, and there are {}", message, a, b));
    throw ShapeError(fmt::format("{}: here {} and {}", message, a, b));
}

// What a value of another rank than the input's may have been meant for.
std::string rank_cure(const Shape& wanted, const Dims& given) {
    constexpr const char* kinds[] = {"number", "vector", "matrix"};
    const auto kind = [&](std::size_t rank) {
        return rank < std::size(kinds) ? "a " + std::string(kinds[rank])
                                       : fmt::format("an array with {} axes", rank);
    };
    std::string text =
        fmt::format(": the ranks differ; pass {}, not {}", kind(wanted.size()), kind(given.size()));
    if (given.empty()) return text + (wanted.size() == 1 ? ": Array{...}" : "");
    // One item of a batch: the same axes behind a first one.
    Dims batch = given;
    batch.insert(batch.begin(), 1);
    if (batch.size() != wanted.size()) return text;
    for (std::size_t axis = 0; axis < batch.size(); ++axis)
        if (wanted[axis].is_constant() && wanted[axis].constant() != batch[axis]) return text;
    const std::string lengths = text_of(batch);
    return fmt::format("{}; one row is value.reshaped({{{}}})", text, lengths.substr(1, lengths.size() - 2));
}

}  // namespace

bool is_like_default(const Array& value) { return value.rank() == 1 && value.size() == 0; }

std::string default_text(const std::string& subject) {
    return "; " + subject +
           " is an empty Array, as Array() and a vector without elements make it; give it its value first";
}

// Whether unknown numbers are multiplied in it.
bool is_product(const Int& length) {
    constexpr std::int64_t largest = 4;  // times one length, which is below 2^61, stays a 64-bit integer
    return std::any_of(length.terms().begin(), length.terms().end(), [](const Int::Term& t) {
        return t.atoms.size() > 1 || std::abs(t.factor) > largest ||
               std::any_of(t.atoms.begin(), t.atoms.end(), [](const AtomPtr& a) {
                   return a->kind != Atom::Kind::symbol && (is_product(a->a) || is_product(a->b));
               });
    });
}

bool may_be_uncountable(const Shape& shape) {
    const auto is_unknown = [](const Int& length) { return !length.is_constant(); };
    return std::count_if(shape.begin(), shape.end(), is_unknown) > 1 ||
           std::any_of(shape.begin(), shape.end(), is_product);
}

Signature signature_of(const Graph& graph) {
    Signature s;
    s.function = graph.name;
    std::map<std::uint64_t, int> known;
    const auto source = [&](const Int& value, std::size_t input, int axis) {
        if (const std::uint64_t id = value.symbol_id(); id != 0 && known.emplace(id, 0).second)
            s.sources.push_back({id, value, static_cast<int>(input), axis});
    };
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const Node& input = *graph.inputs[i];
        s.inputs.push_back({input.name, input.where, input.type});
        for (int axis = 0; axis < input.type.rank(); ++axis)
            source(input.type.shape[static_cast<std::size_t>(axis)], i, axis);
        if (const Attribute* symbol = input.attributes.find("symbol")) source(std::get<Int>(*symbol), i, -1);
    }
    std::set<std::pair<Int, Int>> checked;
    const auto check = [&](const Int& a, const Int& b, const std::string& message, bool is_index = false) {
        if (a == b) return;
        if (a.is_constant() && b.is_constant()) refuse_lengths(message, is_index, a.constant(), b.constant());
        if (checked.emplace(a, b).second) s.checks.push_back({a, b, message, is_index});
    };
    for (const NodePtr& node : topological(graph.roots())) {
        if (node->op->equalities)
            for (const Equality& e : node->op->equalities(*node))
                check(e.a, e.b, message_of(e, *node), e.is_index);
        // Two of them could make a number of elements that is none.
        for (const Int& length : node->type.shape)
            if (length.range().low < 0)
                check(length, max(length, 0), describe(*node) + ": a length is negative");
        if (may_be_uncountable(node->type.shape)) {
            const Int count = count_of(node->type.shape);
            check(count, min(count, most_elements), describe(*node) + ": more elements than can be counted");
        }
    }
    for (const SharedUpdate& u : graph.updates) {
        const Reading reading(u.target->turns);
        const Dims& dims = u.target->value.shape();
        for (std::size_t axis = 0; axis < dims.size(); ++axis)
            check(u.value->type.shape.at(axis), dims[axis],
                  fmt::format("{}: the update of {} ({} {}) must keep its shape, but axis {} of {} has "
                              "length {}, and the variable has {}",
                              u.where.text(), in_quotes(u.target->name), name_of(u.target->value.dtype()),
                              text_of(dims), axis, describe(*u.value), number_found(), number_there()));
    }
    return s;
}

Arguments::Arguments(Signature signature)
    : signature_(std::move(signature)),
      scalar_symbol_(signature_.inputs.size(), -1),
      cells_(signature_.inputs.size()) {
    std::map<std::uint64_t, int> position;
    for (std::size_t p = 0; p < signature_.sources.size(); ++p) {
        const SizeSource& source = signature_.sources[p];
        position.emplace(source.symbol, static_cast<int>(p));
        if (source.axis < 0) scalar_symbol_[static_cast<std::size_t>(source.input)] = static_cast<int>(p);
    }
    for (std::size_t i = 0; i < signature_.inputs.size(); ++i) {
        std::vector<Axis>& axes = axes_.emplace_back();
        const Shape& shape = signature_.inputs[i].type.shape;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            Axis a;
            if (shape[axis].is_constant()) a.known = shape[axis].constant();
            if (const auto at = position.find(shape[axis].symbol_id()); at != position.end()) {
                a.symbol = at->second;
                const SizeSource& source = signature_.sources[static_cast<std::size_t>(at->second)];
                a.first = source.input == static_cast<int>(i) && source.axis == static_cast<int>(axis);
            }
            axes.push_back(a);
        }
    }
}

std::vector<std::uint64_t> symbols_of(const Signature& signature) {
    std::vector<std::uint64_t> ids;
    for (const SizeSource& source : signature.sources) ids.push_back(source.symbol);
    return ids;
}

std::vector<std::uint64_t> Arguments::symbol_ids() const { return symbols_of(signature_); }

std::string Arguments::complaint(std::size_t input, const Array& value) const {
    const InputInfo& info = signature_.inputs[input];
    const std::string function =
        signature_.function.empty() ? "" : " of function \"" + signature_.function + "\"";
    const std::string name = info.name.empty() ? "the input" : "input " + in_quotes(info.name);
    return fmt::format("{}argument {}{} is {} {}, but {} is declared {}as {}",
                       info.where.line ? info.where.text() + ": " : "", input, function,
                       name_of(value.dtype()), text_of(value.shape()), name, info.where.line ? "here " : "",
                       text_of(info.type));
}

std::string Arguments::exchanged(std::span<const Array> arguments) const {
    constexpr std::size_t most = 16;  // of more, there are too many pairs
    if (arguments.size() != signature_.inputs.size() || arguments.size() > most) return "";
    for (std::size_t j = 1; j < arguments.size(); ++j)
        for (std::size_t i = 0; i < j; ++i) {
            std::vector<Array> other(arguments.begin(), arguments.end());
            std::swap(other[i], other[j]);
            try {
                Arguments binder(signature_);
                std::vector<std::int64_t> values(symbols());
                std::vector<const void*> data(other.size());
                binder.bind_each(other, values.data(), data.data(), "");
                IntTable table(symbol_ids());
                const LengthChecks checks(signature_.checks, symbol_ids(), signature_, table);
                std::vector<std::int64_t> slots(table.slots());
                table.evaluate(values.data(), slots.data());
                checks.verify(values.data(), slots.data());
            } catch (const Error&) {
                continue;
            }
            return fmt::format("; arguments {} and {} seem to be exchanged, for the other way round they fit",
                               i, j);
        }
    return "";
}

void Arguments::take_scalar(std::size_t input, const Array& value, const std::string& cure) {
    const DType wanted = signature_.inputs[input].type.dtype;
    if (value.rank() != 0)
        throw ShapeError(complaint(input, value) +
                         (cure.empty() && !is_like_default(value) ? "; pass one number" : cure));
    if (value.dtype() == wanted) {
        std::memcpy(cells_[input].bytes, value.data(), static_cast<std::size_t>(bytes_of(wanted)));
        return;
    }
    if (!fits(value, wanted))
        throw TypeError(fmt::format("{}: {} does not fit {}{}", complaint(input, value), value.at(0),
                                    name_of(wanted), cure));
    std::memcpy(cells_[input].bytes, value.as(wanted).data(), static_cast<std::size_t>(bytes_of(wanted)));
}

void Arguments::check_shape(std::size_t input, const Array& value, const std::string& cure) const {
    const InputInfo& info = signature_.inputs[input];
    if (value.dtype() != info.type.dtype)
        throw TypeError(complaint(input, value) +
                        (cure.empty() && !(is_like_default(value) && value.dtype() == float32)
                             ? fmt::format("; convert it with .as({}), or declare the input as {}",
                                           name_of(info.type.dtype), name_of(value.dtype()))
                             : cure));
    if (value.rank() != info.type.rank())
        throw ShapeError(complaint(input, value) + (!cure.empty() ? cure
                                                    : is_like_default(value)
                                                        ? ": the ranks differ"
                                                        : rank_cure(info.type.shape, value.shape())));
}

void Arguments::bind(std::span<const Array> arguments, std::int64_t* values, const void** data) {
    try {
        bind_each(arguments, values, data, "");
    } catch (const Error&) {
        // What is wrong first may be only half of the mistake.
        const std::string cure = exchanged(arguments);
        if (cure.empty()) throw;
        bind_each(arguments, values, data, cure);
        throw;
    }
}

void Arguments::bind_each(std::span<const Array> arguments, std::int64_t* values, const void** data,
                          const std::string& cure) {
    if (arguments.size() != signature_.inputs.size())
        throw GraphError(fmt::format("function \"{}\" takes {} arguments, the call has {}",
                                     signature_.function, signature_.inputs.size(), arguments.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const Array& value = arguments[i];
        if (signature_.inputs[i].type.rank() == 0) {
            take_scalar(i, value, cure);
            data[i] = cells_[i].bytes;
            if (scalar_symbol_[i] >= 0) {
                const DType dtype = signature_.inputs[i].type.dtype;
                values[scalar_symbol_[i]] = dispatch(dtype, [&](auto t) {
                    decltype(t) number;
                    std::memcpy(&number, cells_[i].bytes, sizeof number);
                    return convert<std::int64_t>(number);
                });
            }
            continue;
        }
        check_shape(i, value, cure);
        data[i] = value.data();
        for (std::size_t axis = 0; axis < axes_[i].size(); ++axis) {
            const Axis& a = axes_[i][axis];
            const std::int64_t length = value.shape()[axis];
            if (a.symbol >= 0 && a.first) {
                values[a.symbol] = length;
            } else if (a.symbol >= 0 ? values[a.symbol] != length : a.known >= 0 && a.known != length) {
                throw ShapeError(fmt::format("{}: axis {} must have length {}{}", complaint(i, value), axis,
                                             a.symbol >= 0 ? values[a.symbol] : a.known, cure));
            }
        }
    }
}

void Arguments::set_scalar(std::size_t input, std::int64_t value, std::int64_t* values) {
    const DType dtype = signature_.inputs[input].type.dtype;
    const bool kept = dispatch(dtype, [&](auto t) {
        const auto number = convert<decltype(t)>(value);
        std::memcpy(cells_[input].bytes, &number, sizeof number);
        return convert<std::int64_t>(number) == value && (value < 0) == (convert<double>(number) < 0);
    });
    if (!kept) take_scalar(input, Array(value), "");  // says what does not fit
    if (scalar_symbol_[input] >= 0) values[scalar_symbol_[input]] = value;
}

LengthChecks::LengthChecks(const std::vector<LengthCheck>& checks, const std::vector<std::uint64_t>& symbols,
                           const Signature& of, IntTable& table)
    : fixed_(of.fixed) {
    std::map<std::uint64_t, std::string> known;
    for (const SizeSource& source : of.sources) known.emplace(source.symbol, source.value.text());
    for (const std::uint64_t symbol : symbols) names_.push_back(known[symbol]);
    for (const LengthCheck& c : checks)
        pairs_.push_back({table.add(c.a), table.add(c.b), c.message, c.is_index});
}

void LengthChecks::verify(const std::int64_t* symbols, const std::int64_t* slots) const {
    for (const Pair& p : pairs_) {
        if (slots[p.a] == slots[p.b]) continue;
        ToldLengths lengths = fixed_;
        for (std::size_t i = 0; i < names_.size(); ++i) lengths.add(names_[i], symbols[i]);
        refuse_lengths(lengths.in(p.message), p.is_index, slots[p.a], slots[p.b]);
    }
}

}  // namespace bitale
