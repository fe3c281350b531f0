// Numbers for the lengths that a signature leaves open.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "graph/base/text.h"
#include "graph/walk/traverse.h"
#include "runtime/memory/plan.h"

namespace bitale {

namespace {

using Values = std::map<std::uint64_t, std::int64_t>;

bool is_known(const Int& x, const Values& values) {
    const std::vector<AtomPtr> symbols = symbols_of(x);
    return std::all_of(symbols.begin(), symbols.end(),
                       [&](const AtomPtr& symbol) { return values.contains(symbol->id); });
}

class Resolver {
  public:
    explicit Resolver(const Build& build) : build_(build), signature_(build.signature) {}

    std::vector<std::int64_t> run(const ExampleShapes& examples, const std::vector<std::int64_t>& last_call) {
        for (const std::pair<Expr, Dims>& example : examples) take(example);
        infer_lengths(signature_.checks, values_);
        if (last_call.size() == signature_.sources.size())
            for (std::size_t s = 0; s < last_call.size(); ++s)
                values_.emplace(signature_.sources[s].symbol, last_call[s]);
        std::vector<std::int64_t> symbols;
        std::map<int, std::string> missing;
        for (const SizeSource& source : signature_.sources) {
            const auto at = values_.find(source.symbol);
            if (at == values_.end() && source.axis >= 0)
                missing[source.input] += (missing[source.input].empty() ? "" : ", ") + source.value.text();
            symbols.push_back(at == values_.end() ? 0 : at->second);
        }
        if (!missing.empty()) refuse(missing);
        return symbols;
    }

  private:
    std::string name(std::size_t input) const {
        const InputInfo& info = signature_.inputs[input];
        const std::string words = info.name.empty() ? fmt::format("input {}", input) : in_quotes(info.name);
        return fmt::format("{} ({}){}", words, text_of(info.type),
                           info.where.line ? " at " + info.where.text() : "");
    }

    void take(const std::pair<Expr, Dims>& example) {
        std::size_t i = 0;
        while (i < build_.plain->inputs.size() && build_.plain->inputs[i] != example.first.node()) ++i;
        if (i == build_.plain->inputs.size())
            throw GraphError(fmt::format(
                "memory_plan of \"{}\": {} is not an input of the function", signature_.function,
                example.first.is_null() ? "an empty expression" : describe(*example.first.node())));
        const Shape& shape = signature_.inputs[i].type.shape;
        const auto refuse = [&](const std::string& why) {
            throw ShapeError(fmt::format("memory_plan of \"{}\": the example {} for input {} cannot be: {}",
                                         signature_.function, text_of(example.second), name(i), why));
        };
        if (shape.size() != example.second.size()) refuse("the ranks differ");
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            const std::int64_t length = example.second[axis];
            if (length == -1 && axis == 0) continue;  // as of the last call
            if (length < 0) refuse(fmt::format("axis {} has a negative length", axis));
            if (shape[axis].is_constant() && shape[axis].constant() != length)
                refuse(fmt::format("axis {} has length {}", axis, shape[axis].constant()));
            if (const std::uint64_t id = shape[axis].symbol_id())
                if (const auto [at, is_new] = values_.emplace(id, length); !is_new && at->second != length)
                    refuse(fmt::format("axis {} is {} elsewhere", axis, at->second));
        }
    }

    [[noreturn]] void refuse(const std::map<int, std::string>& missing) const {
        std::string text, example;
        for (const auto& [input, lengths] : missing) {
            const auto i = static_cast<std::size_t>(input);
            text += fmt::format("{}{} of input {}", text.empty() ? "" : "; ", lengths, name(i));
            example +=
                fmt::format("{}{{{}, {{", example.empty() ? "" : ", ",
                            signature_.inputs[i].name.empty() ? "x" : printable(signature_.inputs[i].name));
            for (std::size_t axis = 0; axis < signature_.inputs[i].type.shape.size(); ++axis) {
                const Int& length = signature_.inputs[i].type.shape[axis];
                example += (axis ? ", " : "") + (length.is_constant() ? length.text() : std::string("..."));
            }
            example += "}}";
        }
        throw GraphError(
            fmt::format("memory_plan of \"{}\" needs lengths that only a call tells: {}; give "
                        "examples, memory_plan({{{}}}), or call the function first",
                        signature_.function, text, example));
    }

    const Build& build_;
    const Signature& signature_;
    Values values_;
};

}  // namespace

void infer_lengths(const std::vector<LengthCheck>& checks, Values& values) {
    for (bool again = true; again;) {
        again = false;
        for (const LengthCheck& check : checks)
            for (const auto& [unknown, other] :
                 {std::pair(&check.a, &check.b), std::pair(&check.b, &check.a)}) {
                const std::uint64_t id = unknown->symbol_id();
                if (id == 0 || values.contains(id) || !is_known(*other, values)) continue;
                values.emplace(id, evaluate(*other, values));
                again = true;
            }
    }
}

std::vector<std::int64_t> symbols_of(const Build& build, const ExampleShapes& examples,
                                     const std::vector<std::int64_t>& last_call) {
    return Resolver(build).run(examples, last_call);
}

}  // namespace bitale
